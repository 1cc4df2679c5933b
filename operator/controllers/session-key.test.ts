import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { ApiError } from '../kube/api.ts';
import { SECRET } from '../kube/resources.ts';
import { MemoryApi } from '../kube/test-support.ts';
import { makeSessionKey } from './session-key.ts';

const NAME = { namespace: 'home', name: 'north-session-key' };
const OWNER = { apiVersion: API_VERSION, kind: 'RecorderPool', name: 'north', uid: 'pool-1' };
const pool = parseRecorderPool({
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { name: 'north', namespace: 'home', uid: 'pool-1' },
  spec: { archive: { hostPath: '/mnt' } },
});

async function keyIn(api: MemoryApi): Promise<string> {
  const { data } = await api.get(SECRET, NAME);
  return Buffer.from((data as Record<string, string>)['session.key'] ?? '', 'base64').toString('utf8');
}

test('the key of sessions is made once, by chance, and belongs to the pool', async () => {
  const api = new MemoryApi();
  assert.equal(await makeSessionKey(api, pool, OWNER), true);
  const key = await keyIn(api);
  assert.match(key, /^[0-9a-f]{64}$/);
  const { metadata, type } = await api.get(SECRET, NAME);
  assert.deepEqual(
    metadata.ownerReferences?.map(({ kind, uid, controller }) => [kind, uid, controller]),
    [['RecorderPool', 'pool-1', true]],
  );
  assert.equal(type, 'kube-nvr.dev/session-key');
  assert.equal(await makeSessionKey(api, pool, OWNER), true);
  assert.equal(api.count('create'), 1);
  assert.equal(await keyIn(api), key);
});

test('deleting the key of sessions makes another one; one that cannot be used is left as it is', async () => {
  const api = new MemoryApi();
  await makeSessionKey(api, pool, OWNER);
  const first = await keyIn(api);
  await api.delete(SECRET, NAME);
  await makeSessionKey(api, pool, OWNER);
  assert.notEqual(await keyIn(api), first);
  await api.mergePatch(SECRET, NAME, { data: { 'session.key': Buffer.from('short').toString('base64') } });
  assert.equal(await makeSessionKey(api, pool, OWNER), false);
  assert.equal(await keyIn(api), 'short');
});

test('a Secret that cannot be read is not replaced by another key', async () => {
  const api = new MemoryApi();
  api.before = (verb) => {
    if (verb === 'get') throw new ApiError(403, 'Forbidden', 'no');
  };
  await assert.rejects(makeSessionKey(api, pool, OWNER), /no/);
  assert.equal(api.count('create'), 0);
});
