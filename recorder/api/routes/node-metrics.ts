// `/api/metrics`: the load of the node in whole numbers, for management platforms. Prometheus has a separate listener.

import { z } from 'zod';
import { DAY_MS } from '../../../base/units.ts';
import type { ApiRoutes } from '../deps.ts';
import { isoTime } from '../times.ts';
import { TIME } from '../examples.ts';

const GIB = 2 ** 30;
const toGib = (bytes: number): number => Math.round(bytes / GIB);

const gib = (what: string) => z.number().int().nonnegative().describe(`${what}, in units of 2^30 bytes, rounded.`);

const NodeMetrics = z
  .object({
    online: z.boolean(),
    node_name: z.string().describe('The setting nodeName, or the host name.'),
    cpu_load: z.number().int().min(0).max(100).describe('Percentage of all processors in use since the last request.'),
    mem_used_gb: gib('Memory that programs use'),
    mem_total_gb: gib('Memory'),
    storage_free_gb: gib('Free on the file system of the archive'),
    storage_used_gb: gib('Used on the file system of the archive'),
    storage_total_gb: gib('Size of the file system of the archive, including blocks reserved for the system'),
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
    timestamp: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'NodeMetrics', description: 'Load of the node.' });

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
      let storageError: string | undefined;
      const disk = await deps.machine.disk().catch((err: unknown) => {
        deps.log.warn({ err }, 'the file system of the archive cannot be measured');
        storageError = `the file system of the archive cannot be measured: ${(err as { code?: string }).code ?? 'error'}`;
        return { usedBytes: 0, freeBytes: 0, totalBytes: 0 };
      });
      return {
        online: true,
        node_name: deps.nodeName,
        cpu_load: Math.round(deps.machine.cpuPercent()),
        mem_used_gb: toGib(memory.usedBytes),
        mem_total_gb: toGib(memory.totalBytes),
        storage_free_gb: toGib(disk.freeBytes),
        storage_used_gb: toGib(disk.usedBytes),
        storage_total_gb: toGib(disk.totalBytes),
        ...(storageError === undefined ? {} : { storage_error: storageError }),
        ...(outlookMs === undefined ? {} : { storage_days: Math.round((outlookMs * 10) / DAY_MS) / 10 }),
        timestamp: isoTime(deps.clock.wallMs()),
      };
    },
  );
};
