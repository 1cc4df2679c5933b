// The keys of a cluster. They encrypt Secrets before these are stored (AES-256-GCM, NIST SP 800-38D). Values are sealed with the
// first key; values that were sealed with another one can be opened.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { NodeFileError } from './node-files.ts';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
/** A random nonce may be used 2^32 times with a key (§8.3): Secrets change far less often. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const ID_BYTES = 4;
/** The first bytes of a sealed value; the key's id, the nonce, the tag and the text follow. */
const MARK = Buffer.from('nvr1');

const Keys = z
  .array(
    z.strictObject({
      /** Hexadecimal digits. */
      id: z.string().regex(/^[0-9a-f]{8}$/),
      /** Base64. */
      key: z.string().refine((text) => Buffer.from(text, 'base64').length === KEY_BYTES),
    }),
  )
  .min(1);

/** A value cannot be opened. The message contains nothing of the value. */
export class SealError extends Error {
  override readonly name = 'SealError';
}

export class KeyRing {
  /** By id, in order. */
  readonly #keys: ReadonlyMap<string, Buffer>;

  private constructor(keys: ReadonlyMap<string, Buffer>) {
    this.#keys = keys;
  }

  static new(): KeyRing {
    return new KeyRing(new Map([newKey()]));
  }

  /** From the text of a file. Throws NodeFileError. */
  static parse(text: string): KeyRing {
    let parsed;
    try {
      parsed = Keys.parse(JSON.parse(text));
    } catch {
      // The parser's words would quote the keys.
      throw new NodeFileError('the keys of the cluster are damaged: join the cluster again');
    }
    return new KeyRing(new Map(parsed.map(({ id, key }) => [id, Buffer.from(key, 'base64')])));
  }

  get ids(): readonly string[] {
    return [...this.#keys.keys()];
  }

  /** The same with a new key at the end: it seals nothing yet. */
  grown(): KeyRing {
    return new KeyRing(new Map([...this.#keys, newKey()]));
  }

  /** The same with the keys of the other that it lacks, at the end. */
  with(other: KeyRing): KeyRing {
    return new KeyRing(new Map([...this.#keys, ...[...other.#keys].filter(([id]) => !this.#keys.has(id))]));
  }

  /** The same with the keys in this order; those that are not named come last. */
  ordered(ids: readonly string[]): KeyRing {
    const place = ([id]: readonly [string, Buffer]): number => (ids.includes(id) ? ids.indexOf(id) : ids.length);
    return new KeyRing(new Map([...this.#keys].toSorted((a, b) => place(a) - place(b))));
  }

  /** The text of a file that only its owner may read. */
  format(): string {
    const keys = Array.from(this.#keys, ([id, key]) => ({ id, key: key.toString('base64') }));
    return `${JSON.stringify(keys)}\n`;
  }

  /** `name`: where the value is stored; it can be opened only under this name. */
  seal(plain: Buffer, name: string): Buffer {
    const [first] = this.#keys;
    const [id, key] = first as [string, Buffer];
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(name));
    const body = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([MARK, Buffer.from(id, 'hex'), nonce, cipher.getAuthTag(), body]);
  }

  /** Throws SealError. */
  open(sealed: Buffer, name: string): Buffer {
    const body = MARK.length + ID_BYTES + NONCE_BYTES + TAG_BYTES;
    if (sealed.length < body || !sealed.subarray(0, MARK.length).equals(MARK)) {
      throw new SealError(`${name} is not encrypted with a key of the cluster`);
    }
    const id = sealed.toString('hex', MARK.length, MARK.length + ID_BYTES);
    const key = this.#keys.get(id);
    if (!key) throw new SealError(`${name} is encrypted with the key ${id}, which this node does not have`);
    const nonceAt = MARK.length + ID_BYTES;
    const tagAt = nonceAt + NONCE_BYTES;
    try {
      const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(nonceAt, tagAt), { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(name))
        .setAuthTag(sealed.subarray(tagAt, body));
      return Buffer.concat([decipher.update(sealed.subarray(body)), decipher.final()]);
    } catch (cause) {
      throw new SealError(`${name} was changed since it was encrypted`, { cause });
    }
  }
}

const newKey = (): [string, Buffer] => [randomBytes(ID_BYTES).toString('hex'), randomBytes(KEY_BYTES)];
