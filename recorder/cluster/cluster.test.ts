// A recorder as a member of a cluster, over an API server in memory: what it records while watches lag, lists are stale and
// nobody answers. With a real API server: test/cluster/member.test.ts.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, ASSIGNED_NODE_FIELD, PREVIOUS_NODE_FIELD, STANDBY_NODE_FIELD } from '../../crds/names.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';
import { Cluster } from './cluster.ts';
import type { KeptContent, KeptState } from './kept-state.ts';

const STEP_MS = 100;
const CAMERAS = `/apis/${API_VERSION}/namespaces/video/cameras`;
const POOLS = `/apis/${API_VERSION}/namespaces/video/recorderpools`;

interface Assigned {
  readonly node?: string;
  readonly previousNode?: string;
  readonly epoch: number;
  readonly handover?: 'Pending';
  /** The node that holds the camera. */
  readonly standby?: string;
}

const cameraOf = (
  name: string,
  resourceVersion: string,
  { standby, ...assigned }: Assigned,
  maxAgeSeconds?: number,
): KubernetesObject => ({
  apiVersion: API_VERSION,
  kind: 'Camera',
  metadata: { name, namespace: 'video', uid: `uid-${name}`, resourceVersion, generation: 1 },
  spec: {
    source: 'rtsp://10.0.0.9/1',
    poolRef: { name: 'default' },
    ...(maxAgeSeconds !== undefined && { record: { retention: { maxAgeSeconds } } }),
  },
  status: {
    assignment: { ...assigned, reason: 'Scheduled', time: '2026-01-01T00:00:00Z' },
    ...(standby !== undefined && { standby: { node: standby, epoch: 7 } }),
  },
});

const poolOf = (renewSeconds: number, nodes: number, unavailableAfterSeconds = 3 * renewSeconds): KubernetesObject => ({
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { name: 'default', namespace: 'video', uid: 'uid-pool', resourceVersion: `${renewSeconds}${nodes}` },
  spec: { archive: { hostPath: '/srv' }, failover: { renewSeconds, unavailableAfterSeconds } },
  status: { nodes },
});

/** The API server: what it says to reads, and what it shows to lists, which may lag behind. */
class Server {
  readonly cameras = new Map<string, KubernetesObject>();
  /** Names that lists leave out, as a cache does that has missed their last change. */
  readonly unseen = new Set<string>();
  isAway = false;
  /** Reads of Cameras are answered after this, with what the Camera was when it was asked for. */
  slow: Promise<void> | undefined;
  renewSeconds = 2;
  unavailableAfterSeconds: number | undefined;
  nodes = 3;
  reads = 0;
  renewals = 0;
  /** Lists of all cameras. */
  lists = 0;
  #version = 0;
  readonly #watches = new Set<(err: Error) => void>();

  readonly api = {
    get: async (path: string) => {
      this.#answer();
      const name = path.split('/').at(-1)!;
      if (!path.startsWith(CAMERAS)) return { metadata: { name, resourceVersion: '1' } };
      this.reads++;
      const camera = this.cameras.get(name);
      await this.slow;
      if (!camera) throw new ApiServerError(404, 'NotFound', 'not found');
      return camera;
    },
    list: async (path: string, { query }: { query: Record<string, string> }) => {
      this.#answer();
      const selector = query['fieldSelector'];
      if (path === CAMERAS && selector === undefined) this.lists++;
      const items =
        path === CAMERAS
          ? selector === undefined
            ? [...this.cameras.values()]
            : this.#selected(selector)
          : path === POOLS
            ? [poolOf(this.renewSeconds, this.nodes, this.unavailableAfterSeconds)]
            : [];
      return { items, resourceVersion: '1' };
    },
    pages: (path: string, options: { query: Record<string, string> }) => this.#pages(path, options),
    watch: (_path: string, _version: string, { signal }: { signal: AbortSignal }) => this.#watch(signal),
    call: async () => {
      this.#answer();
      this.renewals++;
      return { metadata: { name: 'node-a', resourceVersion: '2' } };
    },
    apply: async () => (this.#answer(), { metadata: { name: 'a', resourceVersion: '2' } }),
    reconnect: () => {},
    close: async () => {},
  } as unknown as ApiServer;

  /** What a Camera is from now on; lists show it, watches do not. */
  assign(name: string, assigned: Assigned, maxAgeSeconds?: number): void {
    this.cameras.set(name, cameraOf(name, `${++this.#version}`, assigned, maxAgeSeconds));
  }

  /** Ends every watch, and says that its place is too old to go on from: the mirrors list again. */
  endWatches(): void {
    for (const end of this.#watches) end(new ApiServerError(410, 'Expired', 'too old'));
  }

  async *#pages(path: string, options: { query: Record<string, string> }) {
    yield await this.api.list(path, options);
  }

  #answer(): void {
    if (this.isAway) throw new ApiServerError(0, 'UNREACHABLE', 'no answer');
  }

