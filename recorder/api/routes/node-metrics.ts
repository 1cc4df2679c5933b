// `/api/metrics`: the load of the node in whole numbers, for management platforms. Prometheus has a separate listener.

import { DAY_MS } from '../../../base/units.ts';
import type { CopyPlaces } from '../../contract/copy-places.ts';
import type { ApiDeps, ApiRoutes } from '../deps.ts';
import { NodeMetrics } from '../node-metrics-item.ts';
import { isoTime } from '../times.ts';
import { TIME } from '../examples.ts';

const GIB = 2 ** 30;
const toGib = (bytes: number): number => Math.round(bytes / GIB);

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
