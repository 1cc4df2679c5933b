// The tokens of a pool with auth.mode Token that names no Secret for them: an admin token, made once. Recorders get only the Secret
// with its hash, to which people may add hashes of other tokens. The token itself is in a second Secret, which may be deleted
// once it is noted. Neither belongs to the pool: what people have added stays when the pool is made again.

import { newToken, sha256 } from '../../base/new-token.ts';
import { adminTokenName, poolLabels, tokensName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { isNotFound, type KubeApi, type KubeObject } from '../kube/api.ts';
import { SECRET } from '../kube/resources.ts';

/** Does nothing for a pool that needs no such tokens or has them. Throws ApiError when a Secret cannot be read or created. */
export async function makeTokens(api: KubeApi, { metadata, spec }: RecorderPool): Promise<void> {
  if (spec.auth.mode !== 'Token' || spec.auth.tokensSecretRef) return;
  const { namespace, name: pool } = metadata;
  const read = async (name: string): Promise<KubeObject | undefined> => {
    try {
      return await api.get(SECRET, { namespace, name });
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  };
  const make = (name: string, data: Readonly<Record<string, string>>): Promise<KubeObject> =>
    api.create(SECRET, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name, labels: poolLabels(pool) },
      data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    });
  if (await read(tokensName(pool))) return;
  const admin = await read(adminTokenName(pool));
  const token = admin ? tokenIn(admin) : newToken();
  // First the token: after a failure between the two, the hash is made from it.
  if (!admin && token !== undefined) await make(adminTokenName(pool), { token });
  const hashes =
    token === undefined ? '[]\n' : `- name: admin\n  role: admin\n  sha256: ${sha256(token).toString('hex')}\n`;
  await make(tokensName(pool), { 'tokens.yaml': hashes });
}

function tokenIn({ data }: KubeObject): string | undefined {
  const value = (data as Readonly<Record<string, unknown>> | undefined)?.['token'];
  const token = typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8').trim() : '';
  return token === '' ? undefined : token;
}