  #selected(selector: string): KubernetesObject[] {
    const [field, node] = selector.split('=');
    const keys = [ASSIGNED_NODE_FIELD, PREVIOUS_NODE_FIELD, STANDBY_NODE_FIELD];
    assert.ok(keys.includes(field ?? ''), selector);
    return [...this.cameras.values()].filter((camera) => {
      const { assignment, standby } = camera['status'] as { assignment: Assigned; standby?: { node?: string } };
      const value =
        field === STANDBY_NODE_FIELD
          ? standby?.node
          : assignment[field === ASSIGNED_NODE_FIELD ? 'node' : 'previousNode'];
      return value === node && !this.unseen.has(camera.metadata.name);
    });
  }

  /** Shows nothing until it ends: what changes is seen by the next list. */
  // oxlint-disable-next-line require-yield
  async *#watch(signal: AbortSignal): AsyncGenerator<never> {
    this.#answer();
    const ended = Promise.withResolvers<void>();
    const abort = (): void => ended.resolve();
    signal.addEventListener('abort', abort);
    this.#watches.add(ended.reject);
    try {
      await ended.promise;
    } finally {
      this.#watches.delete(ended.reject);
      signal.removeEventListener('abort', abort);
    }
  }
}

function stage(t: TestContext) {
  let kept: KeptContent | undefined;
  const state = {
    path: 'assignments.json',
    load: async () => (kept ? { kind: 'kept', kept } : { kind: 'none' }),
    save: async (now: KeptContent) => void (kept = now),
    erase: async () => void (kept = undefined),
    close: async () => {},
  } as unknown as KeptState;
  const clock = new VirtualClock();
  const server = new Server();
  const told: string[] = [];
  /** Cameras with footage on this node. */
  const held: string[] = [];
  let running: Cluster | undefined;
  const pass = async (seconds: number): Promise<void> => {
    for (let ms = 0; ms < seconds * 1_000; ms += STEP_MS) {
      clock.advance(STEP_MS);
      running?.tick();
      for (let turn = 0; turn < 4; turn++) await setImmediate();
    }
  };
  const renewalsIn = async (seconds: number): Promise<number> => {
    const before = server.renewals;
    await pass(seconds);
    return server.renewals - before;
  };
  const start = async (): Promise<Cluster> => {
    const cluster = new Cluster({
      api: server.api,
      leaseApi: server.api,
      namespace: 'video',
      nodeId: 'a',
      pool: 'default',
      renewMs: 2_000,
      state,
      facts: async () => ({
        address: 'http://a',
        playbackAddress: 'http://a',
        certificateRequest: undefined,
        sessionKey: 'A'.repeat(43),
        endedSessions: [],
        version: '1',
        archiveID: undefined,
        freeBytes: undefined,
        fault: undefined,
        cameras: new Map(),
        standbys: new Map(),
        archives: [],
      }),
      held: () => held,
      account: {
        takeOver: (id) => told.push(`takes over ${id}`),
        giveUp: (id) => told.push(`gives up ${id}`),
      },
      observer: {
        taken: (id) => told.push(`records ${id}`),
        givenUp: (id) => told.push(`stops ${id}`),
        removed: (id) => told.push(`${id} is removed`),
      },
      certified: () => {},
      changed: () => {},
      clock,
      log: silentLog,
    });
    await cluster.start();
    running = cluster;
    t.after(async () => {
      const closed = cluster.close();
      server.endWatches();
      await pass(1);
      await closed;
    });
    await pass(1);
    return cluster;
  };
  return { server, told, held, pass, renewalsIn, start };
}

