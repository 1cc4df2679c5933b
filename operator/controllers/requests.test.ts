// Requests of recorders, answered over an API server in memory: which are carried out, and which would cost the pool its majority.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { isSuspended, parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import type { RecorderRequest } from '../../crds/recorder-node.ts';
import type { KubeObject } from '../kube/api.ts';
import { CAMERA, RECORDER_NODE, RECORDER_POOL } from '../kube/resources.ts';
import { MemoryApi, settle } from '../kube/test-support.ts';
import { Caches } from '../observe/caches.ts';
import { answerRequests } from './requests.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';

const NAMESPACE = 'video';
const TIME = '2026-01-01T00:00:00Z';
type Role = 'Voter' | 'Learner' | 'Removed';

type Asked = Omit<RecorderRequest, 'id' | 'time'>;

interface Site {
  readonly mode?: 'Automatic' | 'Manual';
  /** Whether the first node leads; default true. */
  readonly hasLeader?: boolean;
  /** Whether the pool exists; default true. */
  readonly hasPool?: boolean;
  /** The nodes of cameras. */
  readonly cameras?: Readonly<Record<string, string>>;
  /** A camera that is deleted while it is being stopped. */
  readonly vanishes?: string;
  readonly nodes: Readonly<Record<string, Role>>;
  readonly live: readonly string[];
}

const object = (kind: string, name: string, rest: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { namespace: NAMESPACE, name },
  ...rest,
});

const cameraOf = (name: string, node: string, spec = {}): KubeObject =>
  object('Camera', name, {
    spec: { source: 'rtsp://10.0.0.9/1', ...spec },
    status: { assignment: { node, epoch: 1, reason: 'Scheduled', time: TIME } },
  });

async function stage(
  t: TestContext,
  { mode = 'Manual', hasLeader = true, hasPool = true, cameras = {}, vanishes, nodes, live }: Site,
) {
  const api = new MemoryApi();
  const poolSpec = { archive: { hostPath: '/a' }, membership: { mode } };
  const status = hasLeader ? { leader: Object.keys(nodes)[0] } : { voters: [] };
  if (hasPool) await api.create(RECORDER_POOL, object('RecorderPool', 'default', { spec: poolSpec, status }));
  for (const [name, node] of Object.entries(cameras)) await api.create(CAMERA, cameraOf(name, node));
  for (const [name, role] of Object.entries(nodes)) {
    const spec = { nodeName: name, poolRef: { name: 'default' }, role };
    await api.create(RECORDER_NODE, object('RecorderNode', name, { spec }));
  }
  const caches = new Caches({ api, namespace: undefined, clock: new VirtualClock(), log: silentLog });
  caches.start();
  t.after(() => caches.close());
  await caches.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  const isLive = (_pool: unknown, node: string): boolean => live.includes(node);
  return {
    api,
    /** What a node is told, and the roles afterwards that differ from those before. */
    ask: async (from: string, request: Asked, id = 'one') => {
      await api.mergePatch(
        RECORDER_NODE,
        { namespace: NAMESPACE, name: from },
        {
          status: { requests: [{ id, time: TIME, ...request }] },
        },
      );
      await settle();
      const node = caches.recorderNodes.get(`${NAMESPACE}/${from}`) ?? assert.fail(`no node ${from}`);
      if (vanishes !== undefined) {
        api.before = async (verb, resource) => {
          if (verb !== 'mergePatch' || resource !== CAMERA) return;
          api.before = () => {};
          await api.delete(CAMERA, { namespace: NAMESPACE, name: vanishes });
        };
      }
      await answerRequests(node, { api, caches, isLive });
      await settle();
      const responses = caches.recorderNodes.get(`${NAMESPACE}/${from}`)?.spec.responses ?? [];
      const roles = caches.recorderNodes.list().map(({ metadata, spec }) => [metadata.name, spec.role] as const);
      const changed = Object.fromEntries(roles.filter(([name, role]) => nodes[name] !== role));
      const response = responses.find((one) => one.id === id);
      return { code: response?.code, message: response?.message, changed };
    },
  };
}

const THREE = { a: 'Voter', b: 'Voter', c: 'Voter', d: 'Learner', e: 'Removed' } as const;
const ALL = ['a', 'b', 'c', 'd', 'e'];

