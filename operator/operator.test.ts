// One replica as a whole, over an API server in memory and time that is moved by hand.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { sha256 } from '../base/new-token.ts';
import { API_VERSION, AUTHORITIES_SECRET, nodeLeaseName, OPERATOR_LEASE, poolLabels } from '../crds/names.ts';
import { ApiError, type KubeApi, type KubeObject, type ObjectName, type Resource } from './kube/api.ts';
import {
  CAMERA,
  CONFIG_MAP,
  DAEMON_SET,
  EVENT,
  LEASE,
  NODE,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  POD_DISRUPTION_BUDGET,
  RECORDER_NODE,
  RECORDER_POOL,
  ROLE,
  ROLE_BINDING,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
} from './kube/resources.ts';
import { MemoryApi, settle } from './kube/test-support.ts';
import { nodeRecorderName } from './manifests/storage.ts';
import { until } from '../test/support/until.ts';
import { startOperator, type Operator } from './operator.ts';
import { AUTHORITY_LIFE_MS } from '../base/authorities.ts';

const NAMESPACE = 'video';
const STEP_MS = 250;
const RENEW_MS = 2_000;
/** Of real time: keys of certificates are made in it, and a machine may be busy. */
const MAX_WAIT_MS = 120_000;

type Assignment = Readonly<Record<string, unknown>>;
interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}
type Spec = { readonly renewTime: string };

/** Three nodes, of which the live ones renew their Leases; cameras are taken up as soon as they are assigned. */
class World {
  readonly api = new MemoryApi();
  readonly clock = new VirtualClock();
  readonly live = new Set(['a', 'b', 'c']);
  #renewedMs = -Infinity;
  #operator: Operator | undefined;