const recorded = (cluster: Cluster): string[] => cluster.cameras().cameras.map(({ id }) => id);
const heldBy = (cluster: Cluster): string[] => cluster.cameras().held.map(({ id }) => id);

test('a camera that is assigned here is recorded, and no longer when another node has it', async (t) => {
  const { server, told, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  server.assign('yard', { node: 'b', epoch: 1 });
  const cluster = await start();
  assert.deepEqual(recorded(cluster), ['gate']);
  server.assign('gate', { node: 'b', epoch: 2 });
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), []);
  assert.deepEqual(told, ['records gate', 'stops gate']);
});

test('a camera that somebody deletes is told as removed, also while it still has a finalizer', async (t) => {
  const { server, told, pass, start } = stage(t);
  for (const name of ['gate', 'yard', 'hall']) server.assign(name, { node: 'a', epoch: 1 });
  const cluster = await start();
  server.cameras.delete('gate');
  const yard = server.cameras.get('yard')!;
  const deletionTimestamp = new Date().toISOString();
  server.cameras.set('yard', { ...yard, metadata: { ...yard.metadata, deletionTimestamp } });
  server.unseen.add('yard');
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), ['hall']);
  assert.deepEqual(told.toSorted(), [
    'gate is removed',
    'records gate',
    'records hall',
    'records yard',
    'stops gate',
    'stops yard',
    'yard is removed',
  ]);
});

test('a camera that a list does not show is recorded on, because the API server itself has it', async (t) => {
  const { server, told, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const cluster = await start();
  server.unseen.add('gate');
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), ['gate']);
  assert.ok(server.reads > 0, 'it was asked');
  assert.deepEqual(told, ['records gate']);
});

test('a camera whose handover ends while it is being read is given up, although the answer is older', async (t) => {
  const { server, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const cluster = await start();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.slow = promise;
  const handedOver = { node: 'b', previousNode: 'a', epoch: 2 } as const;
  server.assign('gate', { ...handedOver, handover: 'Pending' });
  server.unseen.add('gate');
  server.endWatches();
  await pass(2);
  assert.equal(server.reads, 1);
  server.unseen.delete('gate');
  server.assign('gate', handedOver);
  server.endWatches();
  await pass(2);
  server.slow = undefined;
  resolve();
  await pass(2);
  assert.deepEqual(recorded(cluster), []);
});

test('while the API server does not answer nothing stops, and afterwards what it says counts', async (t) => {
  const { server, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const cluster = await start();
  server.isAway = true;
  server.assign('gate', { node: 'b', epoch: 2 });
  server.endWatches();
  await pass(60);
  assert.deepEqual([recorded(cluster), cluster.isReachable], [['gate'], false]);
  server.isAway = false;
  await pass(60);
  assert.deepEqual([recorded(cluster), cluster.isReachable], [[], true]);
});

test('after an outage the mirrors are read again, although their watches look alive', async (t) => {
  const { server, pass, start } = stage(t);
  const cluster = await start();
  server.isAway = true;
  await pass(10);
  server.assign('gate', { node: 'a', epoch: 1 });
  server.isAway = false;
  await pass(5);
  assert.deepEqual(recorded(cluster), ['gate']);
});

test('a restart without the API server records what was assigned last', async (t) => {
  const { server, told, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const before = await start();
  await before.close();
  server.isAway = true;
  const cluster = await start();
  assert.deepEqual(recorded(cluster), ['gate']);
  server.isAway = false;
  server.assign('gate', { node: 'b', epoch: 2 });
  await pass(60);
  assert.deepEqual(recorded(cluster), []);
  assert.ok(told.includes('gives up gate'), 'it was away since an unknown time');
});

test('a list that is older than what was seen brings no camera back', async (t) => {
  const { server, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const cluster = await start();
  server.assign('gate', { node: 'b', previousNode: 'a', epoch: 2 });
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), []);
  server.assign('gate', { node: 'a', epoch: 1 });
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), []);
});

