// Files with footage in, an HLS media playlist over them out (RFC 8216): parts are byte ranges of the files themselves.
//
// Times begin anew in each file, so that each is a discontinuity with its own date and time. Files with the same
// parameters share one initialization section, so that a player fetches it once. A day has fifteen thousand parts and
// players of a growing interval ask again every few seconds: the lines of a whole file are made once.
//
// A playlist that is asked for again says nothing of what may become different (RFC 8216 §6.2.1): it has no type, since
// EVENT would promise that nothing goes at the front, and retention knows no playlists; and the longest duration is the
// one that was listed first, whatever the camera sends then.

import { ownCopy } from '../../base/own-copy.ts';
import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { Interval } from '../http/interval.ts';
import { wallAt } from './footage.ts';
import type { Listed } from './numbering.ts';
import { isServedAsIs } from './part.ts';
import { maxTicksOf, ticksOf } from './target-duration.ts';

export interface PlaylistOptions extends Interval {
  /** Where players should begin; `-Infinity`: with the first part. */
  readonly startMs: number;
  readonly cameraId: string;
  /** More may follow: no end is listed, and players ask again. */
  readonly live: boolean;
  /** Players ask for it again, or did: only what is listed may differ. */
  readonly followed: boolean;
  /** See `targetSecondsOf`. */
  readonly targetSeconds: number;
  /** Appended to every address, as `?access_token=…`; empty when the player sends its own header. */
  readonly suffix: string;
}

/** The parts of one file as lines with their date and time, and what else of them goes into a playlist. */
interface PartLines {
  readonly suffix: string;
  readonly bytes: Buffer;
  readonly longestTicks: number;
}

const DISCONTINUITY = Buffer.from('#EXT-X-DISCONTINUITY\n');

export class Playlists {
  /** Of whole files that are closed; they go with what is known of the file. */
  readonly #lines = new WeakMap<FileParts, PartLines>();
  readonly #parameters = new WeakMap<FileParts, string>();

  /** In pieces, most of which are kept: a day is more than a megabyte. Undefined when no part lies in the interval. */
  build(footage: readonly Listed[], options: PlaylistOptions): readonly Buffer[] | undefined {
    const { cameraId, fromMs, toMs, startMs, live, followed, targetSeconds, suffix } = options;
    const body: Buffer[] = [];
    const inits = new Map<string, string>();
    let init: string | undefined;
    let startOffset: number | undefined;
    let first = { number: 0, discontinuity: 0 };
    let discontinuity = 0;
    for (const item of footage) {
      const { path, parts } = item;
      const [from, to] = partsWithin(parts, fromMs, toMs);
      if (from === to) continue;
      const key = this.#parametersOf(parts);
      const mapped = inits.get(key) ?? `/hls/${cameraId}/init/${path}${suffix}`;
      inits.set(key, mapped);
      if (startOffset === undefined) {
        startOffset = Math.max(0, startMs - wallOfPart(parts, from)) / 1000;
        first = { number: item.number + from, discontinuity: item.discontinuity };
      } else {
        // Also for files without a part in here: each counts as one.
        for (let n = discontinuity; n < item.discontinuity; n++) body.push(DISCONTINUITY);
      }
      discontinuity = item.discontinuity;
      if (mapped !== init) body.push(Buffer.from(`#EXT-X-MAP:URI="${mapped}"\n`, 'latin1'));
      init = mapped;
      body.push(this.#linesOf(item, options, from, to).bytes);
    }
    if (startOffset === undefined) return undefined;
    const head = [
      '#EXTM3U',
      `#EXT-X-VERSION:${followed ? 8 : 7}`, // 8 knows EXT-X-GAP
      `#EXT-X-TARGETDURATION:${targetSeconds}`,
      `#EXT-X-MEDIA-SEQUENCE:${first.number}`,
      `#EXT-X-DISCONTINUITY-SEQUENCE:${first.discontinuity}`,
      ...(followed ? [] : ['#EXT-X-PLAYLIST-TYPE:VOD']),
      '#EXT-X-INDEPENDENT-SEGMENTS',
      `#EXT-X-START:TIME-OFFSET=${startOffset.toFixed(3)},PRECISE=YES`,
      '',
    ];
    return [Buffer.from(head.join('\n')), ...body, Buffer.from(live ? '' : '#EXT-X-ENDLIST\n')];
  }

  #linesOf(item: Listed, options: PlaylistOptions, from: number, to: number): PartLines {
    const { parts, gone } = item;
    if (gone || !parts.complete || from > 0 || to < parts.starts.length - 1) return partLines(item, options, from, to);
    const { suffix, targetSeconds } = options;
    const maxTicks = maxTicksOf(targetSeconds);
    const known = this.#lines.get(parts);
    if (known?.suffix === suffix && known.longestTicks <= maxTicks) return known;
    const made = partLines(item, options, from, to);
    // What is made shorter than it is belongs to this playlist alone.
    if (made.longestTicks <= maxTicks) this.#lines.set(parts, made);
    return made;
  }