  /** `more`: options of the operator. */
  async start(t: TestContext, before: MemoryApi['before'] = () => {}, more: object = {}): Promise<void> {
    const { api, clock } = this;
    await api.create(RECORDER_POOL, this.#object('RecorderPool', 'default', { archive: { hostPath: '/mnt/archive' } }));
    // Making one takes a time that no test has in its hands.
    const kept = [
      { certificate: 'of a CA\n', key: '', fromMs: clock.wallMs(), toMs: clock.wallMs() + AUTHORITY_LIFE_MS },
    ];
    const data = Buffer.from(JSON.stringify(kept)).toString('base64');
    await api.create(SECRET, {
      metadata: { namespace: 'system', name: AUTHORITIES_SECRET },
      data: { [`${NAMESPACE}_default`]: data, [`${NAMESPACE}_second`]: data },
    });
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
    this.#operator = await startOperator({ ...options, api, clock, log: silentLog, ...more });
    t.after(() => this.stop());
  }

  /** Resolves to how long it took, in milliseconds. */
  async stop(): Promise<number> {
    const startMs = this.clock.monotonicMs();
    const end = { isReached: false };
    void this.#operator?.close().then(() => (end.isReached = true));
    const deadlineMs = performance.now() + MAX_WAIT_MS;
    while (!end.isReached && performance.now() < deadlineMs) await this.#step();
    assert.ok(end.isReached, 'it does not end');
    return this.clock.monotonicMs() - startMs;
  }

  addCamera(name: string, more: object = {}): Promise<unknown> {
    return this.api.create(CAMERA, this.#object('Camera', name, { source: 'rtsp://10.0.0.9/1', ...more }));
  }

  async pass(seconds: number): Promise<void> {
    for (let ms = 0; ms < seconds * 1_000; ms += STEP_MS) await this.#step();
  }

  /** Time passes until something is so. */
  until(what: string, ask: () => Promise<boolean>): Promise<boolean> {
    const look = async (): Promise<boolean> => {
      await this.pass(10);
      return ask().catch(() => false);
    };
    return until(what, look, MAX_WAIT_MS, 1);
  }

  addPool(name: string): Promise<unknown> {
    return this.api.create(
      RECORDER_POOL,
      this.#object('RecorderPool', name, { archive: { hostPath: '/mnt/archive' } }),
    );
  }

  /** A condition of a pool, as it is shown. */
  async condition(pool: string, type: string): Promise<Condition | undefined> {
    const { status } = await this.api.get(RECORDER_POOL, { namespace: NAMESPACE, name: pool });
    return (status as { conditions?: readonly Condition[] } | undefined)?.conditions?.find((one) => one.type === type);
  }

  /** The metrics of a node for which there is an alert. */
  async alerting(node: string): Promise<readonly string[]> {
    const lines = ((await this.#operator?.metrics.registry.metrics()) ?? '').split('\n');
    const isBad = (name: string): boolean =>
      lines.some(
        (line) => line.startsWith(`kube_nvr_operator_${name}{`) && line.includes(`"${node}"`) && line.endsWith(' 0'),
      );
    return ['node_live', 'node_started'].filter(isBad);
  }

  /** Nodes on which no pod of the pool may run. */
  async keptOff(pool: string): Promise<readonly string[]> {
    const { spec } = await this.api.get(DAEMON_SET, { namespace: NAMESPACE, name: `${pool}-recorder` });
    return [...JSON.stringify(spec).matchAll(/"operator":"NotIn","values":\["(\w+)"\]/g)].map(([, node = '']) => node);
  }

  /** Nodes on which pods of the pool run whatever the pool selects. */
  async named(): Promise<readonly string[]> {
    const { spec } = await this.api.get(DAEMON_SET, { namespace: NAMESPACE, name: 'default-recorder' });
    return [...JSON.stringify(spec).matchAll(/"operator":"In","values":\["(\w)"\]/g)].map(([, node = '']) => node);
  }

  /** The condition Standby of a camera, as it is shown: its status and reason. */
  async standbyShown(camera: string): Promise<string | undefined> {
    const { status } = await this.api.get(CAMERA, { namespace: NAMESPACE, name: camera });
    const { conditions = [] } = (status ?? {}) as { conditions?: readonly Condition[] };
    const shown = conditions.find(({ type }) => type === 'Standby');
    return shown && `${shown.status} ${shown.reason}`;
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

test('an operator that is stopped soon after its start ends in time, although the API server hangs or refuses Events', async (t) => {
  for (const hung of [DAEMON_SET, RECORDER_POOL, CAMERA, EVENT]) {
    const world = new World();
    let isHung = false;
    await world.start(t, async (verb, { plural }) => {
      if (plural === EVENT.plural) throw new ApiError(500, 'InternalError', 'busy');
      if (plural !== hung.plural || verb === 'list' || verb === 'watch' || !isHung) return;
      await new Promise(() => {});
    });
    await world.addCamera('gate');
    isHung = true;
    await world.pass(3);
    const tookMs = await world.stop();
    assert.ok(tookMs < 8_000, `${hung.plural}: ${tookMs} ms`);
    const { spec } = await world.api.get(LEASE, { namespace: 'system', name: OPERATOR_LEASE });
    assert.equal((spec as { holderIdentity?: string }).holderIdentity ?? null, null, 'the Lease is free');
  }
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

test('a camera shows what the node reports that holds it, although nothing else of it changes', async (t) => {
  const world = new World();
  await world.addCamera('gate', { placement: { standby: true } });
  await world.start(t);
  await world.pass(8);
  const { status } = await world.api.get(CAMERA, { namespace: NAMESPACE, name: 'gate' });
  const { assignment, standby } = status as Record<'assignment' | 'standby', { node: string; epoch: number }>;
  const report = (node: string, more: object): Promise<unknown> =>
    world.api.mergePatch(RECORDER_NODE, { namespace: NAMESPACE, name: node }, { status: more });
  await report(assignment.node, { cameras: [{ name: 'gate', epoch: assignment.epoch, state: 'Recording' }] });
  const shownWith = async (standbys: readonly object[]): Promise<string | undefined> => {
    await report(standby.node, { standbys: standbys.map((one) => ({ name: 'gate', epoch: standby.epoch, ...one })) });
    await world.pass(4);
    return world.standbyShown('gate');
  };
  assert.equal(await shownWith([{ state: 'Connecting' }]), 'False Connecting');
  assert.equal(await shownWith([{ state: 'Holding' }]), 'True Holding');
  assert.equal(await shownWith([]), 'False NotTakenUp', 'its recorder was restarted');
  assert.equal(await shownWith([{ state: 'Holding' }]), 'True Holding');
});

test('a camera shows why it has no standby as soon as its pool wants one, and until it does not', async (t) => {
  const world = new World();
  await world.addCamera('gate');
  await world.start(t);
  await world.pass(8);
  const { node, epoch } = (await world.assignment('gate')) ?? {};
  const cameras = [{ name: 'gate', epoch, state: 'Recording' }];
  await world.api.mergePatch(RECORDER_NODE, { namespace: NAMESPACE, name: String(node) }, { status: { cameras } });
  for (const name of [...world.live].filter((one) => one !== node))
    await world.api.mergePatch(RECORDER_NODE, { namespace: NAMESPACE, name }, { spec: { drain: true } });
  await world.pass(8);
  const shownWith = async (standby: boolean): Promise<string | undefined> => {
    const pool = { namespace: NAMESPACE, name: 'default' };
    await world.api.mergePatch(RECORDER_POOL, pool, { spec: { failover: { standby } } });
    await world.pass(8);
    return world.standbyShown('gate');
  };
  assert.equal(await shownWith(true), 'False NoEligibleNode');
  assert.equal(await shownWith(false), undefined);
});

test('a healthy new camera gives no Warning; one whose placement cannot be met gives one', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  await world.addCamera('gate');
  // Nobody takes it up in this world: after five seconds, that is worth a Warning.
  await world.pass(4);
  const about = async (): Promise<readonly (readonly [unknown, unknown])[]> =>
    (await world.api.list(EVENT, { namespace: NAMESPACE })).items
      .filter(({ regarding }) => (regarding as { kind: string }).kind === 'Camera')
      .map(({ type, reason }) => [type, reason] as const);
  const first = await about();
  assert.ok(first.length > 0);
  assert.deepEqual(
    first.filter(([type]) => type !== 'Normal'),
    [],
  );
  const camera = { namespace: NAMESPACE, name: 'gate' };
  await world.api.mergePatch(CAMERA, camera, { spec: { placement: { preferredNode: 'z' } } });
  await world.until('it is said', async () =>
    (await about()).some(([type, reason]) => type === 'Warning' && reason === 'PreferredNodeUnknown'),
  );
});

test('a pool that lost a node is not Ready and names it; a node that is drained is expected to go away', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(30);
  assert.equal((await world.condition('default', 'Ready'))?.status, 'True');
  world.live.delete('b');
  await world.pass(40);
  const ready = await world.condition('default', 'Ready');
  assert.deepEqual(
    [ready?.status, ready?.reason, ready?.message],
    ['False', 'NodesUnavailable', '1 of 3 nodes is unavailable: b'],
  );
  await world.api.mergePatch(RECORDER_NODE, { namespace: NAMESPACE, name: 'b' }, { spec: { drain: true } });
  await world.pass(20);
  assert.equal((await world.condition('default', 'Ready'))?.status, 'True');
});

test('kubectl rollout restart of the DaemonSet makes every pod outdated', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  const name = { namespace: NAMESPACE, name: 'default-recorder' };
  type Template = { template: { metadata: { annotations: Record<string, string> } } };
  const annotations = async (): Promise<Record<string, string>> =>
    ((await world.api.get(DAEMON_SET, name))['spec'] as Template).template.metadata.annotations;
  const before = (await annotations())['kube-nvr.dev/settings'];
  const restarted = { 'kubectl.kubernetes.io/restartedAt': '2026-11-23T10:00:00Z' };
  await world.api.mergePatch(DAEMON_SET, name, { spec: { template: { metadata: { annotations: restarted } } } });
  await world.pass(20);
  assert.notEqual((await annotations())['kube-nvr.dev/settings'], before);
});

test('what runs the recorders is made again when others delete or change it, and an Event says so', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  const owned = [SERVICE_ACCOUNT, ROLE, ROLE_BINDING, CONFIG_MAP, SERVICE, POD_DISRUPTION_BUDGET, DAEMON_SET];
  const name = { namespace: NAMESPACE, name: 'default-recorder' };
  const contents = (): Promise<readonly string[]> =>
    Promise.all(
      owned.map(async (resource) => {
        const { metadata, ...content } = await world.api.get(resource, name);
        return JSON.stringify([metadata.labels, content]);
      }),
    );
  const notes = async (): Promise<readonly string[]> =>
    (await world.api.list(EVENT, { namespace: NAMESPACE })).items
      .filter(({ reason }) => reason === 'ObjectRestored')
      .map(({ note }) => /(\w+)\/default-recorder/.exec(String(note))?.[1] ?? String(note))
      .sort();
  const before = await contents();
  assert.deepEqual(await notes(), []);

  for (const resource of owned) await world.api.delete(resource, name);
  // Much less than the time after which everything is applied again.
  await world.pass(20);
  assert.deepEqual(await contents(), before);
  assert.deepEqual(await notes(), owned.map(({ kind }) => kind).sort());

  await world.api.mergePatch(SERVICE, name, { spec: { selector: { 'kube-nvr.dev/pool': 'other' } } });
  await world.api.mergePatch(CONFIG_MAP, name, { data: { 'config.yaml': 'listen: ":1"' } });
  await world.pass(20);
  assert.deepEqual(await contents(), before);
});

test('with claims each node has a claim and a DaemonSet; of a node that leaves the pool only the claim stays', async (t) => {
  const world = new World();
  await world.start(t);
  const pool = { namespace: NAMESPACE, name: 'default' };
  const resources = { requests: { storage: '1Ti' } };
  const archive = { hostPath: null, volumeClaimTemplate: { spec: { resources } } };
  await world.api.mergePatch(RECORDER_POOL, pool, { metadata: { generation: 2 }, spec: { archive } });
  await world.pass(20);
  const names = async (resource: Resource): Promise<readonly string[]> =>
    (await world.api.list(resource, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.name);
  const ofNodes = async (): Promise<readonly string[]> =>
    (await names(DAEMON_SET)).filter((name) => name !== 'default-recorder');
  assert.deepEqual([(await names(PERSISTENT_VOLUME_CLAIM)).length, (await ofNodes()).length], [3, 3]);
  await world.api.mergePatch(NODE, { name: 'c' }, { metadata: { labels: { zone: 'x' } } });
  await world.api.mergePatch(RECORDER_POOL, pool, {
    metadata: { generation: 3 },
    spec: { nodeSelector: { zone: 'x' } },
  });
  await world.pass(20);
  assert.deepEqual([(await names(PERSISTENT_VOLUME_CLAIM)).length, (await ofNodes()).length], [3, 1]);
});

test('a pool that the API server refuses says so, and everything else of it continues being shown', async (t) => {
  const world = new World();
  const name = { namespace: NAMESPACE, name: 'default' };
  let refuses = false;
  await world.addCamera('gate');
  await world.start(t, (verb, resource) => {
    if (refuses && verb === 'apply' && resource === DAEMON_SET)
      throw new ApiError(422, 'Invalid', 'memory: must be less than or equal to memory limit of 512Mi');
  });
  await world.pass(30);
  assert.equal((await world.condition('default', 'Ready'))?.status, 'True');

  refuses = true;
  const resources = { requests: { memory: '1Gi' }, limits: { memory: '512Mi' } };
  await world.api.mergePatch(RECORDER_POOL, name, { metadata: { generation: 2 }, spec: { resources } });
  world.live.delete('b');
  await world.pass(40);
  const applied = await world.condition('default', 'ResourcesApplied');
  assert.deepEqual([applied?.status, applied?.reason], ['False', 'Rejected']);
  assert.match(applied?.message ?? '', /^the API server refuses DaemonSet\/default-recorder: memory: must be less/);
  const ready = await world.condition('default', 'Ready');
  assert.deepEqual([ready?.status, ready?.reason], ['False', 'Rejected']);
  assert.equal((await world.condition('default', 'Stalled'))?.reason, 'Rejected');
  const { status } = (await world.api.get(RECORDER_POOL, name)) as KubeObject & { status: Assignment };
  assert.deepEqual([status['observedGeneration'], status['nodes'], status['nodesReady']], [2, 3, 2]);
  const { status: dead } = await world.api.get(RECORDER_NODE, { namespace: NAMESPACE, name: 'b' });
  const [online] = (dead as { conditions: readonly Condition[] }).conditions;
  assert.deepEqual([online?.type, online?.status], ['Online', 'False']);
  const events = (await world.api.list(EVENT, { namespace: NAMESPACE })).items;
  assert.ok(
    events.some(({ reason, type }) => reason === 'Rejected' && type === 'Warning'),
    'there is an event',
  );

  refuses = false;
  await world.pass(20);
  assert.equal((await world.condition('default', 'ResourcesApplied'))?.status, 'True', 'it is tried again');
  assert.equal(await world.condition('default', 'Stalled'), undefined);
});

test('an API server that fails leaves what is shown of a pool as of the generation for which it was true', async (t) => {
  const world = new World();
  const name = { namespace: NAMESPACE, name: 'default' };
  let fails = false;
  await world.start(t, (verb, resource) => {
    if (fails && verb === 'apply' && resource === DAEMON_SET) throw new ApiError(500, 'InternalError', 'etcd');
  });
  await world.api.mergePatch(RECORDER_POOL, name, { metadata: { generation: 1 } });
  await world.pass(30);
  fails = true;
  await world.api.mergePatch(RECORDER_POOL, name, {
    metadata: { generation: 2 },
    spec: { limits: { maxCamerasPerNode: 7 } },
  });
  world.live.delete('b');
  await world.pass(40);
  const { status } = (await world.api.get(RECORDER_POOL, name)) as KubeObject & { status: Assignment };
  assert.deepEqual([status['observedGeneration'], status['nodesReady']], [1, 2]);
  assert.equal((await world.condition('default', 'ResourcesApplied'))?.status, 'True');
  fails = false;
  await world.until('the pool was reconciled', async () => {
    const { status: now } = await world.api.get(RECORDER_POOL, name);
    return (now as Assignment)['observedGeneration'] === 2;
  });
});

test('no pod is replaced while the DaemonSet is refused: it would make the same pods again', async (t) => {
  const world = new World();
  const pods = ['a', 'b', 'c'].map((node) => ({ namespace: NAMESPACE, name: `pod-${node}` }));
  await world.start(t, (verb, resource) => {
    if (verb === 'apply' && resource === DAEMON_SET) throw new ApiError(403, 'Forbidden', 'exceeded quota');
  });
  for (const [i, pod] of pods.entries()) {
    const metadata = { ...pod, labels: poolLabels('default'), annotations: { 'kube-nvr.dev/settings': 'old' } };
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }];
    const nodeName = 'abc'[i] ?? '';
    await world.api.create(POD, { metadata, spec: { nodeName }, status: { conditions } });
    await world.api.mergePatch(NODE, { name: nodeName }, { status: { conditions } });
  }
  await world.pass(120);
  for (const pod of pods) assert.ok(await world.api.get(POD, pod));
  assert.deepEqual(
    world.api.calls.filter((call) => call.startsWith('delete')),
    [],
  );
});

test('a pool that selects no node says so, with the command that labels one, until there is one', async (t) => {
  const world = new World();
  await world.start(t);
  const name = { namespace: NAMESPACE, name: 'default' };
  const select = (nodeSelector: object): Promise<unknown> =>
    world.api.mergePatch(RECORDER_POOL, name, { spec: { nodeSelector } });
  await select({ 'kube-nvr.dev/recorder': 'true' });
  await world.pass(20);
  const selected = await world.condition('default', 'NodesSelected');
  assert.deepEqual([selected?.status, selected?.reason], ['False', 'NoNodes']);
  assert.match(selected?.message ?? '', /kubectl label node NODE kube-nvr\.dev\/recorder=true$/);
  for (const type of ['Ready', 'Stalled']) {
    assert.equal((await world.condition('default', type))?.reason, 'NoNodes', type);
  }

  await world.api.mergePatch(NODE, { name: 'a' }, { metadata: { labels: { 'kube-nvr.dev/recorder': 'true' } } });
  await world.until(
    'it knows of the label',
    async () => (await world.condition('default', 'NodesSelected'))?.status === 'True',
  );
});

test('the pod of a node that is selected no more stays until the node has no camera', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  const name = { namespace: NAMESPACE, name: 'default' };
  const label = (node: string, recorder: string | null): Promise<unknown> =>
    world.api.mergePatch(NODE, { name: node }, { metadata: { labels: { recorder, own: node } } });
  for (const node of world.live) await label(node, 'true');
  await world.pass(1);
  await world.api.mergePatch(RECORDER_POOL, name, { spec: { nodeSelector: { recorder: 'true' } } });
  const isNamed = (nodes: string) => async () => (await world.named()).join() === nodes;
  await world.until('each node is named before it is left', isNamed('a,b,c'));
  // Only its node can record it, and does until somebody decides otherwise.
  await world.addCamera('gate', { placement: { nodeSelector: { own: 'a' } } });
  await world.until('it is recorded there', async () => (await world.assignment('gate'))?.node === 'a');
  await label('a', null);
  await label('b', null);
  await world.until('b has no camera', isNamed('a,c'));
  await world.pass(30);
  assert.deepEqual(await world.named(), ['a', 'c']);
  await world.api.delete(CAMERA, { namespace: NAMESPACE, name: 'gate' });
  await world.until('a has no camera', isNamed('c'));
});

test('what another version wrote is named: cameras are recorded, and the objects of a pool stay as they are', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  await world.addCamera('gate', { transport: 'Quic' });
  await world.until('it is given a node', async () => (await world.assignment('gate'))?.node !== undefined);
  await world.until('it is named', async () => {
    const read = await world.condition('default', 'CamerasRead');
    return read?.reason === 'InvalidCamera' && read.message.endsWith(': gate (spec.transport)');
  });
  assert.equal((await world.condition('default', 'Ready'))?.reason, 'InvalidCamera');
  const daemonSet = { namespace: NAMESPACE, name: 'default-recorder' };
  const before = (await world.api.get(DAEMON_SET, daemonSet)).metadata.resourceVersion;
  const name = { namespace: NAMESPACE, name: 'default' };
  await world.api.mergePatch(RECORDER_POOL, name, { spec: { auth: { mode: 'Passkeys' }, runAsUser: 0 } });
  await world.until('the pool says so', async () => {
    const applied = await world.condition('default', 'ResourcesApplied');
    return applied?.reason === 'NotUnderstood' && applied.message.includes('spec.auth.mode');
  });
  assert.equal((await world.api.get(DAEMON_SET, daemonSet)).metadata.resourceVersion, before);
  await world.addCamera('hall');
  await world.until('the pool records', async () => (await world.assignment('hall'))?.node !== undefined);
});

test('a node on which its pod cannot be scheduled is part of the pool, and the update does not wait for it', async (t) => {
  const world = new World();
  await world.start(t);
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['full'] }];
  const message = '0/4 nodes are available: 1 Insufficient memory';
  await world.api.create(NODE, { metadata: { name: 'full', labels: {} } });
  await world.api.create(POD, {
    metadata: { namespace: NAMESPACE, name: 'pod-full', labels: poolLabels('default') },
    spec: {
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } },
      },
    },
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message }] },
  });
  await world.until('there is a RecorderNode', async () =>
    Boolean(await world.api.get(RECORDER_NODE, { namespace: NAMESPACE, name: 'full' })),
  );
  const told =
    /does not wait for full \(its pod cannot be scheduled: 0\/4 nodes are available: 1 Insufficient memory\)/;
  await world.until('the update does not wait for it', async () =>
    told.test((await world.condition('default', 'RolloutStopped'))?.message ?? ''),
  );
  await world.until('the pool says so', async () => {
    const placed = await world.condition('default', 'PodsPlaced');
    return placed?.reason === 'Unschedulable' && placed.message.includes(`full (${message})`);
  });
  assert.deepEqual(await world.alerting('full'), ['node_started']);
});