test('during a handover both record: this node continues until the next has a picture', async (t) => {
  const { server, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const cluster = await start();
  server.assign('gate', { node: 'b', previousNode: 'a', epoch: 2, handover: 'Pending' });
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), ['gate']);
  server.assign('gate', { node: 'b', previousNode: 'a', epoch: 2 });
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), []);
});

test('a camera is held for another node, and recorded when that node is lost, without a moment between', async (t) => {
  const { server, told, pass, start } = stage(t);
  server.assign('gate', { node: 'b', epoch: 1, standby: 'a' });
  const cluster = await start();
  assert.deepEqual([recorded(cluster), heldBy(cluster)], [[], ['gate']]);
  assert.equal(cluster.assignmentOf('gate'), undefined);
  // The watch of its standbys shows the change before that of its own cameras.
  server.unseen.add('gate');
  server.assign('gate', { node: 'a', previousNode: 'b', epoch: 2 });
  server.isAway = true;
  server.endWatches();
  await pass(1);
  assert.deepEqual(heldBy(cluster), ['gate'], 'only the API server itself may end it');
  server.isAway = false;
  await pass(60);
  assert.deepEqual([recorded(cluster), heldBy(cluster)], [['gate'], []]);
  assert.deepEqual(told, ['records gate']);
});

test('a node that lost a camera may hold it afterwards, and gives it up first', async (t) => {
  const { server, told, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const cluster = await start();
  server.assign('gate', { node: 'b', previousNode: 'a', epoch: 2, handover: 'Pending', standby: 'a' });
  server.endWatches();
  await pass(5);
  assert.deepEqual([recorded(cluster), heldBy(cluster)], [['gate'], []], 'until the handover ends');
  server.assign('gate', { node: 'b', previousNode: 'a', epoch: 2, standby: 'a' });
  server.endWatches();
  await pass(5);
  assert.deepEqual([recorded(cluster), heldBy(cluster)], [[], ['gate']]);
  server.assign('gate', { node: 'b', previousNode: 'a', epoch: 2 });
  server.endWatches();
  await pass(5);
  assert.deepEqual([recorded(cluster), heldBy(cluster)], [[], []]);
  assert.deepEqual(told, ['records gate', 'stops gate']);
});

test('a node that left records nothing until a camera is assigned to it again', async (t) => {
  const { server, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 });
  const cluster = await start();
  await cluster.leave();
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), []);
  server.assign('gate', { node: 'a', epoch: 2 });
  server.endWatches();
  await pass(5);
  assert.deepEqual(recorded(cluster), ['gate']);
});

test('the pool says how often the Lease is renewed, and a change of it needs no restart', async (t) => {
  const { server, pass, renewalsIn, start } = stage(t);
  server.renewSeconds = 10;
  await start();
  await pass(10);
  assert.equal(await renewalsIn(100), 10);
  server.renewSeconds = 1;
  server.endWatches();
  await pass(5);
  assert.equal(await renewalsIn(30), 30);
});

test('a node of a large pool renews less often, and again as before when the pool has become smaller', async (t) => {
  const { server, pass, renewalsIn, start } = stage(t);
  server.unavailableAfterSeconds = 15;
  server.nodes = 400;
  await start();
  await pass(10);
  assert.equal(await renewalsIn(40), 10);
  server.nodes = 100;
  server.endWatches();
  await pass(5);
  assert.equal(await renewalsIn(40), 20);
});

