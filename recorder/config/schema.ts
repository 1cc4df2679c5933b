// The contract of the configuration file: every key, its type, default and meaning. What enters is a parsed YAML
// document, what leaves is `Config`, in our own words and units. The reference in docs/ is made from this schema.

import { z } from 'zod';
import { parsePeer } from './peer.ts';
import { LOG_LEVELS, type LogLevel } from '../../base/log-level.ts';
import { parsePublicKey } from '../license/statement.ts';
import {
  checkSource,
  checkUrl,
  parseDuration,
  parseListen,
  parseNetwork,
  parseOrigin,
  parseSize,
  parseSpace,
  ValueError,
} from './values.ts';

/** What the reference shows as the type of a value that is written as a string. */
type ValueType = 'duration' | 'size' | 'size or share' | 'host:port' | 'URL' | 'path' | 'origin' | 'address';

/** A string that `parse` turns into a value; what `parse` throws becomes the message for the key. */
function written<T>(valueType: ValueType, parse: (text: string) => T) {
  return z
    .string()
    .transform((text, context): T => {
      try {
        return parse(text);
      } catch (err) {
        if (!(err instanceof ValueError)) throw err;
        context.issues.push({ code: 'custom', message: err.message, input: text });
        return z.NEVER;
      }
    })
    .meta({ valueType });
}

const listen = () => written('host:port', parseListen);
const path = () => z.string().min(1, 'expected a path').meta({ valueType: 'path' });

function duration(minMs: number, min: string, maxMs: number, max: string) {
  return written('duration', (text) => {
    const ms = parseDuration(text);
    if (ms < minMs || ms > maxMs) throw new ValueError(`expected a duration from ${min} to ${max}`);
    return ms;
  });
}

/** A plain number of bytes is accepted as well: YAML makes `1048576` a number. */
const size = () =>
  z
    .union([z.number().int().nonnegative(), written('size', parseSize)], { error: 'expected a size such as 500GiB' })
    .meta({ valueType: 'size' });

const url = (...schemes: string[]) =>
  written('URL', (text) => {
    checkUrl(text, schemes);
    return text;
  });

const retention = z
  .strictObject({
    maxAge: duration(60_000, '1m', 36_525 * 86_400_000, '36525d')
      .optional()
      .describe('Footage older than this is deleted.'),
    maxSize: size()
      .optional()
      .describe('The oldest footage is deleted when all of it is larger than this. Protected footage counts.'),
    minFree: written('size or share', parseSpace)
      .optional()
      .describe('The oldest footage is deleted when less than this is free on the file system.'),
  })
  .transform((r) => ({ maxAgeMs: r.maxAge, maxSizeBytes: r.maxSize, minFree: r.minFree }));

const SEGMENT_DURATION = () => duration(1_000, '1s', 86_400_000, '24h');

/** The camera id is part of file names and addresses, and the name of a Kubernetes object later. */
export const CAMERA_ID = /^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/;

/** What the addresses of the API have in the place of a camera id. */
const RESERVED_ID = 'jobs';

/** One camera, in the words of the file; cameras of a database are checked by it as well. */
export const CameraFile = z.strictObject({
  id: z
    .string()
    .regex(CAMERA_ID, 'expected 1 to 63 letters, digits, "." and "-", of which the first is a letter or digit')
    .refine((id) => id !== RESERVED_ID, `"${RESERVED_ID}" is taken: /api/archive/${RESERVED_ID} are exports`)
    .describe('Names the camera in addresses and file names. Unique.'),
  name: z
    .string()
    .min(1, 'expected a name')
    .max(100, 'expected at most 100 characters')
    .regex(/^[^\p{Cc}]*$/u, 'a name has no control characters')
    .optional()
    .describe(
      'For people. In file names everything but ASCII letters, digits, "." and "-" becomes "-"; two cameras may not come to the same. Without it, the id.',
    ),
  source: written('URL', (text) => {
    checkSource(text);
    return text;
  }).describe('Address of the stream, rtsp:// or rtsps://, with user and password if the camera wants them.'),
  transport: z
    .enum(['auto', 'tcp', 'udp'])
    .default('auto')
    .describe('How media travels: inside the RTSP connection (tcp), as datagrams (udp), or whichever works.'),
  snapshot: url('http', 'https')
    .optional()
    .describe(
      'Address of a still image, http:// or https://, with user and password if they are others than those of source.',
    ),
  tls: z
    .strictObject({
      verify: z
        .boolean()
        .default(false)
        .describe(
          'true: refuse the camera over rtsps:// or https:// unless an authority vouches for its certificate. Cameras come with self-signed ones.',
        ),
    })
    .prefault({}),
  ptz: z.boolean().default(false).describe('The camera may be moved.'),
  onvif: url('http', 'https')
    .optional()
    .describe("Address of the camera's ONVIF device service. Without it, port 80 of the source's host."),
  enabled: z.boolean().default(true).describe('false: known, but not recorded.'),
  record: z
    .strictObject({
      format: z
        .enum(['fmp4', 'mp4'])
        .default('fmp4')
        .describe('fmp4: can be played while it is written, and survives a crash. mp4: written out when it is closed.'),
      segmentDuration: SEGMENT_DURATION().optional().describe('Instead of archive.segmentDuration.'),
      retention: retention.prefault({}).describe('Limits of this camera, beside those of the node.'),
    })
    .prefault({})
    .describe('How this camera is recorded.'),
});

