// What a camera sent lately and its disk may not have yet, from a key frame on: with several disks, it is written first into
// a file on another disk when a disk fails.

import type { MemoryAccount } from '../../../base/memory-budget.ts';
import type { EndReason, Run } from '../../contract/sink.ts';
import type { Sample } from '../../mp4/sample.ts';

/** What the camera's archive is told. */
export type CameraCall =
  | { readonly kind: 'begin' | 'change'; readonly run: Run }
  | { readonly kind: 'sample'; readonly sample: Sample }
  | { readonly kind: 'end'; readonly reason: EndReason };

export class KeptSamples {
  readonly #memory: MemoryAccount;
  /** Begins with a key frame. */
  #calls: CameraCall[] = [];
  /** That of the first call. */
  #run: Run | undefined;

  /** `memory`: shared by all cameras of the process. */
  constructor(memory: MemoryAccount) {
    this.#memory = memory;
  }

  /** When memory is short, everything is given up, and keeping begins again at the next key frame. */
  add(call: CameraCall): void {
    if (call.kind !== 'sample') {
      if (this.#calls.length > 0) this.#calls.push(call);
      else if (call.kind !== 'end') this.#run = call.run;
      return;
    }
    const { sample } = call;
    if (this.#calls.length === 0 && !isKey(sample)) return;
    if (!this.#memory.take(sample.data.size)) return this.clear();
    sample.data.slab.retain();
    this.#calls.push(call);
  }

  /** Everything before a key frame is safe, but for sound of its time that came before it. */
  dropBefore(key: Sample): void {
    const at = this.#find(key);
    if (at <= 0) return;
    const before = this.#calls.slice(0, at);
    const begun = before.findLastIndex(({ kind }) => kind === 'begin');
    const early: CameraCall[] = [];
    for (const [i, call] of before.entries()) {
      if (call.kind === 'begin' || call.kind === 'change') this.#run = call.run;
      if (call.kind !== 'sample') continue;
      const { sample } = call;
      if (i > begun && sample.kind === 'audio' && sample.wallMs >= key.wallMs) early.push(call);
      else this.#release(sample);
    }
    this.#calls = [this.#calls[at] as CameraCall, ...early, ...this.#calls.slice(at + 1)];
  }

  /** What the camera sent from a key frame on; undefined if it is not kept. */
  from(key: Sample): readonly CameraCall[] | undefined {
    this.dropBefore(key);
    if (this.#find(key) !== 0 || !this.#run) return undefined;
    return [{ kind: 'begin', run: this.#run }, ...this.#calls];
  }

  clear(): void {
    if (this.#calls.length === 0) return;
    for (const call of this.#calls) {
      if (call.kind === 'sample') this.#release(call.sample);
      else if (call.kind !== 'end') this.#run = call.run;
    }
    this.#calls = [];
  }

  #find(key: Sample): number {
    return this.#calls.findIndex((call) => call.kind === 'sample' && call.sample === key);
  }

  #release({ data }: Sample): void {
    this.#memory.giveBack(data.size);
    data.slab.release();
  }
}

const isKey = ({ kind, sync }: Sample): boolean => kind === 'video' && sync;
