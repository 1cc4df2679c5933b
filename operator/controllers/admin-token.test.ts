import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { isGuessable, sha256 } from '../../base/new-token.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { ApiError } from '../kube/api.ts';
import { SECRET } from '../kube/resources.ts';
import { MemoryApi } from '../kube/test-support.ts';
import { makeTokens } from './admin-token.ts';

const HASHES = { namespace: 'home', name: 'north-tokens' };
const ADMIN = { namespace: 'home', name: 'north-admin-token' };
const pool = (auth: object = { mode: 'Token' }): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'home', uid: 'pool-1' },
    spec: { archive: { hostPath: '/mnt' }, auth },
  });

const read = async (api: MemoryApi, name: typeof HASHES, key: string): Promise<string> =>
  Buffer.from(((await api.get(SECRET, name))['data'] as Record<string, string>)[key]!, 'base64').toString();

const hashesIn = async (api: MemoryApi): Promise<unknown> => parse(await read(api, HASHES, 'tokens.yaml'));
const hashOf = (token: string) => [{ name: 'admin', role: 'admin', sha256: sha256(token).toString('hex') }];

test('an admin token is made once; recorders get its hash, in a Secret of its own', async () => {
  const api = new MemoryApi();
  await makeTokens(api, pool());
  const token = await read(api, ADMIN, 'token');
  assert.ok(!isGuessable(token));
  assert.deepEqual(await hashesIn(api), hashOf(token));
  for (const name of [HASHES, ADMIN]) {
    assert.equal((await api.get(SECRET, name)).metadata.ownerReferences, undefined, 'it outlives the pool');
  }
  await makeTokens(api, pool());
  assert.equal(api.count('create'), 2);
});

test('a deleted admin token is not made again; without both Secrets there is another one', async () => {
  const api = new MemoryApi();
  await makeTokens(api, pool());
  const first = await hashesIn(api);
  await api.delete(SECRET, ADMIN);
  await makeTokens(api, pool());
  await assert.rejects(api.get(SECRET, ADMIN), { status: 404 });
  assert.deepEqual(await hashesIn(api), first);
  await api.delete(SECRET, HASHES);
  await makeTokens(api, pool());
  assert.notDeepEqual(await hashesIn(api), first);
});

test('after a failure between the two Secrets the hash is that of the token that was made', async () => {
  const api = new MemoryApi();
  let creates = 0;
  api.before = (verb) => {
    if (verb === 'create' && ++creates === 2) throw new ApiError(500, 'InternalError', 'down');
  };
  await assert.rejects(makeTokens(api, pool()), /down/);
  await makeTokens(api, pool());
  assert.deepEqual(await hashesIn(api), hashOf(await read(api, ADMIN, 'token')));
});

test('a pool with a Secret of its own, or without tokens, gets none', async () => {
  const api = new MemoryApi();
  for (const auth of [{ mode: 'Token', tokensSecretRef: { name: 'mine' } }, { mode: 'Kubernetes' }, { mode: 'None' }]) {
    await makeTokens(api, pool(auth));
  }
  assert.deepEqual(api.calls, []);
});

test('a Secret that cannot be read is not replaced', async () => {
  const api = new MemoryApi();
  api.before = (verb) => {
    if (verb === 'get') throw new ApiError(403, 'Forbidden', 'no');
  };
  await assert.rejects(makeTokens(api, pool()), /no/);
  assert.equal(api.count('create'), 0);
});
