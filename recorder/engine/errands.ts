// What an engine asks cameras on connections of their own: still images, movements, events, and what is in the networks of the node.

import { networkInterfaces } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import { OnvifError } from '../onvif/error.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { CameraSet } from '../cameras/camera-set.ts';
import type { CameraConfig, Config } from '../config/schema.ts';
import type { FrontOfEngine } from '../contract/news.ts';
import type { EngineErrands } from '../model/engine.ts';
import { CameraEvents } from '../onvif/camera-events.ts';
import { discover } from '../onvif/discovery/discover.ts';
import { addressesOf } from '../onvif/discovery/probe.ts';
import { Ptz, type MovableCamera } from '../onvif/ptz.ts';
import type { Reach } from '../reach/reach.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import { Snapshots } from '../snapshots/snapshots.ts';

/** Time limit for a PTZ command: a request waits for the previous command and its own. */
const PTZ_ANSWER_TIMEOUT_MS = 10_000;
/** Found cameras are asked with the TLS settings of a new camera. */
const TLS = { verify: false } as const;

interface ErrandsDeps {
  readonly cameras: Pick<CameraSet, 'list' | 'config'>;
  readonly reach: Reach;
  readonly keep: FrontOfEngine['keep'];
  readonly memory: MemoryAccount;
  readonly clock: Clock;
  readonly log: Log;
}

export class Errands implements EngineErrands {
  readonly #deps: ErrandsDeps;
  readonly #snapshots: Snapshots;
  readonly #ptz: Ptz;
  readonly #events: CameraEvents;

  constructor({ ptz: { moveTimeoutMs } }: Pick<Config, 'ptz'>, deps: ErrandsDeps) {
    const { cameras, reach, keep, memory, clock, log } = deps;
    this.#deps = deps;
    this.#snapshots = new Snapshots({ find: (id) => cameras.config(id), memory, reach, clock });
    this.#ptz = new Ptz({ clock, log, reach, limits: { moveTimeoutMs, answerTimeoutMs: PTZ_ANSWER_TIMEOUT_MS } });
    this.#events = new CameraEvents({ clock, log, reach, tell: keep });
  }

  snapshot(cameraId: string): ReturnType<EngineErrands['snapshot']> {
    return this.#snapshots.get(cameraId);
  }

  stillOfNew({
    source,
    snapshot,
  }: Parameters<EngineErrands['stillOfNew']>[0]): ReturnType<EngineErrands['stillOfNew']> {
    return this.#snapshots.ofNew({ source, snapshot, tls: TLS });
  }

  async move(...[cameraId, command]: Parameters<EngineErrands['move']>): ReturnType<EngineErrands['move']> {
    return this.#movable(cameraId).run(command);
  }

  async presets(cameraId: string): ReturnType<EngineErrands['presets']> {
    return this.#movable(cameraId).presets();
  }

  async search(...[timeoutMs, credentials]: Parameters<EngineErrands['search']>): ReturnType<EngineErrands['search']> {
    const { addresses } = addressesOf(networkInterfaces(), []);
    if (addresses.length === 0) return { reports: [], problems: ['this node has no network with an IPv4 address'] };
    return discover({ from: addresses, timeoutMs, credentials }, this.#deps);
  }

  async known(sources: readonly string[]): ReturnType<EngineErrands['known']> {
    const { cameras } = this.#deps;
    const configured = new Set(
      cameras.list().flatMap(({ status }) => {
        const camera = cameras.config(status.id);
        return camera ? [requestOf(camera.source)] : [];
      }),
    );
    return new Set(sources.filter((source) => configured.has(requestOf(source))));
  }

  async tryLogins(cameraId: string): Promise<number> {
    const ended = this.#deps.reach.logins.tryAgain(cameraId);
    this.#snapshots.forget(cameraId);
    return ended;
  }

  /** Sets the cameras that are wanted now. */
  configure(cameras: readonly CameraConfig[]): void {
    this.#ptz.configure(cameras);
    this.#events.configure(cameras);
  }

  /** Tells of events of cameras that have ended. */
  tick(): void {
    this.#events.tick();
  }

  /** Ends all requests to cameras. */
  async close(): Promise<void> {
    await Promise.all([this.#snapshots.close(), this.#ptz.close(), this.#events.close()]);
  }

  #movable(cameraId: string): MovableCamera {
    const camera = this.#ptz.get(cameraId);
    if (typeof camera === 'object') return camera;
    // It was changed since the front looked.
    throw new OnvifError('no-ptz', 'the settings of the camera have changed');
  }
}

/** Without the login; with the port that is usual, too. */
function requestOf(source: string): string {
  const { host, port, request } = parseRtspUrl(source);
  return `${host}:${port} ${request.replace(/^[^/]*\/\/[^/]*/, '')}`;
}
