// Examines cameras, one at a time: recorded ones on their existing connection while they are being recorded, and other addresses
// on a new connection.

import type { Clock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { Reach } from '../reach/reach.ts';
import { formatCapture } from './capture.ts';
import { DoctorBusy, type Examiner, type TriedCamera } from './report/examiner.ts';
import { examine, probe, type ObservedCamera, type Probed } from './run.ts';

/** Limit for a capture in the memory of a process that records. */
const MAX_RECORDER_CAPTURE_BYTES = 16 * 1024 * 1024;

interface DoctorDeps {
  readonly clock: Clock;
  readonly version: string;
  readonly reach: Reach;
  /** A camera that is recorded or is to be, and its source. */
  readonly find: (cameraId: string) => { readonly camera: ObservedCamera; readonly source: string } | undefined;
}

export class Doctor implements Examiner {
  readonly #deps: DoctorDeps;
  #busy = false;

  constructor(deps: DoctorDeps) {
    this.#deps = deps;
  }

  async report(cameraId: string, seconds: number, signal: AbortSignal): Promise<Probed['report'] | undefined> {
    return (await this.#examine(cameraId, seconds, 0, signal))?.report;
  }

  async capture(cameraId: string, seconds: number, signal: AbortSignal): Promise<Buffer | undefined> {
    const probed = await this.#examine(cameraId, seconds, MAX_RECORDER_CAPTURE_BYTES, signal);
    return probed?.capture && formatCapture(probed.capture);
  }

  tryOut(camera: TriedCamera, seconds: number, signal: AbortSignal): Promise<Probed['report']> {
    const { clock, reach, version } = this.#deps;
    return this.#alone(async () => {
      // Results are in the report, so nothing is logged.
      const deps = { clock, reach, log: silentLog };
      return (await probe(camera, { seconds, captureBytes: 0, version, untilFailure: true }, deps, signal)).report;
    });
  }

  async #examine(
    cameraId: string,
    seconds: number,
    captureBytes: number,
    signal: AbortSignal,
  ): Promise<Probed | undefined> {
    const { clock, version, find } = this.#deps;
    const found = find(cameraId);
    if (!found) return undefined;
    return this.#alone(() => examine(found.camera, found.source, { seconds, captureBytes, version }, clock, signal));
  }

  async #alone<T>(look: () => Promise<T>): Promise<T> {
    if (this.#busy) throw new DoctorBusy('another camera is being examined: try again when that is over');
    this.#busy = true;
    try {
      return await look();
    } finally {
      this.#busy = false;
    }
  }
}