interface Case extends Partial<Site> {
  readonly name: string;
  readonly from?: string;
  readonly request: Asked;
  readonly code: number;
  readonly says: RegExp;
  readonly changed?: Readonly<Record<string, Role>>;
}

const CASES: readonly Case[] = [
  {
    name: 'a learner gets a vote',
    request: { kind: 'ChangeMembership', voters: ['a', 'b', 'c', 'd'] },
    code: 200,
    says: /voters: a, b, c, d/,
    changed: { d: 'Voter' },
  },
  {
    name: 'a voter loses its vote',
    request: { kind: 'ChangeMembership', voters: ['a', 'b'] },
    code: 200,
    says: /voters: a, b/,
    changed: { c: 'Learner' },
  },
  {
    name: 'half of the new voters is no majority',
    live: ['a', 'b'],
    request: { kind: 'ChangeMembership', voters: ['a', 'b', 'c', 'd'] },
    code: 409,
    says: /^only 2 of these 4 voters are live: that is no majority$/,
  },
  {
    name: 'more than half of the new voters is a majority',
    live: ['a', 'b', 'c'],
    request: { kind: 'ChangeMembership', voters: ['a', 'b', 'c', 'd'] },
    code: 200,
    says: /voters/,
    changed: { d: 'Voter' },
  },
  {
    name: 'nobody is left without a voter',
    nodes: { a: 'Voter', d: 'Learner' },
    request: { kind: 'ChangeMembership', voters: [] },
    code: 409,
    says: /only 0 of these 0 voters/,
  },
  {
    name: 'two votes do not change at once',
    request: { kind: 'ChangeMembership', voters: ['a', 'b', 'd'] },
    code: 409,
    says: /only one node at a time may get or lose its vote/,
  },
  {
    name: 'a node that was removed gets no vote',
    request: { kind: 'ChangeMembership', voters: ['a', 'b', 'c', 'e'] },
    code: 404,
    says: /not members of the cluster: e/,
  },
  {
    name: 'the voters of an automatic pool are chosen by the operator',
    mode: 'Automatic',
    request: { kind: 'ChangeMembership', voters: ['a', 'b'] },
    code: 409,
    says: /the operator chooses the voters/,
  },
  {
    name: 'a vote that the operator of an automatic pool would give in a moment is given at once',
    mode: 'Automatic',
    nodes: { a: 'Voter', b: 'Voter', c: 'Learner' },
    request: { kind: 'ChangeMembership', voters: ['a', 'b', 'c'] },
    code: 200,
    says: /voters: a, b, c/,
    changed: { c: 'Voter' },
  },
  {
    name: 'a fourth vote, which the operator of an automatic pool would take away again, is not given',
    mode: 'Automatic',
    request: { kind: 'ChangeMembership', voters: ['a', 'b', 'c', 'd'] },
    code: 409,
    says: /the operator chooses the voters/,
  },
  {
    name: 'only the leader changes the membership',
    from: 'b',
    request: { kind: 'ChangeMembership', voters: ['a', 'b'] },
    code: 503,
    says: /the leader is not b/,
  },
  {
    name: 'a live node is not removed',
    request: { kind: 'RemoveNode', nodeID: 'c' },
    code: 409,
    says: /c is live: let it leave, or set force/,
  },
  {
    name: 'a live node is removed by force',
    request: { kind: 'RemoveNode', nodeID: 'c', force: true },
    code: 200,
    says: /c was removed/,
    changed: { c: 'Removed' },
  },
  {
    name: 'a dead node is removed where a majority lives without it',
    live: ['a', 'b'],
    request: { kind: 'RemoveNode', nodeID: 'c' },
    code: 200,
    says: /c was removed/,
    changed: { c: 'Removed' },
  },
  {
    name: 'a dead node is not removed where only half lives without it',
    live: ['a'],
    request: { kind: 'RemoveNode', nodeID: 'c' },
    code: 409,
    says: /without c only 1 of 2 voters are live: that is no majority/,
  },
  {
    name: 'a dead learner is removed, whatever the voters do',
    live: ['a'],
    request: { kind: 'RemoveNode', nodeID: 'd' },
    code: 200,
    says: /d was removed/,
    changed: { d: 'Removed' },
  },
  {
    name: 'a node leaves by itself, though it lives and does not lead',
    from: 'c',
    request: { kind: 'Leave' },
    code: 200,
    says: /c was removed/,
    changed: { c: 'Removed' },
  },
  {
    name: 'a node does not leave where only half lives without it',
    live: ['a', 'c'],
    from: 'c',
    request: { kind: 'Leave' },
    code: 409,
    says: /that is no majority/,
  },
  {
    name: 'a node that was removed comes back as a learner',
    request: { kind: 'AddLearner', nodeID: 'e' },
    code: 200,
    says: /e is a learner/,
    changed: { e: 'Learner' },
  },
  {
    name: 'a node that the pool does not have is not added',
    request: { kind: 'AddLearner', nodeID: 'x' },
    code: 404,
    says: /x is no node of the pool default/,
  },
  {
    name: 'a node that the pool does not have is not removed',
    request: { kind: 'RemoveNode', nodeID: 'x' },
    code: 404,
    says: /x is no node of the pool default/,
  },
  {
    name: 'what this version does not know is refused',
    request: { kind: 'Dance' },
    code: 400,
    says: /the request Dance is unknown/,
  },
  {
    name: 'without a majority a live member removes a node that is gone',
    hasLeader: false,
    live: ['b'],
    from: 'b',
    request: { kind: 'RemoveNode', nodeID: 'a', force: true },
    code: 200,
    says: /a was removed/,
    changed: { a: 'Removed' },
  },
  {
    name: 'without a majority a node that is gone is removed by force only',
    hasLeader: false,
    live: ['b'],
    from: 'b',
    request: { kind: 'RemoveNode', nodeID: 'a' },
    code: 503,
    says: /the cluster has no majority: remove nodes that will not come back, with force/,
  },
  {
    name: 'without a majority no live node is removed, not by force either',
    hasLeader: false,
    live: ['b', 'd'],
    from: 'b',
    request: { kind: 'RemoveNode', nodeID: 'd', force: true },
    code: 409,
    says: /d is live: without a majority only nodes that are gone can be removed/,
  },
  {
    name: 'while another node leads, none removes a node that is gone',
    live: ['a', 'b'],
    from: 'b',
    request: { kind: 'RemoveNode', nodeID: 'c', force: true },
    code: 503,
    says: /the leader is not b/,
  },
  {
    name: 'a node that was removed removes none',
    hasLeader: false,
    live: ['e'],
    from: 'e',
    request: { kind: 'RemoveNode', nodeID: 'a', force: true },
    code: 503,
    says: /e is no live member of the cluster/,
  },
  {
    name: 'a node that is not live removes none',
    hasLeader: false,
    live: ['b'],
    from: 'c',
    request: { kind: 'RemoveNode', nodeID: 'a', force: true },
    code: 503,
    says: /c is no live member of the cluster/,
  },
  {
    name: 'the first vote is given by any live node',
    hasLeader: false,
    nodes: { a: 'Learner', b: 'Learner' },
    from: 'b',
    request: { kind: 'ChangeMembership', voters: ['a'] },
    code: 200,
    says: /voters: a/,
    changed: { a: 'Voter' },
  },
  {
    name: 'the first vote is not given to a node that is gone',
    hasLeader: false,
    nodes: { a: 'Learner', b: 'Learner' },
    live: ['b'],
    from: 'b',
    request: { kind: 'ChangeMembership', voters: ['a'] },
    code: 409,
    says: /only 0 of these 1 voters are live/,
  },
  {
    name: 'with voters and without a majority no vote changes',
    hasLeader: false,
    live: ['b'],
    from: 'b',
    request: { kind: 'ChangeMembership', voters: ['b'] },
    code: 503,
    says: /the cluster has no majority/,
  },
  {
    name: 'before the first vote no node is added',
    hasLeader: false,
    nodes: { a: 'Learner', e: 'Removed' },
    request: { kind: 'AddLearner', nodeID: 'e' },
    code: 503,
    says: /no node has a vote: change-membership gives the first/,
  },
  {
    name: 'without a majority no node is added',
    hasLeader: false,
    live: ['b'],
    from: 'b',
    request: { kind: 'AddLearner', nodeID: 'e' },
    code: 503,
    says: /the cluster has no majority/,
  },
  {
    name: 'without its pool nothing is carried out',
    hasPool: false,
    request: { kind: 'Leave' },
    code: 503,
    says: /^there is no RecorderPool default$/,
  },
  {
    name: 'a camera of another node is not stopped',
    cameras: { yard: 'c' },
    from: 'b',
    request: { kind: 'Suspend', camera: 'yard', suspend: true },
    code: 404,
    says: /^yard is not a camera of b$/,
  },
  {
    name: 'a camera that is deleted meanwhile is not stopped',
    cameras: { gate: 'b' },
    vanishes: 'gate',
    from: 'b',
    request: { kind: 'Suspend', camera: 'gate', suspend: true },
    code: 404,
    says: /^gate is gone$/,
  },
];

