// Mutual TLS between members: each presents a certificate of the pool's CA, and the one that asks requires the identity of
// the member in the certificate, whatever its address is.

import type { PeerCertificate } from 'node:tls';

/** PEM. */
export interface MutualTls {
  readonly certificate: string;
  readonly key: string;
  readonly ca: string;
}

interface MemberTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
  readonly checkServerIdentity: (host: string, certificate: PeerCertificate) => Error | undefined;
}

/** Options of TLS for a connection to the member with this identity. */
export const memberTls = ({ certificate: cert, key, ca }: MutualTls, identity: string): MemberTls => ({
  cert,
  key,
  ca,
  checkServerIdentity: (_host, { subjectaltname = '' }) =>
    subjectaltname.split(', ').includes(`URI:${identity}`)
      ? undefined
      : Object.assign(new Error(`the certificate is not of ${identity}`), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }),
});
