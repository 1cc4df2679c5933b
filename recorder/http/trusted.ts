// Reads the CA certificates for a Redis or for other recorders.

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '../../base/error.ts';

/** PEM; undefined when none are configured. Rejects with an error that names the setting when the file cannot be read. */
export async function readTrusted(key: string, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return await readFile(file, 'utf8');
  } catch (err) {
    throw new Error(`${key}: ${file} cannot be read (${errorCode(err)})`, { cause: err });
  }
}

/**
 * PEM of the `ca.crt` next to a certificate, as in Secrets of the type kubernetes.io/tls from cert-manager; undefined
 * without one.
 */
export async function authorityBeside(certificate: string): Promise<string | undefined> {
  try {
    return await readFile(join(dirname(certificate), 'ca.crt'), 'utf8');
  } catch {
    // The certificate of a public CA has none beside it.
    return undefined;
  }
}
