// Where a camera's ONVIF device service is, and the login for it, from the configuration.

import { hostOfUrl } from '../../base/host.ts';
import type { CameraTls, Destination } from '../reach/connect.ts';
import { isSameHost } from '../rtsp/origin.ts';
import { parseRtspUrl, type Credentials } from '../rtsp/url.ts';

export type { Credentials };

/** The only host and port that are ever contacted for a camera. */
export interface OnvifTarget extends Destination {
  /** Path of the device service. */
  readonly path: string;
  readonly credentials: Credentials | undefined;
}

/** ONVIF Core Specification §5.1.1: the only path that is fixed. */
const DEVICE_SERVICE_PATH = '/onvif/device_service';

/** The fields of a camera's configuration that locate it. */
export interface CameraAddress {
  readonly source: string;
  readonly onvif: string | undefined;
  readonly tls: CameraTls;
}

/**
 * The target in `onvif`, or else port 80 of the source's host. The login is from `onvif`, or else from `source` if it has the
 * same host. Both URLs were validated before.
 */
export function onvifTarget({ source, onvif, tls }: CameraAddress): OnvifTarget {
  const { host, credentials } = parseRtspUrl(source);
  if (onvif !== undefined) {
    const target = targetOfUrl(onvif, undefined, tls);
    return target.credentials || !isSameHost(target.host, host) ? target : { ...target, credentials };
  }
  return { secure: false, tls, host, port: 80, path: DEVICE_SERVICE_PATH, credentials };
}

/**
 * The target of an `http:` or `https:` URL; `credentials` is used unless the URL contains some. Throws `TypeError` if the text is
 * not a URL.
 */
export function targetOfUrl(text: string, credentials: Credentials | undefined, tls: CameraTls): OnvifTarget {
  const url = new URL(text);
  const secure = url.protocol === 'https:';
  const own = url.username !== '' && { username: decode(url.username), password: decode(url.password) };
  return {
    secure,
    tls,
    host: hostOfUrl(url),
    port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname === '/' ? DEVICE_SERVICE_PATH : url.pathname + url.search,
    credentials: own || credentials,
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // These escapes are not UTF-8: the text stays as it is.
    return text;
  }
}
