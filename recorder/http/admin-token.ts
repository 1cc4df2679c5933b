// The admin token of a recorder without configured tokens: a file that only its owner can read.

import { constants } from 'node:fs';
import { mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import type { TokenConfig } from '../config/schema.ts';
import { isGuessable, newToken, sha256 } from '../../base/new-token.ts';

/** Other users may have written the file, or can read it. The message names the file and says what to do. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError';
}

/**
 * The token of a recorder without configured tokens: created in `<workDir>/admin.token` at the first start. The log names
 * the file, never the token. Throws `TokenFileError` if another user may have written or read the file.
 */
export async function adminToken(workDir: string, log: Log): Promise<TokenConfig> {
  const file = join(workDir, 'admin.token');
  const token = (await readToken(file)) ?? (await createToken(workDir, file, log));
  if (isGuessable(token)) {
    log.warn({ file }, 'the admin token can be guessed: remove the file, and the next start creates a random token');
  }
  return { name: 'admin.token', role: 'admin', sha256: sha256(token).toString('hex') };
}

/** Undefined when the file is missing or empty. A symbolic link is not followed. */
async function readToken(file: string): Promise<string | undefined> {
  let handle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    if (code === 'ELOOP') throw new TokenFileError(`${file} is a link: remove it, and the recorder creates a token`);
    throw err;
  }
  try {
    const { uid, mode } = await handle.stat();
    if (uid !== process.getuid?.() && uid !== 0) {
      throw new TokenFileError(`${file} belongs to another user (${uid}): remove it, and the recorder creates a token`);
    }
    if ((mode & 0o077) !== 0) {
      throw new TokenFileError(
        `${file} can be read or written by others: remove it, or chmod 600 it if they are trusted`,
      );
    }
    const token = (await handle.readFile('utf8')).trim();
    if (token === '') await rm(file);
    return token || undefined;
  } finally {
    await handle.close();
  }
}

async function createToken(workDir: string, file: string, log: Log): Promise<string> {
  const token = newToken();
  await mkdir(workDir, { recursive: true });
  // `wx`: never write to a file that appeared in the meantime.
  await writeFile(file, `${token}\n`, { mode: 0o600, flag: 'wx' });
  log.info({ file }, 'no token is configured: an admin token was created in this file');
  return token;
}
