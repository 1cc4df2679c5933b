// The tokens of a pool with auth.mode Token that names no Secret for them: an admin token, made once. Recorders get only the Secret
// with its hash, to which people may add hashes of other tokens. The token itself is in a second Secret, which may be deleted
// once it is noted. Neither belongs to the pool: what people have added stays when the pool is made again.

import { newToken, sha256 } from '../../base/new-token.ts';
import { adminTokenName, tokensName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeApi } from '../kube/api.ts';
import { createSecret, findSecret, textIn } from './pool-secret.ts';

/** Does nothing for a pool that needs no such tokens or has them. Throws ApiError when a Secret cannot be read or created. */
export async function makeTokens(api: KubeApi, { metadata, spec }: RecorderPool): Promise<void> {
  if (spec.auth.mode !== 'Token' || spec.auth.tokensSecretRef) return;
  const [hashesName, adminName] = [tokensName(metadata.name), adminTokenName(metadata.name)];
  if (await findSecret(api, metadata, hashesName)) return;
  const admin = await findSecret(api, metadata, adminName);
  const token = admin ? textIn(admin, 'token') : newToken();
  // First the token: after a failure between the two, the hash is made from it.
  if (!admin && token !== undefined) await createSecret(api, metadata, { name: adminName }, { token });
  const hashes =
    token === undefined ? '[]\n' : `- name: admin\n  role: admin\n  sha256: ${sha256(token).toString('hex')}\n`;
  await createSecret(api, metadata, { name: hashesName }, { 'tokens.yaml': hashes });
}
