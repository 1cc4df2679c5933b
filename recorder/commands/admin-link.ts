// The command `recorder admin-link`: prints a link to the page of the recorder on this machine, and the fingerprint of the certificate that
// the page has. The first person who opens it chooses name and password of an admin.

import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { asOwnerOf } from '../../base/as-owner.ts';
import { errorCode } from '../../base/error.ts';
import type { Config } from '../config/schema.ts';
import { formatListen } from '../config/values.ts';
import { AdminCode, adminLink, reachable } from '../http/admin-code.ts';
import { makesUsers } from '../front/access.ts';
import { servedCertificate } from '../front/trust.ts';
import { CONFIG_OPTION, parsedArgs, UsageError, type CommandContext } from './command.ts';

export const usage = `Usage: recorder admin-link [--config FILE]

Prints a link to the page of the recorder on this machine. The first person who opens it chooses a name and a password, and is an
admin. The link is valid once, for 24 hours, until the recorder restarts or this command runs again. With TLS, the fingerprint of the
page's certificate is printed to standard error: compare it with the one that the browser shows.

  --config FILE    configuration of the recorder (default /etc/recorder/config.yaml)
`;

export async function run(
  args: readonly string[],
  { clock, load, print, printError }: CommandContext,
): Promise<number> {
  const config = await load(parsedArgs(args, { options: CONFIG_OPTION }).values.config);
  if (!makesUsers(config)) {
    throw new UsageError(
      'users of this recorder are not made on the page: see auth.mode, and in a pool the Secret of its tokens',
    );
  }
  const fingerprint = await fingerprintOf(servedCertificate(config));
  // The recorder must be able to read what root writes for it.
  const code = await asOwnerOf(config.workDir, () => new AdminCode(config.workDir, clock).make());
  print(`${adminLink(pageAddress(config), code)}\n`);
  if (fingerprint !== undefined) printError(`SHA-256 fingerprint of its certificate: ${fingerprint}\n`);
  return 0;
}

/** Where browsers find the page of this machine. */
export const pageAddress = ({ tls, listen }: Pick<Config, 'tls' | 'listen'>): string =>
  reachable(`${tls ? 'https' : 'http'}://${formatListen(listen)}`);

async function fingerprintOf(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return new X509Certificate(await asOwnerOf(file, () => readFile(file))).fingerprint256;
  } catch (cause) {
    const why =
      errorCode(cause) === 'ENOENT' ? 'is not there: start the recorder first' : `cannot be read (${errorCode(cause)})`;
    throw new UsageError(`tls: ${file} ${why}`, { cause });
  }
}
