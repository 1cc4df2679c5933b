// Opens all connections to cameras. They go only to addresses that cameras may have, and with TLS only to cameras that the
// configuration trusts.

import { connect as connectTcp, isIP, Socket, type OnReadOpts, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { CodedError } from '../../base/error.ts';
import type { CameraNetworks } from './networks.ts';

/** Which certificate to accept. Most cameras have self-signed ones. */
export interface CameraTls {
  /** Refuse a certificate that is not issued by a trusted CA or is for another host. */
  readonly verify: boolean;
  /** CA certificates (PEM) to trust instead of those of the system. */
  readonly ca?: string | undefined;
  /** SHA-256 of the only certificate to accept, in 64 hexadecimal digits. */
  readonly fingerprint?: string | undefined;
}

export interface Destination {
  /** A name, or an address without brackets but with its zone. */
  readonly host: string;
  readonly port: number;
  /** TLS. */
  readonly secure: boolean;
  readonly tls: CameraTls;
}

/** The camera's certificate is not the pinned one. */
export class CertificateRefused extends CodedError<'CERTIFICATE_REFUSED'> {
  override readonly name = 'CertificateRefused';

  constructor(fingerprint: string) {
    super('CERTIFICATE_REFUSED', `its certificate is not the one of tls.fingerprint, but has ${fingerprint}`);
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
    // Server name indication requires a name (RFC 6066 §3).
    ...(isIP(name.split('%')[0] ?? '') === 0 ? { servername: name } : {}),
    rejectUnauthorized: verify,
    ...(ca === undefined ? {} : { ca }),
    // Cameras with only TLS 1.0 and 1024-bit keys are still safer with TLS than without.
    ...(verify ? {} : { minVersion: 'TLSv1' as const, ciphers: 'DEFAULT:@SECLEVEL=0' }),
  });
  if (fingerprint !== undefined) {
    // This listener runs first: data that was already written waits for the end of the handshake.
    socket.once('secureConnect', () => {
      const { fingerprint256 = '' } = socket.getPeerX509Certificate() ?? {};
      if (plainFingerprint(fingerprint256) !== fingerprint) socket.destroy(new CertificateRefused(fingerprint256));
    });
  }
  return socket;
}

/** Normalises the output of `openssl x509 -fingerprint -sha256`, with or without colons, to 64 lower-case digits. */
export const plainFingerprint = (text: string): string => text.replaceAll(':', '').toLowerCase();
