// The key with which this node signs manifests: Ed25519 (RFC 8032), created at the first start in a directory that no other
// user can read. With the public key, anyone can check that this node made an export.

import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';

/** The key cannot be used; the message names the file and says what to do. */
export class NodeKeyError extends Error {
  override readonly name = 'NodeKeyError';
}

export class NodeKey {
  readonly #key: KeyObject;
  /** PEM, SubjectPublicKeyInfo (RFC 8410). */
  readonly publicKey: string;
  /** SHA-256 of the public key in DER, hex. */
  readonly fingerprint: string;

  private constructor(key: KeyObject) {
    this.#key = key;
    const shown = createPublicKey(key);
    this.publicKey = shown.export({ type: 'spki', format: 'pem' }).toString();
    this.fingerprint = fingerprintOf(shown);
  }

  /** Creates the key when there is none. Rejects with NodeKeyError. */
  static async open(directory: string): Promise<NodeKey> {
    const path = join(directory, 'key.pem');
    const refuse = (problem: string): NodeKeyError => new NodeKeyError(`${path} ${problem}`);
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const kept = await readPrivate(path, refuse);
      if (kept !== undefined) return new NodeKey(readKey(kept, refuse));
      const { privateKey } = generateKeyPairSync('ed25519');
      await writePrivate(path, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
      return new NodeKey(privateKey);
    } catch (err) {
      if (err instanceof NodeKeyError) throw err;
      throw refuse(`cannot be created (${(err as NodeJS.ErrnoException).code ?? String(err)})`);
    }
  }

  /** 64 bytes. */
  sign(text: Uint8Array): Buffer {
    return sign(null, text, this.#key);
  }
}

/** The key of a node, opened when it is needed. After a failure, the next call tries again. */
export class SigningKey {
  readonly #directory: string;
  readonly #log: Log;
  #opened: Promise<NodeKey> | undefined;
  #trouble: string | undefined;

  constructor(directory: string, log: Log) {
    this.#directory = directory;
    this.#log = log;
  }

  /** Why the key could not be used the last time. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Rejects with NodeKeyError. */
  get(): Promise<NodeKey> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  async #open(): Promise<NodeKey> {
    try {
      const key = await NodeKey.open(this.#directory);
      this.#log.info({ fingerprint: key.fingerprint }, 'the key that signs exports is in use');
      this.#trouble = undefined;
      return key;
    } catch (err) {
      this.#opened = undefined;
      if (err instanceof NodeKeyError) {
        if (this.#trouble !== err.message) this.#log.error({ reason: err.message }, 'exports cannot be signed');
        this.#trouble = err.message;
      }
      throw err;
    }
  }
}

/** The fingerprint that `openssl pkey -pubin -outform DER | sha256sum` shows. */
export const fingerprintOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex');

function readKey(pem: string, refuse: (problem: string) => NodeKeyError): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(pem);
  } catch {
    // the error is thrown below
  }
  if (key?.asymmetricKeyType !== 'ed25519') throw refuse('is not an Ed25519 key: restore the right one, or remove it');
  return key;
}
