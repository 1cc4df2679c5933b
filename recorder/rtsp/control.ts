// Determines the URL of a request from Content-Base and `a=control` as cameras write them (RFC 2326 appendix C.1.1).

import { parseRtspUrl } from './url.ts';
import type { HeaderFields } from './message.ts';

const SCHEME = /^rtsps?:\/\//i;

/** The URL in the form for a request line; undefined if it is not an RTSP URL. */
function normalize(text: string): string | undefined {
  try {
    return parseRtspUrl(text).request;
  } catch {
    // It is not an address.
    return undefined;
  }
}

/** The `rtsp://host:port` of a request URL. */
function origin(requestUrl: string): string {
  const pathStart = requestUrl.indexOf('/', requestUrl.indexOf('://') + 3);
  return pathStart < 0 ? requestUrl : requestUrl.slice(0, pathStart);
}

/**
 * The base of relative control URLs: Content-Base, else Content-Location, else the URL of the request. Repairs a doubled or
 * missing scheme, a bare path, and an IPv6 address without brackets; anything else that is invalid is ignored.
 */
export function resolveBase(requestUrl: string, headers: HeaderFields): string {
  for (const name of ['Content-Base', 'Content-Location']) {
    let text = headers.get(name) ?? '';
    if (text === '' || text === '*') continue;
    const schemes = /^(?:rtsps?:\/\/)+(?=rtsps?:\/\/)/i.exec(text);
    if (schemes) text = text.slice(schemes[0].length);
    if (text.startsWith('/')) text = origin(requestUrl) + text;
    if (!SCHEME.test(text)) text = requestUrl.slice(0, requestUrl.indexOf('://') + 3) + text;
    const base = normalize(text);
    if (base !== undefined) return base;
  }
  return requestUrl;
}

/**
 * The URL of one stream, or of all (`control` absent or `*`). A relative control is appended to the base, even after a query, and
 * not resolved as in RFC 3986: live555 and FFmpeg do the same, so cameras are tested with it.
 */
export function resolveControl(base: string, control: string | undefined): string {
  if (control === undefined || control === '' || control === '*') return base;
  if (SCHEME.test(control)) return normalize(control) ?? base;
  if (control.startsWith('/')) return normalize(origin(base) + control) ?? base;
  const separator = base.endsWith('/') || control.startsWith('?') ? '' : '/';
  return normalize(base + separator + control) ?? base;
}

/** The URL with a trailing slash removed or added: some cameras refuse one form, some the other. */
export function toggleTrailingSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : `${url}/`;
}
