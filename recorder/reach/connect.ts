// The only way out to cameras: every connection begins here, so each one goes to an address that cameras may have, and over
// TLS to a camera that the configuration trusts.

import { connect as connectTcp, isIP, Socket, type OnReadOpts, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { CameraNetworks } from './networks.ts';

/** Which certificate to accept. Most cameras have self-signed ones. */
export interface CameraTls {
  /** Refuse a certificate that no trusted authority has issued, or that is for another host. */
  readonly verify: boolean;
  /** Certificates (PEM) of authorities to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** SHA-256 of the only certificate to accept, in 64 hexadecimal digits. */
  readonly fingerprint?: string | undefined;
}

export interface Destination {
  /** A name, or an address without brackets, with its zone. */
  readonly host: string;
  readonly port: number;
  /** TLS. */
  readonly secure: boolean;
  readonly tls: CameraTls;
}

/** The camera's certificate is not the one that was pinned. */
export class CertificateRefused extends Error {
  readonly code = 'CERTIFICATE_REFUSED';

  constructor(fingerprint: string) {
    super(`its certificate is not the one of tls.fingerprint, but has ${fingerprint}`);
    this.name = 'CertificateRefused';
  }
}

/**
 * A connecting socket. It emits `AddressRefused` or `CertificateRefused` if the address or certificate is not allowed; the
 * certificate is checked before anything is sent. `name` is the name in the certificate, if `host` is an address that it
 * resolved to.
 */
export function connectCamera(
  { host, port, secure, tls }: Destination,
  networks: CameraNetworks,
  name = host,
  onread?: OnReadOpts,
): Socket {
  try {
    networks.check(host);
    const common: TcpNetConnectOpts = { host, port, lookup: networks.lookup, ...(onread ? { onread } : {}) };
    return secure ? openTls(common, tls, name) : connectTcp(common);
  } catch (error) {
    return new Socket().destroy(error as Error);
  }
}

function openTls(common: TcpNetConnectOpts, tls: CameraTls, name: string): TLSSocket {
  const { verify, ca, fingerprint } = tls;
  const socket = connectTls({
    ...common,
    // A name indication must be a name (RFC 6066 §3).
    ...(isIP(name.split('%')[0] ?? '') === 0 ? { servername: name } : {}),
    rejectUnauthorized: verify,
    ...(ca === undefined ? {} : { ca }),
    // Cameras with TLS 1.0 and 1024-bit keys are still better off with TLS than without.
    ...(verify ? {} : { minVersion: 'TLSv1' as const, ciphers: 'DEFAULT:@SECLEVEL=0' }),
  });
  if (fingerprint !== undefined) {
    // This listener runs first: data that was written already waits for the end of the handshake.
    socket.once('secureConnect', () => {
      const { fingerprint256 = '' } = socket.getPeerX509Certificate() ?? {};
      if (plainFingerprint(fingerprint256) !== fingerprint) socket.destroy(new CertificateRefused(fingerprint256));
    });
  }
  return socket;
}

/** As `openssl x509 -fingerprint -sha256` writes it, or without colons, to 64 lower-case digits. */
export const plainFingerprint = (text: string): string => text.replaceAll(':', '').toLowerCase();
