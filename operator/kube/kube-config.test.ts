import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VirtualClock } from '../../base/clock.ts';
import { KubeConfigConnection, loadKubeConfig } from './kube-config.ts';

function connectionOf(t: { after(done: () => void): void }, parts: { users?: object[] } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'kube-config-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'config');
  const kubeconfig = {
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443', 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { token: 'secret-token' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
    ...parts,
  };
  writeFileSync(file, JSON.stringify(kubeconfig));
  const clock = new VirtualClock();
  return { connection: new KubeConfigConnection(loadKubeConfig(file), clock), clock };
}

test('calls share one pool, which is made again after five minutes: certificates are renewed', async (t) => {
  const { connection, clock } = connectionOf(t);
  const { dispatcher: first, headers } = await connection.prepare();
  assert.ok(first);
  assert.deepEqual(headers, { Authorization: 'Bearer secret-token' });
  clock.advance(299_999);
  assert.equal((await connection.prepare()).dispatcher, first);
  clock.advance(1);
  const { dispatcher: second } = await connection.prepare();
  assert.notEqual(second, first);
  assert.equal((await connection.prepare()).dispatcher, second);
  await connection.close();
});

test('a pool that is not trusted any more is not used again', async (t) => {
  const { connection } = connectionOf(t);
  const { dispatcher: first } = await connection.prepare();
  connection.distrust();
  const { dispatcher: second } = await connection.prepare();
  assert.notEqual(second, first);
  connection.reconnect();
  assert.notEqual((await connection.prepare()).dispatcher, second);
  await connection.close();
});

test('a kubeconfig without a cluster says so', (t) => {
  assert.throws(() => connectionOf(t, { 'current-context': 'none' } as object), /no current cluster/);
});
