// `/api/metrics`: the node's load in whole numbers, for management platforms. Prometheus has its own listener.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { ApiDeps } from '../deps.ts';
import { problemResponse } from '../../http/problem.ts';
import { isoTime } from '../times.ts';

const GIB = 2 ** 30;
const toGib = (bytes: number): number => Math.round(bytes / GIB);

const gib = (what: string) => z.number().int().nonnegative().describe(`${what}, in units of 2^30 bytes, rounded.`);

const NodeMetrics = z.object({
  online: z.boolean(),
  node_name: z.string().describe('The setting nodeName, or the host name.'),
  cpu_load: z.number().int().min(0).max(100).describe('Percent of all processors in use since the last question.'),
  mem_used_gb: gib('Memory that programs use'),
  mem_total_gb: gib('Memory'),
  storage_free_gb: gib('Free on the file system of the archive'),
  storage_used_gb: gib('Used on the file system of the archive'),
  timestamp: z.iso.datetime({ offset: true }),
});

type Deps = Pick<ApiDeps, 'machine' | 'nodeName' | 'clock' | 'log'>;

export const nodeMetricsRoutes: FastifyPluginAsyncZod<{ deps: Deps }> = async (app, { deps }) => {
  app.get(
    '/api/metrics',
    {
      config: { role: 'viewer', cameras: 'none' },
      schema: {
        summary: 'Load of the node',
        tags: ['node'],
        response: { 200: NodeMetrics, 401: problemResponse('No token, or a wrong one.') },
      },
    },
    async () => {
      const memory = deps.machine.memory();
      const disk = await deps.machine.disk().catch((err: unknown) => {
        deps.log.warn({ err }, 'file system of the archive cannot be measured');
        return { usedBytes: 0, freeBytes: 0 };
      });
      return {
        online: true,
        node_name: deps.nodeName,
        cpu_load: Math.round(deps.machine.cpuPercent()),
        mem_used_gb: toGib(memory.usedBytes),
        mem_total_gb: toGib(memory.totalBytes),
        storage_free_gb: toGib(disk.freeBytes),
        storage_used_gb: toGib(disk.usedBytes),
        timestamp: isoTime(deps.clock.wallMs()),
      };
    },
  );
};
