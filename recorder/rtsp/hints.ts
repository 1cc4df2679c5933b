// RTP-Info of a PLAY reply in, which entry speaks of which stream out. Cameras name a stream by its URL, by its control
// alone, or by another URL altogether.

import { resolveControl } from './control.ts';
import type { RtpInfo } from './headers.ts';

interface NamedStream {
  readonly url: string;
  readonly control: string | undefined;
}

/** What stands behind the last slash: `…/H264?x=y/video` and `…/H264/video` mean the same stream (GW4089IP). */
const lastSegment = (url: string): string => url.slice(url.lastIndexOf('/') + 1);

function names(entry: RtpInfo, stream: NamedStream, base: string): boolean {
  return (
    entry.url === stream.url ||
    entry.url === stream.control ||
    resolveControl(base, entry.url) === stream.url ||
    (lastSegment(entry.url) !== '' && lastSegment(entry.url) === lastSegment(stream.url))
  );
}

/** For each stream its entry, or undefined. When no entry names any stream, they are taken in order if they are as many. */
export function matchRtpInfo(
  entries: readonly RtpInfo[],
  streams: readonly NamedStream[],
  base: string,
): (RtpInfo | undefined)[] {
  const matched = streams.map((stream) => entries.find((entry) => names(entry, stream, base)));
  if (entries.length === streams.length && matched.every((entry) => entry === undefined)) return [...entries];
  return matched;
}
