// The schema of the configuration file: every key, its type, default and meaning. It turns a parsed YAML document into
// `Config`, with our own names and units. The reference in docs/ is generated from it.

import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { parsePeer } from './peer.ts';
import { CAMERA_ID } from '../../base/camera-id.ts';
import { LOG_LEVELS } from '../../base/log-level.ts';
import { parsePasswordHash } from '../../base/password-hash.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { NO_CONTROLS } from '../../base/printable.ts';
import { DAY_MS, MINUTE_MS, HOUR_MS } from '../../base/units.ts';
import { plainFingerprint } from '../reach/connect.ts';
import { addressFault, type EdgeSource } from '../contract/edge-source.ts';
import { EVENT_TYPES, matchesType } from '../contract/event.ts';
import { GAP_CAUSES } from '../contract/gap-cause.ts';
import { parsePublicKey } from '../license/statement.ts';
import {
  checkCameraUrl,
  checkSource,
  checkUrl,
  isCertificates,
  isTimeZone,
  parseCollector,
  parseDuration,
  parseHostName,
  parseIssuer,
  parseEndpoint,
  parseHours,
  parseListen,
  parseNetwork,
  parseOrigin,
  parseOtlp,
  parseSize,
  parseSpace,
  ValueError,
  WEBHOOK_SECRET,
} from './values.ts';

/** The type that the reference shows for a value that is written as a string; `x-value-type` in JSON Schema. */
type ValueType =
  | 'duration'
  | 'hours'
  | 'size'
  | 'size or percentage'
  | 'host:port'
  | 'URL'
  | 'path'
  | 'origin'
  | 'address'
  | 'host name';

/** A string that `parse` converts; the error of `parse` becomes the message for the key. */
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

/** What a parser expects: YAML reads `9997` as a number, and quotes alone would not make it valid. */
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
/** A service and a shell have different working directories. */
const directory = () => path().refine(isAbsolute, 'expected an absolute path, such as /mnt/archive');

function duration(minMs: number, min: string, maxMs: number, max: string) {
  return written('duration', (text) => {
    const ms = parseDuration(text);
    if (ms < minMs || ms > maxMs) throw new ValueError(`expected a duration from ${min} to ${max}`);
    return ms;
  });
}

/** A plain number of bytes is accepted too: YAML reads `1048576` as a number. */
const size = () =>
  z
    .union([z.number().int().nonnegative(), written('size', parseSize)], { error: 'expected a size such as 500GiB' })
    .meta({ 'x-value-type': 'size' });

const url = (...schemes: string[]) =>
  written('URL', (text) => {
    checkUrl(text, schemes);
    return text;
  });

const cameraUrl = () =>
  written('URL', (text) => {
    checkCameraUrl(text);
    return text;
  });

/** Limits of a camera, or of all cameras together. */
export const RetentionFile = z
  .strictObject({
    maxAge: duration(60_000, '1m', 36_525 * DAY_MS, '36525d')
      .optional()
      .describe('Footage older than this is deleted.'),
    maxSize: size()
      .optional()
      .describe('The oldest footage is deleted when all of it is larger than this. Protected footage counts.'),
    minFree: written('size or percentage', parseSpace)
      .optional()
      .describe('The oldest footage is deleted when less than this is free on the file system.'),
  })
  .transform((r) => ({ maxAgeMs: r.maxAge, maxSizeBytes: r.maxSize, minFree: r.minFree }));

const SEGMENT_DURATION = () => duration(1_000, '1s', DAY_MS, '24h');

/** The API uses this word in place of a camera id. */
const RESERVED_ID = 'jobs';

const MEGABIT = 1_000_000;
/** Megabits per second in the file, bits per second in the program. */
const MAX_BITRATE = () =>
  z
    .number()
    .int('expected a whole number of megabits a second')
    .min(1, 'expected at least 1 megabit a second')
    .max(10_000, 'expected at most 10000 megabits a second');

const FINGERPRINT = /^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$/;

