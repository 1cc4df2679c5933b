import { test } from 'node:test';
import assert from 'node:assert/strict';
import { countedCalls } from './counted-calls.ts';
import { CAMERA, LEASE } from './resources.ts';
import { MemoryApi } from './test-support.ts';

test('each call is counted once, with the verb of the API server, also one that fails; answers stay what they are', async () => {
  const counts = new Map<string, number>();
  const memory = new MemoryApi();
  const api = countedCalls(memory, (verb, resource) => {
    const key = `${verb} ${resource}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  });
  const metadata = { namespace: 'home', name: 'gate' };
  const made = await api.create(CAMERA, { metadata });
  assert.deepEqual(await api.get(CAMERA, metadata), made);
  await api.replace(CAMERA, { ...made, spec: { suspend: true } });
  await api.mergePatch(CAMERA, metadata, { spec: { suspend: false } });
  await api.apply(CAMERA, { metadata, spec: {} }, { fieldManager: 'test' });
  assert.equal((await api.list(CAMERA, {})).items.length, 1);
  await api.delete(CAMERA, metadata);
  await assert.rejects(api.get(LEASE, metadata), { status: 404 });
  const stop = new AbortController();
  const watch = api.watch(CAMERA, { resourceVersion: '1' }, stop.signal)[Symbol.asyncIterator]();
  stop.abort();
  await watch.return?.();
  assert.deepEqual(Object.fromEntries(counts), {
    'create cameras': 1,
    'get cameras': 1,
    'update cameras': 1,
    'patch cameras': 2,
    'list cameras': 1,
    'delete cameras': 1,
    'get leases': 1,
    'watch cameras': 1,
  });
});
