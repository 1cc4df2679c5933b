// The address of a camera's still image as people write it in, where to ask and as whom out.

import { isSameHost } from '../rtsp/origin.ts';
import { parseRtspUrl, type Credentials } from '../rtsp/url.ts';

export interface StillAddress {
  /** Without user part. */
  readonly url: URL;
  readonly credentials: Credentials | undefined;
}

/** The credentials are those of `snapshot`, or of `source`, the camera's stream, on the same host. Throws where either is no address. */
export function parseStillAddress(snapshot: string, source: string): StillAddress {
  // Passwords are written there as they are in addresses of streams, with `@`, `/` and `#`: the same tolerant reading.
  const { host, request, credentials } = parseRtspUrl(snapshot.replace(/^\s*http(s?):/i, 'rtsp$1:'));
  const stream = parseRtspUrl(source);
  return {
    url: new URL(request.replace(/^rtsp(s?):/, 'http$1:')),
    credentials: credentials ?? (isSameHost(host, stream.host) ? stream.credentials : undefined),
  };
}
