// Identifies clients by their certificate, on a listener that also accepts clients without one.

import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { certificatesIn } from '../../base/authorities.ts';
import { MIN_TLS_VERSION, type CertificatePair } from './certificate.ts';

/** The node's name in a certificate of the cluster's CA; undefined for any other client. */
export function memberIn({ socket }: IncomingMessage): string | undefined {
  const { authorized } = socket as TLSSocket;
  const name = (socket as TLSSocket).getPeerCertificate().subject?.CN;
  return authorized && typeof name === 'string' && name !== '' ? name : undefined;
}

/** Why a client is not a member, for the log of the client. */
export function strangerIn({ socket }: IncomingMessage): string {
  const { authorizationError } = socket as TLSSocket;
  const { subject, valid_to: end } = (socket as TLSSocket).getPeerCertificate();
  if (subject === undefined) return 'only members of the cluster are served here, and you presented no certificate';
  // The code of OpenSSL, although the type says that it is an error.
  if (String(authorizationError) === 'CERT_HAS_EXPIRED')
    return `your certificate expired on ${end}: join the cluster again`;
  return `your certificate is not of this cluster (${String(authorizationError)})`;
}

/** Gives a server that admits members the certificate and the CAs (PEM) that it uses from now on. Connections of other CAs end. */
export function followAuthorities(server: Server): (pair: CertificatePair, authorities: string) => void {
  const open = new Set<TLSSocket>();
  server.on('secureConnection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return ({ certificate, key }, authorities) => {
    server.setSecureContext({ cert: certificate, key, ca: authorities, minVersion: MIN_TLS_VERSION });
    const trusted = certificatesIn(authorities).map((one) => new X509Certificate(one));
    for (const socket of open) {
      const shown = socket.getPeerX509Certificate();
      if (shown && trusted.every(({ publicKey }) => !shown.verify(publicKey))) socket.destroy();
    }
  };
}
