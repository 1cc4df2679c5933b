// Finds the parameter sets in force at each key frame of a recorded file, for files whose camera changed some in band. Reads the
// start of each key frame.

import { concurrently } from '../../base/concurrently.ts';
import { concat, u32 } from './box.ts';
import { entryCodec, hasParameterSets, parameterSetsOf } from './entry-sets.ts';
import type { SetsAt } from './join.ts';
import type { TrackHeader } from './movie.ts';
import type { ReadAt } from './reader.ts';

/** Parameter sets and messages come before the first slice, at the start of an access unit. */
const HEAD_BYTES = 1024;
/** Files of other nodes are read over links with a delay. */
const READS_AT_ONCE = 16;
/** Limit for cameras that keep sending new sets: the last ones count. */
const MAX_SETS = 16;

/** NAL units, each with a 4-byte length. */
type Sets = readonly Buffer[];

/** The facts about samples in a track index. */
interface Samples {
  readonly header: TrackHeader;
  readonly offsets: ArrayLike<number>;
  readonly sizes: ArrayLike<number>;
  readonly syncs: ArrayLike<number>;
}

/**
 * Undefined if no key frame has parameter sets of its own, so that those of the sample entry are always in force. Examines only
 * the first `samples` samples.
 */
export async function readSetsInForce(
  read: ReadAt,
  video: Samples,
  samples = video.sizes.length,
): Promise<SetsAt | undefined> {
  if (!hasParameterSets(video.header.sampleEntry)) return undefined;
  const isSet = setTest(entryCodec(video.header.sampleEntry));
  let inForce: Sets = [parameterSetsOf(video.header.sampleEntry)];
  const changes: { sample: number; sets: Buffer }[] = [{ sample: 0, sets: concat(inForce) }];
  for (const { sample: i, head } of await headsOfKeyFrames(read, video, samples)) {
    const found = setsAtStart(head, isSet);
    if (found.length === 0) continue;
    const [entry = Buffer.alloc(0), ...others] = inForce;
    const kept = others.filter((set) => !found.some((other) => other.equals(set)));
    // A set replaces an earlier one with the same id.
    inForce = [entry, ...[...kept, ...found].slice(-MAX_SETS)];
    changes.push({ sample: i, sets: concat(inForce) });
  }
  if (changes.length === 1) return undefined;
  return (sample) => (changes.findLast((change) => change.sample <= sample) ?? changes[0])?.sets ?? Buffer.alloc(0);
}

/** The first bytes of each key frame among the first `samples` samples. */
export async function headsOfKeyFrames(
  read: ReadAt,
  { syncs, offsets, sizes }: Pick<Samples, 'syncs' | 'offsets' | 'sizes'>,
  samples = sizes.length,
): Promise<readonly { readonly sample: number; readonly head: Buffer }[]> {
  const keyFrames: number[] = [];
  for (let i = 0; i < samples; i++) if (syncs[i] === 1) keyFrames.push(i);
  return concurrently(keyFrames, READS_AT_ONCE, async (sample) => ({
    sample,
    head: await read(offsets[sample] as number, Math.min(HEAD_BYTES, sizes[sample] as number)),
  }));
}

/** Whether the first byte of a NAL unit is that of a parameter set (H.264 §7.4.1, H.265 §7.4.2.2). */
const setTest = (codec: string): ((firstByte: number) => boolean) =>
  codec === 'avc1'
    ? (first) => (first & 0x1f) === 7 || (first & 0x1f) === 8
    : (first) => ((first >> 1) & 0x3f) >= 32 && ((first >> 1) & 0x3f) <= 34;

/** Copies the sets, because the buffer that was read is not kept. */
function setsAtStart(head: Buffer, isSet: (firstByte: number) => boolean): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at + 5 <= head.length;) {
    const size = head.readUInt32BE(at);
    if (size === 0 || at + 4 + size > head.length) break;
    const nal = head.subarray(at + 4, at + 4 + size);
    if (isSet(nal[0] as number)) found.push(concat([u32(size), Buffer.from(nal)]));
    at += 4 + size;
  }
  return found;
}