/** How the camera replays its own footage: exactly one of `onvif` and `replay`. */
const edge = () =>
  z
    .strictObject({
      onvif: z
        .boolean()
        .default(false)
        .describe('true: fetch it with the ONVIF services for search and replay (Profile G), at the address of onvif.'),
      recordingId: z
        .string()
        .min(1, 'expected a token')
        .max(64, 'expected at most 64 characters')
        .optional()
        .describe(
          'With onvif: the token of the recording that belongs to this camera, for a device with recordings of several.',
        ),
      replay: written('URL', (text) => {
        checkSource(text);
        const fault = addressFault(text);
        if (fault !== undefined) throw new ValueError(fault);
        return text;
      })
        .optional()
        .describe(
          'Instead of onvif: an rtsp:// address in which {start} and {end} are replaced by times such as 20260101T000000Z; for another format, write {start:yyyy_MM_dd_HH_mm_ss}. Without user and password, those of source are used on the same host.',
        ),
      timeZone: z
        .string()
        .refine(isTimeZone, 'expected a time zone, such as Europe/Berlin')
        .optional()
        .describe('With replay: the time zone of the times in the address; default: UTC.'),
      maxBitrate: MAX_BITRATE()
        .optional()
        .describe(
          'The most megabits per second at which footage is fetched; default: twice the bit rate of the live stream.',
        ),
    })
    .transform(({ onvif, recordingId: recording, replay, timeZone, maxBitrate }, context) => {
      const refuse = (path: string, message: string): typeof z.NEVER => {
        context.issues.push({ code: 'custom', path: [path], message, input: undefined });
        return z.NEVER;
      };
      if (onvif === (replay !== undefined)) return refuse('onvif', 'expected either onvif: true or replay');
      if (replay !== undefined && recording !== undefined) return refuse('recordingId', 'is for onvif: true');
      if (replay === undefined && timeZone !== undefined) return refuse('timeZone', 'is for replay');
      const source: EdgeSource =
        replay === undefined ? { kind: 'onvif', recording } : { kind: 'address', replay, timeZone };
      /** Bits a second; undefined: twice those of the live stream. */
      return { source, maxBitrate: maxBitrate === undefined ? undefined : maxBitrate * MEGABIT };
    });

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
    .regex(NO_CONTROLS, 'a name has no control characters')
    .optional()
    .describe(
      'Name for people, in any script; default: the id. In file names, every character except ASCII letters, digits, "." and "-" becomes "-", and the id follows.',
    ),
  group: z
    .string()
    .min(1, 'expected the name of a group')
    .max(63, 'expected at most 63 characters')
    .regex(NO_CONTROLS, 'a name has no control characters')
    .optional()
    .describe(
      'Name of the group in which the console lists the camera. Without it, cameras whose ids begin alike are a group: dock-north and dock-south.',
    ),
  source: written('URL', (text) => {
    checkSource(text);
    return text;
  }).describe(
    'Address of the stream, with user and password if the camera needs them: rtsp://, rtsps:// (TLS), or through a tunnel: rtsp+http://, rtsp+https://, rtsp+ws://, rtsp+wss://.',
  ),
  transport: z
    .enum(['auto', 'tcp', 'udp', 'multicast'])
    .default('auto')
    .describe(
      'How media is carried: inside the RTSP connection (tcp), as datagrams (udp) or to a group (multicast). auto: tcp or udp, whichever works.',
    ),
  preview: z
    .strictObject({
      source: written('URL', (text) => {
        checkSource(text);
        return text;
      }).describe(
        'Address of a second, smaller stream, like source, for walls of pictures, phones, and browsers that cannot decode source. It is connected only while somebody watches it or it is recorded. Without user and password, those of source are used on the same host; transport, tls, allowPlaintextLogin and maxBitrate apply to both streams.',
      ),
      recorded: z
        .boolean()
        .default(false)
        .describe(
          'true: the preview is recorded, too, in the format and with the segment duration of the camera. It is then connected all the time.',
        ),
      retention: RetentionFile.prefault({}).describe('Limits of the footage of the preview.'),
    })
    .optional()
    .describe('A second stream.'),
  snapshot: cameraUrl()
    .optional()
    .describe(
      'Address of a still image, http:// or https://, with user and password if they differ from those of source.',
    ),
  tls: z
    .strictObject({
      verify: z
        .boolean()
        .default(false)
        .describe(
          'true: over rtsps:// and https://, refuse the camera unless its certificate is signed by a trusted authority and names its host. Most cameras have a self-signed certificate.',
        ),
      ca: z
        .string()
        .max(65_536, 'expected at most 65536 characters')
        .refine(isCertificates, 'expected certificates in PEM')
        .optional()
        .describe("PEM certificates of the authorities to trust, instead of the system's. With it, verify is true."),
      fingerprint: z
        .string()
        .regex(FINGERPRINT, 'expected the SHA-256 of a certificate: 64 hexadecimal digits, with colons or without')
        .transform(plainFingerprint)
        .optional()
        .describe(
          'SHA-256 of the only certificate to accept, whoever signed it: openssl s_client -connect HOST:322 </dev/null | openssl x509 -noout -fingerprint -sha256.',
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
      'true: send the password in readable form (Basic without TLS) even to a camera that accepted Digest or TLS before.',
    ),
  maxBitrate: MAX_BITRATE().optional().describe('Replaces archive.maxBitrate for this camera.'),
  ptz: z.boolean().default(false).describe('The camera may be moved.'),
  onvif: cameraUrl()
    .optional()
    .describe("Address of the camera's ONVIF device service. Without it, port 80 of the source's host."),
  events: z
    .enum(['auto', 'always', 'never'])
    .default('auto')
    .describe(
      'Whether events are taken from the camera over ONVIF, such as motion. auto: if onvif is set. always: also at port 80 of the host of source.',
    ),
  activity: z
    .boolean()
    .default(false)
    .describe(
      'Whether the key frames of the footage are looked at in the background for what changes in the picture: about 0.1 % of a core with a recorded preview, 0.2 % without; needs ffmpeg.',
    ),
  edge: edge()
    .optional()
    .describe("The camera's own memory, such as its SD card: what is missing in the archive is filled in from there."),
  enabled: z.boolean().default(true).describe('false: the camera is listed, but not recorded.'),
  record: z
    .strictObject({
      format: z
        .enum(['fmp4', 'mp4'])
        .default('fmp4')
        .describe(
          'fmp4: the file can be played while it is written. mp4: the file is rewritten with its index at the front when the segment is closed, and can be played from then on. Both survive a crash.',
        ),
      segmentDuration: SEGMENT_DURATION().optional().describe('Replaces archive.segmentDuration for this camera.'),
      retention: RetentionFile.prefault({}).describe('Limits of this camera, in addition to those of the node.'),
    })
    .prefault({})
    .describe('How this camera is recorded.'),
});

export const DatabaseUrl = url('postgres', 'postgresql');
export const RedisUrl = url('redis', 'rediss', 'unix');

/** The digest of a token. */
export const sha256Digits = () =>
  z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'expected the 64 hexadecimal digits of the SHA-256 of the token')
    .transform((hex) => hex.toLowerCase());

