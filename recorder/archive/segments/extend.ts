// Adds pictures after the last one of a complete file: those up to the next key frame, because no file can begin with them. The
// longer file is written beside the old one and replaces it, so a crash leaves one of the two complete, and readers of the old one
// can finish.

import type { MediaData } from '../../codec/slab.ts';
import { DecodeOrder } from '../../camera/decode-order.ts';
import type { Seam } from '../../mp4/meta.ts';
import { readLayout, type ReadAt } from '../../mp4/reader.ts';
import { recover } from '../../mp4/recover.ts';
import { readSampleIndex, type TrackIndex } from '../../mp4/sample-index.ts';
import { VIDEO_TIMESCALE } from '../../mp4/sample.ts';
import { REOPENING } from '../../mp4/segment.ts';
import { closedSegment, recordedDetails, type ClosedSegment } from '../catalogue/segment.ts';
import type { OpenFile } from '../disk/file-system.ts';
import { formatPath, type SegmentName } from '../disk/names.ts';
import { copy, type SegmentStore } from '../disk/segment-store.ts';
import { FragmentBuilder } from './fragment-builder.ts';

/** Times are in ticks of 90 kHz after the presentation of the last picture of the file, in decoding order. */
export interface Continuation {
  /** In decoding order. The caller keeps its holds on the data. */
  readonly pictures: readonly { readonly data: MediaData; readonly ticks: number; readonly wallMs: number }[];
  /** `duration`: in samples of the track. */
  readonly sounds: readonly { readonly data: MediaData; readonly ticks: number; readonly duration: number }[];
  readonly endTicks: number;
  readonly wallEndMs: number;
  readonly seam: Seam;
}

/** Larger files are not copied: it would take the disk too long. */
const MAX_BYTES = 1024 ** 3;
const FRAGMENT_TICKS = 0.9 * VIDEO_TIMESCALE;
/** More pictures than can be reordered (H.264 A.3.1). */
const REORDERED = 32;

/** Undefined for a file that cannot be extended: too large, or with its index in front. Rejects with the error of the system. */
export async function extendSegment(
  store: SegmentStore,
  segment: SegmentName,
  continuation: Continuation,
): Promise<ClosedSegment | undefined> {
  const path = formatPath(segment);
  const source = await store.fs.open(await store.locate(path), 'read');
  try {
    const { sizeBytes } = await source.facts();
    const read: ReadAt = (offset, length) => source.read(offset, length);
    const layout = await readLayout(read, sizeBytes);
    if (layout.kind !== 'finalized' || !layout.firstMoov || sizeBytes > MAX_BYTES) return undefined;
    const { meta, tracks } = await readSampleIndex(read, sizeBytes);
    const growsFrom = layout.moov.offset;
    let extended = meta;
    const facts = await store.replace(path, async (target) => {
      await copy(source, { offset: 0, size: growsFrom }, target, 0);
      await target.write([REOPENING.bytes], REOPENING.offset);
      const found = await recover((offset, length) => target.read(offset, length), growsFrom, { written: true });
      if (found.kind !== 'recovered' || found.cutAt !== growsFrom)
        throw new Error('the file has other fragments than its index');
      const { writer } = found;
      writer.describe(meta);
      let position = growsFrom;
      for (const fragment of fragmentsOf(tracks, continuation)) {
        const taken = fragment.take(writer);
        position += await target.write(taken.buffers, position).finally(() => taken.release());
      }
      const { wallEndMs, seam } = continuation;
      const edge = meta.edge ?? { fromMs: meta.wallStartMs + meta.wallDurationMs, seam };
      const end = writer.finish({ wallDurationMs: wallEndMs - meta.wallStartMs, lostPackets: meta.lostPackets, edge });
      extended = end.meta;
      await complete(target, position, end);
    });
    return closedSegment(segment, recordedDetails(facts, extended), extended);
  } finally {
    await source.close();
  }
}

/** Nothing reads the file before it is complete, so one sync is enough. */
async function complete(
  target: OpenFile,
  position: number,
  { tail, patch }: { readonly tail: Buffer; readonly patch: { readonly offset: number; readonly bytes: Buffer } },
): Promise<void> {
  await target.write([tail], position);
  await target.write([patch.bytes], patch.offset);
}

function* fragmentsOf(tracks: readonly TrackIndex[], continuation: Continuation): Generator<FragmentBuilder> {
  const { pictures, sounds, endTicks, wallEndMs } = continuation;
  const video = tracks.find(({ header }) => header.kind === 'video') as TrackIndex;
  const audio = tracks.find(({ header }) => header.kind === 'audio');
  // The index counts from the first picture shown, fragments from the first decoding time.
  const shownFrom = -(video.dts[0] as number);
  const count = video.sizes.length;
  const ptsOf = (i: number): number => shownFrom + (video.dts[i] as number) + (video.compositionOffsets[i] as number);
  const lastPts = ptsOf(count - 1);
  const from = Math.max(0, count - REORDERED);
  const order = new DecodeOrder(depthOf(video));
  for (let i = from; i < count; i++) order.push(ptsOf(i), 1);
  let dts = shownFrom + (video.dts[count - 1] as number);
  const placed = pictures.map(({ data, ticks, wallMs }) => {
    const pts = lastPts + Math.round(ticks);
    dts = Math.max(dts + 1, order.push(pts, 1));
    return { data, wallMs, dts, pts };
  });
  const shownLast = Math.max(...placed.map(({ pts }) => pts));
  const rate = audio?.header.timescale ?? VIDEO_TIMESCALE;
  let soundEnd = audio ? audio.endDts + Math.ceil((shownFrom * rate) / VIDEO_TIMESCALE) : Infinity;
  const waiting = sounds.flatMap(({ data, ticks, duration }) => {
    const at = Math.round(((lastPts + ticks) * rate) / VIDEO_TIMESCALE);
    // A frame that both have, up to its rounding.
    if (at < soundEnd - duration / 2) return [];
    const start = Math.max(at, soundEnd);
    soundEnd = start + duration;
    return [{ data, start, duration }];
  });
  let builder = new FragmentBuilder();
  for (const [i, { data, wallMs, dts, pts }] of placed.entries()) {
    const next = placed[i + 1];
    const duration = next ? next.dts - dts : Math.max(1, lastPts + Math.round(endTicks) - shownLast);
    data.slab.retain();
    builder.addVideo(data, dts, duration, pts - dts, false, wallMs, wallEndMs);
    if (next && next.dts - builder.videoStart < FRAGMENT_TICKS) continue;
    const until = next ? (next.dts * rate) / VIDEO_TIMESCALE : Infinity;
    for (let sound = waiting[0]; sound && sound.start < until; sound = waiting[0]) {
      sound.data.slab.retain();
      builder.addAudio(sound.data, sound.start, sound.duration);
      waiting.shift();
    }
    yield builder;
    builder = new FragmentBuilder();
  }
}

/** How many pictures precede another one in decoding order and follow it in output order. */
function depthOf({ dts, compositionOffsets }: TrackIndex): number {
  let depth = 0;
  const from = Math.max(0, dts.length - 4 * REORDERED);
  for (let i = from; i < dts.length; i++) {
    const pts = (dts[i] as number) + (compositionOffsets[i] as number);
    let overtaken = 0;
    for (let k = Math.max(from, i - REORDERED); k < i; k++) {
      if ((dts[k] as number) + (compositionOffsets[k] as number) > pts) overtaken++;
    }
    depth = Math.max(depth, overtaken);
  }
  return depth;
}
