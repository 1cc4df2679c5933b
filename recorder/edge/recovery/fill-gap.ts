// Fills one gap of a camera from its memory (docs/design/edge-recovery.md): finds its place there, replays it, and writes it into the
// archive, from the last picture before the gap to the first one after it.

import type { Clock } from '../../../base/clock.ts';
import type { Interval } from '../../../base/interval.ts';
import type { Continuation } from '../../archive/segments/extend.ts';
import type { CameraArchive, EdgeOrigin } from '../../archive/segments/camera-archive.ts';
import type { FileEnd } from '../../archive/segments/file-ends.ts';
import type { NotFilledReason } from '../../contract/gap-fill.ts';
import type { AudioParameters, VideoParameters } from '../../codec/access-unit.ts';
import { slicesOf } from '../../codec/slices.ts';
import type { MediaData } from '../../codec/slab.ts';
import { tieClock } from '../clock-tie.ts';
import {
  EdgeError,
  type EdgeClock,
  type EdgeMemory,
  type EdgePicture,
  type EdgeSound,
  type EdgeUnit,
} from '../memory.ts';
import { isSameSound, Placing, ticksBetween } from './placing.ts';
import { agree, lookOf, seamIn, throughAnchors, type Anchor, type SeenPicture } from './seam.ts';

/** A gap, and the files that end and begin with it. */
export interface Hole extends Interval {
  readonly before: string | undefined;
  readonly after: string | undefined;
  /**
   * Pictures from the last key frame before the gap on are written, so that all of it can be decoded, but none before this time: there is other
   * footage, or none is wanted. Undefined: any may be written.
   */
  readonly earliestMs: number | undefined;
}

interface FillDeps {
  readonly memory: EdgeMemory;
  readonly clock: Clock;
  /** Bits per second. */
  readonly maxBitrate: number;
  /** The video of the live stream. */
  readonly like: VideoParameters | undefined;
  /** The camera's clock minus ours by its sender reports, in milliseconds. */
  readonly clockAheadMs: number | undefined;
  readonly picturesAt: (end: 'start' | 'end', path: string, count: number) => Promise<FileEnd | undefined>;
  readonly extend: (path: string, continuation: Continuation) => Promise<boolean>;
  /** `earliestMs`: no file begins before, if it is given. */
  readonly fillerFor: (origin: EdgeOrigin, earliestMs: number | undefined) => CameraArchive;
}

/** Undefined: the gap is filled up to its end, as far as it is known. */
type FillOutcome = NotFilledReason | undefined;

/** How many pictures are compared on each side of the gap. */
const COMPARED = 8;
/** How much of the memory is searched on each side of the gap: more than the error of live pictures' times (docs/design/time.md). */
const LOOK_MS = 2_500;
/** The same for a camera that does not state its time. */
const LOOK_UNTIED_MS = 60_000;
/** More pictures than any camera makes in that time. */
const MAX_LOOKED = 20_000;
/** A clock whose error may be larger cannot place pictures. */
const MAX_CLOCK_ERROR_MS = 500;
/** Pictures up to the next key frame, and their sound. */
const MAX_REST_BYTES = 32 * 1024 * 1024;
/** Times of one picture in two replays differ by their rounding. */
const SAME_MS = 0.75;
/** The most fragments that may wait for the disk: live streams come first. */
const MAX_WAITING = 8;
const WAIT_MS = 10;
const TICK_MS = 250;

/** Where the gap is in the memory. */
interface GapPlace extends EdgeOrigin {
  /** The last picture before the gap, and the first one after it. */
  readonly last: Anchor | undefined;
  readonly first: Anchor | undefined;
  readonly wallOf: (cameraMs: number) => number;
  readonly cameraOf: (wallMs: number) => number;
  readonly audio: AudioParameters | undefined;
}

const bytesOf = ({ slab, offset, size }: MediaData): Buffer => slab.buffer.subarray(offset, offset + size);

/** Rejects with EdgeError, with the error of the system, or with the reason of the signal. */
export async function fillGap(hole: Hole, deps: FillDeps, signal: AbortSignal): Promise<FillOutcome> {
  const { memory } = deps;
  const clock = tieClock(await memory.clock(signal), deps.clockAheadMs);
  const offsetMs = clock?.offsetMs ?? 0;
  const lookMs = clock ? LOOK_MS + clock.errorMs : LOOK_UNTIED_MS;
  const missing = await missingThere(hole, offsetMs, lookMs, deps, signal);
  if (missing) return missing;
  const place = await placeOf(hole, clock, lookMs, deps, signal);
  if (typeof place === 'string') return place;
  return new Filling(hole, place, deps).run(signal);
}

