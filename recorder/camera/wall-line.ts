// Maps the media times of one stream to wall times by fitting a line below its arrivals.
//
// Frames are delayed by encoder, network and bursts, but never early. Those with the smallest (arrival - media time) best show
// the position of the timeline, and their lower convex hull over minutes shows how fast the camera's clock runs (Moon, Skelly,
// Towsley, "Estimation and removal of clock skew from network delay measurements", 1999). All times are in milliseconds; the wall
// clock is that of the arrivals.

/** The least delayed frame of each interval of this length is kept, for five minutes. */
const BUCKET_MS = 2_000;
const BUCKETS = 150;
/**
 * A clock that is off by more than 2 % is not just inexact but wrong. With a clock that slow, a media millisecond takes 1 / 0.98
 * ms.
 */
const MAX_SLOPE = 0.0205;
const STEEP = 0.022;
/** The allowed deviation from the previously known slope grows with the observed time, up to this. */
const PROVEN_MS = 40_000;
/** If an interval lowers the line by more than this, the reason is not the clock: all frames before were delayed. */
const MAX_LOWERED_MS = 100;
/** Frames follow the line at most this much faster or slower than their media time. */
const MAX_SLEW = 0.04;

/** Work space of `#fit`. */
const hull = new Int16Array(BUCKETS);

export class WallLine {
  /** Wall milliseconds per media millisecond, minus one. */
  #slope: number;
  #knownSlope: number;
  /** On the line, wall time is media time × (1 + slope) + offset. */
  #offset = 0;
  /** Rings of media time and (arrival - media time), with `#count` entries; the last one is at `#newest`. */
  readonly #media = new Float64Array(BUCKETS);
  readonly #delay = new Float64Array(BUCKETS);
  #count = 0;
  #newest = -1;
  #bucketEndMs = -Infinity;
  #loweredMs = 0;
  #hullSlope = 0;
  #placedMedia = -Infinity;
  #placedWall = 0;
  #pushedMs = 0;

  /** `slope`: learnt from earlier connections of the camera. */
  constructor(slope: number) {
    this.#slope = slope;
    this.#knownSlope = slope;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** The slope if it is based on five minutes, otherwise the previously known one. */
  get knownSlope(): number {
    return this.#knownSlope;
  }

  /** For five minutes the clock has been wrong by more than any real clock is. */
  get isTooSteep(): boolean {
    return this.#count === BUCKETS && Math.abs(this.#hullSlope) > STEEP;
  }

  /** By how much frames were recently moved, because they would have been dated after their arrival. */
  get pushedMs(): number {
    return this.#pushedMs;
  }

  /** Wall time of the last placed frame. */
  get placedWall(): number {
    return this.#placedWall;
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
    const delay = arrivalMs - mediaMs;
    if (arrivalMs >= this.#bucketEndMs) {
      this.#bucketEndMs = arrivalMs + BUCKET_MS;
      this.#loweredMs = 0;
      this.#newest = (this.#newest + 1) % BUCKETS;
      if (this.#count < BUCKETS) this.#count++;
      this.#media[this.#newest] = mediaMs;
      this.#delay[this.#newest] = delay;
      this.#fit();
    } else if (delay < (this.#delay[this.#newest] as number)) {
      this.#media[this.#newest] = mediaMs;
      this.#delay[this.#newest] = delay;
    }
    const above = this.at(mediaMs) - arrivalMs;
    if (above <= 0) return;
    this.#offset -= above;
    this.#loweredMs += above;
    if (this.#loweredMs > MAX_LOWERED_MS) this.#count = 1;
  }

  /** Wall time of a frame that was observed: near the line, in the order of the frames, never after its arrival. */
  place(mediaMs: number, arrivalMs: number): number {
    const stepMs = mediaMs - this.#placedMedia;
    if (stepMs <= 0) return this.#placedWall + stepMs;
    const last = this.#placedWall;
    let wall = this.at(mediaMs);
    if (stepMs !== Infinity) {
      wall = Math.max(last + stepMs * (1 - MAX_SLEW), Math.min(last + stepMs * (1 + MAX_SLEW), wall));
      this.#pushedMs = Math.max(0, this.#pushedMs + Math.max(0, wall - arrivalMs) - stepMs * MAX_SLOPE);
    }
    this.#placedMedia = mediaMs;
    this.#placedWall = Math.min(wall, arrivalMs);
    return this.#placedWall;
  }

  get #spanMs(): number {
    const oldest = (this.#newest + BUCKETS - this.#count + 1) % BUCKETS;
    return this.#count === 0 ? 0 : (this.#media[this.#newest] as number) - (this.#media[oldest] as number);
  }

  /** The slope is that of the hull's edge over the middle; the line touches the hull from below. */
  #fit(): void {
    const media = this.#media;
    const delay = this.#delay;
    const slopeOf = (a: number, b: number): number =>
      ((delay[b] as number) - (delay[a] as number)) / ((media[b] as number) - (media[a] as number));
    let size = 0;
    for (let i = this.#count - 1; i >= 0; i--) {
      const at = (this.#newest + BUCKETS - i) % BUCKETS;
      if (size > 0 && (media[at] as number) <= (media[hull[size - 1] as number] as number)) continue;
      while (size >= 2) {
        const last = hull[size - 1] as number;
        if (slopeOf(hull[size - 2] as number, last) < slopeOf(last, at)) break;
        size--;
      }
      hull[size++] = at;
    }
    const middle = (media[hull[0] as number] as number) + this.#spanMs / 2;
    let edge = 0;
    while (edge < size - 2 && (media[hull[edge + 1] as number] as number) < middle) edge++;
    this.#hullSlope = size < 2 ? this.#knownSlope : slopeOf(hull[edge] as number, hull[edge + 1] as number);
    const leeway = MAX_SLOPE * Math.min(1, this.#spanMs / PROVEN_MS);
    const near = Math.max(this.#knownSlope - leeway, Math.min(this.#knownSlope + leeway, this.#hullSlope));
    this.#slope = Math.max(-MAX_SLOPE, Math.min(MAX_SLOPE, near));
    if (this.#count === BUCKETS) this.#knownSlope = this.#slope;
    this.#offset = Infinity;
    for (let i = 0; i < size; i++) {
      const at = hull[i] as number;
      this.#offset = Math.min(this.#offset, (delay[at] as number) - this.#slope * (media[at] as number));
    }
  }
}