/** Which cameras a token or a webhook covers. */
const cameraScope = () =>
  z
    .array(
      z
        .string()
        .regex(/^[A-Za-z0-9*][A-Za-z0-9.*-]{0,62}$/, 'expected a camera id, in which * stands for any characters'),
    )
    .min(1, 'expected at least one camera; leave the key out for all of them')
    .optional();

/** The right to export, for callers whose role does not include it. */
const exportRight = () =>
  z.boolean().optional().describe('true: a viewer may also export footage. Operators and admins always may.');

export const TokenFile = z.strictObject({
  name: z.string().min(1).describe('Shown in logs.'),
  role: z
    .enum(['viewer', 'operator', 'admin', 'reporter'])
    .describe(
      'viewer: watch, list, download. operator: also export, move, start and stop, report events. admin: everything. reporter: only report events of cameras.',
    ),
  sha256: sha256Digits().describe('SHA-256 of the token in hexadecimal digits, as recorder token create prints it.'),
  cameras: cameraScope().describe(
    'Ids of the cameras that the token covers, such as gate or dock-*. Without it, the token covers all cameras and the node.',
  ),
  export: exportRight(),
});

export const UserName = z
  .string()
  .min(1, 'expected a name')
  .max(100, 'expected at most 100 characters')
  .regex(/^[^\s\p{Cc}]+$/u, 'the name of a user has no spaces');

export const UserFile = z.strictObject({
  name: UserName.describe('The name with which the user signs in. Unique. Shown in log and audit.'),
  role: z
    .enum(['viewer', 'operator', 'admin'])
    .describe('viewer: watch, list, download. operator: also export, move, start and stop. admin: everything.'),
  password: z
    .string()
    .refine((text) => parsePasswordHash(text) !== undefined, 'expected a hash that recorder --hash-password printed')
    .describe('Hash of the password, as recorder --hash-password prints it: scrypt$….'),
  cameras: cameraScope().describe(
    'Ids of the cameras that the user may see, such as gate or dock-*. Without it, all cameras and the node.',
  ),
  export: exportRight(),
});

/** The value of `auth.users`, and of a separate file. */
export const UserList = z
  .array(UserFile)
  .max(1000, 'expected at most 1000 users')
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two users have the same name');

/** Whom a claim of an issuer gives which rights. Without `claim`: everybody whom the issuer knows. */
const RuleFile = z
  .strictObject({
    claim: z
      .string()
      .min(1, 'expected the name of a claim')
      .optional()
      .describe(
        'Name of a claim, such as groups; realm_access.roles is the claim roles in realm_access. Without it, the rule is for everybody whom the issuer knows.',
      ),
    value: z
      .string()
      .min(1, 'expected a value')
      .optional()
      .describe('What the claim must be; of a claim with a list, one of its values.'),
    role: z
      .enum(['viewer', 'operator', 'admin'])
      .describe('viewer: watch, list, download. operator: also export, move, start and stop. admin: everything.'),
    cameras: cameraScope().describe(
      'Ids of the cameras, such as gate or dock-*. Without it, all cameras and the node.',
    ),
    export: exportRight(),
  })
  .refine(({ claim, value }) => (claim === undefined) === (value === undefined), {
    path: ['value'],
    message: 'claim and value belong together',
  });

const IssuerFile = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, 'expected 1 to 32 lower-case letters, digits and "-"')
      .describe('Names the issuer in addresses, log and audit. Unique.'),
    label: z
      .string()
      .min(1, 'expected a label')
      .max(40, 'expected at most 40 characters')
      .regex(NO_CONTROLS, 'a label has no control characters')
      .optional()
      .describe('What the button of the sign-in page says; default: the name.'),
    issuer: written('URL', parseIssuer).describe(
      'Address of the issuer, as its tokens have it: https, or http on this machine. Its /.well-known/openid-configuration has everything else.',
    ),
    clientId: z
      .string()
      .min(1, 'expected the id of a client')
      .describe('Id of the recorder as a client of the issuer.'),
    clientSecret: z
      .string()
      .min(1, 'expected a secret')
      .optional()
      .describe('Secret of this client. Without it and clientSecretFile, the client is a public one.'),
    clientSecretFile: path().optional().describe('A file that holds the secret instead, read at each sign-in.'),
    scopes: z
      .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'expected a scope'))
      .default(['openid', 'profile', 'email'])
      .refine((scopes) => scopes.includes('openid'), 'openid is missing')
      .describe('What the issuer is asked for. Some issuers need one more for groups.'),
    nameClaim: z
      .string()
      .min(1, 'expected the name of a claim')
      .default('preferred_username')
      .describe('The claim with the name of the person, for log, audit and the console. Without it: sub.'),
    rules: z
      .array(RuleFile)
      .min(1, 'expected at least one rule')
      .max(100, 'expected at most 100 rules')
      .describe('Who has which rights. The first rule that fits counts; a person whom none fits cannot sign in.'),
    sessionDuration: duration(300_000, '5m', 30 * DAY_MS, '30d')
      .prefault('12h')
      .describe(
        'A session ends this long after the sign-in, even when it is used: the issuer then says again who the person is.',
      ),
    proxy: url('http', 'https').optional().describe('The proxy through which the recorder reaches the issuer.'),
    ca: path()
      .optional()
      .describe("PEM certificates of the authorities to trust for the issuer, instead of the system's."),
  })
  .refine(({ clientSecret, clientSecretFile }) => clientSecret === undefined || clientSecretFile === undefined, {
    path: ['clientSecret'],
    message: 'expected either clientSecret or clientSecretFile',
  })
  .transform(({ sessionDuration: sessionMs, label, ...same }) => ({ ...same, label: label ?? same.name, sessionMs }));