/** Why the memory cannot have the footage, by its own list of recordings. */
async function missingThere(
  { fromMs, toMs }: Hole,
  offsetMs: number,
  lookMs: number,
  { memory }: FillDeps,
  signal: AbortSignal,
): Promise<NotFilledReason | undefined> {
  const recordings = await memory.recordings(signal);
  if (!recordings) return undefined;
  if (recordings.length === 0) return 'not-recorded';
  if (recordings.every((recording) => recording.fromMs - offsetMs >= toMs + lookMs)) return 'overwritten';
  const overlaps = recordings.some(
    (one) => one.fromMs - offsetMs < toMs + lookMs && one.untilMs - offsetMs > fromMs - lookMs,
  );
  return overlaps ? undefined : 'not-recorded';
}

interface PicturesAround {
  readonly pictures: SeenPicture[];
  onlyKeyFrames: boolean;
  audio: AudioParameters | undefined;
}

/** The pictures of the memory around a moment on the camera's clock. */
async function lookAt(aroundMs: number, lookMs: number, deps: FillDeps, signal: AbortSignal): Promise<PicturesAround> {
  const { memory, maxBitrate, like } = deps;
  const window = { fromMs: aroundMs - lookMs, untilMs: aroundMs + lookMs };
  const looked: PicturesAround = { pictures: [], onlyKeyFrames: true, audio: undefined };
  try {
    for await (const one of memory.replay({ window, maxBitrate, like }, signal)) {
      if (one.kind === 'audio') looked.audio ??= one.parameters;
      else {
        const look = lookOf(slicesOf(one.parameters.codec, bytesOf(one.unit.data)));
        looked.pictures.push({ cameraMs: one.cameraMs, look });
        looked.onlyKeyFrames &&= one.unit.randomAccess;
      }
      one.unit.data.slab.release();
      if (looked.pictures.length >= MAX_LOOKED) break;
    }
  } catch (err) {
    if (!(err instanceof EdgeError) || err.code !== 'nothing-recorded') throw err;
  }
  return looked;
}

async function placeOf(
  hole: Hole,
  clock: EdgeClock | undefined,
  lookMs: number,
  deps: FillDeps,
  signal: AbortSignal,
): Promise<GapPlace | NotFilledReason> {
  const { fromMs, toMs } = hole;
  const offsetMs = clock?.offsetMs ?? 0;
  const before = hole.before === undefined ? undefined : await deps.picturesAt('end', hole.before, COMPARED);
  const after = hole.after === undefined ? undefined : await deps.picturesAt('start', hole.after, COMPARED);
  const epoch = epochBeside(before, after);
  let audio: AudioParameters | undefined;
  let onlyKeyFrames = false;
  let sawPictures = false;
  const anchorOf = async (file: FileEnd | undefined, side: 'start' | 'end', wallMs: number) => {
    if (!file) return undefined;
    const looked = await lookAt(wallMs + offsetMs, lookMs, deps, signal);
    audio ??= looked.audio;
    sawPictures ||= looked.pictures.length > 0;
    onlyKeyFrames ||= looked.onlyKeyFrames && looked.pictures.length > 1 && file.pictures.some(({ sync }) => !sync);
    const found = seamIn(file.pictures, looked.pictures, side, wallMs + offsetMs);
    const picture = side === 'end' ? file.pictures.at(-1) : file.pictures[0];
    return found === undefined || !picture
      ? undefined
      : { cameraMs: (looked.pictures[found] as SeenPicture).cameraMs, wallMs: picture.wallMs };
  };
  const first = await anchorOf(after, 'start', toMs);
  const last = await anchorOf(before, 'end', fromMs);
  if (onlyKeyFrames) return 'key-frames-only';
  if (last && first && !agree(last, first)) return 'clock-not-tied';
  const anchors = [last, first].filter((anchor) => anchor !== undefined);
  const [one, ...others] = anchors;
  if (one) {
    const isWhole = (before === undefined || last !== undefined) && (after === undefined || first !== undefined);
    return { seam: isWhole ? 'bytes' : 'time', epoch, last, first, audio, ...throughAnchors([one, ...others]) };
  }
  if (!sawPictures && (before ?? after)) return 'not-recorded';
  if (!clock || clock.errorMs > MAX_CLOCK_ERROR_MS) return 'clock-not-tied';
  const anchor = { cameraMs: clock.offsetMs, wallMs: 0 };
  return { seam: 'time', epoch, last, first, audio, ...throughAnchors([anchor]) };
}

