// The assigner of one pool, over an API server in memory that loses writes and responses: what it writes, and what it reads before.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, nodeLeaseName, poolLabels } from '../../crds/names.ts';
import { ApiError, type KubeObject } from '../kube/api.ts';
import { CAMERA, LEASE, NODE, RECORDER_NODE, RECORDER_POOL } from '../kube/resources.ts';
import { MemoryApi, settle } from '../kube/test-support.ts';
import { Caches } from '../observe/caches.ts';
import { Assigner } from './assigner.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';

const NAMESPACE = 'video';
const STEP_MS = 250;
const RENEW_MS = 2_000;

interface Assignment {
  readonly node?: string;
  readonly epoch: number;
  readonly reason: string;
  readonly lastSeenTime?: string;
}

const object = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { namespace: NAMESPACE, name },
  spec,
});
const noAnswer = (): ApiError => new ApiError(0, 'UNREACHABLE', 'no answer');

/** A pool whose live nodes renew their Leases, and its assigner. */
async function stage(t: TestContext, nodes: readonly string[], isLeader = (): boolean => true) {
  const api = new MemoryApi();
  const clock = new VirtualClock();
  const live = new Set(nodes);
  await api.create(RECORDER_POOL, object('RecorderPool', 'default', { archive: { hostPath: '/a' } }));
  for (const name of nodes) {
    await api.create(NODE, { metadata: { name, labels: {} } });
    const spec = { nodeName: name, poolRef: { name: 'default' }, role: 'Voter' };
    await api.create(RECORDER_NODE, object('RecorderNode', name, spec));
    const metadata = { namespace: NAMESPACE, name: nodeLeaseName(name), labels: poolLabels('default') };
    await api.create(LEASE, { metadata, spec: {} });
  }
  const caches = new Caches({ api, namespace: undefined, clock, log: silentLog });
  caches.start();
  await caches.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  await settle();
  const key = `${NAMESPACE}/default`;
  const assigner = new Assigner(
    {
      api,
      namespace: NAMESPACE,
      objects: () => caches.poolObjects(key),
      lease: (lease) => caches.leases.get(`${NAMESPACE}/${lease}`),
      isSynced: () => caches.isSynced && caches.isSyncedIn(NAMESPACE),
      isLeader,
      planned: () => {},
      moved: () => {},
      clock,
      log: silentLog,
    },
    caches.poolObjects(key) ?? assert.fail('no pool'),
  );
  t.after(async () => {
    assigner.close();
    await caches.close();
  });
  let renewedMs = -Infinity;
  const renew = async (): Promise<void> => {
    renewedMs = clock.monotonicMs();
    for (const node of live) {
      const name = { namespace: NAMESPACE, name: nodeLeaseName(node) };
      const spec = { renewTime: new Date(clock.wallMs()).toISOString() };
      assigner.sawLease(node, await api.mergePatch(LEASE, name, { spec }));
    }
  };
  const reported = new Map<string, string>();
  /** The recorders take up what they are given. */
  const report = async (): Promise<void> => {
    const { items } = await api.list(CAMERA, { namespace: NAMESPACE });
    for (const node of live) {
      const own = items.flatMap(({ metadata, status }) => {
        const { assignment } = (status ?? {}) as { assignment?: Assignment };
        return assignment?.node === node ? [{ name: metadata.name, epoch: assignment.epoch, state: 'Recording' }] : [];
      });
      if (reported.get(node) === JSON.stringify(own)) continue;
      reported.set(node, JSON.stringify(own));
      await api.mergePatch(RECORDER_NODE, { namespace: NAMESPACE, name: node }, { status: { cameras: own } });
    }
  };
  const pass = async (seconds: number): Promise<void> => {
    for (let ms = 0; ms < seconds * 1_000; ms += STEP_MS) {
      if (clock.monotonicMs() - renewedMs >= RENEW_MS) await renew();
      await report();
      clock.advance(STEP_MS);
      await settle();
    }
  };
  return {
    api,
    live,
    pass,
    addCamera: (name: string) => api.create(CAMERA, object('Camera', name, { source: 'rtsp://10.0.0.9/1' })),
    assignment: async (camera: string): Promise<Assignment | undefined> => {
      const { status } = await api.get(CAMERA, { namespace: NAMESPACE, name: camera });
      return (status as { assignment?: Assignment } | undefined)?.assignment;
    },
    setPool: (spec: object) => api.mergePatch(RECORDER_POOL, { namespace: NAMESPACE, name: 'default' }, { spec }),
    writes: () => api.calls.filter((call) => call.startsWith('mergePatch cameras/')).length,
    reads: (verb: 'get' | 'list') => api.calls.filter((call) => call.startsWith(`${verb} leases/`)).length,
  };
}

