// `/api/metrics`: the load of the node in whole numbers, for management platforms. Prometheus has a separate listener.

import { z } from 'zod';
import { DAY_MS } from '../../../base/units.ts';
import type { CopyPlaces } from '../../contract/copy-places.ts';
import type { ApiDeps, ApiRoutes } from '../deps.ts';
import { isoTime } from '../times.ts';
import { TIME } from '../examples.ts';

const GIB = 2 ** 30;
const toGib = (bytes: number): number => Math.round(bytes / GIB);

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

const NodeMetrics = z
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

type Deps = Pick<ApiDeps, 'archive' | 'machine' | 'log'>;

export const nodeMetricsRoutes: ApiRoutes = async (app, { deps }) => {
  app.get(
    '/api/metrics',
    {
      config: {
        role: 'viewer',
        cameras: 'none',
        examples: {
          200: {
            online: true,
            node_name: 'rack-1',
            cpu_load: 7,
            mem_used_gb: 3,
            mem_total_gb: 16,
            storage_free_gb: 1_210,
            storage_total_gb: 3_726,
            storage_used_gb: 2_513,
            storage_days: 31.4,
            disks: [
              { path: '/mnt/disk1', state: 'in-use', free_gb: 605, total_gb: 1_863 },
              { path: '/mnt/disk2', state: 'in-use', free_gb: 605, total_gb: 1_863 },
            ],
            targets: [{ name: 'offsite', lacking_files: 2, lag_seconds: 0, keeps_days: 60 }],
            uncopied_cameras: 0,
            timestamp: TIME,
          },
        },
      },
      schema: {
        operationId: 'getNodeMetrics',
        summary: 'Load of the node',
        tags: ['node'],
        response: { 200: NodeMetrics },
      },
    },
    async () => {
      const memory = deps.machine.memory();
      const outlookMs = deps.keeping?.outlookMs();
      const { disks, storageError } = await measured(deps);
      const sum = (of: 'usedBytes' | 'freeBytes' | 'totalBytes'): number =>
        toGib(disks.reduce((bytes, disk) => bytes + disk[of], 0));
      const places = deps.copies?.places(deps.cameras.list().map(({ status }) => status.id));
      return {
        online: true,
        node_name: deps.nodeName,
        cpu_load: Math.round(deps.machine.cpuPercent()),
        mem_used_gb: toGib(memory.usedBytes),
        mem_total_gb: toGib(memory.totalBytes),
        storage_free_gb: sum('freeBytes'),
        storage_used_gb: sum('usedBytes'),
        storage_total_gb: sum('totalBytes'),
        ...(storageError === undefined ? {} : { storage_error: storageError }),
        ...(outlookMs === undefined ? {} : { storage_days: Math.round((outlookMs * 10) / DAY_MS) / 10 }),
        ...(disks.length > 1 && { disks: disks.map(toDisk) }),
        ...(places && { targets: places.targets.map(toTarget), uncopied_cameras: places.uncopied }),
        timestamp: isoTime(deps.clock.wallMs()),
      };
    },
  );
};

type MeasuredDisk = Awaited<ReturnType<typeof measured>>['disks'][number];

/** The disks with their space. Of several, one that fails is not asked: it might not answer. */
async function measured({ archive, machine, log }: Deps) {
  const all = await archive.disks();
  let storageError: string | undefined;
  const disks = await Promise.all(
    all.map(async ({ path, isLeaving, fault }) => {
      const nothing = { usedBytes: 0, freeBytes: 0, totalBytes: 0 };
      const state = isLeaving ? ('leaving' as const) : ('in-use' as const);
      if (all.length > 1 && fault) return { path, state: 'failing' as const, problem: fault.message, ...nothing };
      try {
        return { path, state, problem: undefined, ...(await machine.disk(path)) };
      } catch (err) {
        log.warn({ err, path }, 'the file system of the archive cannot be measured');
        storageError = `the file system of the archive cannot be measured: ${(err as { code?: string }).code ?? 'error'}`;
        return { path, state, problem: storageError, ...nothing };
      }
    }),
  );
  return { disks, storageError };
}

const toDisk = ({ path, state, problem, freeBytes, totalBytes }: MeasuredDisk) => ({
  path,
  state,
  ...(problem !== undefined && { problem }),
  free_gb: toGib(freeBytes),
  total_gb: toGib(totalBytes),
});

const toTarget = ({
  name,
  problem,
  lackingFiles,
  lagMs,
  keepMs,
}: ReturnType<CopyPlaces['places']>['targets'][number]) => ({
  name,
  ...(problem && { problem: problem.message }),
  lacking_files: lackingFiles,
  lag_seconds: Math.floor(lagMs / 1000),
  keeps_days: keepMs === Infinity ? null : Math.round((keepMs * 10) / DAY_MS) / 10,
});
