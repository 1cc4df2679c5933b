// The preview of one camera: a second, smaller stream that is connected only while somebody watches it, or all the time
// if it is recorded. All viewers share one connection, and it does not affect the main stream.

import { Backoff } from '../../base/backoff.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Reason } from '../../base/reason.ts';
import type { AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { Camera } from '../camera/camera.ts';
import type { CameraError } from '../camera/error.ts';
import type { LiveFeed, TellLive } from '../contract/live-feed.ts';
import type { SampleSink } from '../contract/sink.ts';
import type { PreviewStatus } from '../model/camera-view.ts';
import { CLOSE } from '../live/close.ts';
import { LiveSource } from '../live/source.ts';
import type { SourceLimits } from '../live/source-limits.ts';

/** A viewer that changes the page or the layout returns within this time, and the stream is still connected. */
const LINGER_MS = 10_000;
/** After a failure, viewers are refused for this long before the camera is asked again. */
const RETRY = { firstMs: 5_000, maxMs: 300_000 };
/** The memory of one connection: blocks of its video and sound, and its tables. */
const PREVIEW_BYTES = 512 * 1024;

type PreviewConnection = Pick<Camera, 'start' | 'stop' | 'tick' | 'status' | 'condition' | 'reconnect'>;

/** For a recorded preview, whose connection stays open and is repaired like that of the main stream. */
interface PreviewRecording extends SampleSink {
  tick(): void;
  close(): Promise<void>;
}

interface PreviewOptions {
  readonly cameraId: string;
  readonly limits: SourceLimits;
  /** A new connection, not started, which calls `changed` when its state, or the reason for it, has changed. */
  readonly connection: (
    sinks: readonly SampleSink[],
    changed: (connection: PreviewConnection) => void,
  ) => PreviewConnection;
  readonly recording?: PreviewRecording | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * `idle`: no viewer; `connecting`: a viewer waits; `live`: pictures arrive; `failed`: the camera does not deliver it,
 * and is not asked again before `untilMs` on the monotonic clock. `reason`: why the connection of a recorded preview
 * could not be made.
 */
type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'connecting' | 'live'; readonly camera: PreviewConnection; readonly reason?: Reason }
  | { readonly kind: 'failed'; readonly reason: Reason; readonly untilMs: number };

export class PreviewStream implements LiveFeed {
  readonly #options: PreviewOptions;
  readonly #live: LiveSource;
  readonly #backoff = new Backoff(RETRY);
  #state: State = { kind: 'idle' };
  #linger: Timer | undefined;
  #video: VideoParameters | undefined;
  #audio: AudioParameters | undefined;
  #goneBytes = 0;
  readonly #failures = new Map<string, number>();
  /** Connections that are being closed, and when each has ended. */
  readonly #leaving = new Map<PreviewConnection, Promise<void>>();
  #isClosed = false;

  constructor(options: PreviewOptions) {
    this.#options = options;
    const { cameraId, limits, clock, log } = options;
    this.#live = new LiveSource({ cameraId, limits, clock, log });
    limits.addPreview(this);
    if (options.recording) this.#start();
  }

  get isWatched(): boolean {
    return this.#live.isWatched;
  }

  /** Connects for the first viewer. Like that of the main stream, but refuses viewers while the stream is `failed`. */
  watch(tell: TellLive): void {
    this.#cancelLinger();
    const refusal = this.#isClosed ? undefined : this.#connect();
    if (refusal) return tell({ kind: 'closed', code: refusal[0], reason: refusal[1] });
    return this.#live.watch(tell);
  }

  unwatch(): void {
    this.#live.unwatch();
    this.#lingerIfUnwatched();
  }

  /** Call it a few times a second. */
  tick(nowMs: number): void {
    if ('camera' in this.#state) this.#state.camera.tick(nowMs);
    this.#options.recording?.tick();
  }

  /** Ends the current connection of a recorded preview like a failure of the camera; the next one follows. */
  reconnect(error: CameraError): void {
    if ('camera' in this.#state) this.#state.camera.reconnect(error);
  }

  status(): PreviewStatus {
    const state = this.#state;
    const now = 'camera' in state ? state.camera.status() : undefined;
    const reason = 'reason' in state ? state.reason : undefined;
    return {
      state: reason ? 'failed' : state.kind,
      reason,
      video: now?.video ?? this.#video,
      audio: now?.video ? now.audio : this.#audio,
      bitrate: now?.bitrate ?? 0,
      bytesReceived: [...this.#leaving.keys()].reduce(
        (sum, camera) => sum + bytesOf(camera),
        this.#goneBytes + (now?.counters.bytesReceived ?? 0),
      ),
      failures: this.#failures,
    };
  }

  /** Disconnects to release its memory; a preview that is recorded counts as a camera and stays. */
  giveWay(): void {
    if (this.#options.recording) return;
    this.#disconnect({ kind: 'idle' }, ...SHORT_OF_MEMORY);
  }

  /** Closes the connection, and disconnects all viewers for good. Resolves when the connection is closed. */
  async close(code: number, reason: string): Promise<void> {
    this.#isClosed = true;
    this.#options.limits.removePreview(this);
    this.#disconnect({ kind: 'idle' }, code, reason);
    this.#live.close(code, reason);
    await Promise.all(this.#leaving.values());
    await this.#options.recording?.close();
  }

  /** The close code and reason for viewers if it cannot be connected. */
  #connect(): Refusal | undefined {
    const state = this.#state;
    if ('camera' in state) return state.reason && refusalOf(state.reason);
    const { clock, limits } = this.#options;
    if (state.kind === 'failed' && clock.monotonicMs() < state.untilMs) return refusalOf(state.reason);
    if (!limits.previewMemory.take(PREVIEW_BYTES)) return SHORT_OF_MEMORY;
    this.#start();
    return undefined;
  }

  #start(): void {
    const { connection, recording } = this.#options;
    const camera = connection([...(recording ? [recording] : []), this.#live], (changed) => this.#follow(changed));
    this.#state = { kind: 'connecting', camera };
    // A camera that allows few connections must have closed the last one first.
    if (this.#leaving.size === 0) camera.start();
    else void Promise.all(this.#leaving.values()).then(() => camera.start());
  }

  #follow(camera: PreviewConnection): void {
    const before = this.#state;
    if (!('camera' in before) || before.camera !== camera) return;
    const { state, reason } = camera.condition();
    if (state === 'recording') {
      this.#backoff.reset();
      this.#state = { kind: 'live', camera };
      ({ video: this.#video, audio: this.#audio } = camera.status());
    } else if (state === 'retrying' && before.kind === 'live') {
      // It has worked until now, so it is connected again at once, and viewers wait.
      this.#state = { kind: 'connecting', camera };
    } else if (state === 'retrying' && reason && this.#options.recording) {
      if (before.reason?.code !== reason.code) this.#countFailure(reason);
      this.#state = { kind: 'connecting', camera, reason };
      this.#live.dismiss(...refusalOf(reason));
    } else if (state === 'retrying' && reason) {
      this.#countFailure(reason);
      const untilMs = this.#options.clock.monotonicMs() + this.#backoff.next();
      this.#disconnect({ kind: 'failed', reason, untilMs }, ...refusalOf(reason));
    }
  }

  #countFailure({ code }: Reason): void {
    this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1);
  }

  #lingerIfUnwatched(): void {
    if (this.#options.recording) return;
    if (this.#live.isWatched || !('camera' in this.#state) || this.#linger) return;
    this.#linger = this.#options.clock.after(LINGER_MS, () => {
      this.#linger = undefined;
      this.#disconnect({ kind: 'idle' }, CLOSE.goingAway, 'nobody watches');
    });
  }

  #cancelLinger(): void {
    this.#linger?.cancel();
    this.#linger = undefined;
  }

  #disconnect(next: State, code: number, reason: string): void {
    this.#cancelLinger();
    const state = this.#state;
    if (!('camera' in state)) return;
    this.#state = next;
    const { camera } = state;
    const leaving = camera
      .stop()
      .catch((err: unknown) => {
        this.#options.log.error({ camera: this.#options.cameraId, err }, 'a preview was not disconnected cleanly');
      })
      .then(() => {
        this.#goneBytes += bytesOf(camera);
        this.#leaving.delete(camera);
      });
    this.#leaving.set(camera, leaving);
    if (!this.#options.recording) this.#options.limits.previewMemory.giveBack(PREVIEW_BYTES);
    this.#live.dismiss(code, reason);
  }
}

const bytesOf = (camera: PreviewConnection): number => camera.condition().counters.bytesReceived;

type Refusal = readonly [code: number, reason: string];
const SHORT_OF_MEMORY: Refusal = [CLOSE.tooSlow, 'memory is short'];
/** A close reason has at most 123 bytes (RFC 6455 §5.5), so it has the code only; the camera's state has the message. */
const refusalOf = ({ code }: Reason): Refusal => [CLOSE.offline, `the camera does not deliver its preview (${code})`];