/** The lower one: the gap arose under it, and what another node has recorded since under a higher one is played instead. */
function epochBeside(before: FileEnd | undefined, after: FileEnd | undefined): number | undefined {
  const epochs = [before, after].flatMap((file) => file?.meta.epoch ?? []);
  return epochs.length > 0 ? Math.min(...epochs) : undefined;
}

/** A replay on its way into the archive. */
class Filling {
  readonly #hole: Hole;
  readonly #place: GapPlace;
  readonly #deps: FillDeps;
  readonly #filler: CameraArchive;
  /** The pictures after the last one before the gap, up to the first key frame. */
  #rest: EdgeUnit[] | undefined;
  #restBytes = 0;
  /** RTP timestamp of the last picture before the gap. */
  #lastTimestamp: number | undefined;
  #run: Placing | undefined;
  #audio: AudioParameters | undefined;
  #depth = 0;
  /** The time of the last picture, and the smallest distance between two. */
  #beforeMs: number | undefined;
  #leastMs = Infinity;
  #hasBegun = false;
  #hasBreak = false;
  #leftRest = false;
  #tickedMs: number;

  constructor(hole: Hole, place: GapPlace, deps: FillDeps) {
    this.#hole = hole;
    this.#place = place;
    this.#deps = deps;
    this.#audio = place.audio;
    this.#tickedMs = deps.clock.monotonicMs();
    this.#filler = deps.fillerFor({ seam: place.seam, epoch: place.epoch }, hole.earliestMs);
  }

  async run(signal: AbortSignal): Promise<FillOutcome> {
    const { memory, maxBitrate, like } = this.#deps;
    const { last, first, cameraOf } = this.#place;
    const { fromMs, toMs } = this.#hole;
    const window = {
      fromMs: last?.cameraMs ?? cameraOf(fromMs),
      untilMs: (first?.cameraMs ?? cameraOf(toMs)) + 2 * SAME_MS,
    };
    const replay = memory.replay({ window, maxBitrate, like }, signal);
    let isThrough = false;
    try {
      for await (const unit of replay) {
        if (this.#hasFailed) {
          unit.unit.data.slab.release();
          return 'disk-failed';
        }
        isThrough = await this.#take(unit);
        if (isThrough) break;
        await this.#keepUp(signal);
      }
      isThrough ||= replay.end === 'window';
      await this.#finish(isThrough);
    } finally {
      this.#dropRest();
      this.#run?.end('stopped');
      this.#run = undefined;
      await this.#filler.close();
    }
    if (this.#hasFailed) return 'disk-failed';
    if (!this.#hasBegun || !isThrough || this.#hasBreak) return 'not-recorded';
    return this.#leftRest ? 'starts-at-key-frame' : undefined;
  }

  /** Pictures are lost: the disk refused them, or there was no memory for them while they waited for the disk. */
  get #hasFailed(): boolean {
    const { state, framesDropped } = this.#filler.status();
    return state === 'failed' || framesDropped.size > 0;
  }

  /** Takes over the hold on the data. True: the gap has ended. */
  async #take(one: EdgeUnit): Promise<boolean> {
    if (one.kind === 'audio') {
      this.#sound(one);
      return false;
    }
    if (this.#beforeMs !== undefined) {
      const distanceMs = Math.abs(one.cameraMs - this.#beforeMs);
      if (distanceMs > SAME_MS) this.#leastMs = Math.min(this.#leastMs, distanceMs);
    }
    this.#beforeMs = one.cameraMs;
    if (this.#isBehind(one)) {
      one.unit.data.slab.release();
      return true;
    }
    if (!this.#hasBegun && !this.#begins(one)) {
      one.unit.data.slab.release();
      return false;
    }
    this.#hasBegun = true;
    if (one.discontinuity && (this.#run ?? this.#rest?.length)) this.#break();
    await this.#picture(one);
    return false;
  }

  #isBehind(picture: EdgePicture): boolean {
    const { first, wallOf } = this.#place;
    if (first) return picture.cameraMs >= first.cameraMs - SAME_MS && picture.unit.randomAccess;
    // Without a seam the clocks are some milliseconds off: a picture that is mostly after the end is in the next file
    // already.
    return wallOf(picture.cameraMs) >= this.#hole.toMs - this.#pictureMs() / 2;
  }

  /** The smallest distance between two pictures so far. */
  #pictureMs(): number {
    return Number.isFinite(this.#leastMs) ? this.#leastMs : 2 * SAME_MS;
  }

  #begins(picture: EdgePicture): boolean {
    const { last, wallOf } = this.#place;
    if (last) {
      // In decoding order, the first missing picture follows the last live one.
      if (Math.abs(picture.cameraMs - last.cameraMs) <= SAME_MS) {
        this.#lastTimestamp = picture.unit.timestamp;
        this.#rest = [];
        return false;
      }
      return this.#rest !== undefined || picture.cameraMs > last.cameraMs;
    }
    const { fromMs, earliestMs = -Infinity } = this.#hole;
    if (wallOf(picture.cameraMs) < earliestMs - SAME_MS) return false;
    if (earliestMs < fromMs) return picture.unit.randomAccess;
    this.#leftRest ||= !picture.unit.randomAccess;
    return picture.unit.randomAccess;
  }

  async #picture(one: EdgePicture): Promise<void> {
    if (one.unit.randomAccess) {
      if (this.#rest) await this.#addRest(this.#place.wallOf(one.cameraMs), one);
      if (this.#run?.isTooShallow) this.#endRun();
      this.#begin(one);
    }
    if (this.#run) {
      this.#run.picture(one);
      this.#depth = Math.max(this.#depth, this.#run.depth);
      return;
    }
    if (this.#rest) return this.#keep(this.#rest, one);
    this.#leftRest = true;
    one.unit.data.slab.release();
  }

  #keep(rest: EdgeUnit[], one: EdgeUnit): void {
    rest.push(one);
    this.#restBytes += one.unit.data.size;
    if (this.#restBytes <= MAX_REST_BYTES) return;
    this.#leftRest = true;
    this.#dropRest();
  }

  #begin(one: EdgePicture): void {
    this.#run ??= new Placing(this.#filler, one, this.#audio, this.#place.wallOf, this.#depth);
  }

  #endRun(): void {
    this.#run?.end('parameters');
    this.#run = undefined;
  }

  #break(): void {
    this.#hasBreak = true;
    this.#dropRest();
    this.#run?.end('gap');
    this.#run = undefined;
  }

