// The key with which the recorders of a pool encrypt sessions, so that each of them can read the cookies of all. It is in a Secret of
// the pool, which the recorders mount; the operator keeps no copy.

import { randomBytes } from 'node:crypto';
import { SESSION_KEY_FILE, sessionKeyName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeApi } from '../kube/api.ts';
import type { Owner } from '../kube/owned.ts';
import { secretTextOf } from './pool-secret.ts';

/** As in a recorder's own `session.key`: 256 bits in hexadecimal digits. */
const KEY_BYTES = 32;
const KEY = /^[0-9a-f]{64}$/i;

/**
 * Makes the key of a pool that has none. Resolves to whether there is a usable one. Throws ApiError when the Secret cannot be
 * read or created.
 */
export async function makeSessionKey(api: KubeApi, { metadata }: RecorderPool, owner: Owner): Promise<boolean> {
  const key = await secretTextOf(api, metadata, owner, {
    name: sessionKeyName(metadata.name),
    type: 'kube-nvr.dev/session-key',
    key: SESSION_KEY_FILE,
    make: () => randomBytes(KEY_BYTES).toString('hex'),
  });
  return key !== undefined && KEY.test(key);
}