test('a node for which no pod is made is part of the pool, which names it, and the update continues without it', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  for (const name of ['short', 'tainted']) await world.api.create(NODE, { metadata: { name, labels: {} } });
  const taints = [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }];
  await world.api.mergePatch(NODE, { name: 'tainted' }, { spec: { taints } });
  for (const name of world.live) {
    const metadata = { namespace: NAMESPACE, name: `pod-${name}`, labels: poolLabels('default') };
    await world.api.create(POD, { metadata, spec: { nodeName: name } });
  }
  const count = (currentNumberScheduled: number): Promise<unknown> =>
    world.api.mergePatch(
      DAEMON_SET,
      { namespace: NAMESPACE, name: 'default-recorder' },
      { status: { desiredNumberScheduled: 4, currentNumberScheduled } },
    );
  const placed = async () => world.condition('default', 'PodsPlaced');
  await count(3);
  await world.pass(30);
  assert.equal((await placed())?.status, 'True', 'a pod may be on its way');
  await world.until('the pool says so', async () => (await placed())?.reason === 'NoPod');
  assert.match((await placed())?.message ?? '', /^no pod is made for short; .*describe daemonset default-recorder$/);
  await world.until('there is a RecorderNode', async () =>
    Boolean(await world.api.get(RECORDER_NODE, { namespace: NAMESPACE, name: 'short' })),
  );
  await assert.rejects(world.api.get(RECORDER_NODE, { namespace: NAMESPACE, name: 'tainted' }));
  await world.pass(20);
  assert.deepEqual(await world.alerting('short'), ['node_started']);
  assert.equal((await world.condition('default', 'RolloutStopped'))?.status, 'False');

  await count(4);
  await world.until('it has a pod', async () => (await placed())?.status === 'True');
});

