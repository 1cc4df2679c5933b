// Checks that an export or a case is as the node made it. Only signed data are trusted: the position of each movie in a ZIP
// file, and each byte around it, follow from the manifest.

import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { errorCode } from '../../base/error.ts';
import { readFully } from '../../base/file-calls.ts';
import { MANIFEST_NAME, Manifest, SIGNATURE_BYTES, SIGNATURE_NAME, type ManifestFile } from './manifest.ts';
import { fingerprintOf } from './node-key.ts';
import { contradictionsOf } from './verify-manifest.ts';
import { centralDirectory, findEntry, looksLikeZip, localHeader, localHeaderBytes, type ZipEntry } from './zip.ts';

interface VerifyRequest {
  /** A movie or a ZIP file. */
  readonly path: string;
  /**
   * The manifest, if the ZIP file has none; `<path>.manifest.json` by default. Its signature has the additional suffix
   * `.sig`.
   */
  readonly manifest?: string | undefined;
  /** The expected signer: a public key (PEM), or the fingerprint of one. */
  readonly key?: KeyObject | undefined;
  readonly fingerprint?: string | undefined;
}

interface Verdict {
  /** Checks that passed, one line each. */
  readonly right: readonly string[];
  /** Checks that failed, one line each. */
  readonly wrong: readonly string[];
}

/** The check is not possible; the message says why. */
export class VerifyError extends Error {
  override readonly name = 'VerifyError';
}

/** No manifest of a recorder is larger: a case has at most 64 cameras. */
const MAX_MANIFEST_BYTES = 64 * 1024 * 1024;

interface Signed {
  readonly text: Buffer;
  readonly signature: Buffer;
  /** It is part of the ZIP file. */
  readonly isInside: boolean;
}

/** Throws VerifyError. */
export async function verifyResult(request: VerifyRequest): Promise<Verdict> {
  const file = await opened(request.path);
  try {
    const { size } = await file.stat();
    const isZip = await looksLikeZip(readerOf(file), size);
    const signed = await signedOf(file, size, isZip, request);
    const found = new Findings();
    const manifest = checkSignature(signed, request, found);
    if (!manifest) return found;
    for (const problem of contradictionsOf(manifest)) found.wrong.push(`the manifest contradicts itself: ${problem}`);
    await (isZip
      ? checkZip(request.path, file, size, manifest, signed, found)
      : checkMovie(request.path, size, manifest, found));
    for (const camera of manifest.cameras) found.right.push(aboutCamera(camera));
    return found;
  } finally {
    await file.close();
  }
}

class Findings implements Verdict {
  readonly right: string[] = [];
  readonly wrong: string[] = [];
}

async function opened(path: string): Promise<FileHandle> {
  try {
    const file = await open(path, 'r');
    if ((await file.stat()).isFile()) return file;
    await file.close();
  } catch (err) {
    throw new VerifyError(`${path} cannot be read (${errorCode(err) ?? String(err)})`, { cause: err });
  }
  throw new VerifyError(`${path} is not a file`);
}

type ReadAt = (offset: number, length: number) => Promise<Buffer>;

/** Fewer bytes only at the end of the file. */
const readerOf =
  (file: FileHandle): ReadAt =>
  async (offset, length) => {
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, await readFully(file.fd, buffer, offset));
  };

async function signedOf(file: FileHandle, size: number, isZip: boolean, request: VerifyRequest): Promise<Signed> {
  const read = readerOf(file);
  if (isZip && request.manifest === undefined) {
    const [text, signature] = await Promise.all(
      [MANIFEST_NAME, SIGNATURE_NAME].map(async (name) => {
        const entry = await findEntry(read, size, name);
        return entry && entry.size <= MAX_MANIFEST_BYTES ? read(entry.offset, entry.size) : undefined;
      }),
    );
    if (text) return { text, signature: signature ?? Buffer.alloc(0), isInside: true };
  }
  const path = request.manifest ?? `${request.path}.manifest.json`;
  const [text, signature] = [await contentsOf(path), await contentsOf(`${path}.sig`)];
  return { text, signature, isInside: false };
}

