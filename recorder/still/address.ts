// Parses the address of a camera's still image as people write it: the URL to request and the login to use.

import { isSameHost } from '../rtsp/origin.ts';
import { parseRtspUrl, type Credentials } from '../rtsp/url.ts';

interface StillAddress {
  /** Without user part. */
  readonly url: URL;
  readonly credentials: Credentials | undefined;
}

/**
 * The credentials are those in `snapshot`, or else those in `source`, the camera's stream, if it has the same host. Throws if
 * either is not a valid address.
 */
export function parseStillAddress(snapshot: string, source: string): StillAddress {
  // Uses the tolerant parser for stream addresses, because passwords are written in the same way, with `@`, `/` and `#`.
  const { host, request, credentials } = parseRtspUrl(snapshot.replace(/^\s*http(s?):/i, 'rtsp$1:'));
  const stream = parseRtspUrl(source);
  return {
    url: new URL(request.replace(/^rtsp(s?):/, 'http$1:')),
    credentials: credentials ?? (isSameHost(host, stream.host) ? stream.credentials : undefined),
  };
}
