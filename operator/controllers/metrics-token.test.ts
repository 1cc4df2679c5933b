import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isGuessable, sha256 } from '../../base/new-token.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { ApiError, type KubeObject } from '../kube/api.ts';
import { SECRET } from '../kube/resources.ts';
import { MemoryApi } from '../kube/test-support.ts';
import { metricsTokenOf } from './metrics-token.ts';

const NAME = { namespace: 'home', name: 'north-metrics-token' };
const OWNER = { apiVersion: API_VERSION, kind: 'RecorderPool', name: 'north', uid: 'pool-1' };
const pool = parseRecorderPool({
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { name: 'north', namespace: 'home', uid: 'pool-1' },
  spec: { archive: { hostPath: '/mnt' } },
});

const tokenIn = (secret: KubeObject): string =>
  Buffer.from((secret['data'] as { token: string }).token, 'base64').toString('utf8');

test('the token is made once, belongs to the pool, and only its digest is passed on', async () => {
  const api = new MemoryApi();
  const digest = await metricsTokenOf(api, pool, OWNER);
  const secret = await api.get(SECRET, NAME);
  const token = tokenIn(secret);
  assert.ok(!isGuessable(token) && /^nvr_[\w-]{43}$/.test(token));
  assert.equal(digest, sha256(token).toString('hex'));
  assert.deepEqual(
    secret.metadata.ownerReferences?.map(({ kind, uid, controller }) => [kind, uid, controller]),
    [['RecorderPool', 'pool-1', true]],
  );
  assert.equal(await metricsTokenOf(api, pool, OWNER), digest);
  assert.equal(api.count('create'), 1);
});

test('deleting the Secret makes another token; a token that a person writes into it is used', async () => {
  const api = new MemoryApi();
  const first = await metricsTokenOf(api, pool, OWNER);
  await api.delete(SECRET, NAME);
  const second = await metricsTokenOf(api, pool, OWNER);
  assert.notEqual(second, first);
  const data = { token: Buffer.from('one of his own\n').toString('base64') };
  await api.mergePatch(SECRET, NAME, { data });
  assert.equal(await metricsTokenOf(api, pool, OWNER), sha256('one of his own').toString('hex'));
  await api.mergePatch(SECRET, NAME, { data: { token: null } });
  assert.equal(await metricsTokenOf(api, pool, OWNER), undefined, 'left as it is, and nobody gets in');
});

test('a Secret that cannot be read is not replaced', async () => {
  const api = new MemoryApi();
  api.before = (verb) => {
    if (verb === 'get') throw new ApiError(403, 'Forbidden', 'no');
  };
  await assert.rejects(metricsTokenOf(api, pool, OWNER), /no/);
  assert.equal(api.count('create'), 0);
});