/** The value of `auth.issuers`, and of a separate file. */
export const IssuerList = z
  .array(IssuerFile)
  .max(10, 'expected at most 10 issuers')
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two issuers have the same name');

/** How a collector of the audit is verified, and what it verifies. */
const collectorTls = {
  ca: path()
    .optional()
    .describe("PEM certificates of the authorities to trust for the collector, instead of the system's."),
  certificate: path().optional().describe('PEM certificate chain of the recorder, if the collector asks for one.'),
  key: path().optional().describe('PEM private key of this certificate.'),
};

const CERTIFICATE_AND_KEY = { path: ['key'], message: 'expected both certificate and key, or neither' };
const hasBothOrNeither = ({ certificate, key }: { certificate?: string | undefined; key?: string | undefined }) =>
  (certificate === undefined) === (key === undefined);

const SyslogFile = z
  .strictObject({
    address: written('host:port', parseCollector).describe('Host and port of the server, such as logs.example:6514.'),
    ...collectorTls,
  })
  .refine(hasBothOrNeither, CERTIFICATE_AND_KEY);

const OtlpFile = z
  .strictObject({
    url: written('URL', parseOtlp).describe('Where logs are sent, such as https://otel.example:4318/v1/logs.'),
    headersFile: path()
      .optional()
      .describe('A file with a header a line, such as Authorization: Bearer …, read for each delivery.'),
    ...collectorTls,
  })
  .refine(hasBothOrNeither, CERTIFICATE_AND_KEY);

const WebhookFile = z
  .strictObject({
    url: url('http', 'https').describe(
      'Each event is sent here with POST, as a CloudEvent in JSON. With https, the certificate is verified.',
    ),
    secret: z
      .string()
      .regex(WEBHOOK_SECRET, 'expected whsec_ and 24 to 64 bytes in base64, as recorder webhook secret makes it')
      .optional()
      .describe('The secret that signs events (Standard Webhooks), as recorder webhook secret makes it.'),
    secretFile: path().optional().describe('A file that holds the secret instead, read at each delivery.'),
    events: z
      .array(
        z
          .string()
          .refine((pattern) => EVENT_TYPES.some((type) => matchesType([pattern], type)), 'no event has such a type'),
      )
      .min(1, 'expected at least one type of events')
      .default(['*'])
      .describe('Types of events, such as gap.opened or camera.*; docs/events.md lists them.'),
    cameras: cameraScope().describe(
      'Ids of the cameras whose events are sent; without it, all cameras. Events about the node are always sent.',
    ),
  })
  .refine(({ secret, secretFile }) => (secret === undefined) !== (secretFile === undefined), {
    path: ['secret'],
    message: 'expected either secret or secretFile',
  });

/** The value of `webhooks`, and of a separate file. */
export const WebhookList = z
  .array(WebhookFile)
  .max(20, 'expected at most 20 webhooks')
  .refine((all) => new Set(all.map(({ url }) => url)).size === all.length, 'two webhooks have the same url');

const TargetFile = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/, 'expected 1 to 32 lower-case letters, digits and "-"')
      .describe('Names the target in rules, log, metrics and answers. Unique.'),
    endpoint: url('http', 'https')
      .refine((text) => new URL(text).origin === text.replace(/\/$/, ''), 'expected an address without a path')
      .transform((text) => text.replace(/\/$/, ''))
      .describe(
        'Address of the S3 service, such as https://s3.eu-central-1.amazonaws.com. Buckets are addressed by path.',
      ),
    region: z
      .string()
      .min(1, 'expected a region')
      .default('us-east-1')
      .describe('Region for which requests are signed.'),
    bucket: z
      .string()
      .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'expected the name of a bucket')
      .describe('The bucket, which must exist.'),
    prefix: z
      .string()
      .regex(/^[A-Za-z0-9._/-]{0,200}$/, 'expected letters, digits, ".", "_", "-" and "/"')
      .default('')
      .transform((text) =>
        text
          .split('/')
          .flatMap((name) => (name === '' ? [] : [`${name}/`]))
          .join(''),
      )
      .describe('Where in the bucket. Each archive, or RecorderPool, needs a prefix of its own; others are refused.'),
    accessKeyId: z.string().min(1, 'expected an id').optional().describe('Id of the access key.'),
    accessKeyIdFile: path().optional().describe('A file that holds the id instead, read for each request.'),
    secretAccessKey: z.string().min(1, 'expected a secret').optional().describe('The secret of the access key.'),
    secretAccessKeyFile: path().optional().describe('A file that holds the secret instead, read for each request.'),
    ca: path()
      .optional()
      .describe("PEM certificates of the authorities to trust for the service, instead of the system's."),
    objectLock: z
      .strictObject({
        mode: z
          .enum(['governance', 'compliance'])
          .describe('governance: users with a special permission can end a lock. compliance: nobody can.'),
        for: duration(HOUR_MS, '1h', 36_525 * DAY_MS, '36525d').describe(
          'Nobody can remove a copy until it is this old. Not longer than keep and maxAge.',
        ),
      })
      .transform(({ mode, for: forMs }) => ({ mode, forMs }))
      .optional()
      .describe('Locks copies, in a bucket with object lock.'),
    serverSideEncryption: z
      .enum(['AES256', 'aws:kms'])
      .optional()
      .describe('The service encrypts what it stores. Without it: as the bucket is configured.'),
    maxBitrate: MAX_BITRATE().optional().describe('The most megabits a second at which one node copies.'),
    hours: written('hours', parseHours)
      .optional()
      .describe('Copy only at these hours, by the clock of the system, such as 22:00-06:00.'),
  })
  .refine(({ accessKeyId: a, accessKeyIdFile: b }) => (a === undefined) !== (b === undefined), {
    path: ['accessKeyId'],
    message: 'expected either accessKeyId or accessKeyIdFile',
  })
  .refine(({ secretAccessKey: a, secretAccessKeyFile: b }) => (a === undefined) !== (b === undefined), {
    path: ['secretAccessKey'],
    message: 'expected either secretAccessKey or secretAccessKeyFile',
  })
  .transform(({ serverSideEncryption: encryption, maxBitrate, ...same }) => ({
    ...same,
    encryption,
    maxBitrate: maxBitrate === undefined ? undefined : maxBitrate * MEGABIT,
  }));

