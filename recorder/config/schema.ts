// The contract of the configuration file: every key, its type, default and meaning. What enters is a parsed YAML
// document, what leaves is `Config`, in our own words and units. The reference in docs/ is made from this schema.

import { join } from 'node:path';
import { z } from 'zod';
import { parsePeer } from './peer.ts';
import { LOG_LEVELS, type LogLevel } from '../../base/log-level.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import { plainFingerprint, type CameraTls } from '../reach/connect.ts';
import { EVENT_TYPES, matchesType } from '../events/event.ts';
import { WEBHOOK_SECRET } from '../events/signature.ts';
import { parsePublicKey } from '../license/statement.ts';
import {
  checkSource,
  checkUrl,
  isCertificates,
  parseDuration,
  parseHostName,
  parseListen,
  parseNetwork,
  parseOrigin,
  parseSize,
  parseSpace,
  ValueError,
} from './values.ts';

/** What the reference shows as the type of a value that is written as a string; in JSON Schema `x-value-type`. */
type ValueType =
  'duration' | 'size' | 'size or share' | 'host:port' | 'URL' | 'path' | 'origin' | 'address' | 'host name';

/** A string that `parse` turns into a value; what `parse` throws becomes the message for the key. */
function written<T>(valueType: ValueType, parse: (text: string) => T) {
  return z
    .string({ error: ({ input }) => (input === undefined ? undefined : expectationOf(parse)) })
    .transform((text, context): T => {
      try {
        return parse(text);
      } catch (err) {
        if (!(err instanceof ValueError)) throw err;
        context.issues.push({ code: 'custom', message: err.message, input: text });
        return z.NEVER;
      }
    })
    .meta({ 'x-value-type': valueType });
}

/** What a parser says that it expects: YAML makes a number of `9997`, and quotes alone would not mend that. */
function expectationOf(parse: (text: string) => unknown): string | undefined {
  try {
    parse('');
  } catch (err) {
    if (err instanceof ValueError) return err.message;
    throw err;
  }
  return undefined;
}

const listen = () => written('host:port', parseListen);
const path = () => z.string().min(1, 'expected a path').meta({ 'x-value-type': 'path' });

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
    .meta({ 'x-value-type': 'size' });

const url = (...schemes: string[]) =>
  written('URL', (text) => {
    checkUrl(text, schemes);
    return text;
  });

const retention = z
  .strictObject({
    maxAge: duration(60_000, '1m', 36_525 * DAY_MS, '36525d')
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

const SEGMENT_DURATION = () => duration(1_000, '1s', DAY_MS, '24h');

/** The camera id is part of file names and addresses, and the name of a Kubernetes object later. */
export const CAMERA_ID = /^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/;

/** What the addresses of the API have in the place of a camera id. */
const RESERVED_ID = 'jobs';

/** One camera, in the words of the file; cameras of a database are checked by it as well. */
const MEGABIT = 1_000_000;
/** In the file megabits, in the program bits a second. */
const MAX_BITRATE = () =>
  z
    .number()
    .int('expected a whole number of megabits a second')
    .min(1, 'expected at least 1 megabit a second')
    .max(10_000, 'expected at most 10000 megabits a second');

const FINGERPRINT = /^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$/;

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
  }).describe(
    'Address of the stream, with user and password if the camera wants them: rtsp://, rtsps:// (TLS), or through a tunnel: rtsp+http://, rtsp+https://, rtsp+ws://, rtsp+wss://.',
  ),
  transport: z
    .enum(['auto', 'tcp', 'udp', 'multicast'])
    .default('auto')
    .describe(
      'How media travels: inside the RTSP connection (tcp), as datagrams (udp), to a group (multicast), or, with auto, by tcp or udp, whichever works.',
    ),
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
          'true: refuse the camera over rtsps:// or https:// unless an authority vouches for its certificate, and for its host. Cameras come with self-signed ones.',
        ),
      ca: z
        .string()
        .max(65_536, 'expected at most 65536 characters')
        .refine(isCertificates, 'expected certificates in PEM')
        .optional()
        .describe(
          "Certificates in PEM of the authorities that count instead of the system's. With it, verify is true.",
        ),
      fingerprint: z
        .string()
        .regex(FINGERPRINT, 'expected the SHA-256 of a certificate: 64 hexadecimal digits, with colons or without')
        .transform(plainFingerprint)
        .optional()
        .describe(
          'SHA-256 of the one certificate to take, whoever made it: openssl s_client -connect HOST:322 </dev/null | openssl x509 -noout -fingerprint -sha256.',
        ),
    })
    .transform(({ verify, ca, fingerprint }) => ({
      verify: verify || ca !== undefined,
      ...(ca === undefined ? {} : { ca }),
      ...(fingerprint === undefined ? {} : { fingerprint }),
    }))
    .prefault({}),
  allowPlaintextLogin: z
    .boolean()
    .default(false)
    .describe(
      'true: send the password so that listeners can read it (Basic without TLS) also to a camera that has taken Digest or TLS before.',
    ),
  maxBitrate: MAX_BITRATE().optional().describe('Instead of archive.maxBitrate.'),
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

