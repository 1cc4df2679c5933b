// Still images as cameras make them: a camera's id in, the image at its address out. One question to the camera for all
// who ask at once, and its answer for all who ask soon after.

import type { Agent } from 'undici';
import type { Clock } from '../../base/clock.ts';
import { parseStillAddress } from './address.ts';
import { StillError } from './error.ts';
import { fetchImage, openAgent, type FetchedImage } from './fetch-image.ts';
import { SharedImages, type StillImage } from './shared-images.ts';

/** What is configured of a camera; the addresses may hold passwords. */
export interface SnapshotSource {
  readonly source: string;
  readonly snapshot: string | undefined;
  readonly tls: { readonly verify: boolean };
}

export interface SnapshotsDeps {
  /** Undefined for a camera that nobody knows. */
  readonly find: (cameraId: string) => SnapshotSource | undefined;
  readonly clock: Clock;
}

const GOOD_FOR_MS = 15_000;
const FAILURE_GOOD_FOR_MS = 1_000;
/** From the question to the last byte, logins and redirects included. */
const TIMEOUT_MS = 10_000;

export class Snapshots {
  readonly #d: SnapshotsDeps;
  readonly #images: SharedImages;
  readonly #trusting = openAgent(false);
  readonly #verifying = openAgent(true);
  readonly #end = new AbortController();

  constructor(deps: SnapshotsDeps) {
    this.#d = deps;
    const { clock } = deps;
    this.#images = new SharedImages({ goodForMs: GOOD_FOR_MS, failureGoodForMs: FAILURE_GOOD_FOR_MS, clock });
  }

  /** Rejects with StillError. */
  async get(cameraId: string): Promise<StillImage> {
    const camera = this.#d.find(cameraId);
    if (!camera) throw new StillError('unknown-camera', 'this node does not know such a camera');
    const { snapshot, source, tls } = camera;
    if (snapshot === undefined) {
      throw new StillError('no-snapshot-address', 'this camera has no snapshot address in the configuration');
    }
    const from = JSON.stringify([snapshot, source, tls.verify]);
    return this.#images.get(cameraId, from, () =>
      this.#fetch(snapshot, source, tls.verify ? this.#verifying : this.#trusting),
    );
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#end.abort(new StillError('camera-unreachable', 'the recorder stops'));
    await Promise.all([this.#trusting.destroy(), this.#verifying.destroy()]);
  }

  async #fetch(snapshot: string, source: string, agent: Agent): Promise<FetchedImage> {
    const late = new AbortController();
    const timer = this.#d.clock.after(TIMEOUT_MS, () => {
      late.abort(new StillError('camera-timeout', `the camera did not answer within ${TIMEOUT_MS / 1000} s`));
    });
    try {
      const signal = AbortSignal.any([late.signal, this.#end.signal]);
      return await fetchImage(parseStillAddress(snapshot, source), agent, signal);
    } finally {
      timer.cancel();
    }
  }
}