test('in a pool with claims the DaemonSet of a node without a pod is asked, and named', async (t) => {
  const world = new World();
  await world.start(t);
  const archive = { hostPath: null, volumeClaimTemplate: { spec: { resources: { requests: { storage: '1Ti' } } } } };
  await world.api.mergePatch(
    RECORDER_POOL,
    { namespace: NAMESPACE, name: 'default' },
    { metadata: { generation: 2 }, spec: { archive } },
  );
  await world.pass(20);
  const [first = '', ...others] = world.live;
  for (const name of others) {
    const metadata = { namespace: NAMESPACE, name: `pod-${name}`, labels: poolLabels('default') };
    await world.api.create(POD, { metadata, spec: { nodeName: name } });
  }
  const own = { namespace: NAMESPACE, name: nodeRecorderName('default', first) };
  const count = (currentNumberScheduled: number): Promise<unknown> =>
    world.api.mergePatch(DAEMON_SET, own, { status: { desiredNumberScheduled: 1, currentNumberScheduled } });
  await count(0);
  const placed = async () => world.condition('default', 'PodsPlaced');
  await world.until('the pool says so', async () => (await placed())?.reason === 'NoPod');
  const { message = '' } = (await placed()) ?? {};
  assert.equal(
    message,
    `no pod is made for ${first}; its events say why: kubectl -n ${NAMESPACE} describe daemonset ${own.name}`,
  );
  await count(1);
  await world.until('it has a pod', async () => (await placed())?.status === 'True');
});

