// Matches the RTP-Info entries of a response to PLAY with streams. Cameras identify a stream by its URL, by its control alone, or
// by another URL altogether.

import { resolveControl } from './control.ts';
import type { RtpInfo } from './headers.ts';

interface NamedStream {
  readonly url: string;
  readonly control: string | undefined;
}

/** The part after the last slash: `…/H264?x=y/video` and `…/H264/video` mean the same stream (GW4089IP). */
const lastSegment = (url: string): string => url.slice(url.lastIndexOf('/') + 1);

function names(entry: RtpInfo, stream: NamedStream, base: string): boolean {
  return (
    entry.url === stream.url ||
    entry.url === stream.control ||
    resolveControl(base, entry.url) === stream.url ||
    (lastSegment(entry.url) !== '' && lastSegment(entry.url) === lastSegment(stream.url))
  );
}

/**
 * The entry of each stream, or undefined. If no entry matches any stream but their numbers are equal, they are matched in order.
 */
export function matchRtpInfo(
  entries: readonly RtpInfo[],
  streams: readonly NamedStream[],
  base: string,
): (RtpInfo | undefined)[] {
  const matched = streams.map((stream) => entries.find((entry) => names(entry, stream, base)));
  if (entries.length === streams.length && matched.every((entry) => entry === undefined)) return [...entries];
  return matched;
}
