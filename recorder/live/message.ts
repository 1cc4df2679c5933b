// One WebSocket message a sample: `moof`, `mdat` and the sample in one piece, once for all viewers.

import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { FragmentSample, FragmentTrack } from '../mp4/fragment.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, fragmentHeaderSize, writeFragment } from '../mp4/fragment.ts';
import type { MediaData } from '../codec/slab.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The metadata of a message's sample. Times are those of the live timeline. */
export interface LiveSample {
  readonly kind: 'video' | 'audio';
  readonly decodeTime: number;
  readonly compositionOffset: number;
  readonly duration: number;
  readonly sync: boolean;
}

/** One fragment with one sample. */
export interface LivePart {
  readonly kind: 'key-frame' | 'picture' | 'audio';
  readonly bytes: Buffer;
}

/** A message that may wait for many connections: its bytes count once, from the first hold to the last release. */
export class LiveMessage {
  readonly kind: LivePart['kind'] | 'init';
  readonly bytes: Buffer;
  #holders = 0;

  constructor(kind: LiveMessage['kind'], bytes: Buffer) {
    this.kind = kind;
    this.bytes = bytes;
  }

  /** False if `memory` has no space for it. */
  hold(memory: MemoryAccount): boolean {
    if (this.#holders === 0 && !memory.take(this.bytes.length)) return false;
    this.#holders++;
    return true;
  }

  release(memory: MemoryAccount): void {
    if (--this.#holders === 0) memory.giveBack(this.bytes.length);
  }
}

/** Makes the fragments of one camera; reuses objects so that only the message itself is allocated. */
export class MessageWriter {
  #sequenceNumber = 0;
  readonly #sample: Mutable<FragmentSample> = { size: 0, duration: 0, compositionOffset: 0, sync: false };
  readonly #track: Mutable<FragmentTrack> = { trackId: 0, baseDecodeTime: 0, samples: [this.#sample] };
  readonly #tracks: readonly FragmentTrack[] = [this.#track];

  write(sample: LiveSample, data: MediaData): LivePart {
    this.#sample.size = data.size;
    this.#sample.duration = sample.duration;
    this.#sample.compositionOffset = sample.compositionOffset;
    this.#sample.sync = sample.sync;
    this.#track.trackId = sample.kind === 'video' ? VIDEO_TRACK_ID : AUDIO_TRACK_ID;
    this.#track.baseDecodeTime = sample.decodeTime;
    // Not from Node's shared pool: a small message would keep 64 KiB alive until the slowest viewer has got it.
    const message = Buffer.allocUnsafeSlow(fragmentHeaderSize(this.#tracks) + data.size);
    const payloadAt = writeFragment(message, 0, ++this.#sequenceNumber, this.#tracks);
    data.slab.buffer.copy(message, payloadAt, data.offset, data.offset + data.size);
    return { kind: sample.kind === 'audio' ? 'audio' : sample.sync ? 'key-frame' : 'picture', bytes: message };
  }
}