test('a second pool on nodes of a first gets no pods there, says why, and gets a node that the first leaves', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  await world.addPool('second');
  await world.pass(20);
  assert.deepEqual([await world.keptOff('default'), await world.keptOff('second')], [[], ['a', 'b', 'c']]);
  assert.equal((await world.condition('default', 'NodesTaken'))?.status, 'False');
  const taken = await world.condition('second', 'NodesTaken');
  assert.deepEqual([taken?.status, taken?.reason], ['True', 'NodeTaken']);
  assert.match(taken?.message ?? '', /a \(pool default\), b \(pool default\), c \(pool default\)$/);
  assert.equal((await world.condition('second', 'Ready'))?.status, 'False');

  await world.api.delete(RECORDER_NODE, { namespace: NAMESPACE, name: 'b' });
  await world.pass(40);
  assert.deepEqual(await world.keptOff('second'), ['a', 'c']);
});

test('the Lease of a node is made for its recorder to renew, and again when somebody took it away', async (t) => {
  const world = new World();
  await world.start(t);
  await world.pass(20);
  world.live.delete('b');
  const name = { namespace: NAMESPACE, name: nodeLeaseName('b') };
  await world.api.delete(LEASE, name);
  await world.pass(2);
  const { metadata, spec } = (await world.api.get(LEASE, name)) as KubeObject & { metadata: object };
  assert.deepEqual([spec, metadata.labels], [undefined, poolLabels('default')]);
  const { metadata: node } = await world.api.get(RECORDER_NODE, { namespace: NAMESPACE, name: 'b' });
  assert.deepEqual(metadata['ownerReferences'], [
    { apiVersion: API_VERSION, kind: 'RecorderNode', name: 'b', uid: node.uid },
  ]);
});

