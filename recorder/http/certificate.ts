// Reads a certificate and its key, and gives running servers the new pair when the files change.

import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import { FileWatcher, type WatchOptions } from '../../base/file-watcher.ts';
import type { Log } from '../../base/log.ts';

/** PEM. */
export interface CertificatePair {
  readonly certificate: string;
  readonly key: string;
}

export interface CertificatePaths {
  readonly certificate: string;
  readonly key: string;
}

/** TLS 1.0 and 1.1 are deprecated by RFC 8996. */
export const MIN_TLS_VERSION = 'TLSv1.2';

/** A pair that no server can use. The message names the file and holds nothing of its content. */
export class CertificateError extends Error {
  /** The name of the setting. */
  readonly key: 'certificate' | 'key';
  readonly file: string;

  constructor(key: 'certificate' | 'key', file: string, problem: string, options?: ErrorOptions) {
    super(problem, options);
    this.name = 'CertificateError';
    this.key = key;
    this.file = file;
  }
}

/** Throws CertificateError when a file cannot be read or is not PEM, or when the key does not match the certificate. */
export async function readCertificate(paths: CertificatePaths): Promise<CertificatePair> {
  const read = (key: 'certificate' | 'key'): Promise<string> =>
    readFile(paths[key], 'utf8').catch((err: NodeJS.ErrnoException) => {
      throw new CertificateError(key, paths[key], `cannot be read (${err.code})`, { cause: err });
    });
  // One after the other, so that of two files that are not there the same one is named each time.
  const certificate = await read('certificate');
  const key = await read('key');
  check('certificate', paths.certificate, { cert: certificate }, 'is not a certificate in PEM');
  check('key', paths.key, { key }, 'is not a private key in PEM without passphrase');
  check('key', paths.key, { cert: certificate, key }, 'is not the key of tls.certificate');
  return { certificate, key };
}

function check(
  key: 'certificate' | 'key',
  file: string,
  options: { readonly cert?: string; readonly key?: string },
  problem: string,
): void {
  try {
    createSecureContext(options);
  } catch (err) {
    throw new CertificateError(key, file, problem, { cause: err });
  }
}

type CertificateInUse = () => Pick<CertificatePair, 'certificate'> | undefined;

/** The certificates in use now: of the TLS listeners, and the one by which the nodes of a cluster recognize this one; undefined if there is none. */
export function registerCertificateMetrics(
  registry: Registry,
  inUse: { readonly listeners: CertificateInUse; readonly nodes: CertificateInUse },
): void {
  scraped(registry).gauge(
    'certificate_expiry_timestamp_seconds',
    'When a certificate expires: that of the TLS listeners, or the one by which other nodes of a cluster recognize this node. Absent if there is none.',
    ['use'],
    () =>
      Object.entries(inUse).flatMap(([use, pair]) => {
        const certificate = pair()?.certificate;
        // The first certificate of a chain is the server's own (RFC 8446 §4.4.2).
        return certificate === undefined
          ? []
          : [[{ use }, new X509Certificate(certificate).validToDate.getTime() / 1000] as const];
      }),
  );
}

interface FollowOptions extends WatchOptions {
  readonly log: Log;
  /** Called when the servers use a new pair. */
  readonly used?: (pair: CertificatePair) => void;
}

/**
 * Gives the new pair to `servers` when its files change; open connections keep the old one. A pair that is broken or
 * incomplete is refused with a line in the log, and the old one stays. Returns a function that ends the watch.
 */
export function followCertificate(
  paths: CertificatePaths,
  servers: readonly Pick<Server, 'setSecureContext'>[],
  { log, used, ...options }: FollowOptions,
): { readonly ready: Promise<void>; close(): void } {
  const reload = async (): Promise<void> => {
    try {
      const pair = await readCertificate(paths);
      const { certificate, key } = pair;
      for (const server of servers) server.setSecureContext({ cert: certificate, key, minVersion: MIN_TLS_VERSION });
      used?.(pair);
      log.info({ certificate: paths.certificate }, 'the new certificate is in use');
    } catch (err) {
      if (!(err instanceof CertificateError)) throw err;
      log.error(
        { file: err.file, problem: err.message },
        'the new certificate is not usable, the old one stays in use',
      );
    }
  };
  const changed = (): void =>
    void reload().catch((err: unknown) => log.error({ err }, 'the new certificate could not be used'));
  return new FileWatcher({ files: () => [paths.certificate, paths.key] }, changed, options);
}
