// Examines a camera for half a minute with the recorder's own session and pipeline, but without recording.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { CameraSource } from '../contract/camera-source.ts';
import { Camera } from '../camera/camera.ts';
import type { CameraObserver } from '../camera/observer.ts';
import type { CameraStatus } from '../contract/camera-status.ts';
import { SlabPool } from '../codec/slab.ts';
import type { Reach } from '../reach/reach.ts';
import type { Capture } from './capture.ts';
import { Examination } from './examination.ts';
import type { ProbeReport } from './report/report.ts';
import { reportOf } from './report.ts';

interface ProbeOptions {
  readonly seconds: number;
  /** Maximum size of a capture in bytes, uncompressed; 0 for none. */
  readonly captureBytes: number;
  readonly version: string;
}

export interface Probed {
  readonly report: ProbeReport;
  readonly capture: Capture | undefined;
}

/** The part of a camera that is watched; the camera may be recording to the archive. */
export interface ObservedCamera {
  observe(observer: CameraObserver): () => void;
  status(): CameraStatus;
}

/** Watches a camera that is connected or is trying to connect. */
export async function examine(
  camera: ObservedCamera,
  source: string,
  { seconds, captureBytes, version }: ProbeOptions,
  clock: Clock,
  signal?: AbortSignal,
): Promise<Probed> {
  const examination = new Examination({ clock, source, captureBytes });
  const leave = camera.observe(examination);
  try {
    await clock.sleep(seconds * 1000, signal);
  } finally {
    leave();
  }
  const status = camera.status();
  return {
    report: reportOf(examination.examined(), status),
    capture: captureBytes > 0 ? examination.capture(version, status.transport ?? 'tcp') : undefined,
  };
}

/** Connects to a camera and watches it. With `untilFailure` it stops at the first failure. */
export async function probe(
  source: Omit<CameraSource, 'id' | 'name'>,
  { untilFailure = false, ...options }: ProbeOptions & { readonly untilFailure?: boolean },
  deps: { readonly clock: Clock; readonly log: Log; readonly reach: Reach },
  signal?: AbortSignal,
): Promise<Probed> {
  const pool = new SlabPool();
  const receiveBuffer = Buffer.allocUnsafeSlow(64 * 1024);
  const camera = new Camera({ ...source, id: 'probe', name: 'probe' }, { ...deps, pool, receiveBuffer, sinks: [] });
  camera.start();
  const failed = new AbortController();
  const ticking = setInterval(() => {
    camera.tick(deps.clock.monotonicMs());
    if (untilFailure && camera.status().state === 'retrying') failed.abort();
  }, 250);
  try {
    const end = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
    return await examine(camera, source.source, options, deps.clock, end);
  } finally {
    clearInterval(ticking);
    await camera.stop();
  }
}
