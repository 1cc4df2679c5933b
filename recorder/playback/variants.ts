// Writes an HLS multivariant playlist (RFC 8216 §4.3.4) of the footage of a camera and of that of its preview.

import type { Footage } from '../footage/footage.ts';

interface Variant {
  /** Address of its playlist, relative to the multivariant playlist. */
  readonly address: string;
  /** The items to play in the interval; not empty. */
  readonly footage: readonly Footage[];
}

/** The variants in the order in which players prefer them. */
export const multivariantPlaylist = (variants: readonly Variant[]): string =>
  [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    '#EXT-X-INDEPENDENT-SEGMENTS',
    ...variants.flatMap(({ address, footage }) => [`#EXT-X-STREAM-INF:${attributesOf(footage).join(',')}`, address]),
    '',
  ].join('\n');

/** RFC 8216 §4.3.4.2; codecs and size are those of the newest file. */
function attributesOf(footage: readonly Footage[]): string[] {
  const rates = footage.map(({ sizeBytes, parts }) => (sizeBytes * 8_000) / Math.max(1, parts.meta.wallDurationMs));
  const tracks = footage.at(-1)?.parts.meta.tracks ?? [];
  const video = tracks.find(({ kind }) => kind === 'video');
  return [
    `BANDWIDTH=${Math.max(1, Math.ceil(Math.max(...rates)))}`,
    ...(tracks.length > 0 ? [`CODECS="${tracks.map(({ codecString }) => codecString).join(',')}"`] : []),
    ...(video ? [`RESOLUTION=${video.width}x${video.height}`] : []),
  ];
}
