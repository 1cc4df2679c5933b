// Signs and verifies licences: statements of a vendor in the form of a JSON Web Signature, in the compact serialization of RFC
// 7515, signed with Ed25519 (RFC 8037 §3.1).

import { createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { DAY_MS } from '../../base/units.ts';
import { CodedError } from '../../base/error.ts';

const Day = z.iso.date({ error: 'expected a day such as 2027-12-31' });

/** The signed content. Unknown members are ignored; later versions may add some. */
const Statement = z.object({
  /** To whom the licence was issued. */
  holder: z.string().min(1).max(200),
  /** How many cameras a node may record. */
  cameras: z.number().int().nonnegative(),
  /** The last day of validity, in UTC. Without it the licence does not expire. */
  expires: Day.optional(),
  issued: Day.optional(),
  features: z.array(z.string().min(1).max(100)).default([]),
});

export type LicenseStatement = Readonly<z.output<typeof Statement>>;

/** `license-malformed`: not a licence; `license-forged`: not signed with the key. */
export type LicenseErrorCode = 'license-malformed' | 'license-forged';

export class LicenseError extends CodedError<LicenseErrorCode> {
  override readonly name = 'LicenseError';
}

const HEADER = { alg: 'EdDSA', typ: 'kube-nvr-license' } as const;
const Header = z.object({ alg: z.literal(HEADER.alg), typ: z.literal(HEADER.typ), crit: z.undefined().optional() });

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Throws LicenseError if the statement is invalid. */
export function signLicense(statement: z.input<typeof Statement>, privateKey: KeyObject): string {
  const payload = `${encode(HEADER)}.${encode(checked(Statement, statement))}`;
  return `${payload}.${sign(null, Buffer.from(payload), privateKey).toString('base64url')}`;
}

/** Throws LicenseError. White space anywhere in the text is ignored. */
export function verifyLicense(text: string, publicKey: KeyObject): LicenseStatement {
  const { payload, signature, statement } = split(text);
  if (!verify(null, Buffer.from(payload), publicKey, signature)) {
    throw new LicenseError('license-forged', 'the licence was not signed with license.publicKey');
  }
  return statement();
}

/** Reads a licence without verifying its signature. Throws LicenseError. */
export const readUnverified = (text: string): LicenseStatement => split(text).statement();

function split(text: string): { payload: string; signature: Buffer; statement: () => LicenseStatement } {
  const parts = text.replaceAll(/\s+/g, '').split('.');
  if (parts.length !== 3) throw new LicenseError('license-malformed', 'this is not a licence');
  const [header, body, signature] = parts as [string, string, string];
  checked(Header, decode(header));
  return {
    payload: `${header}.${body}`,
    signature: Buffer.from(signature, 'base64url'),
    statement: () => checked(Statement, decode(body)),
  };
}

function decode(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString('utf8')) as unknown;
  } catch (err) {
    throw new LicenseError('license-malformed', 'this is not a licence', { cause: err });
  }
}

function checked<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join('.') ?? '';
  throw new LicenseError('license-malformed', `the content is not valid: ${field}: ${issue?.message}`);
}

/** The instant at which the licence expires, in milliseconds since 1970; Infinity if it does not. */
export const expiryMs = ({ expires }: Pick<LicenseStatement, 'expires'>): number =>
  expires === undefined ? Infinity : Date.parse(`${expires}T00:00:00Z`) + DAY_MS;

/** The DER prefix of an Ed25519 key: SubjectPublicKeyInfo (RFC 8410 §4). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const KEY_BYTES = 32;

/** Parses an Ed25519 public key: its 32 bytes in base64 (RFC 8032), or PEM. Undefined if the text is neither. */
export function parsePublicKey(text: string): KeyObject | undefined {
  try {
    if (text.includes('-----BEGIN')) {
      const key = createPublicKey(text);
      return key.asymmetricKeyType === 'ed25519' ? key : undefined;
    }
    const bytes = Buffer.from(text.trim(), 'base64');
    if (bytes.length !== KEY_BYTES) return undefined;
    return createPublicKey({ key: Buffer.concat([SPKI_PREFIX, bytes]), format: 'der', type: 'spki' });
  } catch {
    // These bytes are not a key.
    return undefined;
  }
}

/** The 32 bytes of the key in base64, the format of `license.publicKey`. */
export const formatPublicKey = (key: KeyObject): string =>
  key.export({ format: 'der', type: 'spki' }).subarray(SPKI_PREFIX.length).toString('base64');
