// The retention limits of cameras whose footage this node has, but which it does not record: they moved to another node, are
// suspended, or belong to another pool now. Reads all Cameras from time to time, because a node that watched them would get
// each change of each status.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { parseCamera } from '../../crds/camera.ts';
import type { CameraConfig } from '../config/schema.ts';
import { ApiServerError, type ApiServer } from './api-server.ts';
import { retentionOf } from './camera-settings.ts';

export type RetentionLimits = CameraConfig['record']['retention'];

interface LeftCamerasOptions {
  readonly api: Pick<ApiServer, 'list'>;
  /** The path of the Cameras of the namespace. */
  readonly path: string;
  /** Cameras with footage here that are not assigned to this node. */
  readonly held: () => readonly string[];
  /** Called when a limit has changed. */
  readonly changed: () => void;
  readonly clock: Clock;
}

const LOOK_MS = 60_000;
/** A list of thousands of Cameras is read less often. */
const PAUSE_PER_LOOK = 100;

export class LeftCameras {
  readonly #o: LeftCamerasOptions;
  readonly #closing = new AbortController();
  #limits = new Map<string, RetentionLimits>();
  #dueMs = -Infinity;
  #looking: Promise<void> | undefined;

  constructor(options: LeftCamerasOptions) {
    this.#o = options;
  }

  /** As of the last answer of the API server. Cameras that were deleted, or whose limits cannot be read, are not in it. */
  get limits(): ReadonlyMap<string, RetentionLimits> {
    return this.#limits;
  }

  /** Call several times a second. */
  tick(): void {
    if (this.#looking || this.#closing.signal.aborted) return;
    const { held, clock } = this.#o;
    if (clock.monotonicMs() < this.#dueMs) return;
    if (held().length > 0) this.#looking = this.#look().finally(() => (this.#looking = undefined));
  }

  /** A camera is recorded here now: what was read of it may soon be outdated. */
  taken(cameraId: string): void {
    this.#limits.delete(cameraId);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { api, path, held, changed, clock } = this.#o;
    const startMs = clock.monotonicMs();
    try {
      // 0: from the cache of the API server.
      const { items } = await api.list(path, { query: { resourceVersion: '0' }, signal: this.#closing.signal });
      const wanted = new Set(held());
      const limits = new Map<string, RetentionLimits>();
      for (const item of items) {
        const { name } = item.metadata;
        const own = wanted.has(name) ? limitsOf(item) : undefined;
        if (own) limits.set(name, own);
      }
      const isSame = isDeepStrictEqual(limits, this.#limits);
      this.#limits = limits;
      if (!isSame) changed();
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
    }
    this.#dueMs = Math.max(startMs + LOOK_MS, clock.monotonicMs() + PAUSE_PER_LOOK * (clock.monotonicMs() - startMs));
  }
}

function limitsOf(camera: unknown): RetentionLimits | undefined {
  try {
    return retentionOf(parseCamera(camera));
  } catch {
    return undefined;
  }
}