const ageOf = (cluster: Cluster, id: string): number | undefined => cluster.limits().get(id)?.maxAgeMs;

for (const [how, leave] of Object.entries({
  'after a failover or a drain': { node: 'b', previousNode: 'a', epoch: 2 },
  'while it is suspended and was moved': { previousNode: 'b', epoch: 3 },
})) {
  test(`a camera that this node has footage of has its limits here, ${how}`, async (t) => {
    const { server, held, pass, start } = stage(t);
    server.assign('gate', { node: 'a', epoch: 1 }, 60);
    held.push('gate');
    const cluster = await start();
    assert.equal(ageOf(cluster, 'gate'), 60_000);
    server.assign('gate', leave, 120);
    server.endWatches();
    await pass(5);
    assert.deepEqual(recorded(cluster), []);
    await pass(60);
    assert.equal(ageOf(cluster, 'gate'), 120_000, 'the limit that was set after it had left');
  });
}

test('of other cameras only those are read of which there is footage here: one a second, and each every ten minutes', async (t) => {
  const { server, held, pass, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 }, 60);
  held.push('gate');
  const cluster = await start();
  await pass(120);
  assert.deepEqual([server.reads, server.lists, ageOf(cluster, 'gate')], [0, 0, 60_000]);
  for (let i = 0; i < 20; i++) {
    server.assign(`left-${i}`, { node: 'b', epoch: 1 }, 60 + i);
    server.assign(`other-${i}`, { node: 'b', epoch: 1 }, 60);
    held.push(`left-${i}`);
  }
  await pass(10);
  assert.ok(server.reads >= 8 && server.reads <= 11, `${server.reads} in ten seconds`);
  await pass(20);
  for (let i = 0; i < 20; i++) assert.equal(ageOf(cluster, `left-${i}`), (60 + i) * 1000);
  await pass(540);
  assert.equal(server.reads, 20);
  server.assign('left-7', { node: 'b', epoch: 1 }, 600);
  await pass(90);
  assert.deepEqual([server.reads, server.lists, ageOf(cluster, 'left-7')], [40, 0, 600_000]);
  assert.equal(ageOf(cluster, 'other-7'), undefined);
});

test('a camera that has left is read again soon if the API server does not answer, and has no limits once it is deleted', async (t) => {
  const { server, held, pass, start } = stage(t);
  server.assign('gate', { node: 'b', epoch: 1 }, 60);
  const cluster = await start();
  server.isAway = true;
  held.push('gate');
  await pass(30);
  assert.equal(ageOf(cluster, 'gate'), undefined);
  server.isAway = false;
  await pass(3);
  assert.equal(ageOf(cluster, 'gate'), 60_000);
  server.cameras.delete('gate');
  await pass(610);
  assert.equal(ageOf(cluster, 'gate'), undefined);
});

test('what was read of a camera while it was elsewhere does not count once it has come back and gone again', async (t) => {
  const { server, held, pass, start } = stage(t);
  held.push('gate');
  server.assign('gate', { node: 'b', epoch: 1 }, 60);
  const cluster = await start();
  await pass(5);
  assert.equal(ageOf(cluster, 'gate'), 60_000);
  server.assign('gate', { node: 'a', epoch: 2 }, 3_600);
  server.endWatches();
  await pass(5);
  assert.equal(ageOf(cluster, 'gate'), 3_600_000);
  server.assign('gate', { node: 'b', epoch: 3 }, 3_600);
  server.endWatches();
  await pass(5);
  assert.notEqual(ageOf(cluster, 'gate'), 60_000);
});

test('a login that is missing does not change how long footage is kept', async (t) => {
  const { server, start } = stage(t);
  server.assign('gate', { node: 'a', epoch: 1 }, 60);
  Object.assign(server.cameras.get('gate')!['spec'] as object, { credentialsSecretRef: { name: 'none' } });
  const cluster = await start();
  assert.deepEqual(recorded(cluster), []);
  assert.equal(ageOf(cluster, 'gate'), 60_000);
});
