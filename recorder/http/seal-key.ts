// The keys behind sessions and links, each of 256 random bits. Each node has one of its own in a file that only its owner can read, which
// signs, so that sessions survive a restart. The recorders of a pool have another one together, in a file that Kubernetes mounts, which
// encrypts.

import { randomBytes } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';
import { SEAL_KEY_BYTES } from './seal.ts';

/** That of this node. A file that cannot be used only ends sessions at the next start: recording does not depend on it. */
export async function ownKey(workDir: string, log: Log): Promise<Buffer> {
  const file = join(workDir, 'session.key');
  try {
    await mkdir(workDir, { recursive: true });
    const text = await readPrivate(file, (problem) => new Error(`${file} ${problem}`));
    if (text !== undefined) return keyIn(text, file);
    const key = randomBytes(SEAL_KEY_BYTES);
    await writePrivate(file, `${key.toString('hex')}\n`);
    return key;
  } catch (err) {
    log.warn({ problem: messageOf(err) }, 'the key of sessions cannot be kept: sessions end when the recorder stops');
    return randomBytes(SEAL_KEY_BYTES);
  }
}

/** The key of the pool. Undefined without such a key: the file does not exist while the Secret does not exist. */
export async function sharedKey(file: string | undefined, log: Log): Promise<Buffer | undefined> {
  if (file === undefined) return undefined;
  try {
    return keyIn(await readFile(file, 'utf8'), file);
  } catch (err) {
    if (errorCode(err) !== 'ENOENT') {
      log.warn(
        { problem: messageOf(err) },
        'the key of sessions of the pool cannot be used: sessions are for this node',
      );
    }
    return undefined;
  }
}

function keyIn(text: string, file: string): Buffer {
  const key = Buffer.from(text.trim(), 'hex');
  if (key.length !== SEAL_KEY_BYTES) throw new Error(`${file} has no key of 64 hexadecimal digits: remove it`);
  return key;
}