export const DatabaseUrl = url('postgres', 'postgresql');
export const RedisUrl = url('redis', 'rediss', 'unix');

export const TokenFile = z.strictObject({
  name: z.string().min(1).describe('Shown in logs.'),
  role: z
    .enum(['viewer', 'operator', 'admin'])
    .describe('viewer: look, list, download. operator: also export, move, start and stop. admin: everything.'),
  sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'expected the 64 hexadecimal digits of the SHA-256 of the token')
    .transform((hex) => hex.toLowerCase())
    .describe('SHA-256 of the token in hexadecimal digits: printf %s TOKEN | sha256sum.'),
  cameras: z
    .array(
      z
        .string()
        .regex(/^[A-Za-z0-9*][A-Za-z0-9.*-]{0,62}$/, 'expected a camera id, in which * stands for any characters'),
    )
    .min(1, 'expected at least one camera; leave the key out for all of them')
    .optional()
    .describe('Ids of the cameras that the token is for, as gate or dock-*. Without it, all of them and the node.'),
});

/** The whole file. Every key may be left out. */
export const ConfigFile = z.strictObject({
  nodeName: z
    .string()
    .max(253, 'expected at most 253 characters')
    .regex(/^[^\s\p{Cc}]*$/u, 'a node name has no spaces or control characters')
    .default('')
    .describe("The node's name. Empty: the system's host name."),
  listen: listen().prefault('0.0.0.0:9997').describe('REST, WebSocket and the page.'),
  record_path: path().default('/var/lib/recorder/recordings').describe('The archive.'),
  workDir: path().default('/var/lib/recorder').describe("The recorder's own state, such as admin.token."),
  playback: z
    .strictObject({
      listen: listen().prefault('0.0.0.0:9996').describe('Playback of the archive.'),
      advertise: z
        .string()
        .default('')
        .describe('host:port or URL at which others reach playback. Empty: the host they ask.'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      listen: listen().prefault('0.0.0.0:9998').describe('GET /metrics for Prometheus.'),
      requireToken: z
        .boolean()
        .default(false)
        .describe('Ask for a token that is for all cameras, and speak HTTPS if tls is set.'),
    })
    .prefault({}),
  database: z.strictObject({ url: DatabaseUrl.describe('A Postgres database that indexes the archive.') }).optional(),
  redis: z
    .strictObject({
      url: RedisUrl.describe(
        'For jobs, with user and password if it wants them; rediss: TLS. Without it, the recorder runs its own redis-server.',
      ),
      ca: path()
        .optional()
        .describe("Certificates in PEM that a Redis with TLS is trusted by, instead of the system's."),
    })
    .optional(),
  ffmpeg: z
    .strictObject({ path: path().default('ffmpeg').describe('The program that exports and time-lapses need.') })
    .prefault({}),
  log: z
    .strictObject({
      level: z.enum(LOG_LEVELS).default('info').describe('The least important lines to write.'),
      directory: z
        .string()
        .default('')
        .describe(
          'Also write to recorder.log in this directory, and who changed what to audit.log. Empty: standard output only.',
        ),
      maxFileSize: size()
        .refine((bytes) => bytes >= 4096, 'expected at least 4096 bytes')
        .prefault('10MiB')
        .describe('A log file is put aside when it would become larger, and at the end of its day (UTC).'),
      maxFiles: z
        .number()
        .int()
        .min(1)
        .max(1000)
        .default(14)
        .describe('So many files of each log are kept, the newest included.'),
    })
    .prefault({}),
  auth: z
    .strictObject({
      mode: z
        .enum(['token', 'kubernetes', 'none'])
        .default('token')
        .describe('Who may do what: tokens, the Kubernetes API server (and tokens beside it), or anyone everything.'),
      tokens: z
        .array(TokenFile)
        .default([])
        .describe(
          'With mode token and without any, an admin token is made in <workDir>/admin.token at the first start.',
        ),
      tokensFile: path()
        .optional()
        .describe('A YAML file with more tokens: a list as auth.tokens. Read again when it changes.'),
      audiences: z
        .array(z.string().min(1, 'expected an audience'))
        .default([])
        .describe(
          'With mode kubernetes: a token must be meant for one of these. Without any, for the API server itself.',
        ),
      allowAnonymousNetwork: z
        .boolean()
        .default(false)
        .describe(
          'With mode none: listen on addresses that other machines reach, too. Anyone there may do everything.',
        ),
    })
    .prefault({}),
  cors: z
    .strictObject({
      origins: z
        .array(written('origin', parseOrigin))
        .default([])
        .describe(
          'Origins whose pages may use the recorder with a token of their own. * for every one. None: no other.',
        ),
    })
    .prefault({})
    .describe('Pages of other origins.'),
  trustedProxies: z
    .array(written('address', parseNetwork))
    .default([])
    .describe('Proxies before the recorder: their X-Forwarded-For, -Host and -Proto are believed.'),
  tls: z
    .strictObject({
      certificate: path().describe('Certificate chain in PEM. With it, listen and playback speak HTTPS.'),
      key: path().describe('Private key in PEM.'),
    })
    .optional(),
  license: z
    .strictObject({
      file: path().default('/etc/recorder/recorder.lic').describe('The licence.'),
      publicKey: z
        .string()
        .refine((text) => text === '' || parsePublicKey(text) !== undefined, 'expected an Ed25519 key in base64 or PEM')
        .default('')
        .describe('The Ed25519 key that licences are signed with, in base64 or PEM. Without it, none is read.'),
      required: z
        .boolean()
        .default(false)
        .describe('Start no camera without a valid licence for it, and be not ready. Recordings that run go on.'),
    })
    .prefault({}),
  archive: z
    .strictObject({
      segmentDuration: SEGMENT_DURATION()
        .prefault('5m')
        .describe('A file is closed at the first key frame after this time.'),
      syncInterval: duration(100, '100ms', 600_000, '10m')
        .prefault('5s')
        .describe('How often footage is forced to the disk: a power cut loses at most this much.'),
      retention: retention.prefault({}).describe('Limits of all cameras together.'),
    })
    .prefault({}),
  ptz: z
    .strictObject({
      moveTimeout: duration(3_000, '3s', 300_000, '5m')
        .prefault('10s')
        .describe('A camera that was told to move stops after this time when neither a stop nor another move follows.'),
    })
    .prefault({}),
  cluster: z
    .strictObject({
      mode: z.enum(['none', 'kubernetes', 'etcd']).default('none').describe('Who decides which node records a camera.'),
      pool: z
        .string()
        .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'expected the name of a RecorderPool')
        .max(40)
        .default('default')
        .describe('With mode kubernetes: the RecorderPool that this node records for.'),
      renewInterval: duration(1_000, '1s', 1_200_000, '20m')
        .prefault('2s')
        .describe('With mode kubernetes: how often the node shows that it lives.'),
      dataDir: path().default('/var/lib/recorder/data').describe("The node's cluster state."),
      advertise: z.string().default('').describe('host:port or URL at which others reach this node.'),
      peers: z
        .array(written('host:port', parsePeer))
        .default([])
        .describe('Other recorders that this one may fetch exports from, as host:port or https://host:port.'),
      ca: path().optional().describe("Certificates in PEM that peers with TLS are trusted by, beside the system's."),
    })
    .prefault({}),
  cameras: z.array(CameraFile).default([]).describe('The cameras; those of all files add up.'),
});