test('a camera gets a node, and the leader alone gives it one', async (t) => {
  let isLeader = false;
  const { addCamera, assignment, pass, writes } = await stage(t, ['a', 'b', 'c'], () => isLeader);
  await addCamera('gate');
  await pass(30);
  assert.equal(writes(), 0);
  isLeader = true;
  await pass(6);
  const { node = '', epoch, reason } = (await assignment('gate')) ?? assert.fail('no node');
  assert.ok(['a', 'b', 'c'].includes(node));
  assert.deepEqual([epoch, reason, writes()], [1, 'Scheduled', 1]);
});

test('a write whose response is lost is not repeated, although no watch shows it', async (t) => {
  const { api, addCamera, assignment, pass, writes } = await stage(t, ['a', 'b', 'c']);
  await pass(10);
  let lost = 0;
  api.drop = ({ type, object: { kind } }) => type === 'MODIFIED' && kind === 'Camera';
  api.after = (verb, resource) => {
    if (verb === 'mergePatch' && resource === CAMERA && lost++ === 0) throw noAnswer();
  };
  await addCamera('gate');
  await pass(30);
  assert.deepEqual([(await assignment('gate'))?.epoch, writes()], [1, 1]);
});

test('a write that did not arrive, or met a Camera that had changed, is made again from what the API server says', async (t) => {
  const { api, addCamera, assignment, pass } = await stage(t, ['a', 'b', 'c']);
  await pass(10);
  const failures = [noAnswer(), new ApiError(409, 'Conflict', 'changed meanwhile')];
  api.before = (verb, resource) => {
    const failure = verb === 'mergePatch' && resource === CAMERA ? failures.shift() : undefined;
    if (failure) throw failure;
  };
  await addCamera('gate');
  await pass(30);
  assert.equal(failures.length, 0);
  assert.equal((await assignment('gate'))?.epoch, 1);
});

test('a silent node loses its camera when the API server itself has no renewal, and not before', async (t) => {
  const { api, addCamera, assignment, live, pass } = await stage(t, ['a', 'b', 'c']);
  await addCamera('gate');
  await pass(30);
  const { node: lost = '' } = (await assignment('gate')) ?? {};
  let areReadsAnswered = false;
  api.before = (verb, resource) => {
    if (resource === LEASE && (verb === 'get' || verb === 'list') && !areReadsAnswered) throw noAnswer();
  };
  live.delete(lost);
  await pass(60);
  assert.equal((await assignment('gate'))?.node, lost, 'nobody has confirmed its silence');
  areReadsAnswered = true;
  await pass(10);
  const { node, epoch, reason, lastSeenTime } = (await assignment('gate')) ?? assert.fail('no assignment');
  assert.notEqual(node, lost);
  assert.deepEqual([epoch, reason], [2, 'NodeUnavailable']);
  assert.ok(lastSeenTime, 'since when nobody records');
});

test('Leases of many silent nodes are read with lists, those of few one by one', async (t) => {
  const nodes = Array.from({ length: 12 }, (_, i) => `node-${i}`);
  const { api, live, pass, reads } = await stage(t, nodes);
  await pass(30);
  api.calls.length = 0;
  live.delete('node-0');
  await pass(12);
  assert.deepEqual([reads('get') > 0, reads('list')], [true, 0]);
  api.calls.length = 0;
  for (const node of nodes.slice(1, 6)) live.delete(node);
  await pass(12);
  assert.ok(reads('list') > 0);
});

test('an API server whose kind Camera is older and drops status.standby is not written to again and again', async (t) => {
  const { api, addCamera, assignment, pass, setPool, writes } = await stage(t, ['a', 'b', 'c']);
  // As with structural schemas: fields that the kind does not have are pruned.
  const write = api.mergePatch.bind(api);
  api.mergePatch = (resource, name, patch, options) => {
    const { standby: _, ...status } = (patch as { readonly status?: { readonly standby?: unknown } }).status ?? {};
    return write(resource, name, resource === CAMERA ? { ...patch, status } : patch, options);
  };
  await setPool({ failover: { standby: true } });
  await addCamera('gate');
  await pass(120);
  assert.equal((await assignment('gate'))?.epoch, 1);
  assert.ok(writes() <= 3, `${writes()} writes`);
});
