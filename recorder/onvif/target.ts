// Where a camera's ONVIF device service is, and who asks: from the words of the configuration.

import { parseRtspUrl, type Credentials } from '../rtsp/url.ts';

export type { Credentials };

/** The only host and port that are ever contacted for a camera. */
export interface OnvifTarget {
  readonly secure: boolean;
  /** A name or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Of the device service. */
  readonly path: string;
  readonly credentials: Credentials | undefined;
}

/** ONVIF Core Specification §5.1.1: the one path that is fixed. */
const DEVICE_SERVICE_PATH = '/onvif/device_service';

/** `onvif`, or port 80 of the source's host; login from `onvif`, or else from the source. Both were checked before. */
export function onvifTarget({ source, onvif }: { source: string; onvif: string | undefined }): OnvifTarget {
  const stream = parseRtspUrl(source);
  if (onvif === undefined) {
    const { host, credentials } = stream;
    return { secure: false, host, port: 80, path: DEVICE_SERVICE_PATH, credentials };
  }
  return targetOfUrl(onvif, stream.credentials);
}

/** An `http:` or `https:` URL; `credentials` unless it holds some itself. Throws `TypeError` for what is no URL. */
export function targetOfUrl(text: string, credentials: Credentials | undefined): OnvifTarget {
  const url = new URL(text);
  const secure = url.protocol === 'https:';
  const own = url.username !== '' && { username: decode(url.username), password: decode(url.password) };
  return {
    secure,
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
