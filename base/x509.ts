// Certificates that the project makes itself: keys, requests, a CA and the certificates it signs. All are PEM, ECDSA on P-256
// with SHA-256 (RFC 5280, RFC 2986). Import it only where a certificate is made: its library costs a process 20 MB.

import 'reflect-metadata';
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  type KeyObject,
  type webcrypto,
} from 'node:crypto';
import { isIP } from 'node:net';
import * as x509 from '@peculiar/x509';
import { RequestError } from './error.ts';

/** A CA. Both fields are PEM; the key is PKCS #8. */
export interface Authority {
  readonly certificate: string;
  readonly key: string;
}

/** The subject and validity of a certificate. Times are milliseconds since 1970. */
interface Subject {
  readonly commonName: string;
  /** DNS names, IP addresses and URIs of the holder (subjectAltName), in any order. */
  readonly names: readonly string[];
  readonly fromMs: number;
  readonly toMs: number;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** ub-common-name of X.520: some programs refuse longer names. */
const MAX_COMMON_NAME = 64;

export function newKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
}

/** Makes a self-signed server certificate. */
export async function selfSigned(key: string, subject: Subject): Promise<string> {
  const keys = await pairOf(key);
  return pem(
    await x509.X509CertificateGenerator.create({
      ...common(subject),
      issuer: nameOf(subject.commonName),
      publicKey: keys.publicKey,
      signingKey: keys.privateKey,
      // Not a CA: a client that trusts this certificate trusts this server only.
      extensions: await extensionsOf(subject, keys.publicKey, keys.publicKey, [x509.ExtendedKeyUsage.serverAuth]),
    }),
  );
}

export async function newAuthority(subject: Omit<Subject, 'names'>): Promise<Authority> {
  const key = newKey();
  const { publicKey, privateKey } = await pairOf(key);
  const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign;
  const certificate = await x509.X509CertificateGenerator.create({
    ...common(subject),
    issuer: nameOf(subject.commonName),
    publicKey,
    signingKey: privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(usages, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  });
  return { certificate: pem(certificate), key };
}

/** Makes a PKCS #10 request. It proves possession of the key and names nothing: the signer chooses the names. */
export async function newRequest(key: string): Promise<string> {
  const keys = await pairOf(key);
  return pem(
    await x509.Pkcs10CertificateRequestGenerator.create({ name: 'CN=recorder', keys, signingAlgorithm: ALGORITHM }),
  );
}

/** Signs a certificate for a server that also acts as a client. Throws RequestError. */
export async function signRequest(request: string, authority: Authority, subject: Subject): Promise<string> {
  const publicKey = await publicKeyIn(request);
  const ca = await pairOf(authority.key);
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  return pem(
    await x509.X509CertificateGenerator.create({
      ...common(subject),
      issuer: new x509.X509Certificate(authority.certificate).subjectName,
      publicKey,
      signingKey: ca.privateKey,
      extensions: await extensionsOf(subject, publicKey, ca.publicKey, [serverAuth, clientAuth]),
    }),
  );
}

async function publicKeyIn(request: string): Promise<webcrypto.CryptoKey> {
  try {
    const parsed = new x509.Pkcs10CertificateRequest(request);
    const key = createPublicKey({ key: Buffer.from(parsed.publicKey.rawData), format: 'der', type: 'spki' });
    if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
      throw new RequestError('its key is not on the curve P-256');
    if (!(await parsed.verify())) throw new RequestError('its signature was not made with its key');
    return await toCryptoKey(key, 'verify');
  } catch (cause) {
    if (cause instanceof RequestError) throw cause;
    throw new RequestError('it is not a certificate request in PEM', { cause });
  }
}

const common = ({ commonName, fromMs, toMs }: Omit<Subject, 'names'>) => ({
  // Positive and not zero, 127 bits (RFC 5280 §4.1.2.2).
  serialNumber: ((randomBytes(16).readUInt8() & 0x3f) | 0x40).toString(16) + randomBytes(15).toString('hex'),
  subject: nameOf(commonName),
  notBefore: new Date(fromMs),
  notAfter: new Date(toMs),
  signingAlgorithm: ALGORITHM,
});

const nameOf = (commonName: string): x509.Name =>
  new x509.Name([{ CN: [{ utf8String: commonName.slice(0, MAX_COMMON_NAME) }] }]);

async function extensionsOf(
  { names }: Subject,
  publicKey: webcrypto.CryptoKey,
  issuerKey: webcrypto.CryptoKey,
  usages: string[],
): Promise<x509.Extension[]> {
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(usages),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuerKey),
    new x509.SubjectAlternativeNameExtension(
      [...new Set(names)].map((value) => ({
        type: isIP(value) ? ('ip' as const) : value.includes('://') ? ('url' as const) : ('dns' as const),
        value,
      })),
    ),
  ];
}

async function pairOf(key: string): Promise<webcrypto.CryptoKeyPair> {
  const [privateKey, publicKey] = await Promise.all([
    toCryptoKey(createPrivateKey(key), 'sign'),
    toCryptoKey(createPublicKey(key), 'verify'),
  ]);
  return { privateKey, publicKey };
}

const toCryptoKey = async (key: KeyObject, usage: 'sign' | 'verify'): Promise<webcrypto.CryptoKey> =>
  key.toCryptoKey(ALGORITHM, usage === 'verify', [usage]);

const pem = (made: { toString(format: 'pem'): string }): string => `${made.toString('pem')}\n`;
