// Connects edge recovery with the cameras of this node: gives it their settings and states, and calls it regularly.

import type { Archive } from '../archive/archive.ts';
import type { GapLedger } from '../archive/gaps/ledger.ts';
import type { CameraSet } from '../cameras/camera-set.ts';
import { SlabPool } from '../codec/slab.ts';
import type { CameraConfig, Config } from '../config/schema.ts';
import type { EngineDeps } from './deps.ts';
import type { EdgeMemory } from '../edge/memory.ts';
import { openEdgeMemory } from '../edge/open.ts';
import { EdgeRecovery } from '../edge/recovery/recovery.ts';
import { unwrittenMs } from '../cameras/held-time.ts';
import type { NodeCameras } from './cameras.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';

/** As a multiple of the live bit rate: fast enough to catch up, and the link keeps capacity for the live stream. */
const DEFAULT_SHARE = 2;
/** While the bit rate of the live stream is not known. */
const LEAST_BITRATE = 1_000_000;

interface Footage {
  readonly archive: Archive;
  readonly gaps: GapLedger;
}

export function openEdgeRecovery(
  { archive: { syncIntervalMs } }: Config,
  wanted: WantedCameras,
  { archive, gaps, registry }: Footage & Pick<EngineDeps, 'registry'>,
  { cameras, reach }: Pick<NodeCameras, 'cameras' | 'reach'>,
  { clock, log }: Pick<EngineDeps, 'clock' | 'log'>,
): EdgeRecovery {
  const pool = new SlabPool();
  const memories = new WeakMap<NonNullable<CameraConfig['edge']>, EdgeMemory>();
  const memoryOf = (config: CameraConfig, edge: NonNullable<CameraConfig['edge']>): EdgeMemory => {
    const known = memories.get(edge) ?? openEdgeMemory(config, edge.source, { clock, reach, pool });
    memories.set(edge, known);
    return known;
  };
  return new EdgeRecovery({
    archive,
    gaps,
    cameras: () => withMemory(cameras, memoryOf),
    keptMs(cameraId) {
      const { node, cameras: own } = wanted.limits;
      const keptMs = Math.min(node.maxAgeMs ?? Infinity, own.get(cameraId)?.maxAgeMs ?? Infinity);
      return keptMs === Infinity ? undefined : keptMs;
    },
    oldestMs: (cameraId) => archive.catalogue.oldestStartMs(cameraId),
    unwrittenMs: unwrittenMs(syncIntervalMs),
    clock,
    log,
    registry,
  });
}

function* withMemory(
  cameras: CameraSet,
  memoryOf: (config: CameraConfig, edge: NonNullable<CameraConfig['edge']>) => EdgeMemory,
) {
  for (const { config, camera, recording } of cameras.recorded()) {
    const { id, name, record, edge } = config;
    if (!edge) continue;
    const { state, video, bitrate, clockAheadMs } = camera.status();
    yield {
      id,
      name,
      record,
      isRecording: state === 'recording' && recording.status().state === 'writing',
      memory: memoryOf(config, edge),
      maxBitrate: edge.maxBitrate ?? Math.max(LEAST_BITRATE, DEFAULT_SHARE * bitrate),
      video,
      clockAheadMs,
    };
  }
}
