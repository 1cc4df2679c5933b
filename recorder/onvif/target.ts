// Where a camera's ONVIF device service is, and who asks: from the words of the configuration.

import { parseRtspUrl, type Credentials } from '../rtsp/url.ts';

export type { Credentials };

/** The only host and port that are ever contacted for a camera. */
export interface OnvifTarget {
  readonly secure: boolean;
  /** Refuse a certificate that no authority vouches for. */
  readonly verify: boolean;
  /** A name or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Of the device service. */
  readonly path: string;
  readonly credentials: Credentials | undefined;
}

/** ONVIF Core Specification §5.1.1: the one path that is fixed. */
const DEVICE_SERVICE_PATH = '/onvif/device_service';

/** What of a camera's configuration says where it is. */
export interface CameraAddress {
  readonly source: string;
  readonly onvif: string | undefined;
  readonly tls: { readonly verify: boolean };
}

/** `onvif`, or port 80 of the source's host; login from `onvif`, or else from the source. Both were checked before. */
export function onvifTarget({ source, onvif, tls }: CameraAddress): OnvifTarget {
  const { host, credentials } = parseRtspUrl(source);
  if (onvif !== undefined) return targetOfUrl(onvif, credentials, tls);
  return { secure: false, verify: tls.verify, host, port: 80, path: DEVICE_SERVICE_PATH, credentials };
}

/** An `http:` or `https:` URL; `credentials` unless it holds some itself. Throws `TypeError` for what is no URL. */
export function targetOfUrl(
  text: string,
  credentials: Credentials | undefined,
  { verify }: { readonly verify: boolean },
): OnvifTarget {
  const url = new URL(text);
  const secure = url.protocol === 'https:';
  const own = url.username !== '' && { username: decode(url.username), password: decode(url.password) };
  return {
    secure,
    verify,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname === '/' ? DEVICE_SERVICE_PATH : url.pathname + url.search,
    credentials: own || credentials,
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