/** With the rights that the chart gives an operator of all namespaces: everything in `granted`, elsewhere what is ours. */
class ChartRights {
  readonly granted = new Set<string>();
  /** As `apply recorderpools/video/default`, but for its own Lease. */
  readonly writes: string[] = [];
  /** As `list pods`. */
  readonly refused = new Set<string>();
  readonly api: KubeApi;
  readonly #everywhere = new Set([
    ...[CAMERA, RECORDER_POOL, RECORDER_NODE].flatMap(({ plural }) => [`list ${plural}`, `watch ${plural}`]),
    'apply recorderpools',
    'create events',
  ]);

  constructor(api: MemoryApi) {
    const may =
      (call: keyof KubeApi) =>
      (resource: Resource, on: ObjectName | KubeObject, ...rest: readonly unknown[]): unknown => {
        const { namespace, name } = { name: '', ...on, ...('metadata' in on ? (on.metadata as ObjectName) : {}) };
        const verb = call === 'pages' ? 'list' : call;
        const isOurs = namespace === 'system' || resource.clusterScoped || this.granted.has(namespace ?? '');
        if (!isOurs && !this.#everywhere.has(`${verb} ${resource.plural}`)) {
          this.refused.add(`${verb} ${resource.plural}`);
          throw new ApiError(403, 'Forbidden', `cannot ${verb} ${resource.plural} in ${namespace}`);
        }
        if (!['get', 'list', 'watch'].includes(verb) && namespace !== 'system') {
          this.writes.push(`${verb} ${resource.plural}/${namespace}/${name.split('.')[0]}`);
        }
        return (api[call] as (...args: readonly unknown[]) => unknown).call(api, resource, on, ...rest);
      };
    const calls = ['get', 'list', 'pages', 'watch', 'create', 'replace', 'mergePatch', 'apply', 'delete'] as const;
    this.api = Object.fromEntries(calls.map((call) => [call, may(call)])) as unknown as KubeApi;
  }

  get options(): object {
    return { namespace: undefined, grantCommand: 'kubectl -n {namespace} create rolebinding x', api: this.api };
  }
}

