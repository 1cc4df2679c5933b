// The retention limits of cameras whose footage this node has, but which it does not record: they moved to another node, are
// suspended, or belong to another pool now. Reads these Cameras one by one and slowly: a watch of all Cameras would send each
// node each change of each status, and lists of all by all nodes would grow by the square of the cluster.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { parseCamera } from '../../crds/camera.ts';
import type { CameraConfig } from '../config/schema.ts';
import { ApiServerError, type ApiServer } from './api-server.ts';
import { retentionOf } from './camera-settings.ts';

export type RetentionLimits = CameraConfig['record']['retention'];

interface LeftCamerasOptions {
  readonly api: Pick<ApiServer, 'get'>;
  readonly path: string;
  /** Cameras with footage here that are not assigned to this node. */
  readonly held: () => readonly string[];
  /** Called when a limit has changed. */
  readonly changed: () => void;
  readonly clock: Clock;
}

/** A camera is read when it has left, and then this often. */
const AGAIN_MS = 600_000;
/** The pause between reads, of whichever camera. */
const PAUSE_MS = 1_000;

export class LeftCameras {
  readonly #options: LeftCamerasOptions;
  readonly #closing = new AbortController();
  readonly #limits = new Map<string, RetentionLimits>();
  /** When each camera was read last. */
  readonly #readMs = new Map<string, number>();
  #dueMs = -Infinity;
  #looking: Promise<void> | undefined;

  constructor(options: LeftCamerasOptions) {
    this.#options = options;
  }

  /** As of the last answers of the API server. Cameras that were deleted, or whose limits cannot be read, are not in it. */
  get limits(): ReadonlyMap<string, RetentionLimits> {
    return this.#limits;
  }

  /** Call several times a second. */
  tick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#looking || this.#closing.signal.aborted || nowMs < this.#dueMs) return;
    this.#dueMs = nowMs + PAUSE_MS;
    const next = this.#next(nowMs);
    if (next !== undefined) this.#looking = this.#look(next).finally(() => (this.#looking = undefined));
  }

  /** A camera is recorded here now: what was read of it may soon be outdated. */
  taken(cameraId: string): void {
    this.#limits.delete(cameraId);
    this.#readMs.delete(cameraId);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#looking;
  }

  /** The camera that was not read for the longest time, if that is long enough. */
  #next(nowMs: number): string | undefined {
    const held = new Set(this.#options.held());
    for (const id of this.#readMs.keys()) if (!held.has(id)) this.taken(id);
    let next: string | undefined;
    let nextMs = nowMs - AGAIN_MS;
    for (const id of held) {
      const readMs = this.#readMs.get(id) ?? -Infinity;
      if (readMs > nextMs) continue;
      next = id;
      nextMs = readMs;
    }
    return next;
  }

  async #look(id: string): Promise<void> {
    const { api, path, changed, clock } = this.#options;
    // Also after a failure, so that the others come first.
    this.#readMs.set(id, clock.monotonicMs());
    let own: RetentionLimits | undefined;
    try {
      own = limitsOf(await api.get(`${path}/${encodeURIComponent(id)}`, { signal: this.#closing.signal }));
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      if (err.status !== 404) return this.#again(id);
    }
    // The camera may have been assigned to this node meanwhile.
    if (!this.#readMs.has(id) || isDeepStrictEqual(own, this.#limits.get(id))) return;
    if (own) this.#limits.set(id, own);
    else this.#limits.delete(id);
    changed();
  }

  /** It is read as soon as those that wait longer have been. */
  #again(id: string): void {
    if (this.#readMs.has(id)) this.#readMs.set(id, this.#options.clock.monotonicMs() - AGAIN_MS);
  }
}

function limitsOf(camera: unknown): RetentionLimits | undefined {
  try {
    return retentionOf(parseCamera(camera));
  } catch {
    // It has no limits that can be used.
    return undefined;
  }
}
