// The whole of it on a real API server: a RecorderPool becomes recorders on every node, a Camera is recorded, and when its
// node dies another one goes on.

import { after, afterEach, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import type { CameraAssignment } from '../../crds/camera.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import type { RecorderPoolStatus } from '../../crds/recorder-pool.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, startCluster, type Cluster } from './cluster.ts';
import { OWN_IMAGES } from './own-images.ts';
import { reportFailure } from './report.ts';
import {
  apply,
  archiveOf,
  makeArchives,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES as BASE,
  startOperator,
  type OwnOperator,
} from './own-operator.ts';

const NODES = ['node-1', 'node-2', 'node-3'];
const SLOW_MS = 120_000;
/** A renewal of a Lease may be late on a busy machine. */
const MAX_RENEWAL_MS = 8_000;

interface Gaps {
  readonly wanted_seconds: number;
  readonly gaps: readonly { cause: string; start_ms: number; end_ms: number; is_open: boolean }[];
}

type Json = Record<string, unknown>;
type CameraObject = KubeObject & { status?: { assignment?: CameraAssignment; conditions?: readonly Condition[] } };
type NodeObject = KubeObject & { spec: { role: string }; status?: RecorderNodeStatus };
type PoolObject = KubeObject & { status?: RecorderPoolStatus };

let cluster: Cluster;
let camera: Camera;
const operators: OwnOperator[] = [];

const readCamera = (name: string): Promise<CameraObject> => cluster.controlPlane.api.get(`${BASE}/cameras/${name}`);
const readPool = (): Promise<PoolObject> => cluster.controlPlane.api.get(`${BASE}/recorderpools/default`);
const readNodes = (): Promise<readonly NodeObject[]> => cluster.controlPlane.api.list(`${BASE}/recordernodes`);

const cameraNamed = (name: string): Json => resource('Camera', name, { source: camera.url, transport: 'Tcp' });

async function conditionOf(read: Promise<CameraObject | PoolObject>, type: string): Promise<Condition | undefined> {
  return (await read).status?.conditions?.find((one) => one.type === type);
}

/** The node that records a camera, once it does. */
function untilRecording(name: string, where: (assignment: CameraAssignment) => boolean = () => true): Promise<string> {
  return until(
    `${name} is recorded`,
    async () => {
      const { status } = await readCamera(name);
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      const { assignment } = status ?? {};
      return ready?.status === 'True' && assignment && where(assignment) && assignment.node;
    },
    SLOW_MS,
  );
}

/** What a node's ledger says of a camera from a moment on. */
async function gapsOf(node: string, name: string, fromMs: number): Promise<Gaps> {
  const query = `from=${fromMs / 1000}&to=${(fromMs + SLOW_MS) / 1000}`;
  const answer = await fetch(`http://${cluster.node(node).address}:9997/api/archive/${name}/gaps?${query}`);
  return (await answer.json()) as Gaps;
}

function filesOn(node: string, name: string): readonly string[] {
  const names = readdirSync(archiveOf(cluster, node), { recursive: true }) as string[];
  return names.filter((file) => file.endsWith('.mp4') && file.includes(`_${name}_`));
}

