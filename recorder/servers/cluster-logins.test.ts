// Logins that are those of a cluster, on the store over etcd in memory.

import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import type { EtcdClient } from '../../base/etcd/client.ts';
import { KubernetesClient, mergePatch } from '../../base/kubernetes/client.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION } from '../../crds/names.ts';
import { StoreConnection } from '../../store/connection.ts';
import { FakeEtcd, TestSeal } from '../../store/test-support.ts';
import { workspace } from '../../test/support/workspace.ts';
import { ClusterObjects } from '../cluster/objects.ts';
import type { TokenConfig, UserConfig } from '../config/schema.ts';
import { PageUsers } from '../http/page-users.ts';
import { ClusterLogins } from './cluster-logins.ts';

const NODES = `/apis/${API_VERSION}/namespaces/default/recordernodes`;
const token = (name: string): TokenConfig => ({ name, role: 'admin', sha256: 'ab'.repeat(32) });
const user = (name: string, password = 'hash'): UserConfig => ({ name, role: 'viewer', password });

async function stage(t: TestContext) {
  const clock = new VirtualClock();
  const etcd = new FakeEtcd();
  const connection = new StoreConnection({ etcd: etcd as unknown as EtcdClient, seal: new TestSeal(), clock });
  const api = new KubernetesClient(connection, { userAgent: 'test', callTimeoutMs: 1_000 });
  for (const name of ['rack-1', 'rack-2']) {
    const spec = { nodeName: name, poolRef: { name: 'default' }, role: 'Voter' };
    await api.call('POST', NODES, { apiVersion: API_VERSION, kind: 'RecorderNode', metadata: { name }, spec });
  }
  const root = workspace(t);
  const open = (nodeId: string, directory = root): ClusterLogins =>
    new ClusterLogins({ api, namespace: 'default', nodeId, directory, log: silentLog });
  return { api, etcd, root, open, first: open('rack-1'), second: open('rack-2', workspace(t)) };
}

const names = (list: readonly { readonly name: string }[]): readonly string[] => list.map(({ name }) => name);

test('a login of one server is one of the others, with the same key of sessions', async (t) => {
  const { first, second } = await stage(t);
  first.state({ issuers: [], tokens: [token('admin.token')], users: [user('anna')] });
  second.state({ issuers: [], tokens: [token('admin.token'), token('robot')], users: [] });
  for (const one of [first, second, first]) await one.exchange();
  assert.deepEqual(names(first.others.tokens), ['admin.token of rack-2', 'robot']);
  assert.deepEqual([names(second.others.tokens), names(second.others.users)], [['admin.token of rack-1'], ['anna']]);
  assert.equal(first.sessionKey?.length, 32);
  assert.deepEqual(first.sessionKey, second.sessionKey);
});

test('users who were made on a page before its server was one of a cluster are users of the cluster, unless it has them', async (t) => {
  const { first, second, root } = await stage(t);
  const page = await PageUsers.open(root, silentLog);
  await page.put(user('anna', 'of the page'));
  await page.put(user('bert', 'of the page'));
  first.bring(page);
  assert.deepEqual(names(first.list), ['anna', 'bert'], 'also before the cluster is reached');
  await second.exchange();
  await second.put(user('bert', 'of the cluster'));
  for (const one of [first, second]) await one.exchange();
  for (const { list } of [first, second]) {
    const known = Object.fromEntries(list.map(({ name, password }) => [name, password]));
    assert.deepEqual(known, { anna: 'of the page', bert: 'of the cluster' });
  }
  assert.deepEqual((await PageUsers.open(root, silentLog)).list, [], 'a user who is deleted does not come back');
});

test('a login that is taken out of the configuration, and those of a server that was removed, are none any more', async (t) => {
  const { api, first, second } = await stage(t);
  second.state({ issuers: [], tokens: [token('robot')], users: [user('bert')] });
  for (const one of [first, second, first]) await one.exchange();
  let changes = -1;
  first.follow(() => changes++);
  second.state({ issuers: [], tokens: [], users: [user('bert')] });
  for (const one of [second, first]) await one.exchange();
  assert.deepEqual([names(first.others.tokens), names(first.others.users)], [[], ['bert']]);
  await mergePatch(api, `${NODES}/rack-2`, { spec: { role: 'Removed' } });
  await first.exchange();
  assert.deepEqual(names(first.others.users), []);
  await first.exchange();
  assert.equal(changes, 2);
});

test('another server of the name of one that was expelled does not bring its logins back', async (t) => {
  const { api, first, second } = await stage(t);
  second.state({ issuers: [], tokens: [token('robot')], users: [user('bert')] });
  for (const one of [second, first]) await one.exchange();
  await mergePatch(api, `${NODES}/rack-2`, { spec: { role: 'Removed' } });
  await first.forget('rack-2');
  await mergePatch(api, `${NODES}/rack-2`, { spec: { role: 'Voter' } });
  await first.exchange();
  assert.deepEqual([names(first.others.tokens), names(first.others.users)], [[], []]);
});

test('users who are made at two servers at the same moment are users of both, sealed in the store', async (t) => {
  const { etcd, first, second } = await stage(t);
  await first.exchange();
  await Promise.all([first.put(user('anna', 'hidden-hash')), second.put(user('bert'))]);
  for (const one of [first, second]) {
    await one.exchange();
    assert.deepEqual(names(one.list).toSorted(), ['anna', 'bert']);
  }
  await first.put(user('anna', 'another'));
  await second.exchange();
  assert.equal(second.list.find(({ name }) => name === 'anna')?.password, 'another');
  for (const key of etcd.keys) assert.ok(!etcd.value(key).includes('hidden-hash'), key);
  await second.delete('anna');
  await first.exchange();
  assert.deepEqual([names(first.list), names(second.list)], [['bert'], ['bert']], 'removed at one, removed at both');
});

test('without the Secret there are no users of the page, and the logins of the servers come back', async (t) => {
  const { api, first, second } = await stage(t);
  second.state({ issuers: [], tokens: [token('robot')], users: [] });
  for (const one of [second, first]) await one.exchange();
  await first.put(user('anna'));
  await new ClusterObjects({ api, namespace: 'default' }).delete('secrets', 'kube-nvr-logins');
  for (const one of [first, second, first]) await one.exchange();
  assert.deepEqual([names(first.list), names(first.others.tokens)], [[], ['robot']]);
});

test('without etcd the copy serves, which nobody else can read', async (t) => {
  const { root, open, first, second } = await stage(t);
  second.state({ issuers: [], tokens: [token('robot')], users: [] });
  for (const one of [first, second, first]) await one.exchange();
  const restarted = open('rack-1');
  await restarted.load();
  assert.deepEqual(names(restarted.others.tokens), ['robot']);
  assert.deepEqual(restarted.sessionKey, first.sessionKey);
  const copy = join(root, 'logins.json');
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  assert.ok(readFileSync(copy, 'utf8').includes('robot'));
});
