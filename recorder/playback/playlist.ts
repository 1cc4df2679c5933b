// Files with footage in, an HLS media playlist over them out (RFC 8216): parts are byte ranges of the files themselves.
//
// Times begin anew in each file, so that each is a discontinuity with its own date and time. Files with the same
// parameters share one initialization section, so that a player fetches it once.

import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { wallAt, type Footage, type Interval } from './footage.ts';
import { isServedAsIs } from './part.ts';

export interface PlaylistOptions extends Interval {
  readonly cameraId: string;
  /** More may follow: no end is listed, and players ask again. */
  readonly live: boolean;
  /** Appended to every address, as `?access_token=…`; empty when the player sends its own header. */
  readonly suffix: string;
}

/** Undefined when no part lies in the interval. */
export function buildPlaylist(footage: readonly Footage[], options: PlaylistOptions): string | undefined {
  const { cameraId, fromMs, toMs, live, suffix } = options;
  const lines: string[] = [];
  const inits = new Map<string, string>();
  let init: string | undefined;
  let longest = 0;
  let startOffset: number | undefined;
  for (const { path, parts } of footage) {
    const { starts, times } = parts;
    const asIs = isServedAsIs(parts);
    const [from, to] = partsWithin(parts, fromMs, toMs);
    if (from === to) continue;
    const firstWallMs = wallOfPart(parts, from);
    if (startOffset === undefined) startOffset = Math.max(0, fromMs - firstWallMs) / 1000;
    else lines.push('#EXT-X-DISCONTINUITY');
    const key = parametersOf(parts);
    const mapped = inits.get(key) ?? `/hls/${cameraId}/init/${path}${suffix}`;
    inits.set(key, mapped);
    if (mapped !== init) lines.push(`#EXT-X-MAP:URI="${mapped}"`);
    init = mapped;
    lines.push(`#EXT-X-PROGRAM-DATE-TIME:${new Date(firstWallMs).toISOString()}`);
    const file = `/${path}${suffix}`;
    for (let i = from; i < to; i++) {
      const ticks = (times[i + 1] as number) - (times[i] as number);
      const seconds = ticks / VIDEO_TIMESCALE;
      if (seconds > longest) longest = seconds;
      const start = starts[i] as number;
      const range = `#EXT-X-BYTERANGE:${(starts[i + 1] as number) - start}@${start}\n${file}`;
      const place = asIs ? range : `/hls/${cameraId}/parts/${i}/${path}${suffix}`;
      lines.push(`#EXTINF:${seconds.toFixed(5)},\n${place}`);
    }
  }
  if (startOffset === undefined) return undefined;
  const head = [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${Math.max(1, Math.ceil(longest))}`,
    '#EXT-X-MEDIA-SEQUENCE:0',
    `#EXT-X-PLAYLIST-TYPE:${live ? 'EVENT' : 'VOD'}`,
    '#EXT-X-INDEPENDENT-SEGMENTS',
    `#EXT-X-START:TIME-OFFSET=${startOffset.toFixed(3)},PRECISE=YES`,
  ];
  return `${head.join('\n')}\n${lines.join('\n')}\n${live ? '' : '#EXT-X-ENDLIST\n'}`;
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
  let from = 0;
  while (from < last && wallOfPart(parts, from + 1) <= fromMs) from++;
  let to = from;
  while (to < last && wallOfPart(parts, to) < toMs) to++;
  return [from, to];
}

/** The same for files that one initialization section serves. */
const parametersOf = ({ headers }: FileParts): string =>
  headers.map((header) => `${header.trackId} ${header.timescale} ${header.sampleEntry.toString('latin1')}`).join('\n');
