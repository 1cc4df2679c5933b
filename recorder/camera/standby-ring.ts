// The last seconds of a camera that another node records, in memory only. When this node takes the camera over, they are written as
// if it had recorded since then: first the held samples, then those that arrive, as one run without a hole (docs/design/standby.md).

import { assert } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { unlimitedMemory, type MemoryAccount } from '../../base/memory-budget.ts';
import { SlabHolds } from '../codec/slab.ts';
import { TICKS_PER_MS, type Sample } from '../mp4/sample.ts';
import type { EndReason, Run, SampleSink } from '../contract/sink.ts';

/** Samples from one key frame of the leading track up to the next. */
interface Group {
  /** Valid for these samples. */
  readonly run: Run;
  readonly beginsRun: boolean;
  /** Monotonic time at which the first sample arrived. */
  readonly atMs: number;
  readonly samples: Sample[];
  /** Why the run ended after this group; undefined: it went on. */
  ended: EndReason | undefined;
  /** All of it was passed to a copy that has left, or is older than what that copy should contain. */
  isCopied: boolean;
}

/** The receivers of the pictures when this node takes over. */
interface Promotion {
  /** Wall time from which pictures are to be written, in milliseconds since 1970. Writing begins at the key frame at or before it. */
  readonly fromMs: number;
  /** Gets the held samples, then those that arrive. */
  readonly recording: SampleSink;
  /** Whether `recording` can take more held samples now. */
  readonly hasSpace: () => boolean;
  /** Gets the samples that arrive, from the next key frame on: viewers do not wait until the held ones are written. */
  readonly live?: SampleSink;
  /** Wall time up to which this node has recorded the camera already. Nothing before it is written again. */
  readonly notBeforeMs?: number | undefined;
  /** Of a copy: a group is passed on when it is complete, so that its successor can begin at the next key frame. */
  readonly onlyWhole?: boolean;
}

type State =
  | { readonly kind: 'holding' }
  /** The held samples are passed on, and those that arrive are added after them. */
  | { readonly kind: 'catching-up'; readonly to: Promotion; timer: Timer | undefined; begun: Run | undefined }
  | { readonly kind: 'recording'; readonly to: Promotion };

type CatchingUp = Extract<State, { kind: 'catching-up' }>;

interface StandbyRingOptions {
  readonly clock: Clock;
  /** Of all rings of the process. */
  readonly memory?: MemoryAccount;
  /** The least time to hold. Whole groups of pictures are kept, so somewhat more is held. */
  readonly holdMs: () => number;
}

/** This much media is passed on at a time; then other cameras have their turn. */
const STEP_TICKS = 2_000 * TICKS_PER_MS;
const STEP_PAUSE_MS = 10;
const WAIT_PAUSE_MS = 50;
/** The times of one picture in a file and in memory differ by less than this. */
const SAME_TIME_MS = 200;

export class StandbyRing implements SampleSink {
  readonly #options: StandbyRingOptions;
  readonly #memory: MemoryAccount;
  readonly #holds = new SlabHolds();
  #groups: Group[] = [];
  #run: Run | undefined;
  #isRunNew = false;
  /** The rest of a group was dropped because memory was short. The next key frame begins a new group. */
  #skips = true;
  #state: State = { kind: 'holding' };
  #liveRun: Run | undefined;
  #dropsForSpace = 0;
  /** Copies, which also get the samples that arrive. */
  #copies: readonly StandbyRing[] = [];
  /** A copy has left: `isCopied` shows exactly what was written, so times are not compared. */
  #isSeamKnown = false;
  /** It is a copy that gets no more samples. */
  #hasLeft = false;

  constructor(options: StandbyRingOptions) {
    this.#options = options;
    this.#memory = options.memory ?? unlimitedMemory('standby');
  }

  get isHolding(): boolean {
    return this.#state.kind === 'holding';
  }

  /** Bytes of whole blocks of memory. */
  get bytes(): number {
    return this.#holds.bytes;
  }

  /** How long ago the oldest picture arrived; 0 without one. */
  get heldMs(): number {
    const oldest = this.#groups[0];
    return oldest ? this.#nowMs() - oldest.atMs : 0;
  }

  /** How often pictures were dropped early because memory was short. */
  get dropsForSpace(): number {
    return this.#dropsForSpace;
  }

  /** Wall time of the oldest picture; undefined without one. */
  get sinceMs(): number | undefined {
    return this.#groups[0]?.samples[0]?.wallMs;
  }

