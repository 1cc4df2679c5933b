// The key of a CA as the store of a cluster has it: a copy for each server with a vote, which only the key of that server's certificate
// opens (ECDH and HKDF, as in RFC 9180; AES-256-GCM). A server without a vote reads the store, and opens none.

import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hash,
  hkdfSync,
  X509Certificate,
  type KeyObject,
} from 'node:crypto';
import { authorityId, certificatesIn, type PublicAuthority } from '../../base/authorities.ts';

/** For a node; `to`: the id of the public key that it is sealed for. */
interface KeyCopy {
  readonly nodeId: string;
  readonly to: string;
  /** Base64. */
  readonly sealed: string;
}

/** A CA as the store of a cluster has it. */
export interface StoredAuthority extends PublicAuthority {
  /** Version 0.1 stores none. */
  readonly copies?: readonly KeyCopy[];
  /** As version 0.1 stores it, for all members; PEM. */
  readonly key?: string;
}

/** The certificate and key of this server, PEM. */
export interface OwnPair {
  readonly certificate: string;
  readonly key: string;
}

/** A server and its certificate, PEM. */
export interface Certified {
  readonly nodeId: string;
  readonly certificate: string;
}

/** A server with a vote, and the certificate that it says it has; undefined while it says none. */
export type Voter = Pick<Certified, 'nodeId'> & { readonly certificate: string | undefined };

const ALGORITHM = 'aes-256-gcm';
const CURVE = 'prime256v1';
/** Of a key on this curve, with the frame of SPKI. */
const POINT_BYTES = 91;
const TAG_BYTES = 16;
/** Each key seals once. */
const NONCE = Buffer.alloc(12);

/** The key of a CA, PEM; undefined for a server that has no copy of it. */
export function keyIn(authority: StoredAuthority, own: OwnPair): string | undefined {
  if (authority.key !== undefined) return authority.key;
  const to = keyId(new X509Certificate(own.certificate).publicKey);
  const copy = authority.copies?.find((one) => one.to === to);
  return copy && open(copy, authorityId(authority.certificate), own.key);
}

/** The CA for the store, with a copy for each of these servers. */
export const sealedFor = (
  { key, ...authority }: PublicAuthority & { readonly key: string },
  voters: readonly Certified[],
): StoredAuthority => ({
  ...authority,
  copies: voters.map(({ nodeId, certificate }) => seal(key, authorityId(authority.certificate), nodeId, certificate)),
});

/**
 * The same CA with a copy for each server that has a vote now, and for no other one. The same object if nothing changes, or this server
 * has no copy. A certificate counts if `isTheirs` says that it is of that node.
 */
export function sealedAgain(
  authority: StoredAuthority,
  voters: readonly Voter[],
  { own, isTheirs }: { readonly own: OwnPair; readonly isTheirs: (voter: Certified) => boolean },
): StoredAuthority {
  const key = keyIn(authority, own);
  if (key === undefined) return authority;
  const { copies: before = [], key: forAll, ...rest } = authority;
  const id = authorityId(authority.certificate);
  const copies = voters.flatMap(({ nodeId, certificate }) => {
    const kept = before.find((copy) => copy.nodeId === nodeId);
    const to = certificate === undefined ? undefined : keyId(new X509Certificate(certificate).publicKey);
    if (certificate === undefined || kept?.to === to || !isTheirs({ nodeId, certificate })) return kept ?? [];
    return seal(key, id, nodeId, certificate);
  });
  // Servers of an older version cannot open a copy: until all have said a certificate, they need the key as it is.
  const isTooEarly = copies.length === 0 || (forAll !== undefined && copies.length < voters.length);
  const isSame = copies.length === before.length && copies.every((copy) => before.includes(copy));
  return isTooEarly || (isSame && forAll === undefined) ? authority : { ...rest, copies };
}

/** Whether a CA of this bundle has signed the certificate for this node, for a key of the kind that copies are sealed for. */
export function isOfNode(
  certificate: string,
  identity: string,
  { bundle, nowMs }: { readonly bundle: string; readonly nowMs: number },
): boolean {
  const leaf = new X509Certificate(certificate);
  return (
    leaf.publicKey.asymmetricKeyDetails?.namedCurve === CURVE &&
    leaf.validToDate.getTime() > nowMs &&
    (leaf.subjectAltName ?? '').split(', ').includes(`URI:${identity}`) &&
    certificatesIn(bundle).some((ca) => leaf.verify(new X509Certificate(ca).publicKey))
  );
}

function seal(key: string, authority: string, nodeId: string, certificate: string): KeyCopy {
  const recipient = new X509Certificate(certificate).publicKey;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: CURVE });
  const point = spkiOf(publicKey);
  const shared = sharedKey(privateKey, recipient, [point, spkiOf(recipient)]);
  const cipher = createCipheriv(ALGORITHM, shared, NONCE).setAAD(Buffer.from(authority));
  const body = Buffer.concat([cipher.update(key), cipher.final()]);
  const sealed = Buffer.concat([point, cipher.getAuthTag(), body]).toString('base64');
  return { nodeId, to: keyId(recipient), sealed };
}

/** Undefined if it was changed, or is of another CA. */
function open({ sealed }: KeyCopy, authority: string, key: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64');
  const [point, tagEnd] = [bytes.subarray(0, POINT_BYTES), POINT_BYTES + TAG_BYTES];
  try {
    const privateKey = createPrivateKey(key);
    const sender = createPublicKey({ key: point, format: 'der', type: 'spki' });
    const shared = sharedKey(privateKey, sender, [point, spkiOf(createPublicKey(privateKey))]);
    const decipher = createDecipheriv(ALGORITHM, shared, NONCE, { authTagLength: TAG_BYTES })
      .setAAD(Buffer.from(authority))
      .setAuthTag(bytes.subarray(POINT_BYTES, tagEnd));
    return Buffer.concat([decipher.update(bytes.subarray(tagEnd)), decipher.final()]).toString();
  } catch {
    // Another key sealed the text, or somebody has changed it: it opens for nobody here.
    return undefined;
  }
}

const sharedKey = (privateKey: KeyObject, publicKey: KeyObject, points: readonly Buffer[]): Buffer =>
  Buffer.from(
    hkdfSync('sha256', diffieHellman({ privateKey, publicKey }), Buffer.concat(points), 'kube-nvr authority', 32),
  );

const spkiOf = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' });
const keyId = (key: KeyObject): string => hash('sha256', spkiOf(key), 'hex').slice(0, 16);
