// The load of a node, and the places where it has footage, as `GET /api/metrics` answers.

import { z } from 'zod';

const gib = (what: string) => z.number().int().nonnegative().describe(`${what}, in units of 2^30 bytes, rounded.`);

const Disk = z.object({
  path: z.string(),
  state: z
    .enum(['in-use', 'leaving', 'failing'])
    .describe('leaving: its files move to the other disks. failing: nothing is written to it; problem says why.'),
  problem: z.string().optional(),
  free_gb: gib('Free'),
  total_gb: gib('Size'),
});

const Target = z.object({
  name: z.string(),
  problem: z.string().optional().describe('Why nothing, or not everything, is copied.'),
  lacking_files: z
    .number()
    .int()
    .describe(
      'Closed files of copied cameras on the disks of this node that the target does not have. While a long backlog is compared, at least so many.',
    ),
  lag_seconds: z.number().int().describe('How long the oldest file has waited for which it was time; 0: none waits.'),
  keeps_days: z
    .number()
    .nullable()
    .describe('How long the target keeps footage of these cameras, at most; null: as long as nobody removes it.'),
});

export const NodeMetrics = z
  .object({
    online: z.boolean(),
    node_name: z.string().describe('The setting nodeName, or the host name.'),
    cpu_load: z.number().int().min(0).max(100).describe('Percentage of all processors in use since the last request.'),
    mem_used_gb: gib('Memory that programs use'),
    mem_total_gb: gib('Memory'),
    storage_free_gb: gib('Free on the file systems of the archive'),
    storage_used_gb: gib('Used on the file systems of the archive'),
    storage_total_gb: gib('Size of the file systems of the archive, including blocks reserved for the system'),
    storage_error: z
      .string()
      .optional()
      .describe('Why the three values for storage are 0: the file system cannot be measured.'),
    storage_days: z
      .number()
      .optional()
      .describe(
        'Days for which the node can keep footage at the current bit rates, within its limits; absent while that is not known.',
      ),
    disks: z
      .array(Disk)
      .optional()
      .describe('Of an archive with several disks: each of them; the values for storage are their sums.'),
    targets: z.array(Target).optional().describe('With copies: where this node copies footage to.'),
    uncopied_cameras: z
      .number()
      .int()
      .optional()
      .describe('With targets: cameras of this node whose footage is not copied to any of them.'),
    timestamp: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'NodeMetrics', description: 'Load of the node.' });
