import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION } from '../../crds/names.ts';
import type { KubernetesObject } from './api-server.ts';
import { NodeReports } from './node-reports.ts';

const nodeOf = (name: string, address: string): KubernetesObject => ({
  apiVersion: API_VERSION,
  kind: 'RecorderNode',
  metadata: { name, namespace: 'video', uid: name, resourceVersion: address },
  spec: { nodeName: name, poolRef: { name: 'default' }, address: `http://${address}` },
});

/** An API server with so many RecorderNodes. Its watches show nothing. */
async function stage(t: TestContext, count: number) {
  const clock = new VirtualClock();
  const nodes = new Map<string, KubernetesObject>();
  const give = (name: string, address: string): void => void nodes.set(name, nodeOf(name, address));
  for (let n = 0; n < count; n++) give(`node-${n}`, `10.0.0.1:${n + 1}`);
  const server = { isAway: false, lists: 0, watches: 0 };
  const isOfPool = (query: Record<string, string>): boolean => query['labelSelector'] !== undefined;
  async function* pages(_path: string, { query, signal }: { query: Record<string, string>; signal: AbortSignal }) {
    if (isOfPool(query)) server.lists++;
    if (server.isAway) await clock.sleep(3_600_000, signal);
    const items = isOfPool(query) ? [...nodes.values()] : [nodes.get('node-0')!];
    yield { items, resourceVersion: '1' };
  }
  // oxlint-disable-next-line require-yield
  async function* watch(
    _path: string,
    _version: string,
    { query, signal }: { query: Record<string, string>; signal: AbortSignal },
  ): AsyncGenerator<never> {
    if (isOfPool(query)) server.watches++;
    await clock.sleep(3_600_000, signal);
  }
  const reports = new NodeReports({
    api: { pages, watch },
    namespace: 'video',
    nodeId: 'node-0',
    pool: 'default',
    changed: () => {},
    clock,
    log: silentLog,
  });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      clock.advance(Math.min(1_000, ms - passed));
      for (let turn = 0; turn < 10; turn++) await setImmediate();
    }
  };
  reports.start();
  t.after(() => reports.close());
  await pass(1);
  return { server, reports, give, pass, addressOf: (name: string) => reports.objects.get(name)?.spec.address };
}

test('up to 100 nodes are watched, and a question makes no list', async (t) => {
  const { server, reports, pass } = await stage(t, 100);
  await pass(60_000);
  await reports.look();
  assert.deepEqual([reports.objects.size, server.lists, server.watches], [100, 1, 1]);
});

test('more nodes are listed when somebody asks, and questions within a second share a list', async (t) => {
  const { server, reports, give, pass, addressOf } = await stage(t, 101);
  await pass(60_000);
  assert.deepEqual([server.lists, server.watches], [1, 0]);
  give('node-7', '10.0.0.2:1');
  await Promise.all([reports.look(), reports.look()]);
  await reports.look();
  assert.deepEqual([addressOf('node-7'), server.lists], ['http://10.0.0.2:1', 2]);
  await pass(2_000);
  await reports.look();
  assert.equal(server.lists, 3);
});

test('without questions, a recorder of a large pool makes a list after two seconds for each node', async (t) => {
  const { server, pass } = await stage(t, 400);
  await pass(790_000);
  assert.equal(server.lists, 1);
  await pass(20_000);
  assert.equal(server.lists, 2);
});

test('nobody waits longer than a second, and a list that does not come is asked for again', async (t) => {
  const { server, reports, give, pass, addressOf } = await stage(t, 101);
  await pass(60_000);
  give('node-7', '10.0.0.2:1');
  server.isAway = true;
  const looked = reports.look();
  await pass(1_000);
  await looked;
  await reports.look();
  assert.deepEqual([addressOf('node-7'), server.lists], ['http://10.0.0.1:8', 2]);
  server.isAway = false;
  await pass(30_000);
  await reports.look();
  assert.deepEqual([addressOf('node-7'), server.lists], ['http://10.0.0.2:1', 3]);
});
