// The live streams of the cameras, for viewers: each is sent by the engine while somebody watches it.

import type { Clock } from '../../base/clock.ts';
import type { LiveNews, LiveQuality } from '../contract/live-feed.ts';
import { LiveHub, type LiveStats } from '../live/hub.ts';
import type { LiveLimits } from '../live/limits.ts';
import type { CameraDirectory, CameraStreams, CameraView, RecordedCamera } from '../model/camera-view.ts';
import type { EngineCameras } from '../model/engine.ts';

interface LiveStreamsDeps {
  readonly engine: Pick<EngineCameras, 'list' | 'get' | 'watch' | 'unwatch'>;
  readonly limits: LiveLimits;
  readonly clock: Clock;
}

const NONE: LiveStats = { viewers: 0, sentBytes: 0, droppedFrames: 0 };

export class LiveStreams implements CameraDirectory {
  readonly #deps: LiveStreamsDeps;
  /** By the camera and the quality; they stay with what they have counted. */
  readonly #hubs = new Map<string, LiveHub>();
  readonly #watched = new Map<number, LiveHub>();
  #last = 0;

  constructor(deps: LiveStreamsDeps) {
    this.#deps = deps;
  }

  /** See `FrontOfEngine.live`. */
  hear(watch: number, news: LiveNews): void {
    this.#watched.get(watch)?.hear(news);
  }

  list(): readonly CameraView[] {
    return this.#deps.engine.list().map((camera) => this.#viewOf(camera));
  }

  get(cameraId: string): CameraView | undefined {
    const camera = this.#deps.engine.get(cameraId);
    return camera && this.#viewOf(camera);
  }

  streams(cameraId: string): CameraStreams | undefined {
    const camera = this.#deps.engine.get(cameraId);
    if (!camera?.archive) return camera && { live: undefined };
    return {
      live: this.#hubOf(cameraId, 'main'),
      ...(camera.preview && { preview: this.#hubOf(cameraId, 'preview') }),
    };
  }

  #viewOf({ preview, ...camera }: RecordedCamera): CameraView {
    const stats = (quality: LiveQuality): LiveStats => this.#hubs.get(keyOf(camera.status.id, quality))?.stats ?? NONE;
    return {
      ...camera,
      live: camera.archive && stats('main'),
      ...(preview && { preview: { ...preview, stats: stats('preview') } }),
    };
  }

  #hubOf(cameraId: string, quality: LiveQuality): LiveHub {
    const known = this.#hubs.get(keyOf(cameraId, quality));
    if (known) return known;
    const { engine, limits, clock } = this.#deps;
    const watch = ++this.#last;
    const hub = new LiveHub({
      limits,
      clock,
      watch: () => {
        this.#watched.set(watch, hub);
        engine.watch(watch, cameraId, quality);
      },
      unwatch: () => {
        this.#watched.delete(watch);
        engine.unwatch(watch);
      },
    });
    this.#hubs.set(keyOf(cameraId, quality), hub);
    return hub;
  }
}

const keyOf = (cameraId: string, quality: LiveQuality): string => `${quality} ${cameraId}`;
