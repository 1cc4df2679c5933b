// The memory of the scripted camera: a ring of the frames that it encoded, dated by its own clock, whether or not anybody watched.

import type { CameraFrame, Track } from './tracks.ts';

export interface MemoryOptions {
  /** How much footage it keeps; everything when absent. */
  readonly capacityMs?: number;
  /** Milliseconds that the camera's clock is ahead of the real one. */
  readonly clockOffsetMs?: number;
  /** What is on the card instead of the live tracks: other sizes, for example. By track, with frames at the same times. */
  readonly tracks?: readonly Track[];
  readonly keyFramesOnly?: boolean;
  /** Of addresses with times: the zone of its local time. UTC when absent. */
  readonly timeZone?: string;
  /** Which access units have the header extension; every one when absent. */
  readonly extension?: 'every' | 'key-frames' | 'none';
  /** Replays begin with the oldest frame, and end with the newest, whatever they are asked for. */
  readonly ignoresRange?: boolean;
  /** After the last frame replays begin again. */
  readonly neverEnds?: boolean;
  /** So many times faster than real time; as fast as the client reads when absent. */
  readonly speed?: number;
  /** Knows no `Require: onvif-replay`. */
  readonly plain?: boolean;
  /** More replays at a time are answered with 453. */
  readonly maxReplays?: number;
  /** What it does after the last frame; `silence` when absent, as ONVIF wants it. */
  readonly atEnd?: 'silence' | 'bye' | 'announce' | 'close';
}

export interface StoredFrame {
  readonly frame: CameraFrame;
  /** By the camera's clock when it was taken. */
  readonly cameraMs: number;
  /** The first frame of its track behind a hole. */
  readonly afterHole: boolean;
}

export class CameraMemory {
  readonly options: { -readonly [K in keyof MemoryOptions]: MemoryOptions[K] };
  readonly tracks: readonly Track[];
  /** By the order in which they were encoded. */
  readonly frames: StoredFrame[] = [];
  /** The card failed: nothing is stored, searches and replays are refused. */
  failed = false;
  /** False: the camera encodes, but stores nothing. */
  recording = true;
  /** The next replays are cut after so many pictures, one each. */
  readonly cuts: number[] = [];
  #clockOffsetMs: number;
  /** The real time of media time 0. */
  #startMs: number | undefined;
  readonly #hole: boolean[];

  constructor(live: readonly Track[], options: MemoryOptions) {
    this.options = { ...options };
    this.tracks = options.tracks ?? live;
    this.#clockOffsetMs = options.clockOffsetMs ?? 0;
    this.#hole = live.map(() => false);
  }

  get clockOffsetMs(): number {
    return this.#clockOffsetMs;
  }

  /** Somebody sets the camera's clock: frames from now on are dated by it. */
  set clockOffsetMs(offsetMs: number) {
    this.#clockOffsetMs = offsetMs;
  }

  /** Takes a frame that the camera encoded. `wallMs`: the real time. */
  store(live: CameraFrame, wallMs: number): void {
    const track = this.tracks[live.track];
    const frame = track && this.#onCard(live, track);
    if (!track || !frame) return;
    this.#startMs ??= wallMs - live.sendAtMs;
    if (!this.recording || this.failed) {
      this.#hole[live.track] = true;
      return;
    }
    const cameraMs = this.#startMs + (frame.timestamp * 1000) / track.clockRate + this.#clockOffsetMs;
    this.frames.push({ frame, cameraMs, afterHole: this.#hole[live.track] === true });
    this.#hole[live.track] = false;
    const { capacityMs = Number.POSITIVE_INFINITY } = this.options;
    while (this.frames.length > 0 && live.sendAtMs - (this.frames[0] as StoredFrame).frame.sendAtMs > capacityMs) {
      this.frames.shift();
    }
  }

  /** From the first frame to the last, by the camera's clock; undefined while it has nothing. */
  get span(): { readonly fromMs: number; readonly untilMs: number } | undefined {
    if (this.frames.length === 0) return undefined;
    const times = this.frames.map(({ cameraMs }) => cameraMs);
    return { fromMs: Math.min(...times), untilMs: Math.max(...times) };
  }

  /** The frames of a replay, from the last key picture at or before `fromMs` on. */
  from(fromMs: number, untilMs: number): readonly StoredFrame[] {
    const { ignoresRange } = this.options;
    if (ignoresRange) return [...this.frames];
    const isKey = ({ frame }: StoredFrame): boolean => this.tracks[frame.track]?.kind === 'video' && frame.key;
    const before = this.frames.findLastIndex((stored) => isKey(stored) && stored.cameraMs <= fromMs);
    const start = before >= 0 ? before : this.frames.findIndex(isKey);
    if (start < 0) return [];
    return this.frames.slice(start).filter(({ cameraMs }) => cameraMs < untilMs);
  }

  /** The frames behind which the footage has a hole or, when nothing more is stored, ends: those with the E bit. */
  get sectionEnds(): ReadonlySet<StoredFrame> {
    const ends = new Set<StoredFrame>();
    const next: (StoredFrame | undefined)[] = [];
    for (const stored of this.frames.toReversed()) {
      const following = next[stored.frame.track];
      if (following ? following.afterHole : !this.recording) ends.add(stored);
      next[stored.frame.track] = stored;
    }
    return ends;
  }

  #onCard(live: CameraFrame, track: Track): CameraFrame | undefined {
    const isVideo = track.kind === 'video';
    if (isVideo && this.options.keyFramesOnly && !live.key) return undefined;
    if (!this.options.tracks) return live;
    const frame = track.frames[live.index % track.frames.length];
    return frame && { ...live, number: frame.number, key: frame.key, units: frame.units };
  }
}
