// A Camera and its login in; the settings that the recorder runs with, or what is wrong with them, out. Pure.

import type { Camera } from '../../crds/camera.ts';
import type { Reason } from '../camera/status.ts';
import { firstProblem } from '../config/load.ts';
import { CameraFile, toCameraConfig, type CameraConfig } from '../config/schema.ts';

/** What a Secret of a camera holds. */
export interface Login {
  readonly username: string;
  readonly password: string;
}

export type CameraSettings =
  | { readonly camera: CameraConfig; readonly problem?: undefined }
  | { readonly camera?: undefined; readonly problem: Reason };

/** `login`: undefined for a camera that has none. */
export function settingsOf(camera: Camera, login: Login | undefined): CameraSettings {
  const { metadata, spec } = camera;
  const withLogin = (address: string | undefined): string | undefined => address && addressWith(address, login);
  const { retention } = spec.record;
  const parsed = CameraFile.safeParse({
    id: metadata.name,
    name: spec.displayName,
    source: withLogin(spec.source),
    transport: spec.transport.toLowerCase(),
    snapshot: withLogin(spec.snapshot),
    onvif: withLogin(spec.onvif),
    ptz: spec.ptz,
    enabled: !spec.suspend,
    record: {
      format: spec.record.format,
      segmentDuration: `${spec.record.segmentSeconds}s`,
      ...(retention && {
        // Quantities are written as in the configuration file: 200Gi, 5%.
        retention: {
          ...(retention.maxAgeSeconds !== undefined && { maxAge: `${retention.maxAgeSeconds}s` }),
          ...(retention.maxSize !== undefined && { maxSize: retention.maxSize }),
          ...(retention.minFree !== undefined && { minFree: retention.minFree }),
        },
      }),
    },
  });
  if (parsed.success) return { camera: toCameraConfig(parsed.data, spec.record.segmentSeconds * 1000) };
  const { key, problem } = firstProblem(parsed.error);
  return { problem: { code: 'invalid-camera', message: `spec.${key}: ${problem}` } };
}

function addressWith(address: string, login: Login | undefined): string {
  if (!login) return address;
  const url = new URL(address);
  // Not by the setters of URL: they leave out what they cannot take for schemes they do not know.
  const user = `${encodeURIComponent(login.username)}:${encodeURIComponent(login.password)}@`;
  return `${url.protocol}//${user}${address.slice(url.protocol.length + 2)}`;
}
