// Maps the media times of one stream to wall times by fitting a line below its arrivals.
//
// Frames are delayed by encoder, network and bursts, but never early. Those with the smallest (arrival - media time) best show
// the position of the timeline, and their lower convex hull over minutes shows how fast the camera's clock runs (Moon, Skelly,
// Towsley, "Estimation and removal of clock skew from network delay measurements", 1999). All times are in milliseconds; the wall
// clock is that of the arrivals.

/** The least delayed frame of each interval of this length is kept, for five minutes. */
const INTERVAL_MS = 2_000;
const INTERVALS = 150;
/** A clock that is off by more than 2 % is not just inexact but wrong. This leaves room for what the network does to the hull. */
const MAX_SLOPE = 0.022;
/** The allowed deviation from the previously known slope grows with the observed time, up to this. */
const PROVEN_MS = 40_000;
/** If an interval lowers the line by more than this, the reason is not the clock: all frames before were delayed. */
const MAX_LOWERED_MS = 100;
/** Frames follow the line at most this much faster or slower than their media time. */
const MAX_SLEW = 0.04;

interface Arrived {
  readonly mediaMs: number;
  /** Arrival minus media time. */
  readonly delayMs: number;
}

export class WallLine {
  /** Wall milliseconds per media millisecond, minus one; on the line, wall time is media time × (1 + slope) + offset. */
  #slope: number;
  #offset = 0;
  /** The slope if it is based on five minutes, otherwise that of earlier connections of the camera. */
  knownSlope: number;
  /** The least delayed frames, oldest first. */
  readonly #least: Arrived[] = [];
  #intervalEndMs = -Infinity;
  #loweredMs = 0;
  #hullSlope = 0;
  #placedMedia = -Infinity;
  /** Wall time of the last placed frame. */
  placedWall = 0;
  /** By how much frames were recently moved, because they would have been dated after their arrival. */
  pushedMs = 0;

  constructor(slope: number) {
    this.#slope = slope;
    this.knownSlope = slope;
  }

  get isEmpty(): boolean {
    return this.#least.length === 0;
  }

  /** For five minutes the clock has been wrong by more than any real clock is. */
  get isTooSteep(): boolean {
    return this.#least.length === INTERVALS && Math.abs(this.#hullSlope) > MAX_SLOPE;
  }

  get hasPlaced(): boolean {
    return this.#placedMedia !== -Infinity;
  }

  /** The wall time of a media time on the current line. */
  at(mediaMs: number): number {
    return mediaMs * (1 + this.#slope) + this.#offset;
  }

  mediaAt(wallMs: number): number {
    return (wallMs - this.#offset) / (1 + this.#slope);
  }

  /** Records a frame; it need not be placed. */
  observe(mediaMs: number, arrivalMs: number): void {
    const least = this.#least;
    const delayMs = arrivalMs - mediaMs;
    if (arrivalMs >= this.#intervalEndMs) {
      this.#intervalEndMs = arrivalMs + INTERVAL_MS;
      this.#loweredMs = 0;
      if (least.push({ mediaMs, delayMs }) > INTERVALS) least.shift();
      this.#fit();
    } else if (delayMs < (least.at(-1) as Arrived).delayMs) least[least.length - 1] = { mediaMs, delayMs };
    const aboveMs = this.at(mediaMs) - arrivalMs;
    if (aboveMs <= 0) return;
    this.#offset -= aboveMs;
    this.#loweredMs += aboveMs;
    if (this.#loweredMs > MAX_LOWERED_MS) least.splice(0, least.length - 1);
  }

  /** Wall time of a frame that was observed: near the line, in the order of the frames, never after its arrival. */
  place(mediaMs: number, arrivalMs: number): number {
    const stepMs = mediaMs - this.#placedMedia;
    const last = this.placedWall;
    if (stepMs <= 0) return last + stepMs;
    let wall = this.at(mediaMs);
    if (this.hasPlaced) {
      wall = Math.max(last + stepMs * (1 - MAX_SLEW), Math.min(last + stepMs * (1 + MAX_SLEW), wall));
      this.pushedMs = Math.max(0, this.pushedMs + Math.max(0, wall - arrivalMs) - stepMs * MAX_SLOPE);
    }
    this.#placedMedia = mediaMs;
    this.placedWall = Math.min(wall, arrivalMs);
    return this.placedWall;
  }

  /** The slope is that of the hull's edge over the middle; the line touches the hull from below. */
  #fit(): void {
    const hull: Arrived[] = [];
    for (const arrived of this.#least) {
      if (arrived.mediaMs <= (hull.at(-1)?.mediaMs ?? -Infinity)) continue;
      while (slopeOf(hull.at(-2), hull.at(-1)) >= slopeOf(hull.at(-1), arrived)) hull.pop();
      hull.push(arrived);
    }
    const [oldest, newest] = [hull[0] as Arrived, this.#least.at(-1) as Arrived];
    const spanMs = newest.mediaMs - oldest.mediaMs;
    const edge = hull.findIndex(({ mediaMs }, i) => i > 0 && mediaMs >= oldest.mediaMs + spanMs / 2);
    this.#hullSlope = edge > 0 ? slopeOf(hull[edge - 1], hull[edge]) : this.knownSlope;
    const leeway = MAX_SLOPE * Math.min(1, spanMs / PROVEN_MS);
    const near = Math.max(this.knownSlope - leeway, Math.min(this.knownSlope + leeway, this.#hullSlope));
    this.#slope = Math.max(-MAX_SLOPE, Math.min(MAX_SLOPE, near));
    if (this.#least.length === INTERVALS) this.knownSlope = this.#slope;
    this.#offset = Math.min(...hull.map(({ mediaMs, delayMs }) => delayMs - this.#slope * mediaMs));
  }
}

/** From one frame to a later one; not a number if one is missing. */
const slopeOf = (a: Arrived | undefined, b: Arrived | undefined): number =>
  a && b ? (b.delayMs - a.delayMs) / (b.mediaMs - a.mediaMs) : NaN;