const CopiesFile = z
  .strictObject({
    targets: z
      .array(z.string())
      .max(4, 'expected at most 4 targets')
      .describe('Names of targets; [] copies nothing of these cameras.'),
    cameras: cameraScope().describe('Ids of the cameras, such as gate or dock-*. Without it, all cameras.'),
    after: duration(0, '0s', 3_650 * DAY_MS, '3650d')
      .prefault('0s')
      .describe('Age at which a file is copied.'),
    keep: duration(HOUR_MS, '1h', 36_525 * DAY_MS, '36525d')
      .optional()
      .describe(
        'A copy that is older is removed. Default: maxAge of the camera or the node; without one, copies are never removed.',
      ),
  })
  .transform(({ after: afterMs, keep: keepMs, ...same }) => ({ ...same, afterMs, keepMs }));

const mailAddresses = () =>
  z
    .array(z.email('expected an address such as guard@example.com'))
    .min(1, 'expected at least one address')
    .max(20, 'expected at most 20 addresses');

const MailFile = z
  .strictObject({
    server: z
      .string()
      .refine(
        (text) => /^smtps?:$/.test(URL.parse(text)?.protocol ?? '') && /^smtps?:\/\/[^/?#@\s]+$/.test(text),
        'expected an address such as smtps://mail.example.com or smtp://mail.example.com:587',
      )
      .describe('The mail server. smtps: TLS from the beginning, port 465. smtp: TLS by STARTTLS, port 587.'),
    allowPlainText: z
      .boolean()
      .default(false)
      .describe('With smtp: also send to a server that offers no TLS. User and password are readable on the way.'),
    user: z.string().min(1, 'expected a user').optional().describe('The user at the mail server.'),
    password: z.string().min(1, 'expected a password').optional().describe('The password of the user.'),
    passwordFile: path().optional().describe('A file that holds the password instead, read for each mail.'),
    from: z.email('expected an address such as nvr@example.com').describe('The sender of the mails.'),
    to: mailAddresses().describe('Who gets a mail for each new alarm.'),
    url: z
      .url({ protocol: /^https?$/, error: 'expected an address such as https://nvr.example.com' })
      .transform(withoutTrailingSlash)
      .optional()
      .describe('The address of the console, for links in mails.'),
    escalation: z
      .strictObject({
        after: duration(MINUTE_MS, '1m', DAY_MS, '24h').prefault('15m').describe('After this time.'),
        to: mailAddresses().describe('Who gets the mail.'),
      })
      .optional()
      .describe('Who gets a mail if nobody acknowledges an alarm.'),
  })
  .refine(
    ({ user, password, passwordFile }) =>
      (user === undefined ? 0 : 1) === (password === undefined ? 0 : 1) + (passwordFile === undefined ? 0 : 1),
    {
      path: ['user'],
      message: 'expected user with either password or passwordFile, or none of them',
    },
  );

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
            'auto (short form: `tls: auto`): the recorder makes its own key and certificate in workDir/tls at the first start, renews the certificate and logs its fingerprint; in a Kubernetes pool the operator signs it. With tls, listen and playback use HTTPS.',
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

const ObjectiveFile = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'expected 1 to 63 lower-case letters, digits and "-"')
      .describe('Names the objective in reports. Unique.'),
    cameras: cameraScope().describe('Ids of the cameras, such as gate or dock-*. Without it, all cameras.'),
    target: z
      .number()
      .min(1, 'expected at least 1 percent')
      .max(100, 'expected at most 100 percent')
      .multipleOf(0.001, 'expected at most three decimals')
      .describe('Percent of the time in which these cameras should be recorded, such as 99.9.'),
    window: duration(DAY_MS, '1d', 31 * DAY_MS, '31d')
      .prefault('30d')
      .describe('The time up to now that alerts and status are about. Reports are about calendar months.'),
    excused: z
      .array(z.enum(GAP_CAUSES))
      .default(['stopped', 'unlicensed'])
      .describe('Causes of gaps that do not count; docs/gaps.md lists all causes.'),
  })
  .transform(({ window: windowMs, ...same }) => ({ ...same, windowMs }));