async function contentsOf(path: string): Promise<Buffer> {
  const file = await opened(path);
  try {
    if ((await file.stat()).size > MAX_MANIFEST_BYTES) throw new VerifyError(`${path} is too large for a manifest`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Undefined if the manifest cannot be used. */
function checkSignature({ text, signature }: Signed, request: VerifyRequest, found: Findings): Manifest | undefined {
  let manifest: Manifest;
  let own: KeyObject;
  try {
    manifest = Manifest.parse(JSON.parse(text.toString()));
    own = createPublicKey(manifest.key.public_key);
  } catch {
    // It is not a key.
    found.wrong.push('the manifest is damaged, or the file is not a manifest');
    return undefined;
  }
  const key = request.key ?? own;
  const fingerprint = fingerprintOf(key);
  if (signature.length !== SIGNATURE_BYTES || !isEd25519(key) || !verify(null, text, key, signature)) {
    found.wrong.push(
      `the signature is not one of key ${fingerprint} over this manifest: the manifest or the signature was changed`,
    );
  } else {
    found.right.push(`the manifest was signed with key ${fingerprint} and has not been changed since`);
    found.right.push(
      `made by node ${manifest.node} with ${manifest.software} at ${manifest.made_at}, according to the manifest`,
    );
  }
  const wanted = request.fingerprint ?? (request.key && fingerprint);
  if (fingerprintOf(own) !== manifest.key.fingerprint)
    found.wrong.push('the fingerprint in the manifest does not match its key');
  else if (wanted === undefined) return manifest;
  else if (wanted !== manifest.key.fingerprint || wanted !== fingerprint) {
    found.wrong.push(`the manifest was signed with key ${manifest.key.fingerprint}, not with ${wanted}`);
  } else found.right.push('that is the expected key');
  return manifest;
}

const isEd25519 = ({ asymmetricKeyType }: KeyObject): boolean => asymmetricKeyType === 'ed25519';

async function checkMovie(path: string, size: number, manifest: Manifest, found: Findings): Promise<void> {
  const files = manifest.cameras.flatMap((camera) => camera.files);
  const [only] = files;
  if (!only || files.length > 1) {
    found.wrong.push(`the manifest is for a ZIP file of ${files.length} movies, but this is not a ZIP file`);
    return;
  }
  if (size !== only.size_bytes) {
    found.wrong.push(`${only.name}: ${size} bytes, but ${only.size_bytes} in the manifest`);
  }
  checkDigest(only, await digest(path, 0, size), found);
}

function checkDigest(
  { name, sha256, size_bytes }: Pick<ManifestFile, 'name' | 'sha256' | 'size_bytes'>,
  seen: Digest,
  found: Findings,
): void {
  if (seen.sha256 === sha256) found.right.push(`${name}: ${size_bytes} bytes, SHA-256 ${sha256}`);
  else found.wrong.push(`${name}: SHA-256 ${seen.sha256}, but ${sha256} in the manifest: the file was changed`);
}

interface Digest {
  readonly sha256: string;
  readonly crc32: number;
}

async function digest(path: string, start: number, length: number): Promise<Digest> {
  const hash = createHash('sha256');
  let crc = 0;
  if (length > 0) {
    for await (const block of createReadStream(path, { start, end: start + length - 1, highWaterMark: 1 << 20 })) {
      hash.update(block as Buffer);
      crc = crc32(block as Buffer, crc);
    }
  }
  return { sha256: hash.digest('hex'), crc32: crc };
}

/** Compares every byte with what the recorder writes for this manifest. */
async function checkZip(
  path: string,
  file: FileHandle,
  size: number,
  manifest: Manifest,
  { text, signature, isInside }: Signed,
  found: Findings,
): Promise<void> {
  const read = readerOf(file);
  const entries: ZipEntry[] = [];
  let end = 0;
  const enter = async (entry: Omit<ZipEntry, 'offset'>): Promise<void> => {
    const header = localHeader({ ...entry, offset: end });
    if (!header.equals(await read(end, header.length))) {
      found.wrong.push(`${entry.name}: its header in the ZIP file was changed`);
    }
    entries.push({ ...entry, offset: end });
    end += header.length + entry.size;
  };
  for (const movie of manifest.cameras.flatMap(({ files }) => files)) {
    const { name, size_bytes: bytes, from } = movie;
    const seen = await digest(path, end + localHeaderBytes(name), bytes);
    checkDigest(movie, seen, found);
    await enter({ name, size: bytes, crc32: seen.crc32, modified: new Date(from) });
  }
  for (const { name, size_bytes: bytes, sha256 } of manifest.documents ?? []) {
    const seen = await digest(path, end + localHeaderBytes(name), bytes);
    checkDigest({ name, size_bytes: bytes, sha256 }, seen, found);
    await enter({ name, size: bytes, crc32: seen.crc32, modified: new Date(manifest.made_at) });
  }
  for (const [name, bytes] of isInside
    ? ([
        [MANIFEST_NAME, text],
        [SIGNATURE_NAME, signature],
      ] as const)
    : []) {
    const actual = await read(end + localHeaderBytes(name), bytes.length);
    if (!bytes.equals(actual)) found.wrong.push(`${name} is not at its position in the ZIP file`);
    await enter({ name, size: bytes.length, crc32: crc32(bytes), modified: new Date(manifest.made_at) });
  }
  const directory = centralDirectory(entries, end);
  if (size !== end + directory.length) {
    found.wrong.push(`the ZIP file has ${size} bytes, but ${end + directory.length} were written`);
  }
  if (!directory.equals(await read(end, directory.length))) {
    found.wrong.push('the directory of the ZIP file was changed');
  }
}

function aboutCamera({ camera_id, files, gaps }: Manifest['cameras'][number]): string {
  const seconds = Math.round(files.reduce((sum, file) => sum + file.duration_seconds, 0) * 1000) / 1000;
  const missingMs = gaps.reduce((sum, { from, to }) => sum + Date.parse(to) - Date.parse(from), 0);
  const missing =
    gaps.length === 0 ? 'no gaps' : `${gaps.length === 1 ? '1 gap' : `${gaps.length} gaps`} of ${missingMs / 1000} s`;
  return `camera ${camera_id}: ${files.length === 0 ? 'no footage' : `${seconds} s of movie`}, ${missing}`;
}
