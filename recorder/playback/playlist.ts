// Writes HLS media playlists (RFC 8216) of recorded files: parts are byte ranges of the files themselves.
//
// Times start from zero in each file, so each file is a discontinuity with its own date and time. Files with the same
// parameters share one initialization section, so that a player fetches it once. A day has 15 000 parts, and players of a
// growing interval request the playlist every few seconds: the lines of a whole file are formatted once.
//
// A playlist that is requested repeatedly must not change what it has promised (RFC 8216 §6.2.1). So it has no type: EVENT
// would promise that no part is removed, but retention removes files. And its target duration stays as it was first listed.

import { ownCopy } from '../../base/own-copy.ts';
import type { FileParts } from '../mp4/parts.ts';
import { TICKS_PER_MS, VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { Interval } from '../../base/interval.ts';
import type { ListedFile } from './numbering.ts';
import { isServedAsIs } from './part.ts';
import { wallOfPart } from '../footage/part-times.ts';
import { maxTicksOf, ticksOf } from './target-duration.ts';
import { firstPartOf, partsInTurn } from '../footage/turns.ts';

interface PlaylistOptions extends Interval {
  /** Where players should start; `-Infinity`: at the first part. */
  readonly startMs: number;
  readonly cameraId: string;
  /** More parts may follow: the playlist has no end, and players request it again. */
  readonly live: boolean;
  /** Players request it again, or did: nothing but the list of parts may change. */
  readonly followed: boolean;
  readonly targetSeconds: number;
  /** Appended to every address, such as `?access_token=…`; empty when the player sends a header. */
  readonly suffix: string;
  /** Put before the address of a file and its parts: the node that has it. */
  readonly placeOf: (item: ListedFile) => string;
}

/** The lines of the parts of one file, with their longest duration. */
interface PartLines {
  readonly suffix: string;
  readonly place: string;
  readonly bytes: Buffer;
  readonly longestTicks: number;
}

const DISCONTINUITY = Buffer.from('#EXT-X-DISCONTINUITY\n');

export class Playlists {
  /** Lines of closed files of which every part is listed; dropped together with the cached parts of the file. */
  readonly #lines = new WeakMap<FileParts, PartLines>();
  readonly #parameters = new WeakMap<FileParts, string>();

  /** The playlist in pieces, most of them cached: a day has more than a megabyte. Undefined when no part lies in the interval. */
  build(footage: readonly ListedFile[], options: PlaylistOptions): readonly Buffer[] | undefined {
    const { cameraId, fromMs, toMs, startMs, live, followed, targetSeconds, suffix, placeOf } = options;
    const body: Buffer[] = [];
    const inits = new Map<string, string>();
    let init: string | undefined;
    let startOffset: number | undefined;
    let first = { number: 0, discontinuity: 0 };
    let discontinuity = 0;
    for (const item of footage) {
      const { path, parts } = item;
      const [from, to] = partsInTurn(item, { fromMs, toMs });
      if (from === to) continue;
      const key = this.#parametersOf(parts);
      const mapped = inits.get(key) ?? `${placeOf(item)}/hls/${cameraId}/init/${path}${suffix}`;
      inits.set(key, mapped);
      if (startOffset === undefined) {
        startOffset = Math.max(0, startMs - wallOfPart(parts, from)) / 1000;
        first = { number: item.number + from - firstPartOf(parts, item.turn), discontinuity: item.discontinuity };
      } else {
        // One for each file, also for those without a part in this playlist.
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

  #linesOf(item: ListedFile, options: PlaylistOptions, from: number, to: number): PartLines {
    const { parts, gone, turn } = item;
    if (gone || turn || !parts.complete || from > 0 || to < parts.starts.length - 1)
      return partLines(item, options, from, to);
    const { suffix, targetSeconds, placeOf } = options;
    const place = placeOf(item);
    const maxTicks = maxTicksOf(targetSeconds);
    const known = this.#lines.get(parts);
    if (known?.suffix === suffix && known.place === place && known.longestTicks <= maxTicks) return known;
    const made = partLines(item, options, from, to);
    // Lines with a reduced duration belong to this playlist only.
    if (made.longestTicks <= maxTicks) this.#lines.set(parts, made);
    return made;
  }

  /** A key that is equal for files with the same initialization section. */
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

function partLines(item: ListedFile, options: PlaylistOptions, from: number, to: number): PartLines {
  const { path, parts, gone, turn } = item;
  const { cameraId, suffix, targetSeconds, placeOf } = options;
  const { starts } = parts;
  const place = placeOf(item);
  const endMs = turn?.toMs ?? Infinity;
  const next = turn?.next?.length ? `&next=${turn.next.join('.')}` : '';
  const asIs = isServedAsIs(parts);
  const maxTicks = maxTicksOf(targetSeconds);
  let text = `#EXT-X-PROGRAM-DATE-TIME:${new Date(wallOfPart(parts, from)).toISOString()}\n`;
  let longestTicks = 0;
  for (let i = from; i < to; i++) {
    const isCut = endMs < wallOfPart(parts, i + 1);
    const ticks = isCut ? Math.round((endMs - wallOfPart(parts, i)) * TICKS_PER_MS) : ticksOf(parts, i);
    if (ticks > longestTicks) longestTicks = ticks;
    // A longer part is listed with the target duration, because players may fail at a longer one. They read its real
    // duration from the part itself.
    text += `#EXTINF:${(Math.min(ticks, maxTicks) / VIDEO_TIMESCALE).toFixed(5)},\n`;
    if (gone) text += '#EXT-X-GAP\n';
    const start = starts[i] as number;
    const until = isCut ? `${suffix === '' ? '?' : `${suffix}&`}until=${Math.round(endMs)}${next}` : suffix;
    text +=
      asIs && !isCut
        ? `#EXT-X-BYTERANGE:${(starts[i + 1] as number) - start}@${start}\n${place}/${path}${suffix}\n`
        : `${place}/hls/${cameraId}/parts/${i}/${path}${until}\n`;
  }
  // A copy of the exact size: the lines of thousands of files are cached.
  return { suffix, place, bytes: ownCopy(Buffer.from(text, 'latin1')), longestTicks };
}