test('of all namespaces, it says with a pool how to give it this one, writes nothing else there, and begins when it is given', async (t) => {
  const world = new World();
  const { granted, writes, refused, options } = new ChartRights(world.api);
  await world.addCamera('gate');
  await world.start(t, undefined, options);
  await world.pass(60);
  const condition = await world.condition('default', 'NamespaceGranted');
  assert.deepEqual([condition?.status, condition?.reason], ['False', 'NoRights']);
  assert.match(condition?.message ?? '', /namespace video .*: kubectl -n video create rolebinding x$/);
  assert.equal((await world.condition('default', 'Ready'))?.reason, 'NoRights');
  assert.deepEqual(writes, ['apply recorderpools/video/default', 'create events/video/default']);
  assert.ok(
    [...refused].every((call) => call.startsWith('list ')),
    `nothing is written: ${[...refused].join()}`,
  );
  assert.deepEqual(
    [...refused].filter((call) => /secrets|events/.test(call)),
    [],
  );

  granted.add(NAMESPACE);
  await world.pass(60);
  assert.ok(await world.assignment('gate'));
  assert.equal(await world.condition('default', 'NamespaceGranted'), undefined);
  assert.ok(await world.condition('default', 'QuorumAvailable'));
  assert.deepEqual(await world.keptOff('default'), [], 'there is a DaemonSet');

  granted.delete(NAMESPACE);
  // As the server does after half a minute.
  world.api.endWatches();
  await world.pass(60);
  assert.equal((await world.condition('default', 'NamespaceGranted'))?.status, 'False');
});