/** Of a token. */
export const sha256Digits = () =>
  z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'expected the 64 hexadecimal digits of the SHA-256 of the token')
    .transform((hex) => hex.toLowerCase());

export const TokenFile = z.strictObject({
  name: z.string().min(1).describe('Shown in logs.'),
  role: z
    .enum(['viewer', 'operator', 'admin'])
    .describe('viewer: look, list, download. operator: also export, move, start and stop. admin: everything.'),
  sha256: sha256Digits().describe('SHA-256 of the token in hexadecimal digits, as recorder token create says it.'),
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

const WebhookFile = z
  .strictObject({
    url: url('http', 'https').describe(
      'Each event is POSTed here, as a CloudEvent in JSON; of https the certificate is verified.',
    ),
    secret: z
      .string()
      .regex(WEBHOOK_SECRET, 'expected whsec_ and 24 to 64 bytes in base64, as recorder webhook secret makes it')
      .optional()
      .describe('Events are signed with it (Standard Webhooks), as recorder webhook secret makes it.'),
    secretFile: path().optional().describe('Or a file that holds it, read at each delivery.'),
    events: z
      .array(
        z
          .string()
          .refine((pattern) => EVENT_TYPES.some((type) => matchesType([pattern], type)), 'no event has such a type'),
      )
      .min(1, 'expected at least one type of events')
      .default(['*'])
      .describe('Types of events, as gap.opened or camera.*; docs/events.md has them.'),
    cameras: z
      .array(
        z
          .string()
          .regex(/^[A-Za-z0-9*][A-Za-z0-9.*-]{0,62}$/, 'expected a camera id, in which * stands for any characters'),
      )
      .min(1, 'expected at least one camera; leave the key out for all of them')
      .optional()
      .describe('Of cameras only events of these. Without it, of all; events of the node come all the same.'),
  })
  .refine(({ secret, secretFile }) => (secret === undefined) !== (secretFile === undefined), {
    path: ['secret'],
    message: 'expected either secret or secretFile',
  });

/** `tls: auto` is short for `tls: { mode: auto }`. */
const tls = () =>
  z.preprocess(
    (value) => (value === 'auto' ? { mode: 'auto' } : value),
    z
      .strictObject({
        mode: z
          .enum(['files', 'auto'])
          .default('files')
          .describe(
            'auto, for which `tls: auto` is enough: a key and a certificate of its own, made at the first start in workDir/tls, renewed, its fingerprint in the log; in a pool of Kubernetes the operator signs it. With tls, listen and playback speak HTTPS.',
          ),
        certificate: path().optional().describe('With mode files: certificate chain in PEM.'),
        key: path().optional().describe('With mode files: private key in PEM.'),
      })
      .transform(({ mode, certificate, key }, context): 'auto' | { certificate: string; key: string } => {
        if (mode === 'files' && certificate !== undefined && key !== undefined) return { certificate, key };
        if (mode === 'auto' && certificate === undefined && key === undefined) return 'auto';
        const path = mode === 'files' ? (certificate === undefined ? 'certificate' : 'key') : 'mode';
        const message = mode === 'files' ? 'is missing' : 'auto needs neither certificate nor key';
        context.issues.push({ code: 'custom', path: [path], message, input: undefined });
        return z.NEVER;
      }),
  );

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
      listen: listen()
        .prefault('127.0.0.1:9998')
        .describe(
          'GET /metrics for Prometheus. Names and states of all cameras are in it: open it to the network with requireToken.',
        ),
      requireToken: z
        .boolean()
        .default(false)
        .describe('Ask for a token that is for all cameras, and speak HTTPS if tls is set.'),
      tokenSha256: sha256Digits()
        .optional()
        .describe(
          'SHA-256 of a token that opens metrics and nothing else, as recorder token create says it. With it, requireToken is true.',
        ),
    })
    .prefault({}),
  health: z
    .strictObject({
      listen: listen().describe(
        'GET /api/health/live and /ready once more, as plain HTTP without details: for the probes of an orchestrator, which viewers must not keep out. Without it, only with the API.',
      ),
    })
    .optional(),
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
        .describe('Also write to recorder.log in this directory. Empty: standard output only.'),
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
  audit: z
    .strictObject({
      directory: z
        .string()
        .default('')
        .describe('Where the files of the audit are. Empty: log.directory, or else <workDir>/audit.'),
      maxAge: duration(DAY_MS, '1d', 36_525 * DAY_MS, '36525d')
        .prefault('90d')
        .describe('A file is removed when its last line is older.'),
      maxSize: size()
        .refine((bytes) => bytes >= 10 * 2 ** 20, 'expected at least 10MiB')
        .prefault('1GiB')
        .describe('The oldest files are removed when all of them are larger.'),
      views: z
        .boolean()
        .default(true)
        .describe('Also who watched: live streams, still images and playback. Downloads and windows always are there.'),
    })
    .prefault({})
    .describe('Who did what, and what was taken.'),
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
        .default(['kube-nvr.dev'])
        .describe(
          'With mode kubernetes: a token must be meant for one of these. []: for the API server itself, where it can do all that its owner can.',
        ),
      allowPlaintext: z
        .boolean()
        .default(false)
        .describe(
          'With mode kubernetes: take tokens from other machines without TLS, too. Who reads one there can use it.',
        ),
      allowedHosts: z
        .array(written('host name', parseHostName))
        .default([])
        .describe(
          'With mode none: names by which the recorder is asked, beside addresses, localhost, and those of advertise and cors.origins. Others are refused: any page can give itself a name that leads here.',
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
  cameraNetworks: z
    .array(written('address', parseNetwork))
    .default([])
    .describe(
      'Networks that cameras may be in: nothing else is connected to for them. None: any; in a cluster, any but this machine, link-local addresses and those of cluster.networks. The narrower of two networks counts.',
    ),
  tls: tls().optional(),
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
      maxBitrate: MAX_BITRATE()
        .default(100)
        .describe(
          'Megabits a second that a camera may send, over ten seconds. One that sends more is left alone until it is back at this rate on average, with the reason bitrate-exceeded: it would take the disk and the node from the others.',
        ),
      syncInterval: duration(100, '100ms', 600_000, '10m')
        .prefault('5s')
        .describe('How often footage is forced to the disk: a power cut loses at most this much.'),
      retention: retention.prefault({}).describe('Limits of all cameras together.'),
      protectFor: duration(HOUR_MS, '1h', 36_525 * DAY_MS, '36525d')
        .prefault('90d')
        .describe('A protection of footage ends after this time unless an admin says otherwise.'),
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
      listen: listen()
        .optional()
        .describe(
          'With mode kubernetes: other recorders of the pool fetch parts of exports here, by mutual TLS with certificates of its CA.',
        ),
      advertise: z.string().default('').describe('host:port or URL at which others reach this node.'),
      peers: z
        .array(written('host:port', parsePeer))
        .default([])
        .describe('Other recorders that this one may fetch exports from, as host:port or https://host:port.'),
      networks: z
        .array(written('address', parseNetwork))
        .default([])
        .describe(
          "The cluster's own networks, of pods and services: no camera is there unless cameraNetworks says so.",
        ),
      ca: path().optional().describe("Certificates in PEM that peers with TLS are trusted by, beside the system's."),
    })
    .prefault({}),
  webhooks: z
    .array(WebhookFile)
    .max(20, 'expected at most 20 webhooks')
    .refine((all) => new Set(all.map(({ url }) => url)).size === all.length, 'two webhooks have the same url')
    .default([])
    .describe('Where events are sent.'),
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
  /** Bits a second. */
  readonly maxBitrate: number;
  readonly snapshot: string | undefined;
  readonly tls: CameraTls;
  readonly allowPlaintextLogin: boolean;
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
  readonly health: ParsedFile['health'];
  readonly database: ParsedFile['database'];
  readonly redis: ParsedFile['redis'];
  readonly ffmpeg: ParsedFile['ffmpeg'];
  readonly log: {
    readonly level: LogLevel;
    readonly directory: string | undefined;
    readonly maxFileBytes: number;
    readonly maxFiles: number;
  };
  readonly audit: {
    readonly directory: string;
    readonly maxAgeMs: number;
    readonly maxBytes: number;
    readonly views: boolean;
  };
  readonly auth: {
    readonly mode: ParsedFile['auth']['mode'];
    /** Those of `tokensFile` included. */
    readonly tokens: readonly TokenConfig[];
    readonly tokensFile: string | undefined;
    readonly audiences: readonly string[];
    readonly allowPlaintext: boolean;
    readonly allowedHosts: readonly string[];
    readonly allowAnonymousNetwork: boolean;
  };
  readonly cors: { readonly origins: readonly string[] };
  readonly trustedProxies: readonly string[];
  readonly cameraNetworks: readonly string[];
  readonly tls: ParsedFile['tls'];
  readonly license: ParsedFile['license'];
  readonly archive: {
    readonly segmentDurationMs: number;
    /** Bits a second. */
    readonly maxBitrate: number;
    readonly syncIntervalMs: number;
    readonly retention: Retention;
    readonly protectForMs: number;
  };
  readonly ptz: { readonly moveTimeoutMs: number };
  readonly cluster: Omit<ParsedFile['cluster'], 'renewInterval'> & { readonly renewIntervalMs: number };
  readonly webhooks: ParsedFile['webhooks'];
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
    metrics: {
      ...file.metrics,
      requireToken: file.metrics.requireToken || file.metrics.tokenSha256 !== undefined,
    },
    health: file.health,
    database: file.database,
    redis: file.redis,
    ffmpeg: file.ffmpeg,
    log: {
      level: file.log.level,
      directory: file.log.directory === '' ? undefined : file.log.directory,
      maxFileBytes: file.log.maxFileSize,
      maxFiles: file.log.maxFiles,
    },
    audit: {
      directory: file.audit.directory || file.log.directory || join(file.workDir, 'audit'),
      maxAgeMs: file.audit.maxAge,
      maxBytes: file.audit.maxSize,
      views: file.audit.views,
    },
    auth: {
      ...file.auth,
      tokens: [...file.auth.tokens, ...moreTokens],
      tokensFile: file.auth.tokensFile,
    },
    cors: file.cors,
    trustedProxies: file.trustedProxies,
    cameraNetworks: file.cameraNetworks,
    tls: file.tls,
    license: file.license,
    archive: {
      segmentDurationMs: archive.segmentDuration,
      maxBitrate: archive.maxBitrate * MEGABIT,
      syncIntervalMs: archive.syncInterval,
      retention: archive.retention,
      protectForMs: archive.protectFor,
    },
    ptz: { moveTimeoutMs: file.ptz.moveTimeout },
    cluster: clusterOf(file.cluster),
    webhooks: file.webhooks,
    cameras: file.cameras.map((camera) =>
      toCameraConfig(camera, {
        segmentDurationMs: archive.segmentDuration,
        maxBitrate: archive.maxBitrate * MEGABIT,
      }),
    ),
  };
}

function clusterOf({ renewInterval, ...cluster }: ParsedFile['cluster']): Config['cluster'] {
  return { ...cluster, renewIntervalMs: renewInterval };
}

/** For cameras that have none of their own. */
export type CameraDefaults = Pick<Config['archive'], 'segmentDurationMs' | 'maxBitrate'>;

export function toCameraConfig(camera: ParsedCamera, defaults: CameraDefaults): CameraConfig {
  return {
    id: camera.id,
    name: camera.name ?? camera.id,
    source: camera.source,
    transport: camera.transport,
    maxBitrate: camera.maxBitrate === undefined ? defaults.maxBitrate : camera.maxBitrate * MEGABIT,
    snapshot: camera.snapshot,
    tls: camera.tls,
    allowPlaintextLogin: camera.allowPlaintextLogin,
    ptz: camera.ptz,
    onvif: camera.onvif,
    enabled: camera.enabled,
    record: {
      format: camera.record.format,
      segmentDurationMs: camera.record.segmentDuration ?? defaults.segmentDurationMs,
      retention: camera.record.retention,
    },
  };
}
