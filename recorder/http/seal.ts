// Seals short texts that clients keep for the recorders, such as sessions: nobody else can read, make or change them. They are encrypted
// (AES-256-GCM, NIST SP 800-38D) with a key that the nodes of a cluster share, and signed (Ed25519, RFC 8032) with a key that only the
// node has that sealed them: the files of one node make nothing in the name of another.

import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  randomBytes,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../base/parse-json.ts';

const ALGORITHM = 'aes-256-gcm';
export const SEAL_KEY_BYTES = 32;
/** A random one may be used 2^32 times with a key (§8.3): one each second for a century. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SIGNATURE_BYTES = 64;
/** A cookie has at most 4 KiB; a link may hold a longer token. */
const MAX_LENGTH = 8192;
/** To check a signature takes longer than many a request with it: those that were right are remembered. */
const MAX_REMEMBERED = 1_000;
/** An Ed25519 key in PKCS #8 (RFC 8410 §7), up to its 32 bytes. */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** `by`: the node that sealed the text; `from`: the node on whose word the text rests. */
const Sealed = z.strictObject({ by: z.string(), from: z.string(), text: z.string() });
type Sealed = z.output<typeof Sealed>;

/** With the public key that has signed it. */
type Verified = Sealed & { readonly signedWith: string };

interface OpenedText {
  readonly text: string;
  readonly from: string;
  /** The other node that vouches for the text; undefined if this node does. */
  readonly vouchedBy: string | undefined;
}

type OpenedData<T> = Omit<OpenedText, 'text'> & { readonly data: T };

interface SealOptions {
  readonly nodeId: string;
  /** Known to this node only. */
  readonly secret: Buffer;
  /** Of all nodes that may read what this one seals; by default, the secret. */
  readonly key?: Buffer | undefined;
  /** The public key of another member of the cluster, as `publicKeyOf` gives it; undefined for a node that is none. */
  readonly memberKey?: ((nodeId: string) => string | undefined) | undefined;
}

const signingKey = (secret: Buffer): KeyObject => {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', 'signs sessions', SEAL_KEY_BYTES));
  return createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
};

/** What others check the signatures of the node with this secret by: 32 bytes, base64url. */
export const publicKeyOf = (secret: Buffer): string =>
  String(createPublicKey(signingKey(secret)).export({ format: 'jwk' }).x);

export class Seal {
  readonly nodeId: string;
  readonly #signing: KeyObject;
  readonly #public: string;
  readonly #memberKey: (nodeId: string) => string | undefined;
  /** What was opened last, oldest first. */
  readonly #remembered = new Map<string, Verified>();
  #key: Buffer;

  constructor({ nodeId, secret, key = secret, memberKey = () => undefined }: SealOptions) {
    this.nodeId = nodeId;
    this.#key = key;
    this.#signing = signingKey(secret);
    this.#public = publicKeyOf(secret);
    this.#memberKey = memberKey;
  }

  /** Returns whether the key is another one: what was sealed before can then not be opened any more. */
  replaceKey(key: Buffer): boolean {
    if (this.#key.equals(key)) return false;
    this.#key = key;
    this.#remembered.clear();
    return true;
  }

  /**
   * `purpose`: what is sealed for one purpose cannot be opened for another. `from`: the node whose text this one only passes on; the text
   * ends with the membership of that node, too. Base64url.
   */
  close(purpose: string, text: string, from = this.nodeId): string {
    const body = Buffer.from(JSON.stringify({ by: this.nodeId, from, text } satisfies Sealed));
    const signature = sign(null, signedBytes(purpose, body), this.#signing);
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(additional(purpose));
    const sealed = Buffer.concat([cipher.update(signature), cipher.update(body), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Undefined for what was not sealed with this key, for this purpose, by and from nodes that are members now. */
  open(purpose: string, sealed: string): OpenedText | undefined {
    if (sealed.length > MAX_LENGTH) return undefined;
    const place = `${purpose} ${sealed}`;
    const known = this.#remembered.get(place) ?? this.#verified(purpose, sealed);
    if (!known) return undefined;
    const { by, from, text, signedWith } = known;
    if (this.#publicKey(by) !== signedWith || this.#publicKey(from) === undefined) return undefined;
    this.#remembered.set(place, known);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > MAX_REMEMBERED) this.#remembered.delete(oldest as string);
    return { text, from, vouchedBy: [by, from].find((nodeId) => nodeId !== this.nodeId) };
  }

  /** What is sealed there as JSON of this shape; undefined for another one, without a text, and where `open` is. */
  read<T extends z.ZodType>(
    purpose: string,
    sealed: string | undefined,
    schema: T,
  ): OpenedData<z.output<T>> | undefined {
    const opened = sealed === undefined ? undefined : this.open(purpose, sealed);
    if (!opened) return undefined;
    const { data, success } = schema.safeParse(parseJson(opened.text));
    return success ? { data, from: opened.from, vouchedBy: opened.vouchedBy } : undefined;
  }

  #publicKey(nodeId: string): string | undefined {
    return nodeId === this.nodeId ? this.#public : this.#memberKey(nodeId);
  }

  #verified(purpose: string, sealed: string): Verified | undefined {
    const opened = this.#decrypted(purpose, Buffer.from(sealed, 'base64url'));
    if (!opened) return undefined;
    const body = opened.subarray(SIGNATURE_BYTES);
    // Only nodes have the key, but one of them may have been taken over.
    const { data } = Sealed.safeParse(parseJson(body.toString()));
    const signedWith = data && this.#publicKey(data.by);
    if (!data || signedWith === undefined) return undefined;
    const isRight = isSignedWith(signedWith, signedBytes(purpose, body), opened.subarray(0, SIGNATURE_BYTES));
    return isRight ? { ...data, signedWith } : undefined;
  }

  #decrypted(purpose: string, bytes: Buffer): Buffer | undefined {
    const body = bytes.subarray(NONCE_BYTES + TAG_BYTES);
    if (body.length <= SIGNATURE_BYTES) return undefined;
    try {
      const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(additional(purpose))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([decipher.update(body), decipher.final()]);
    } catch {
      // It was not sealed with this key, or was changed since.
      return undefined;
    }
  }
}

/** Versions that signed nothing used the purpose alone: neither opens what the other sealed. */
const additional = (purpose: string): Buffer => Buffer.from(`signed ${purpose}`);

const signedBytes = (purpose: string, body: Buffer): Buffer => Buffer.concat([Buffer.from(`${purpose}\0`), body]);

function isSignedWith(publicKey: string, bytes: Buffer, signature: Buffer): boolean {
  try {
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
    return verify(null, bytes, key, signature);
  } catch {
    // The node has reported what is no key.
    return false;
  }
}
