// Makes the source of a camera's preview. It is connected like the main stream, by the same rules.

import { isSameHost } from '../rtsp/origin.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import type { CameraSource } from '../contract/camera-source.ts';

/**
 * The source of `preview`, an address like `source`. Without a login of its own it has that of `source`, if both have the same
 * host. Throws if either is not a valid address.
 */
export function previewSource(camera: CameraSource, preview: string): CameraSource {
  const own = parseRtspUrl(preview);
  const main = parseRtspUrl(camera.source);
  const login = isSameHost(own.host, main.host) ? main.credentials : undefined;
  if (own.credentials || !login) return { ...camera, source: preview };
  const user = [login.username, login.password].map((text) => encodeURIComponent(text.toWellFormed())).join(':');
  return { ...camera, source: preview.replace('://', () => `://${user}@`) };
}