suite('the operator', { skip: clusterMissing() }, () => {
  before(async () => {
    cluster = await startCluster({ nodes: NODES.length, images: OWN_IMAGES });
    makeArchives(cluster);
    const { controlPlane, directory, network } = cluster;
    await controlPlane.installKinds();
    camera = await startCamera({ pace: 'realtime', host: network.addresses.cameras });
    operators.push(...(await Promise.all([0, 1].map(() => startOperator(controlPlane, directory)))));
  });

  afterEach(reportFailure(() => cluster));
  after(async () => {
    for (const { program } of operators) await program.kill();
    await camera?.close();
    await cluster?.close();
  });

  test('a RecorderPool becomes a recorder on every node, each with a RecorderNode that says where it is', async () => {
    await apply(cluster.controlPlane, [poolOfAllNodes()]);
    const nodes = await until(
      'three nodes report',
      async () => {
        const found = await readNodes();
        return found.length === 3 && found.every(({ status }) => status?.archiveID) && found;
      },
      SLOW_MS,
    );
    assert.deepEqual(nodes.map(({ metadata }) => metadata.name).sort(), NODES);
    assert.deepEqual(
      nodes.map(({ metadata, status }) => status?.address === `${cluster.node(metadata.name).address}:9997`),
      [true, true, true],
    );
    await until('they have votes', async () => (await readPool()).status?.voters?.length === 3, SLOW_MS);
    await until('the pool is ready', async () => (await conditionOf(readPool(), 'Ready'))?.status === 'True', SLOW_MS);
    const { leader, quorum } = (await readPool()).status ?? {};
    assert.deepEqual(quorum, { needed: 2, live: 3 });
    assert.ok(NODES.includes(leader ?? ''));
  });

  test('a Camera is recorded on one node, and kubectl shows which', async () => {
    await apply(cluster.controlPlane, ['gate', 'yard', 'dock'].map(cameraNamed));
    const owners = await Promise.all(['gate', 'yard', 'dock'].map((name) => untilRecording(name)));
    assert.equal(new Set(owners).size, 3, `one each: ${owners.join(', ')}`);
    for (const [i, name] of ['gate', 'yard', 'dock'].entries()) {
      await until('it has a file', () => filesOn(owners[i]!, name).length > 0);
    }
    const table = await cluster.controlPlane.kubectl(['get', 'cameras']);
    assert.match(table, /gate +node-\d +True +True +Recording/);
  });

  test('a drained node gives its cameras away without a gap, and gets none', async () => {
    const node = await untilRecording('gate');
    const patch = { spec: { drain: true } };
    await cluster.controlPlane.api.patch(`${BASE}/recordernodes/${node}`, 'merge', patch);
    const next = await untilRecording('gate', (assignment) => assignment.node !== node);
    assert.notEqual(next, node);
    const { assignment } = (await readCamera('gate')).status ?? {};
    assert.deepEqual([assignment?.reason, assignment?.previousNode], ['Drain', node]);
    await until('the handover is complete', async () => {
      return (await readCamera('gate')).status?.assignment?.handover === 'Complete';
    });
    await cluster.controlPlane.api.patch(`${BASE}/recordernodes/${node}`, 'merge', { spec: { drain: false } });
  });

  test('a node that dies loses its cameras to the others; footage stays where it is', async () => {
    const node = await untilRecording('yard');
    const before = filesOn(node, 'yard').length;
    const killedMs = Date.now();
    await cluster.node(node).kill();
    const next = await untilRecording('yard', (assignment) => assignment.node !== node);
    assert.notEqual(next, node);
    const { assignment } = (await readCamera('yard')).status ?? {};
    assert.equal(assignment?.reason, 'NodeUnavailable');
    const lastSeenMs = Date.parse(assignment?.lastSeenTime ?? '');
    const moved = await until('the next node tells what was missed', async () =>
      (await gapsOf(next, 'yard', killedMs - MAX_RENEWAL_MS)).gaps.find(({ cause }) => cause === 'moved'),
    );
    assert.equal(moved.start_ms, lastSeenMs, 'since the node was seen last');
    assert.ok(moved.start_ms > killedMs - MAX_RENEWAL_MS && moved.start_ms <= killedMs, `${killedMs - lastSeenMs} ms`);
    assert.ok(moved.end_ms > moved.start_ms + 15_000 && !moved.is_open, JSON.stringify(moved));
    assert.ok(filesOn(node, 'yard').length >= before);
    await until('the files of both are listed', async () => {
      const { archives } = ((await readCamera('yard')).status ?? {}) as { archives?: readonly { node: string }[] };
      return archives?.some((archive) => archive.node === node);
    });
    await cluster.node(node).start();
    await until('the node is back', async () => (await readPool()).status?.quorum?.live === 3, SLOW_MS);
    // Its account ends where that of the next node begins: no second is told twice.
    await until('it knows since when the camera is not its own', async () => {
      const { gaps, wanted_seconds } = await gapsOf(node, 'yard', lastSeenMs - 1_000);
      return Math.abs(wanted_seconds - 1) < 0.01 && gaps.every(({ end_ms }) => end_ms <= lastSeenMs);
    });
  });

  test('a stopped camera is let go of, and recorded again where it was', async () => {
    const node = await untilRecording('dock');
    await cluster.controlPlane.api.patch(`${BASE}/cameras/dock`, 'merge', { spec: { suspend: true } });
    await until('it says so', async () => (await conditionOf(readCamera('dock'), 'Recording'))?.reason === 'Suspended');
    await cluster.controlPlane.api.patch(`${BASE}/cameras/dock`, 'merge', { spec: { suspend: false } });
    assert.equal(await untilRecording('dock'), node);
  });

  test('a node leaves without a restart, and comes back through add-learner and change-membership', async () => {
    const node = await untilRecording('yard');
    const other = NODES.find((one) => one !== node) ?? '';
    const post = async (to: string, path: string, body: object): Promise<[number, Json]> => {
      const answer = await fetch(`http://${cluster.node(to).address}:9997${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return [answer.status, (await answer.json()) as Json];
    };
    const [left, answer] = await post(node, '/cluster/leave', {});
    assert.equal(left, 200, JSON.stringify(answer));
    const next = await untilRecording('yard', (assignment) => assignment.node !== node);
    assert.notEqual(next, node);
    await until('its vote is gone', async () => !(await readPool()).status?.voters?.includes(node), SLOW_MS);
    const role = async () => (await readNodes()).find(({ metadata }) => metadata.name === node)?.spec.role;
    assert.equal(await role(), 'Removed');
    // Whichever node is asked: it sends us to the leader.
    const [added, why] = await post(other, '/cluster/add-learner', { node_id: node });
    assert.equal(added, 200, JSON.stringify(why));
    await until('it votes again', async () => (await role()) === 'Voter', SLOW_MS);
    await until('the pool knows', async () => (await readPool()).status?.voters?.length === 3, SLOW_MS);
    const [same, text] = await post(other, '/cluster/change-membership', { voters: NODES });
    assert.equal(same, 200, JSON.stringify(text));
    const [refused] = await post(other, '/cluster/change-membership', { voters: [NODES[0]] });
    assert.equal(refused, 409);
  });

  test('another version replaces one pod after the other', async () => {
    const pods = async () =>
      cluster.controlPlane.api.list(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=kube-nvr.dev/pool`);
    const before = new Set((await pods()).map(({ metadata }) => metadata.uid));
    const patch = { spec: { archive: { retention: { maxAgeSeconds: 86_400 } } } };
    await cluster.controlPlane.api.patch(`${BASE}/recorderpools/default`, 'merge', patch);
    await until(
      'all pods are new and the pool is up to date',
      async () => {
        const now = await pods();
        const rollout = await conditionOf(readPool(), 'RolloutStopped');
        return (
          now.length === 3 && now.every(({ metadata }) => !before.has(metadata.uid)) && rollout?.reason === 'UpToDate'
        );
      },
      SLOW_MS * 2,
    );
    await Promise.all(['gate', 'yard', 'dock'].map((name) => untilRecording(name)));
  });

  test('a deleted Camera stops at once, and its footage stays', async () => {
    const node = await untilRecording('gate');
    const before = filesOn(node, 'gate').length;
    await cluster.controlPlane.api.delete(`${BASE}/cameras/gate`);
    await until('nobody reports it', async () =>
      (await readNodes()).every(({ status }) => !status?.cameras?.some(({ name }) => name === 'gate')),
    );
    assert.ok(filesOn(node, 'gate').length >= before && before > 0);
  });

  test('a deleted pool ends its recorders, and its footage stays', async () => {
    const files = NODES.map((node) => filesOn(node, 'yard').length);
    await cluster.controlPlane.api.delete(`${BASE}/recorderpools/default`, { propagationPolicy: 'Background' });
    await until(
      'no pod and no RecorderNode is left',
      async () => {
        const pods = await cluster.controlPlane.api.list(`/api/v1/namespaces/${NAMESPACE}/pods`);
        return pods.length === 0 && (await readNodes()).length === 0;
      },
      SLOW_MS,
    );
    assert.ok(NODES.every((node, i) => filesOn(node, 'yard').length >= files[i]!));
    const why = await until('cameras say why they are not recorded', async () => {
      const ready = await conditionOf(readCamera('yard'), 'Ready');
      return ready?.reason === 'NoPool' && ready;
    });
    assert.equal(why.message, 'there is no RecorderPool default');
  });
});
