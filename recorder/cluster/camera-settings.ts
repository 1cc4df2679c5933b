// Converts a Camera and its login to the settings with which the recorder runs, or says what is wrong with them. Pure.

import type { z } from 'zod';
import type { Reason } from '../../base/reason.ts';
import { isSuspended, lacksSource, type Camera } from '../../crds/camera.ts';
import { CAMERA_GROUP_LABEL, CAMERA_HOSTS } from '../../crds/names.ts';
import { firstProblem } from '../config/load.ts';
import { CameraFile, RetentionFile, toCameraConfig, type CameraConfig } from '../config/schema.ts';
import { hostOf } from '../config/values.ts';
import { isAmong } from './login-hosts.ts';

/** The login in a camera's Secret. */
export interface Login {
  readonly username: string;
  readonly password: string;
  /** Where it may be sent, in the format of `isAmong`; undefined if the Secret names no hosts. */
  readonly hosts: readonly string[] | undefined;
  /** Instead of a login, for the Camera of a row of the database: its settings in the words of the configuration, with addresses and logins. */
  readonly row?: Readonly<Record<string, unknown>> | undefined;
}

type CameraSettings =
  | { readonly camera: CameraConfig; readonly problem?: undefined }
  | { readonly camera?: undefined; readonly problem: Reason };

/** `login`: undefined for a camera without one. */
export function settingsOf(camera: Camera, login: Login | undefined): CameraSettings {
  const { metadata, spec } = camera;
  if (lacksSource(camera))
    return { problem: { code: 'invalid-camera', message: 'spec.source: this version does not know such an address' } };
  if (login?.row) return checked(camera, { ...login.row, id: metadata.name, enabled: !isSuspended(camera) });
  const hosts = login && hostsOf(camera, login);
  // Judge the host as it will be parsed for the connection: with the login in the address.
  const withLogin = (address: string): string => {
    const whole = addressWith(address, login);
    return hosts && isAmong(hosts, hostOf(whole) ?? '') ? whole : address;
  };
  const source = withLogin(spec.source);
  if (login && hosts && source === spec.source) return { problem: notFor(camera, login, hosts) };
  return checked(camera, {
    id: metadata.name,
    name: spec.displayName,
    group: groupOf(camera),
    source,
    transport: spec.transport.toLowerCase(),
    ...(spec.preview && {
      preview: {
        source: withLogin(spec.preview.source),
        recorded: spec.preview.recorded,
        retention: limitsIn(spec.preview.retention),
      },
    }),
    snapshot: spec.snapshot && withLogin(spec.snapshot),
    onvif: spec.onvif && withLogin(spec.onvif),
    ...(spec.edge && {
      edge: { ...spec.edge, ...(spec.edge.replay !== undefined && { replay: withLogin(spec.edge.replay) }) },
    }),
    ...(spec.tls && { tls: spec.tls }),
    allowPlaintextLogin: spec.allowPlaintextLogin,
    maxBitrate: spec.maxBitrate,
    ptz: spec.ptz,
    events: spec.events.toLowerCase(),
    activity: spec.activity,
    enabled: !isSuspended(camera),
    record: {
      format: spec.record.format,
      segmentDuration: `${spec.record.segmentSeconds}s`,
      retention: limitsIn(spec.record.retention),
    },
  });
}

function checked({ spec }: Camera, settings: object): CameraSettings {
  const parsed = CameraFile.safeParse(settings);
  if (parsed.success) {
    const defaults = { segmentDurationMs: spec.record.segmentSeconds * 1000, maxBitrate: spec.maxBitrate * 1e6 };
    return { camera: toCameraConfig(parsed.data, defaults) };
  }
  const { key, problem } = firstProblem(parsed.error);
  return { problem: { code: 'invalid-camera', message: `spec.${key}: ${problem}` } };
}

/** Undefined for a camera without the label, or with an empty one. */
export const groupOf = ({ metadata }: Pick<Camera, 'metadata'>): string | undefined =>
  metadata.labels?.[CAMERA_GROUP_LABEL] || undefined;

/** The limits of a camera's footage; undefined if this version cannot read them. */
export const retentionOf = (camera: Camera): CameraConfig['record']['retention'] | undefined =>
  RetentionFile.safeParse(limitsIn(camera.spec.record.retention)).data;

/** As in the configuration file, where quantities have the same form: 200Gi, 5%. */
function limitsIn(retention: Camera['spec']['record']['retention']): z.input<typeof RetentionFile> {
  const { maxAgeSeconds, maxSize, minFree } = retention ?? {};
  return {
    ...(maxAgeSeconds !== undefined && { maxAge: `${maxAgeSeconds}s` }),
    ...(maxSize !== undefined && { maxSize }),
    ...(minFree !== undefined && { minFree }),
  };
}

/**
 * Where the login of a camera may be sent: to the hosts that its Secret names, or, if it names none, to those to which it was
 * sent before that was required.
 */
function hostsOf({ spec, status }: Camera, { hosts }: Login): readonly string[] {
  if (hosts) return hosts;
  return status?.login?.secretName === spec.credentialsSecretRef?.name ? (status?.login?.hosts ?? []) : [];
}

function notFor({ spec }: Camera, login: Login, hosts: readonly string[]): Reason {
  const secret = `Secret ${spec.credentialsSecretRef?.name}`;
  const named = login.hosts ? `names ${hosts.join(', ')}` : 'is missing';
  const before = login.hosts || hosts.length === 0 ? '' : `, and it was used for ${hosts.join(', ')} before`;
  const message = `${secret} is not for the host of spec.source: its annotation ${CAMERA_HOSTS} ${named}${before}`;
  return { code: 'no-credentials', message };
}

function addressWith(address: string, login: Login | undefined): string {
  if (!login) return address;
  const user = `${encodeURIComponent(login.username)}:${encodeURIComponent(login.password)}`;
  // Not with the setters of URL, which do nothing for values and schemes that they do not support.
  return address.replace('://', () => `://${user}@`);
}
