// Where a camera's ONVIF device service is, and who asks: from the words of the configuration.

import type { CameraTls, Destination } from '../reach/connect.ts';
import { isSameHost } from '../rtsp/origin.ts';
import { parseRtspUrl, type Credentials } from '../rtsp/url.ts';

export type { Credentials };

/** The only host and port that are ever contacted for a camera. */
export interface OnvifTarget extends Destination {
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
  readonly tls: CameraTls;
}

/**
 * `onvif`, or port 80 of the source's host; login from `onvif`, or else from the source on the same host. Both were checked
 * before.
 */
export function onvifTarget({ source, onvif, tls }: CameraAddress): OnvifTarget {
  const { host, credentials } = parseRtspUrl(source);
  if (onvif !== undefined) {
    const target = targetOfUrl(onvif, undefined, tls);
    return target.credentials || !isSameHost(target.host, host) ? target : { ...target, credentials };
  }
  return { secure: false, tls, host, port: 80, path: DEVICE_SERVICE_PATH, credentials };
}

/** An `http:` or `https:` URL; `credentials` unless it holds some itself. Throws `TypeError` for what is no URL. */
export function targetOfUrl(text: string, credentials: Credentials | undefined, tls: CameraTls): OnvifTarget {
  const url = new URL(text);
  const secure = url.protocol === 'https:';
  const own = url.username !== '' && { username: decode(url.username), password: decode(url.password) };
  return {
    secure,
    tls,
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
