// The address of a camera's still image as people write it in, where to ask and as whom out.

import { parseRtspUrl, type Credentials } from '../rtsp/url.ts';

export interface StillAddress {
  /** Without user part. */
  readonly url: URL;
  readonly credentials: Credentials | undefined;
}

/** `source`, the camera's stream, has the credentials where `snapshot` has none. Throws where either is no address. */
export function parseStillAddress(snapshot: string, source: string): StillAddress {
  // Passwords are written there as they are in addresses of streams, with `@`, `/` and `#`: the same tolerant reading.
  const { request, credentials } = parseRtspUrl(snapshot.replace(/^\s*http(s?):/i, 'rtsp$1:'));
  return {
    url: new URL(request.replace(/^rtsp(s?):/, 'http$1:')),
    credentials: credentials ?? parseRtspUrl(source).credentials,
  };
}