/** The whole file. Every key is optional. */
export const ConfigFile = z.strictObject({
  nodeName: z
    .string()
    .max(253, 'expected at most 253 characters')
    .regex(/^[^\s\p{Cc}]*$/u, 'a node name has no spaces or control characters')
    .default('')
    .describe("The node's name. Empty: the system's host name."),
  listen: listen().prefault('0.0.0.0:9997').describe('Address and port of the API, the WebSocket and the page.'),
  record_path: directory().default('/var/lib/recorder/recordings').describe('Directory of the archive.'),
  workDir: directory()
    .default('/var/lib/recorder')
    .describe("Directory of the recorder's own state, such as admin.token."),
  playback: z
    .strictObject({
      listen: listen().prefault('0.0.0.0:9996').describe('Address and port for playback of the archive.'),
      advertise: z
        .string()
        .default('')
        .describe('host:port or URL at which clients reach playback. Empty: the host of their request.'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      listen: listen()
        .prefault('127.0.0.1:9998')
        .describe(
          'Address and port of GET /metrics for Prometheus. Metrics contain names and states of all cameras: set requireToken before you open this to the network.',
        ),
      requireToken: z
        .boolean()
        .default(false)
        .describe('Require a token that covers all cameras, and use HTTPS if tls is set.'),
      tokenSha256: sha256Digits()
        .optional()
        .describe(
          'SHA-256 of a token that gives access to metrics only, as recorder token create prints it. With it, requireToken is true.',
        ),
    })
    .prefault({}),
  health: z
    .strictObject({
      listen: listen().describe(
        'A second address for GET /api/health/live and /ready, as plain HTTP without details: probes of an orchestrator reach it even when viewers use all connections of the API. Without it, only the API answers them.',
      ),
    })
    .optional(),
  database: z.strictObject({ url: DatabaseUrl.describe('A Postgres database that indexes the archive.') }).optional(),
  redis: z
    .strictObject({
      url: RedisUrl.describe(
        'Redis for jobs, with user and password if it needs them; rediss: TLS. Without it, the recorder runs its own redis-server.',
      ),
      ca: path()
        .optional()
        .describe("PEM certificates of the authorities to trust for a Redis with TLS, instead of the system's."),
    })
    .optional(),
  ffmpeg: z
    .strictObject({ path: path().default('ffmpeg').describe('Path of ffmpeg, which exports and time-lapses need.') })
    .prefault({}),
  log: z
    .strictObject({
      level: z.enum(LOG_LEVELS).default('info').describe('The lowest level to log.'),
      directory: z
        .string()
        .default('')
        .describe('Also write to recorder.log in this directory. Empty: standard output only.'),
      maxFileSize: size()
        .refine((bytes) => bytes >= 4096, 'expected at least 4096 bytes')
        .prefault('10MiB')
        .describe('A new log file is begun when the current one would exceed this size, and at midnight UTC.'),
      maxFiles: z
        .number()
        .int()
        .min(1)
        .max(1000)
        .default(14)
        .describe('How many files of each log are kept, including the newest.'),
    })
    .prefault({}),
  audit: z
    .strictObject({
      directory: z
        .string()
        .default('')
        .describe('Directory of the audit files. Empty: log.directory, or <workDir>/audit if that is empty, too.'),
      maxAge: duration(DAY_MS, '1d', 36_525 * DAY_MS, '36525d')
        .prefault('90d')
        .describe('An audit file is removed when its last line is older than this.'),
      maxSize: size()
        .refine((bytes) => bytes >= 10 * 2 ** 20, 'expected at least 10MiB')
        .prefault('1GiB')
        .describe('The oldest audit files are removed when all of them together are larger than this.'),
      views: z
        .boolean()
        .default(true)
        .describe(
          'Also record who watched live streams, still images and playback. Downloads and windows are always recorded.',
        ),
      syslog: SyslogFile.optional().describe(
        'A syslog server to which each line is sent: RFC 5424 over TLS (RFC 5425).',
      ),
      otlp: OtlpFile.optional().describe('A collector of OpenTelemetry to which each line is sent: OTLP over HTTP.'),
    })
    .prefault({})
    .describe('The audit: who did what, and which footage was downloaded.'),
  auth: z
    .strictObject({
      mode: z
        .enum(['token', 'kubernetes', 'none'])
        .default('token')
        .describe(
          'How callers are authenticated and authorized: by tokens (token), by the Kubernetes API server or tokens (kubernetes), or not at all (none): then anyone may do everything.',
        ),
      tokens: z
        .array(TokenFile)
        .default([])
        .describe(
          'With mode token and an empty list, the recorder makes an admin token in <workDir>/admin.token at the first start.',
        ),
      tokensFile: path()
        .optional()
        .describe('A YAML file with more tokens, a list like auth.tokens. Read again when it changes.'),
      users: UserList.default([]).describe('Users who sign in to the page with name and password.'),
      usersFile: path()
        .optional()
        .describe('A YAML file with more users, a list like auth.users. Read again when it changes; may be missing.'),
      issuers: IssuerList.default([]).describe(
        'Issuers at which people sign in to the page (OpenID Connect), such as Keycloak or Entra.',
      ),
      issuersFile: path()
        .optional()
        .describe(
          'A YAML file with more issuers, a list like auth.issuers. Read again when it changes; may be missing.',
        ),
      audiences: z
        .array(z.string().min(1, 'expected an audience'))
        .default(['kube-nvr.dev'])
        .describe(
          'With mode kubernetes: a token must have one of these audiences. []: the audience of the API server itself; there, such a token can do everything that its owner can.',
        ),
      allowPlaintext: z
        .boolean()
        .default(false)
        .describe(
          'With mode kubernetes: accept tokens from other machines without TLS, too. Anyone who can read that traffic can use them.',
        ),
      allowedHosts: z
        .array(written('host name', parseHostName))
        .default([])
        .describe(
          'With mode none: host names that requests may use, in addition to addresses, localhost and the names in advertise and cors.origins. Other names are refused, because any web page can point a name of its own at this address (DNS rebinding).',
        ),
      allowAnonymousNetwork: z
        .boolean()
        .default(false)
        .describe(
          'With mode none: also listen on addresses that other machines can reach. Anyone there may do everything.',
        ),
    })
    .prefault({}),
  cors: z
    .strictObject({
      origins: z
        .array(written('origin', parseOrigin))
        .default([])
        .describe(
          "Origins whose pages may use the recorder with their own token; * for every origin. Without it, only the recorder's own page.",
        ),
    })
    .prefault({})
    .describe('Pages of other origins.'),
  trustedProxies: z
    .array(written('address', parseNetwork))
    .default([])
    .describe('Proxies in front of the recorder, whose X-Forwarded-For, -Host and -Proto are trusted.'),
  cameraNetworks: z
    .array(written('address', parseNetwork))
    .default([])
    .describe(
      'Networks of the cameras: the recorder connects to cameras nowhere else. Empty: any network; in a cluster, any except this machine, link-local addresses and cluster.networks. If two networks contain an address, the narrower one decides.',
    ),
  tls: tls().optional(),
  license: z
    .strictObject({
      file: path().default('/etc/recorder/recorder.lic').describe('The licence file.'),
      publicKey: z
        .string()
        .refine((text) => text === '' || parsePublicKey(text) !== undefined, 'expected an Ed25519 key in base64 or PEM')
        .default('')
        .describe('The Ed25519 public key that verifies licences, in base64 or PEM. Without it, no licence is read.'),
      required: z
        .boolean()
        .default(false)
        .describe(
          'Do not start a camera without a valid licence for it, and report not ready. Running recordings continue.',
        ),
    })
    .prefault({}),
  archive: z
    .strictObject({
      segmentDuration: SEGMENT_DURATION()
        .prefault('5m')
        .describe('A segment is closed at the first key frame after this time.'),
      maxBitrate: MAX_BITRATE()
        .default(100)
        .describe(
          'Megabits a second that a camera may send, measured over ten seconds. A camera that sends more is paused until its average is back at this rate, with the reason bitrate-exceeded: it would take disk and processor from the other cameras.',
        ),
      syncInterval: duration(100, '100ms', 600_000, '10m')
        .prefault('5s')
        .describe('How often footage is forced to the disk: a power cut loses at most this much.'),
      disks: z
        .array(
          z.strictObject({
            path: directory().describe('Directory of the disk. It must exist.'),
            weight: z
              .number()
              .min(0.1)
              .max(10)
              .default(1)
              .describe('With 2, the disk gets twice as many cameras as its free space suggests.'),
          }),
        )
        .max(15, 'expected at most 15 disks beside record_path')
        .default([])
        .describe(
          'Further disks beside record_path. A camera records to one disk for a UTC day. When a disk fails, its cameras record to the others.',
        ),
      retention: RetentionFile.prefault({}).describe('Limits of all cameras together.'),
      protectFor: duration(HOUR_MS, '1h', 36_525 * DAY_MS, '36525d')
        .prefault('90d')
        .describe('A protection ends after this time unless an admin sets another end.'),
      targets: z
        .array(TargetFile)
        .max(4, 'expected at most 4 targets')
        .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two targets have the same name')
        .default([])
        .describe('Places in object storage to which footage is copied.'),
      copies: z
        .array(CopiesFile)
        .max(100, 'expected at most 100 rules')
        .default([])
        .describe('What is copied where. The first rule that fits a camera counts.'),
    })
    .prefault({}),
  ptz: z
    .strictObject({
      moveTimeout: duration(3_000, '3s', 300_000, '5m')
        .prefault('10s')
        .describe('A moving camera is stopped after this time when neither a stop nor another move follows.'),
    })
    .prefault({}),
  cluster: z
    .strictObject({
      mode: z
        .enum(['none', 'kubernetes', 'etcd'])
        .default('none')
        .describe(
          'What decides which node records a camera. etcd: a cluster of servers without Kubernetes, which recorder cluster init makes.',
        ),
      pool: z
        .string()
        .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'expected the name of a RecorderPool')
        .max(40)
        .default('default')
        .describe('The RecorderPool that this node records for.'),
      renewInterval: duration(1_000, '1s', 1_200_000, '20m')
        .prefault('2s')
        .describe(
          'In a cluster: how often the node renews its Lease until it has read its RecorderPool, whose value counts from then on.',
        ),
      dataDir: directory().default('/var/lib/recorder/data').describe("Directory of the node's cluster state."),
      etcd: z
        .strictObject({
          endpoints: z
            .array(written('URL', parseEndpoint))
            .min(1, 'expected at least one address')
            .describe(
              'With mode etcd: client addresses of an existing etcd, such as https://192.0.2.7:2379, which is used instead of one that the recorder runs itself. The same on all servers.',
            ),
        })
        .optional(),
      tls: z
        .strictObject({
          ca: path().describe('PEM certificates of the authorities to trust for cluster.etcd.endpoints.'),
          certificate: path().describe('PEM certificate for cluster.etcd.endpoints. Read again when it changes.'),
          key: path().describe('PEM private key of this certificate.'),
        })
        .optional(),
      listen: listen()
        .optional()
        .describe(
          "In a cluster: address and port where other recorders of the pool fetch parts of exports, with mutual TLS by the pool's CA. With mode etcd it is needed.",
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
          "The cluster's own networks, of pods and services: the recorder connects to no camera there unless cameraNetworks names it.",
        ),
      ca: path()
        .optional()
        .describe("PEM certificates of the authorities to trust for peers with TLS, in addition to the system's."),
    })
    .refine(({ etcd, tls: forEtcd }) => !forEtcd || etcd, {
      path: ['tls'],
      message: 'is for cluster.etcd.endpoints, which is missing',
    })
    .prefault({}),
  console: z
    .strictObject({
      site: z
        .string()
        .max(100, 'expected at most 100 characters')
        .regex(/^[^\p{Cc}]*$/u, 'a name has no control characters')
        .default('')
        .describe('Name of the site, which the console shows.'),
      timeZone: z
        .string()
        .refine(isTimeZone, 'expected a time zone such as Europe/Berlin')
        .optional()
        .describe('Time zone of the console, such as Europe/Berlin. Default: that of the system.'),
    })
    .prefault({})
    .describe('The page.'),
  objectives: z
    .array(ObjectiveFile)
    .max(20, 'expected at most 20 objectives')
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'two objectives have the same name')
    .default([])
    .describe('How much of the time cameras must be recorded; reports say whether they were.'),
  webhooks: WebhookList.default([]).describe('Where events are sent.'),
  mail: MailFile.optional().describe('Mails about alarms.'),
  webhooksFile: path()
    .optional()
    .describe('A YAML file with more webhooks, a list like webhooks. Read again when it changes; may be missing.'),
  cameras: z.array(CameraFile).default([]).describe('The cameras. Cameras of all files are added together.'),
});