  #sound(one: EdgeSound): void {
    const wallMs = this.#place.wallOf(one.cameraMs);
    this.#audio ??= one.parameters;
    if (wallMs >= this.#hole.toMs) one.unit.data.slab.release();
    else if (this.#run) this.#run.sound(one);
    else if (this.#rest && this.#audio && isSameSound(this.#audio, one.parameters)) this.#keep(this.#rest, one);
    else one.unit.data.slab.release();
  }

  /** Adds the pictures after the last live one to the file of that picture. */
  async #addRest(wallEndMs: number, next: EdgePicture | undefined): Promise<void> {
    const rest = this.#rest ?? [];
    const { before } = this.#hole;
    const { last, seam, wallOf } = this.#place;
    const timestamp = this.#lastTimestamp;
    const pictures = rest.filter((one) => one.kind === 'video');
    const end = pictures.at(-1);
    if (end && before !== undefined && last && timestamp !== undefined) {
      const ticksOf = ({ unit, clockRate }: EdgePicture): number => ticksBetween(timestamp, unit.timestamp, clockRate);
      const extended = await this.#deps.extend(before, {
        pictures: pictures.map((one) => ({
          data: one.unit.data,
          ticks: ticksOf(one),
          wallMs: wallOf(one.cameraMs),
        })),
        sounds: rest
          .filter((one) => one.kind === 'audio')
          .map(({ unit, cameraMs }) => ({
            data: unit.data,
            ticks: (cameraMs - last.cameraMs) * 90,
            duration: unit.durationTicks,
          })),
        endTicks: next ? ticksOf(next) : (wallEndMs - last.wallMs) * 90,
        wallEndMs,
        seam,
      });
      if (!extended) this.#leftRest = true;
    }
    this.#dropRest();
  }

  #dropRest(): void {
    for (const { unit } of this.#rest ?? []) unit.data.slab.release();
    this.#rest = undefined;
  }

  /** `isThrough`: the replay reached the end of the gap. */
  async #finish(isThrough: boolean): Promise<void> {
    const { toMs } = this.#hole;
    if (this.#rest && isThrough && !this.#run) await this.#addRest(toMs, undefined);
    this.#run?.end('stopped', toMs, isThrough);
    this.#run = undefined;
  }

  /** Waits until the disk has caught up, and lets the file be synced like others. */
  async #keepUp(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const tick = (): void => {
      if (clock.monotonicMs() - this.#tickedMs < TICK_MS) return;
      this.#tickedMs = clock.monotonicMs();
      this.#filler.tick();
    };
    tick();
    while (this.#filler.waiting > MAX_WAITING && !this.#hasFailed && !signal.aborted) {
      await clock.sleep(WAIT_MS, signal);
      tick();
    }
  }
}
