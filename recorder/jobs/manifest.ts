// The manifest of a result: its files with their hashes, the window, footage and gaps of each camera, and which node made
// it when. It lets others check the result later. It is text and signed as text: openssl and sha256sum are enough to check
// it.

import { z } from 'zod';
import { isoTime, partStart, seconds, startTime } from './facts.ts';
import type { JobCase, JobGap, JobKind } from './job.ts';
import { localTime, type LocalNames } from './movie-name.ts';
import type { NodeKey } from './node-key.ts';
import type { WrittenResult, WrittenCamera, WrittenMovie } from './written.ts';

const MANIFEST_FORMAT = 'kube-nvr-manifest-1';
/** File names in a ZIP file. */
export const MANIFEST_NAME = 'manifest.json';
export const SIGNATURE_NAME = 'manifest.json.sig';
/** Ed25519 (RFC 8032 §5.1.6). */
export const SIGNATURE_BYTES = 64;

const Time = z.iso.datetime({ precision: 3 });
const Stretch = z.object({ from: Time, to: Time });

const ManifestFile = Stretch.extend({
  name: z.string().min(1),
  size_bytes: z.number().int().positive(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  duration_seconds: z.number(),
  footage: z.array(
    Stretch.extend({ movie_from_seconds: z.number(), movie_to_seconds: z.number(), sound: z.string().optional() }),
  ),
});

const ManifestCamera = z.object({
  camera_id: z.string(),
  name: z.string().optional(),
  files: z.array(ManifestFile),
  gaps: z.array(Stretch.extend({ cause: z.string().optional() })),
  reason_code: z.string().optional(),
  reason: z.string().optional(),
});

/** Fields may be added; existing fields stay. Times are UTC. */
export const Manifest = Stretch.extend({
  format: z.literal(MANIFEST_FORMAT),
  kind: z.enum(['export', 'timelapse', 'case']),
  name: z.string().optional(),
  number: z.string().optional(),
  case_reason: z.string().optional(),
  notes: z.string().optional(),
  by: z.string().optional(),
  site: z.string().optional(),
  time_zone: z.string().optional(),
  local_from: z.string().optional(),
  local_to: z.string().optional(),
  speed: z.number().optional(),
  made_at: Time,
  software: z.string(),
  node: z.string(),
  key: z.object({
    algorithm: z.literal('Ed25519'),
    fingerprint: z.string().regex(/^[0-9a-f]{64}$/),
    public_key: z.string(),
  }),
  cameras: z.array(ManifestCamera).min(1),
  documents: z
    .array(z.object({ name: z.string().min(1), size_bytes: z.number().int(), sha256: z.string() }))
    .optional(),
});
export type Manifest = z.output<typeof Manifest>;
export type ManifestCamera = z.output<typeof ManifestCamera>;
export type ManifestFile = z.output<typeof ManifestFile>;

interface ManifestAbout {
  readonly kind: JobKind | 'case';
  readonly of?: JobCase | undefined;
  readonly by?: string | undefined;
  readonly local?: LocalNames | undefined;
  readonly speed?: number | undefined;
  readonly madeMs: number;
  readonly version: string;
  readonly node: string;
}

export interface SignedManifest {
  /** UTF-8. */
  readonly text: Buffer;
  readonly signature: Buffer;
  /** When it was made. */
  readonly madeMs: number;
}

export function signManifest(
  { kind, of, by, local, speed, madeMs, version, node }: ManifestAbout,
  { window, cameras, documents }: Omit<WrittenResult, 'outcome'>,
  key: NodeKey,
): SignedManifest {
  const madeAtMs = Math.round(madeMs);
  const manifest: Manifest = {
    format: MANIFEST_FORMAT,
    kind,
    ...(of && { name: of.name, number: of.number, case_reason: of.reason, notes: of.notes, by }),
    ...(local && {
      site: local.site || undefined,
      time_zone: local.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
      local_from: localTime(window.fromMs, local),
      local_to: localTime(window.toMs, local),
    }),
    ...(speed === undefined ? {} : { speed }),
    from: isoTime(window.fromMs),
    to: isoTime(window.toMs),
    made_at: isoTime(madeAtMs),
    software: `kube-nvr ${version}`,
    node,
    key: { algorithm: 'Ed25519', fingerprint: key.fingerprint, public_key: key.publicKey },
    cameras: cameras.map((camera) => toCamera(camera, local)),
    ...(documents && {
      documents: documents.map(({ name, bytes, sha256 }) => ({ name, size_bytes: bytes.length, sha256 })),
    }),
  };
  const text = Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`);
  return { text, signature: key.sign(text), madeMs: madeAtMs };
}

const toCamera = (
  { cameraId, movies, gaps, reason, reasonCode }: WrittenCamera,
  local: LocalNames | undefined,
): ManifestCamera => ({
  camera_id: cameraId,
  ...(local && { name: local.nameOf(cameraId) }),
  files: movies.map(toFile),
  gaps: gaps.map(toGap),
  ...(reason === undefined ? {} : { reason_code: reasonCode, reason }),
});

const toFile = ({ name, sizeBytes, sha256, window, durationMs, footage }: WrittenMovie): ManifestFile => ({
  name,
  size_bytes: sizeBytes,
  sha256,
  from: startTime(window.fromMs),
  to: startTime(window.toMs),
  duration_seconds: seconds(durationMs),
  footage: footage.map((part) => ({
    from: partStart(part, window),
    to: isoTime(part.wallEndMs),
    movie_from_seconds: seconds(part.movieStartMs),
    movie_to_seconds: seconds(part.movieEndMs),
    ...(part.soundLeftOut ? { sound: 'left out' } : {}),
  })),
});

const toGap = ({ fromMs, toMs, cause }: JobGap) => ({
  from: isoTime(fromMs),
  to: isoTime(toMs),
  ...(cause === undefined ? {} : { cause }),
});