type ParsedFile = z.output<typeof ConfigFile>;
type ParsedCamera = ParsedFile['cameras'][number];

export type Role = z.output<typeof TokenFile>['role'];
export type TokenConfig = DeepReadonly<z.output<typeof TokenFile>>;
export type UserConfig = DeepReadonly<z.output<typeof UserFile>>;
export type IssuerConfig = DeepReadonly<z.output<typeof IssuerFile>>;
export type WebhookConfig = DeepReadonly<z.output<typeof WebhookFile>>;

/** Lists that may come from separate files. */
export interface NamedLists {
  readonly tokens: readonly TokenConfig[];
  readonly users: readonly UserConfig[];
  readonly issuers: readonly IssuerConfig[];
  readonly webhooks: readonly WebhookConfig[];
}

/** The configuration of a recorder. */
export type Config = DeepReadonly<ReturnType<typeof toConfig>>;

/** Converts a parsed file: names with units, megabits to bits. Other keys keep their names. */
export function toConfig(
  parsed: ParsedFile,
  nodeName: string,
  named: NamedLists = { tokens: [], users: [], issuers: [], webhooks: [] },
) {
  const { record_path: recordPath, metrics, log, audit, auth, archive, ptz, cluster, webhooks, ...same } = parsed;
  const { renewInterval: renewIntervalMs, ...sameOfCluster } = cluster;
  const defaults: CameraDefaults = {
    segmentDurationMs: archive.segmentDuration,
    maxBitrate: archive.maxBitrate * MEGABIT,
  };
  return {
    ...same,
    /** Never empty. */
    nodeName,
    recordPath,
    // Set even if the file has none: otherwise the removal of a key would not be noticed as a change.
    health: parsed.health,
    database: parsed.database,
    redis: parsed.redis,
    tls: parsed.tls,
    webhooksFile: parsed.webhooksFile,
    mail: parsed.mail,
    console: { site: parsed.console.site, timeZone: parsed.console.timeZone },
    metrics: { ...metrics, requireToken: metrics.requireToken || metrics.tokenSha256 !== undefined },
    log: {
      level: log.level,
      directory: log.directory === '' ? undefined : log.directory,
      maxFileBytes: log.maxFileSize,
      maxFiles: log.maxFiles,
    },
    audit: {
      directory: audit.directory || log.directory || join(parsed.workDir, 'audit'),
      maxAgeMs: audit.maxAge,
      maxBytes: audit.maxSize,
      views: audit.views,
      syslog: audit.syslog,
      otlp: audit.otlp,
    },
    auth: {
      ...auth,
      tokensFile: auth.tokensFile,
      /** Includes those of `tokensFile`. */
      tokens: [...auth.tokens, ...named.tokens],
      usersFile: auth.usersFile,
      /** Includes those of `usersFile`. */
      users: [...auth.users, ...named.users],
      issuersFile: auth.issuersFile,
      /** Includes those of `issuersFile`. */
      issuers: [...auth.issuers, ...named.issuers],
      /** The key of sessions that all nodes of a pool have; from the environment. */
      sessionKeyFile: undefined as string | undefined,
    },
    archive: {
      ...defaults,
      syncIntervalMs: archive.syncInterval,
      disks: archive.disks,
      retention: archive.retention,
      protectForMs: archive.protectFor,
      targets: archive.targets,
      copies: archive.copies,
    },
    ptz: { moveTimeoutMs: ptz.moveTimeout },
    cluster: { ...sameOfCluster, renewIntervalMs },
    /** Includes those of `webhooksFile`, after the others. */
    webhooks: [...webhooks, ...named.webhooks],
    cameras: parsed.cameras.map((camera) => toCameraConfig(camera, defaults)),
  };
}

/** Defaults for cameras that do not set a value. */
export interface CameraDefaults {
  readonly segmentDurationMs: number;
  /** Bits a second. */
  readonly maxBitrate: number;
}

/** One camera. `source`, `preview.source`, `snapshot`, `onvif` and `edge.replay` may contain a password. */
export type CameraConfig = DeepReadonly<ReturnType<typeof toCameraConfig>>;

export function toCameraConfig({ maxBitrate, record, ...same }: ParsedCamera, defaults: CameraDefaults) {
  return {
    ...same,
    name: same.name ?? same.id,
    preview: same.preview,
    snapshot: same.snapshot,
    onvif: same.onvif,
    edge: same.edge,
    /** Bits a second. */
    maxBitrate: maxBitrate === undefined ? defaults.maxBitrate : maxBitrate * MEGABIT,
    record: {
      format: record.format,
      segmentDurationMs: record.segmentDuration ?? defaults.segmentDurationMs,
      retention: record.retention,
    },
  };
}

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;