/** Every answer that a row got. */
const answers: string[] = [];

for (const { name, from = 'a', request, code, says, changed = {}, ...site } of CASES) {
  test(`requests: ${name}`, async (t) => {
    const { ask } = await stage(t, { nodes: THREE, live: ALL, ...site });
    const answer = await ask(from, request);
    assert.match(answer.message ?? '', says);
    assert.deepEqual({ code: answer.code, changed: answer.changed }, { code, changed });
    answers.push(`${answer.code} ${answer.message}`);
  });
}

test('requests: every refusal in the code has a row above', () => {
  const source = readFileSync(join(import.meta.dirname, 'requests.ts'), 'utf8');
  const calls = source.split('refused(').length - 1;
  const refusals = [...source.matchAll(/refused\(\s*(\d+),\s*(['`])(.*?)\2,?\s*\)/gs)];
  assert.equal(refusals.length, calls, 'this test understands every call of refused()');
  const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  const without = refusals
    .map(([, code = '', , text = '']) => ({ code, text }))
    .filter(({ code, text }) => {
      const form = new RegExp(
        `^${code} ${text
          .split(/\$\{.*?\}(?=[^}]|$)/)
          .map(escape)
          .join('.+')}$`,
      );
      return !answers.some((answer) => form.test(answer));
    });
  assert.deepEqual(without, []);
});

async function withCameras(t: TestContext) {
  const { api, ask } = await stage(t, { nodes: THREE, live: ALL });
  const camera = (name: string, node: string, spec = {}): Promise<KubeObject> =>
    api.create(CAMERA, cameraOf(name, node, spec));
  let asked = 0;
  const suspend = async (from: string, name: string, is: boolean): Promise<number | undefined> =>
    (await ask(from, { kind: 'Suspend', camera: name, suspend: is, by: 'ops' }, `r${++asked}`)).code;
  const read = async (name: string): Promise<Camera> =>
    parseCamera(await api.get(CAMERA, { namespace: NAMESPACE, name }));
  return { camera, suspend, read };
}

test('requests: a recorder stops its own camera and no other; the manifest stays as it is', async (t) => {
  const { camera, suspend, read } = await withCameras(t);
  await camera('gate', 'b');
  await camera('yard', 'c');
  assert.equal(await suspend('b', 'yard', true), 404);
  assert.ok(!isSuspended(await read('yard')));
  assert.equal(await suspend('b', 'gate', true), 200);
  const { spec, status } = await read('gate');
  assert.equal(spec.suspend, false);
  assert.deepEqual(status?.override, { suspend: true, time: TIME, node: 'b', by: 'ops' });
});

test('requests: a started camera has nothing left of the stop; one whose manifest suspends it is recorded anyway', async (t) => {
  const { camera, suspend, read } = await withCameras(t);
  await camera('gate', 'b');
  await camera('hall', 'b', { suspend: true });
  assert.deepEqual([await suspend('b', 'gate', true), await suspend('b', 'gate', false)], [200, 200]);
  assert.equal((await read('gate')).status?.override, undefined);
  assert.equal(await suspend('b', 'hall', false), 200);
  const { spec, status } = await read('hall');
  assert.deepEqual([spec.suspend, status?.override?.suspend], [true, false]);
});

test('requests: one is carried out once, and its response goes with it', async (t) => {
  const { api, ask } = await stage(t, { nodes: THREE, live: ALL });
  assert.equal((await ask('a', { kind: 'AddLearner', nodeID: 'e' })).code, 200);
  api.calls.length = 0;
  await ask('a', { kind: 'AddLearner', nodeID: 'e' });
  assert.deepEqual(
    api.calls.filter((call) => call.startsWith('mergePatch')),
    ['mergePatch recordernodes/video/a'],
    'the request itself, as the recorder repeats it, and nothing of the operator',
  );
});