type ParsedFile = z.output<typeof ConfigFile>;
type ParsedCamera = ParsedFile['cameras'][number];

export type Role = z.output<typeof TokenFile>['role'];
export type TokenConfig = Readonly<z.output<typeof TokenFile>>;
export type Retention = Readonly<z.output<typeof retention>>;

/** One camera. `source`, `snapshot` and `onvif` may hold a password. */
export interface CameraConfig {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly transport: ParsedCamera['transport'];
  readonly snapshot: string | undefined;
  readonly tls: { readonly verify: boolean };
  readonly ptz: boolean;
  readonly onvif: string | undefined;
  readonly enabled: boolean;
  readonly record: {
    readonly format: ParsedCamera['record']['format'];
    readonly segmentDurationMs: number;
    readonly retention: Retention;
  };
}

/** What the recorder runs with. */
export interface Config {
  /** Never empty. */
  readonly nodeName: string;
  readonly listen: ParsedFile['listen'];
  readonly recordPath: string;
  readonly workDir: string;
  readonly playback: ParsedFile['playback'];
  readonly metrics: ParsedFile['metrics'];
  readonly database: ParsedFile['database'];
  readonly redis: ParsedFile['redis'];
  readonly ffmpeg: ParsedFile['ffmpeg'];
  readonly log: {
    readonly level: LogLevel;
    readonly directory: string | undefined;
    readonly maxFileBytes: number;
    readonly maxFiles: number;
  };
  readonly auth: {
    readonly mode: ParsedFile['auth']['mode'];
    /** Those of `tokensFile` included. */
    readonly tokens: readonly TokenConfig[];
    readonly tokensFile: string | undefined;
    readonly audiences: readonly string[];
    readonly allowAnonymousNetwork: boolean;
  };
  readonly cors: { readonly origins: readonly string[] };
  readonly trustedProxies: readonly string[];
  readonly tls: ParsedFile['tls'];
  readonly license: ParsedFile['license'];
  readonly archive: {
    readonly segmentDurationMs: number;
    readonly syncIntervalMs: number;
    readonly retention: Retention;
  };
  readonly ptz: { readonly moveTimeoutMs: number };
  readonly cluster: Omit<ParsedFile['cluster'], 'renewInterval'> & { readonly renewIntervalMs: number };
  readonly cameras: readonly CameraConfig[];
}