test('of all namespaces, it leaves a pool as it is that another operator shows', async (t) => {
  const world = new World();
  const { writes, options } = new ChartRights(world.api);
  const shown = { type: 'QuorumAvailable', status: 'True', reason: 'Majority', message: '' };
  const conditions = [{ ...shown, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  const start = world.start(t, undefined, options);
  await world.api.mergePatch(RECORDER_POOL, { namespace: NAMESPACE, name: 'default' }, { status: { conditions } });
  await start;
  await world.pass(60);
  assert.deepEqual(writes, []);
});

test('tokens that are deleted while a recorder starts are made again within half a minute', async (t) => {
  const world = new World();
  await world.start(t);
  await world.api.mergePatch(
    RECORDER_POOL,
    { namespace: NAMESPACE, name: 'default' },
    { spec: { auth: { mode: 'Token' } } },
  );
  const secrets = ['default-tokens', 'default-admin-token'].map((name) => ({ namespace: NAMESPACE, name }));
  const areThere = async (): Promise<boolean> => {
    await Promise.all(secrets.map(async (name) => world.api.get(SECRET, name)));
    return true;
  };
  await world.until('both are made', areThere);
  for (const name of secrets) await world.api.delete(SECRET, name);
  // It is looked for every 30 s, by a pool that is reconciled every 10 s.
  await world.pass(41);
  assert.ok(await areThere());
});

test('a pool has a token for metrics, and another one after its deletion; recorders are told the digest', async (t) => {
  const world = new World();
  await world.start(t);
  const secret = { namespace: NAMESPACE, name: 'default-metrics-token' };
  const digests = async (): Promise<{ made: string; told: string | undefined }> => {
    const { data } = (await world.api.get(SECRET, secret)) as KubeObject & { data: Record<string, string> };
    const token = Buffer.from(data['token'] ?? '', 'base64').toString('utf8');
    const { data: files } = await world.api.get(CONFIG_MAP, { namespace: NAMESPACE, name: 'default-recorder' });
    return { made: sha256(token).toString('hex'), told: (files as Record<string, string>)['metrics-token.sha256'] };
  };
  const isTold = async (): Promise<boolean> => {
    const { made, told } = await digests();
    return told === made;
  };
  await world.until('recorders know it', isTold);
  const first = await digests();
  await world.until(
    'nothing is missing',
    async () => (await world.condition('default', 'ResourcesApplied'))?.status === 'True',
  );
  await world.api.delete(SECRET, secret);
  await world.until('recorders know another one', isTold);
  assert.notEqual((await digests()).made, first.made);
});

test('a pool has a key of sessions; recorders continue without a usable one, and the pool says why', async (t) => {
  const world = new World();
  await world.start(t);
  const secret = { namespace: NAMESPACE, name: 'default-session-key' };
  const isApplied = async (): Promise<boolean> =>
    (await world.condition('default', 'ResourcesApplied'))?.status === 'True';
  await world.until('nothing is missing', isApplied);
  await world.api.mergePatch(SECRET, secret, { data: { 'session.key': null } });
  await world.until(
    'the pool says so',
    async () => (await world.condition('default', 'ResourcesApplied'))?.reason === 'NoSessionKey',
  );
  assert.deepEqual(await world.keptOff('default'), [], 'it has its DaemonSet');
  await world.api.delete(SECRET, secret);
  await world.until('another one is made', isApplied);
});

test('without the right to make the token for metrics there are recorders anyway, and the pool says why', async (t) => {
  const world = new World();
  await world.start(t, (verb, { kind }) => {
    if (verb === 'create' && kind === 'Secret') throw new ApiError(403, 'Forbidden', 'may not');
  });
  await world.until(
    'the pool says so',
    async () => (await world.condition('default', 'ResourcesApplied'))?.reason === 'NoMetricsToken',
  );
  assert.deepEqual(await world.keptOff('default'), [], 'it has its DaemonSet');
  const { data } = await world.api.get(CONFIG_MAP, { namespace: NAMESPACE, name: 'default-recorder' });
  assert.equal((data as Record<string, string>)['metrics-token.sha256'], '');
  const applied = await world.condition('default', 'ResourcesApplied');
  assert.equal(applied?.status, 'False');
  assert.match(applied?.message ?? '', /^the Secret default-metrics-token .* may not be read or made: /);
});
