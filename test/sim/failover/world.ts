// A world without real time: events in order of their virtual time, a random source that a seed determines, and
// processes that can be killed, frozen and cut off, each with clocks of its own.

/** mulberry32: small, fast, and the same everywhere. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }
}

type Event = { readonly atMs: number; readonly order: number; readonly run: () => void };

/** A binary heap of what is going to happen. */
export class Timeline {
  nowMs = 0;
  /** Set by whoever lets promises go on: what hangs on them is done before the next event. */
  isStirred = false;
  /** What went wrong where only promises would hear of it. */
  failure: unknown;
  #heap: Event[] = [];
  #order = 0;

  at(atMs: number, run: () => void): void {
    const heap = this.#heap;
    const event = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run };
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = event;
  }

  async runUntil(endMs: number): Promise<void> {
    for (let next = this.#heap[0]; next && next.atMs <= endMs; next = this.#heap[0]) {
      this.#pop();
      this.nowMs = next.atMs;
      next.run();
      if (this.isStirred) await this.#settle();
      if (this.failure !== undefined) throw this.failure;
    }
    this.nowMs = endMs;
  }

  async #settle(): Promise<void> {
    this.isStirred = false;
    // Ticks come after all promises that can go on.
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}

const isBefore = (a: Event, b: Event): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** A process of a host. What it has in memory dies with it; clocks run on while it is frozen. */
export abstract class Process {
  readonly name: string;
  readonly timeline: Timeline;
  isUp = false;
  isFrozen = false;
  /** Nothing passes between it and the API server. */
  isCut = false;
  /** How fast its monotonic clock runs, and where its wall clock stands. */
  readonly #rate: number;
  readonly #offsetMs: number;
  readonly wallOffsetMs: number;
  #life = 0;
  #held: { life: number; run: () => void }[] = [];

  constructor(name: string, timeline: Timeline, random: Random) {
    this.name = name;
    this.timeline = timeline;
    this.#rate = random.between(0.999, 1.001);
    this.#offsetMs = random.between(0, 1e9);
    this.wallOffsetMs = random.between(-120_000, 120_000);
  }

  /** On its own monotonic clock. */
  nowMs(): number {
    return this.#offsetMs + this.timeline.nowMs * this.#rate;
  }

  wallMs(): number {
    return this.timeline.nowMs + this.wallOffsetMs;
  }

  start(): void {
    if (this.isUp) return;
    this.isUp = true;
    this.isFrozen = false;
    this.onStart();
  }

  kill(): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.isFrozen = false;
    this.#life += 1;
    this.#held = [];
    this.onKill();
  }

  freeze(): void {
    if (this.isUp) this.isFrozen = true;
  }

  thaw(): void {
    if (!this.isFrozen) return;
    this.isFrozen = false;
    const held = this.#held;
    this.#held = [];
    for (const { life, run } of held) this.#runIn(life, run);
  }

  /** Runs `run` in this life of the process, when it is not frozen. */
  after(delayMs: number, run: () => void): void {
    const life = this.#life;
    this.timeline.at(this.timeline.nowMs + delayMs / this.#rate, () => this.#runIn(life, run));
  }

  /** What came from outside for this life of the process. */
  inThisLife(run: () => void): () => void {
    const life = this.#life;
    return () => this.#runIn(life, run);
  }

  protected abstract onStart(): void;
  protected onKill(): void {}

  #runIn(life: number, run: () => void): void {
    if (!this.isUp || life !== this.#life) return;
    if (this.isFrozen) this.#held.push({ life, run });
    else run();
  }
}