/** From the file's words to ours. */
export function toConfig(file: ParsedFile, nodeName: string, moreTokens: readonly TokenConfig[] = []): Config {
  const { archive } = file;
  return {
    nodeName,
    listen: file.listen,
    recordPath: file.record_path,
    workDir: file.workDir,
    playback: file.playback,
    metrics: file.metrics,
    database: file.database,
    redis: file.redis,
    ffmpeg: file.ffmpeg,
    log: {
      level: file.log.level,
      directory: file.log.directory === '' ? undefined : file.log.directory,
      maxFileBytes: file.log.maxFileSize,
      maxFiles: file.log.maxFiles,
    },
    auth: {
      ...file.auth,
      tokens: [...file.auth.tokens, ...moreTokens],
      tokensFile: file.auth.tokensFile,
    },
    cors: file.cors,
    trustedProxies: file.trustedProxies,
    tls: file.tls,
    license: file.license,
    archive: {
      segmentDurationMs: archive.segmentDuration,
      syncIntervalMs: archive.syncInterval,
      retention: archive.retention,
    },
    ptz: { moveTimeoutMs: file.ptz.moveTimeout },
    cluster: clusterOf(file.cluster),
    cameras: file.cameras.map((camera) => toCameraConfig(camera, archive.segmentDuration)),
  };
}

function clusterOf({ renewInterval, ...cluster }: ParsedFile['cluster']): Config['cluster'] {
  return { ...cluster, renewIntervalMs: renewInterval };
}

/** `segmentDurationMs`: of a camera that has none of its own. */
export function toCameraConfig(camera: ParsedCamera, segmentDurationMs: number): CameraConfig {
  return {
    id: camera.id,
    name: camera.name ?? camera.id,
    source: camera.source,
    transport: camera.transport,
    snapshot: camera.snapshot,
    tls: camera.tls,
    ptz: camera.ptz,
    onvif: camera.onvif,
    enabled: camera.enabled,
    record: {
      format: camera.record.format,
      segmentDurationMs: camera.record.segmentDuration ?? segmentDurationMs,
      retention: camera.record.retention,
    },
  };
}