  /** The same for files that one initialization section serves. */
  #parametersOf(parts: FileParts): string {
    const known = this.#parameters.get(parts);
    if (known !== undefined) return known;
    const key = parts.headers
      .map(({ trackId, timescale, sampleEntry }) => `${trackId} ${timescale} ${sampleEntry.toString('latin1')}`)
      .join('\n');
    this.#parameters.set(parts, key);
    return key;
  }
}

function partLines({ path, parts, gone }: Listed, options: PlaylistOptions, from: number, to: number): PartLines {
  const { cameraId, suffix, targetSeconds } = options;
  const { starts } = parts;
  const asIs = isServedAsIs(parts);
  const maxTicks = maxTicksOf(targetSeconds);
  let text = `#EXT-X-PROGRAM-DATE-TIME:${new Date(wallOfPart(parts, from)).toISOString()}\n`;
  let longestTicks = 0;
  for (let i = from; i < to; i++) {
    const ticks = ticksOf(parts, i);
    if (ticks > longestTicks) longestTicks = ticks;
    // How long a longer one really is, players find in it; at a promise that is broken they may stumble.
    text += `#EXTINF:${(Math.min(ticks, maxTicks) / VIDEO_TIMESCALE).toFixed(5)},\n`;
    if (gone) text += '#EXT-X-GAP\n';
    const start = starts[i] as number;
    text += asIs
      ? `#EXT-X-BYTERANGE:${(starts[i + 1] as number) - start}@${start}\n/${path}${suffix}\n`
      : `/hls/${cameraId}/parts/${i}/${path}${suffix}\n`;
  }
  // Kept for thousands of files.
  return { suffix, bytes: ownCopy(Buffer.from(text, 'latin1')), longestTicks };
}

/** Wall time of the first picture of a part: key frames have the same distance from decoding to presentation. */
const wallOfPart = (parts: FileParts, part: number): number =>
  wallAt(parts, parts.shownFrom + (parts.times[part] as number) - (parts.times[0] as number));

/** The part in which `fromMs` lies, the first one when it lies before; also the one that still grows. */
export function partAt(parts: FileParts, fromMs: number): number {
  const last = parts.starts.length - (parts.complete ? 2 : 1);
  let part = 0;
  while (part < last && wallOfPart(parts, part + 1) <= fromMs) part++;
  return part;
}

/** The parts that overlap [fromMs, toMs), as numbers of the first and of the one behind the last. */
export function partsWithin(parts: FileParts, fromMs: number, toMs: number): [from: number, to: number] {
  const last = parts.starts.length - 1;
  // Most files of an interval lie in it as a whole.
  if (last > 0 && wallOfPart(parts, 0) >= fromMs && wallOfPart(parts, last) <= toMs) return [0, last];
  let from = 0;
  while (from < last && wallOfPart(parts, from + 1) <= fromMs) from++;
  let to = from;
  while (to < last && wallOfPart(parts, to) < toMs) to++;
  return [from, to];
}
