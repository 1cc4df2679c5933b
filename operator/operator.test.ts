// One replica as a whole, over an API server in memory and time that is moved by hand.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { API_VERSION, nodeLeaseName, poolLabels } from '../crds/names.ts';
import type { KubeObject } from './kube/api.ts';
import { CAMERA, LEASE, NODE, RECORDER_NODE, RECORDER_POOL } from './kube/resources.ts';
import { MemoryApi, settle } from './kube/test-support.ts';
import { startOperator } from './operator.ts';

const NAMESPACE = 'video';
const STEP_MS = 250;
const RENEW_MS = 2_000;
const MAX_CLOSING_STEPS = 400;

type Assignment = Readonly<Record<string, unknown>>;
type Spec = { readonly renewTime: string };

/** Three nodes, of which the live ones renew their Leases; cameras are taken up as soon as they are assigned. */
class World {
  readonly api = new MemoryApi();
  readonly clock = new VirtualClock();
  readonly live = new Set(['a', 'b', 'c']);
  #renewedMs = -Infinity;

  async start(t: TestContext, before: MemoryApi['before'] = () => {}): Promise<void> {
    const { api, clock } = this;
    await api.create(RECORDER_POOL, this.#object('RecorderPool', 'default', { archive: { hostPath: '/mnt/archive' } }));
    for (const name of this.live) {
      await api.create(NODE, { metadata: { name, labels: {} } });
      const spec = { nodeName: name, poolRef: { name: 'default' }, role: 'Voter' };
      await api.create(RECORDER_NODE, this.#object('RecorderNode', name, spec));
      const metadata = { namespace: NAMESPACE, name: nodeLeaseName(name), labels: poolLabels('default') };
      await api.create(LEASE, { metadata, spec: {} });
    }
    api.calls.length = 0;
    api.before = before;
    const options = { namespace: NAMESPACE, ownNamespace: 'system', identity: 'one/1', image: 'recorder' };
    const operator = startOperator({ ...options, api, clock, log: silentLog });
    t.after(async () => {
      const end = { isReached: false };
      void operator.close().then(() => (end.isReached = true));
      for (let i = 0; i < MAX_CLOSING_STEPS && !end.isReached; i++) await this.#step();
      assert.ok(end.isReached, 'it does not end');
    });
  }

  addCamera(name: string): Promise<unknown> {
    return this.api.create(CAMERA, this.#object('Camera', name, { source: 'rtsp://10.0.0.9/1' }));
  }

  async pass(seconds: number): Promise<void> {
    for (let ms = 0; ms < seconds * 1_000; ms += STEP_MS) await this.#step();
  }

  async assignment(camera: string): Promise<Assignment | undefined> {
    const { status } = await this.api.get(CAMERA, { namespace: NAMESPACE, name: camera });
    return (status as { assignment?: Assignment } | undefined)?.assignment;
  }

  async renewTime(node: string): Promise<string> {
    const { spec } = await this.api.get(LEASE, { namespace: NAMESPACE, name: nodeLeaseName(node) });
    return (spec as Spec).renewTime;
  }

  async #step(): Promise<void> {
    const { api, clock, live } = this;
    if (clock.monotonicMs() - this.#renewedMs >= RENEW_MS) {
      this.#renewedMs = clock.monotonicMs();
      const renewTime = new Date(clock.wallMs()).toISOString().replace('Z', '000Z');
      for (const node of live) {
        await api.mergePatch(LEASE, { namespace: NAMESPACE, name: nodeLeaseName(node) }, { spec: { renewTime } });
      }
    }
    clock.advance(STEP_MS);
    await settle();
  }

  #object(kind: string, name: string, spec: object): KubeObject {
    return { apiVersion: API_VERSION, kind, metadata: { namespace: NAMESPACE, name }, spec };
  }
}

/** Of the operator's own Lease: how it comes to lead. */
const isElection = (call: string): boolean => call.includes(' leases/');
const writesIn = (calls: readonly string[]): readonly string[] =>
  calls.filter((call) => !/^(get|list|watch) /.test(call) && !isElection(call));

test('nothing is written before the caches are filled', async (t) => {
  const world = new World();
  const lists = Promise.withResolvers<void>();
  await world.addCamera('gate');
  await world.start(t, (verb, { plural }) =>
    verb === 'list' && plural === RECORDER_NODE.plural ? lists.promise : undefined,
  );
  await world.pass(20);
  assert.deepEqual(writesIn(world.api.calls), []);
  lists.resolve();
  await world.pass(20);
  assert.ok(await world.assignment('gate'));
});

test('assignments do not wait for what is shown: status is written by a queue of its own', async (t) => {
  const world = new World();
  const status = Promise.withResolvers<void>();
  for (let i = 0; i < 20; i++) await world.addCamera(`camera-${i}`);
  await world.start(t, (verb) => (verb === 'apply' ? status.promise : undefined));
  await world.pass(20);
  status.resolve();
  for (let i = 0; i < 20; i++) assert.ok(await world.assignment(`camera-${i}`), `camera-${i}`);
});

test('while new cameras are given to nodes, no status is written: it would take the API server as long', async (t) => {
  const world = new World();
  const cameras = Array.from({ length: 96 }, (_, i) => `camera-${i}`);
  await Promise.all(cameras.map((camera) => world.addCamera(camera)));
  const isOfCamera = ({ plural }: { plural: string }): boolean => plural === CAMERA.plural;
  // 32 at once: the last ones are sent after 6 s.
  await world.start(t, (verb, resource) =>
    verb === 'mergePatch' && isOfCamera(resource) ? world.clock.sleep(3_000) : undefined,
  );
  await world.pass(16);
  const of = (verb: string): readonly number[] =>
    world.api.calls.flatMap((call, i) => (call.startsWith(`${verb} cameras`) ? [i] : []));
  const [first = Infinity, last = -Infinity] = [of('mergePatch')[0], of('mergePatch')[cameras.length - 1]];
  assert.ok(first < last);
  assert.deepEqual(
    of('apply').filter((at) => at > first && at < last),
    [],
  );
  // Nobody takes them up here, so that they are given away again and again: for a minute at most.
  await world.pass(60);
  assert.ok(
    of('apply').some((at) => at > last),
    'nothing is shown at all',
  );
});

test('a camera that leaves a silent node carries when that was seen last, also to the node after the next', async (t) => {
  const world = new World();
  await world.addCamera('gate');
  await world.start(t);
  await world.pass(8);
  const before = await world.assignment('gate');
  assert.ok(before && before['lastSeenTime'] === undefined);
  const node = String(before['node']);
  const report = { cameras: [{ name: 'gate', epoch: before['epoch'], state: 'Recording' }] };
  await world.api.mergePatch(RECORDER_NODE, { namespace: NAMESPACE, name: node }, { status: report });
  await world.pass(5);
  world.live.delete(node);
  const renewed = await world.renewTime(node);
  await world.pass(17);
  const after = await world.assignment('gate');
  assert.deepEqual([after?.['previousNode'], after?.['reason']], [node, 'NodeUnavailable']);
  assert.equal(after?.['lastSeenTime'], new Date(renewed).toISOString());
  await world.pass(7);
  const later = await world.assignment('gate');
  assert.deepEqual([later?.['reason'], later?.['lastSeenTime']], ['NotTakenUp', after?.['lastSeenTime']]);
});
