// Converts the access units of one connection to the samples of its runs (docs/design/time.md). This file has what outlives a
// run: the clocks of the two streams, the camera's statements about their relation, and the decisions when a run starts and ends.

import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import { Judge } from './judge.ts';
import { Run, type TimelineOptions } from './run.ts';
import type { EndReason } from '../contract/sink.ts';

/** More key frames than relays and pre-event buffers keep. */
const KEPT = 32;
/** Key frames with the same timestamp and size differ in their last bytes. */
const TAIL_BYTES = 64;

export class Timeline {
  readonly #options: TimelineOptions;
  /** Weighs what the camera says about time: what it believes outlives a run. */
  readonly judge: Judge;
  #run: Run | undefined;
  #arrivalMs = 0;

  constructor(options: TimelineOptions) {
    this.#options = options;
    this.judge = new Judge({ ...options, stampsRejected: (nowMs) => this.#stampByArrival(nowMs) });
  }

  /**
   * Takes an access unit of the video, or of audio without video, that arrived at `arrivalMs` (monotonic). The caller still has
   * to release its own hold on the data.
   */
  lead(unit: AccessUnit, parameters: VideoParameters | AudioParameters, arrivalMs: number): void {
    const stated = parameters.kind === 'video' ? parameters.reorderDepth : 0;
    const depth = stated ?? this.#options.memory.reorderDepth;
    const mayReorder = depth > 0 || (stated === undefined && unit.bidirectional);
    const isBehindLoss = unit.lostPackets > 0;
    const { judge } = this;
    judge.picture(unit.timestamp, arrivalMs, this.#slackMs(arrivalMs), mayReorder, isBehindLoss);
    this.#arrivalMs = arrivalMs;
    if (parameters.kind === 'video') this.#leaveOutRepeated(unit);
    const run = this.#run;
    if (judge.isNewClock && run) run.endsAs ??= 'clock';
    if (judge.stoodStill && run && !judge.isByArrival) this.end(isBehindLoss ? 'gap' : 'stalled');
    else if (run && unit.randomAccess) {
      // Changes that have to wait for a key frame are made now.
      if (depth !== run.depth) run.endsAs ??= 'parameters';
      if (run.endsAs) this.end(run.endsAs);
    }
    if (!this.#run && !unit.randomAccess) return this.#options.owner.discarded('video', 1);
    this.#run ??= new Run(this.#options, judge, depth, arrivalMs);
    this.#run.lead(unit, parameters, arrivalMs);
  }

  /**
   * What a relay has kept for new viewers was recorded before, if it comes at once and with the timestamps of then. The run begins at the
   * last key frame that is repeated, because what follows needs that one.
   */
  #leaveOutRepeated(unit: AccessUnit): void {
    if (!unit.randomAccess || !this.#isKnown(unit) || !this.#run?.isBurst) return;
    this.#options.owner.repeated(this.#run.discard());
    this.#run = undefined;
  }

  /** Whether this key frame was given before, on this connection of the camera or on an earlier one. */
  #isKnown({ timestamp, data }: AccessUnit): boolean {
    const known = (this.#options.memory.keyPictures ??= []);
    const end = data.offset + data.size;
    const tail = data.slab.buffer.toString('base64', Math.max(data.offset, end - TAIL_BYTES), end);
    const print = `${timestamp} ${data.size} ${tail}`;
    if (known.includes(print)) return true;
    if (known.push(print) > KEPT) known.shift();
    return false;
  }

  /** Takes an audio access unit. Audio before the run's first picture is dropped. */
  audio(unit: AccessUnit, parameters: AudioParameters, arrivalMs: number): void {
    if (this.judge.sound(unit.timestamp, arrivalMs, this.#run?.slackMs(arrivalMs) ?? Infinity))
      this.#run?.audioStepped();
    this.#run?.audio(unit, parameters, this.judge.clocks.audio.mediaMs, arrivalMs);
  }

  /** See `Judge.countSoundAt`: the audio goes on at its place, and the video as it is. */
  countSoundAt(clockRate: number): void {
    this.judge.countSoundAt(clockRate);
    this.#run?.audioStepped();
  }

  /** Call regularly, so that a run settles even if nothing follows. */
  tick(nowMs: number): void {
    this.#run?.tick(nowMs);
  }

  /** Ends the run if one has started. The timeline can start another one. */
  end(reason: EndReason): void {
    this.#run?.end(reason);
    this.#run = undefined;
  }

  /** By how much the capture of a picture that arrives now can be later than that of the last one. */
  #slackMs(arrivalMs: number): number {
    return this.#run?.slackMs(arrivalMs) ?? arrivalMs - this.#arrivalMs;
  }

  #stampByArrival(nowMs: number): void {
    this.#run?.stampByArrival(nowMs);
    this.#options.owner.clockWrong(this.judge.clockErrorMs, true);
  }
}