  begin(run: Run): void {
    if (this.#run) this.end('stopped');
    this.#run = run;
    this.#isRunNew = true;
    this.#skips = true;
    if (this.#state.kind === 'recording') this.#state.to.recording.begin(run);
    for (const copy of this.#copies) copy.begin(run);
  }

  change(run: Run): void {
    this.#run = run;
    if (this.#state.kind === 'recording') this.#state.to.recording.change(run);
    if (this.#liveRun && this.#state.kind !== 'holding') {
      this.#liveRun = run;
      this.#state.to.live?.change(run);
    }
    for (const copy of this.#copies) copy.change(run);
  }

  sample(sample: Sample): void {
    const state = this.#state;
    if (state.kind === 'recording') state.to.recording.sample(sample);
    else this.#hold(sample);
    if (state.kind !== 'holding' && state.to.live) this.#show(state.to.live, sample);
    for (let i = 0; i < this.#copies.length; i++) this.#copies[i]?.sample(sample);
  }

  end(reason: EndReason): void {
    const state = this.#state;
    this.#run = undefined;
    this.#skips = true;
    if (state.kind === 'recording') state.to.recording.end(reason);
    else {
      const last = this.#groups.at(-1);
      if (last) last.ended ??= reason;
    }
    if (state.kind !== 'holding' && this.#liveRun) state.to.live?.end(reason);
    this.#liveRun = undefined;
    for (const copy of this.#copies) copy.end(reason);
  }

  /** Call a few times a second: drops old groups even while nothing arrives. */
  tick(): void {
    if (this.#state.kind !== 'holding') return;
    const beforeMs = this.#nowMs() - this.#options.holdMs();
    const [first, second] = this.#groups;
    if (first?.ended !== undefined && !second && first.atMs < beforeMs) this.#dropFirst();
    else this.#dropOld();
  }

  /** This node takes the camera over. Call it once. What copies have got is not passed on again. */
  promote(to: Promotion): void {
    assert(this.#state.kind === 'holding', 'a camera is taken over twice');
    const groups = this.#groups;
    const notBeforeMs = this.#isSeamKnown ? -Infinity : (to.notBeforeMs ?? -Infinity);
    const isOver = ({ isCopied, samples }: Group): boolean =>
      isCopied || (samples[0]?.wallMs ?? Infinity) < notBeforeMs - SAME_TIME_MS;
    while (groups[0] && isOver(groups[0])) this.#dropFirst();
    const next = groups.findIndex(({ samples }) => (samples[0] as Sample).wallMs > to.fromMs);
    for (let old = (next < 0 ? groups.length : next) - 1; old > 0; old--) this.#dropFirst();
    this.#state = { kind: 'catching-up', to, timer: undefined, begun: undefined };
    this.#passOn();
  }

  /**
   * Another ring with the same pictures, except those of earlier copies. It also gets the samples that arrive, until `leave`, and shares
   * the memory of this ring.
   */
  copy(): StandbyRing {
    const copy = new StandbyRing({ clock: this.#options.clock, holdMs: () => Infinity });
    let run: Run | undefined;
    for (const group of this.#groups) {
      if (group.isCopied) continue;
      if (!run || group.beginsRun) copy.begin(group.run);
      else if (run !== group.run) copy.change(group.run);
      run = group.run;
      for (const sample of group.samples) copy.sample(sample);
      if (group.ended === undefined) continue;
      copy.end(group.ended);
      run = undefined;
    }
    if (this.#run && !run) copy.begin(this.#run);
    this.#copies = [...this.#copies, copy];
    copy.#isSeamKnown = this.#isSeamKnown;
    return copy;
  }

  /** The copy, which passes on whole groups, gets nothing more: the group in progress stays in this ring. */
  leave(copy: StandbyRing): void {
    this.#copies = this.#copies.filter((one) => one !== copy);
    this.#isSeamKnown = true;
    for (const group of this.#groups) group.isCopied = group !== this.#groups.at(-1) || group.ended !== undefined;
    copy.#leave();
  }

  #leave(): void {
    const last = this.#groups.at(-1);
    if (last && last.ended === undefined) {
      this.#groups.pop();
      for (const sample of last.samples) this.#release(sample);
    }
    this.#hasLeft = true;
    const state = this.#state;
    if (state.kind === 'catching-up' && state.begun && this.#groups.length === 0) {
      state.to.recording.end('stopped');
      state.begun = undefined;
    }
    this.end('stopped');
  }

  /** Drops the oldest group to make space for others. The oldest pictures of all cameras should go first. */
  shed(): void {
    this.#dropsForSpace++;
    if (this.#groups.length === 1) this.#skips = true;
    this.#dropFirst();
  }

  /** Drops everything, including samples that were not passed on yet. The ring must not be used afterwards. */
  close(): void {
    if (this.#state.kind === 'catching-up') this.#state.timer?.cancel();
    while (this.#groups.length > 0) this.#dropFirst();
  }

  /** Passes on all remaining samples, even beyond the limits of the queues, because the recording ends. */
  flush(): void {
    while (this.#state.kind === 'catching-up' && !this.#mustWait(this.#state)) this.#passStep(this.#state);
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #hold(sample: Sample): void {
    const run = this.#run;
    if (!run) return;
    if (sample.kind === 'video' && sample.sync) {
      this.#groups.push({
        run,
        beginsRun: this.#isRunNew,
        atMs: this.#nowMs(),
        samples: [],
        ended: undefined,
        isCopied: false,
      });
      this.#isRunNew = false;
      this.#skips = false;
      if (this.#state.kind === 'holding') this.#dropOld();
    }
    if (this.#skips) return;
    const slabs = [sample.data.slab];
    if (!this.#makeSpace(this.#holds.bytesOfNew(slabs))) return;
    const group = this.#groups.at(-1) as Group;
    sample.data.slab.retain();
    this.#holds.add(slabs);
    group.samples.push(sample);
  }

  /** Reserves memory for a sample of the last group, and drops older groups if needed. False if the last group had to be dropped, too. */
  #makeSpace(bytes: number): boolean {
    if (bytes === 0) return true;
    // The account may free memory of another camera, or of this one.
    while (!this.#memory.take(bytes)) {
      if (this.#groups.length === 0) return false;
      this.shed();
    }
    if (!this.#skips && this.#groups.length > 0) return true;
    this.#memory.giveBack(bytes);
    return false;
  }

  /** Keeps the newest group that is old enough, and those after it. */
  #dropOld(): void {
    const beforeMs = this.#nowMs() - this.#options.holdMs();
    for (let second = this.#groups[1]; second && second.atMs <= beforeMs; second = this.#groups[1]) this.#dropFirst();
  }

  #dropFirst(): void {
    const state = this.#state;
    const group = this.#groups.shift();
    if (!group) return;
    for (const sample of group.samples) this.#release(sample);
    // A part of it may have been passed on already. Then the recording continues at the next key frame.
    if (state.kind !== 'catching-up' || !state.begun) return;
    state.to.recording.end('gap');
    state.begun = undefined;
  }

  #release({ data }: Sample): void {
    this.#memory.giveBack(this.#holds.remove([data.slab]));
    data.slab.release();
  }

  #passOn(): void {
    const state = this.#state;
    if (state.kind !== 'catching-up') return;
    const mayPass = state.to.hasSpace() && !this.#mustWait(state);
    if (mayPass) this.#passStep(state);
    if (this.#state.kind !== 'catching-up') return;
    state.timer = this.#options.clock.after(mayPass ? STEP_PAUSE_MS : WAIT_PAUSE_MS, () => this.#passOn());
  }

  /** Whether no group is complete yet. */
  #mustWait({ to }: CatchingUp): boolean {
    if (!to.onlyWhole || this.#hasLeft) return false;
    return this.#groups.length === 0 || (this.#groups.length === 1 && this.#groups[0]?.ended === undefined);
  }

  #passStep(state: CatchingUp): void {
    const { recording } = state.to;
    let fromDts: number | undefined;
    for (let group = this.#groups[0]; group && !this.#mustWait(state); group = this.#groups[0]) {
      this.#announce(state, group);
      const { samples } = group;
      let count = 0;
      for (; count < samples.length; count++) {
        const sample = samples[count] as Sample;
        if (sample.kind === 'video') {
          fromDts ??= sample.dts;
          if (sample.dts - fromDts > STEP_TICKS || sample.dts < fromDts) break;
        }
        recording.sample(sample);
        this.#release(sample);
      }
      samples.splice(0, count);
      if (samples.length > 0) return;
      const isLast = this.#groups.length === 1;
      if (group.ended !== undefined) {
        recording.end(group.ended);
        state.begun = undefined;
      }
      this.#groups.shift();
      if (isLast) break;
    }
    if (this.#mustWait(state)) return;
    state.timer?.cancel();
    this.#state = { kind: 'recording', to: state.to };
    // The run has begun, but has no key frame yet.
    if (this.#run && !state.begun) recording.begin(this.#run);
    else if (this.#run && this.#run !== state.begun) recording.change(this.#run);
  }

  /** Begins or changes the run of the recording as the group requires. */
  #announce(state: CatchingUp, { run, beginsRun }: Group): void {
    if (state.begun === run) return;
    if (!state.begun || (beginsRun && state.begun.runId !== run.runId)) state.to.recording.begin(run);
    else state.to.recording.change(run);
    state.begun = run;
  }

  /** Live view begins at a key frame. */
  #show(live: SampleSink, sample: Sample): void {
    if (!this.#liveRun) {
      if (!this.#run || sample.kind !== 'video' || !sample.sync) return;
      this.#liveRun = this.#run;
      live.begin(this.#run);
    }
    live.sample(sample);
  }
}
