// The whole of it on a real API server: a RecorderPool becomes recorders on every node, a Camera is recorded, and when its
// node dies another one goes on.

import { after, afterEach, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync } from 'node:fs';
import type { CameraAssignment } from '../../crds/camera.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import type { RecorderPoolStatus } from '../../crds/recorder-pool.ts';
import type { RecordingObjective } from '../../crds/recording-objective.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import {
  operatorAuthorityRules,
  operatorClusterRules,
  operatorLeaseRules,
  operatorRules,
  operatorSecretRules,
} from '../../operator/manifests/operator-access.ts';
import { nodeRecorderName } from '../../operator/manifests/storage.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { formatPublicKey, signLicense } from '../../recorder/license/statement.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, startCluster, type Cluster } from './cluster.ts';
import { localVolume } from './local-volume.ts';
import { OWN_IMAGES } from './own-images.ts';
import { reportFailure } from './report.ts';
import {
  apply,
  ARCHIVE,
  archiveOf,
  makeArchives,
  metricsToken,
  NAMESPACE,
  poolOfAllNodes,
  resource,
  RESOURCES as BASE,
  startOperator,
  untilAllVote,
  type OwnOperator,
} from './own-operator.ts';

const NODES = ['node-1', 'node-2', 'node-3'];
const SLOW_MS = 120_000;
/** A renewal of a Lease may be late on a busy machine. */
const MAX_RENEWAL_MS = 8_000;

/** Rights of the operator that show in no request here. */
const UNUSED_HERE = [
  // An apply of what is not there is a patch for clients, and a create for RBAC.
  ...[
    'configmaps',
    'daemonsets',
    'persistentvolumeclaims',
    'poddisruptionbudgets',
    'rolebindings',
    'roles',
    'serviceaccounts',
    'services',
  ].map((plural) => `create ${plural}`),
  // No pool here copies its footage: see `copies.test.ts`.
  'patch archivetargets',
  // No pool here says where its cameras are.
  ...['create', 'delete', 'get', 'patch'].map((verb) => `${verb} networkpolicies`),
  // A node that is gone for good.
  'delete recordernodes',
  // What became of a write that was refused; whether a node really does not name a camera.
  'get cameras',
  'get recordernodes',
  // For the plug-in OwnerReferencesPermissionEnforcement: `recorderpools/finalizers`.
  'update recorderpools',
];

interface Gaps {
  readonly wanted_seconds: number;
  readonly gaps: readonly { cause: string; start_ms: number; end_ms: number; is_open: boolean }[];
}

type Json = Record<string, unknown>;
type CameraObject = KubeObject & { status?: { assignment?: CameraAssignment; conditions?: readonly Condition[] } };
type NodeObject = KubeObject & { spec: { role: string }; status?: RecorderNodeStatus };
type ObjectiveObject = KubeObject & { status?: RecordingObjective['status'] };
type PoolObject = KubeObject & { status?: RecorderPoolStatus };

let cluster: Cluster;
let camera: Camera;
const operators: OwnOperator[] = [];

const readCamera = (name: string): Promise<CameraObject> => cluster.controlPlane.api.get(`${BASE}/cameras/${name}`);
const readPool = (): Promise<PoolObject> => cluster.controlPlane.api.get(`${BASE}/recorderpools/default`);
const readNodes = (): Promise<readonly NodeObject[]> => cluster.controlPlane.api.list(`${BASE}/recordernodes`);

const cameraNamed = (name: string): Json => resource('Camera', name, { source: camera.url, transport: 'Tcp' });

async function conditionOf(
  read: Promise<CameraObject | ObjectiveObject | PoolObject>,
  type: string,
): Promise<Condition | undefined> {
  return (await read).status?.conditions?.find((one) => one.type === type);
}

/** The node that records a camera, once it says so itself: what a Camera shows is some seconds old after a move. */
function untilRecording(name: string, where: (assignment: CameraAssignment) => boolean = () => true): Promise<string> {
  return until(
    `${name} is recorded`,
    async () => {
      const { status } = await readCamera(name);
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      const { assignment } = status ?? {};
      if (ready?.status !== 'True' || !assignment || !where(assignment)) return false;
      const owner = (await readNodes()).find(({ metadata }) => metadata.name === assignment.node);
      const report = owner?.status?.cameras?.find((one) => one.name === name);
      return report?.epoch === assignment.epoch && report.state === 'Recording' && assignment.node;
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
    await untilAllVote(cluster);
    await until('the pool is ready', async () => (await conditionOf(readPool(), 'Ready'))?.status === 'True', SLOW_MS);
    const { leader, quorum } = (await readPool()).status ?? {};
    assert.deepEqual(quorum, { needed: 2, live: 3 });
    assert.ok(NODES.includes(leader ?? ''));
  });

  test('a second pool on the same nodes gets no pod there, and takes nothing from the first', async () => {
    await apply(cluster.controlPlane, [resource('RecorderPool', 'second', { archive: { hostPath: ARCHIVE } })]);
    const second = (): Promise<PoolObject> => cluster.api.get(`${BASE}/recorderpools/second`);
    await until('it says so', async () => (await conditionOf(second(), 'NodesTaken'))?.status === 'True', SLOW_MS);
    interface Counts extends KubeObject {
      readonly status?: { readonly observedGeneration?: number; readonly desiredNumberScheduled: number };
    }
    const wanted = await until('its DaemonSet was looked at', async () => {
      const path = '/apis/apps/v1/namespaces/default/daemonsets/second-recorder';
      const { status, metadata } = await cluster.api.get<Counts>(path);
      return status?.observedGeneration === metadata.generation && status;
    });
    assert.equal(wanted?.desiredNumberScheduled, 0);
    assert.equal((await conditionOf(readPool(), 'Ready'))?.status, 'True');
    await cluster.api.delete(`${BASE}/recorderpools/second`);
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

  test('an objective says how much of its cameras is recorded, measured by the leader, for which no recorder is restarted', async () => {
    const recorders = async (): Promise<readonly number[]> => {
      const all = await Promise.all(NODES.map((node) => cluster.node(node).processes()));
      return all.flat().flatMap(({ container, pid }) => (container === 'recorder' ? pid : []));
    };
    const before = await recorders();
    await apply(cluster.controlPlane, [
      resource('RecordingObjective', 'insurance', { cameras: ['gate', 'dock*'], targetPercent: 1 }),
      resource('RecordingObjective', 'nobody', { cameraSelector: { area: 'roof' }, targetPercent: 99 }),
    ]);
    const read = (name: string): Promise<ObjectiveObject> =>
      cluster.controlPlane.api.get(`${BASE}/recordingobjectives/${name}`);
    await until(
      'it is measured, and met',
      async () => (await conditionOf(read('insurance'), 'Met'))?.status === 'True',
      SLOW_MS,
    );
    const { cameras, achievedPercent = 0, budgetLeftSeconds = 0 } = (await read('insurance')).status ?? {};
    assert.equal(cameras, 2);
    assert.ok(achievedPercent > 1 && budgetLeftSeconds >= 0, `${achievedPercent} % ${budgetLeftSeconds} s`);
    const isRefused = async () => (await conditionOf(read('nobody'), 'Ready'))?.reason === 'NoCameras';
    await until('labels of no camera are said', isRefused, SLOW_MS);
    assert.deepEqual(await recorders(), before);
  });

  test('a drained node gives its cameras away without a gap, gets none, and gets its own back afterwards', async () => {
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
    await untilRecording('gate', (back) => back.node === node && back.handover === 'Complete');
  });

  test('a node that dies loses its cameras to the others; footage stays where it is', async () => {
    const node = await untilRecording('yard');
    const before = filesOn(node, 'yard').length;
    const killedMs = Date.now();
    await cluster.node(node).kill();
    // It may have renewed its Lease until then.
    const deadMs = Date.now();
    const next = await untilRecording('yard', (assignment) => assignment.node !== node);
    assert.notEqual(next, node);
    const { assignment } = (await readCamera('yard')).status ?? {};
    assert.equal(assignment?.reason, 'NodeUnavailable');
    const lastSeenMs = Date.parse(assignment?.lastSeenTime ?? '');
    const moved = await until('the next node tells what was missed', async () =>
      (await gapsOf(next, 'yard', killedMs - MAX_RENEWAL_MS)).gaps.find(({ cause }) => cause === 'moved'),
    );
    assert.equal(moved.start_ms, lastSeenMs, 'since the node was seen last');
    assert.ok(moved.start_ms > killedMs - MAX_RENEWAL_MS && moved.start_ms <= deadMs, `${deadMs - lastSeenMs} ms`);
    assert.ok(moved.end_ms > moved.start_ms + 15_000 && !moved.is_open, JSON.stringify(moved));
    assert.ok(filesOn(node, 'yard').length >= before);
    await until('the files of both are listed', async () => {
      const { archives } = ((await readCamera('yard')).status ?? {}) as { archives?: readonly { node: string }[] };
      return archives?.some((archive) => archive.node === node);
    });
    await cluster.node(node).start();
    await untilAllVote(cluster);
    // Its account ends where that of the next node begins: no second is told twice.
    await until('it knows since when the camera is not its own', async () => {
      const { gaps, wanted_seconds } = await gapsOf(node, 'yard', lastSeenMs - 1_000);
      return Math.abs(wanted_seconds - 1) < 0.01 && gaps.every(({ end_ms }) => end_ms <= lastSeenMs);
    });
  });

  test('a stopped camera is released, and recorded again where it was', async () => {
    const node = await untilRecording('dock');
    await cluster.controlPlane.api.patch(`${BASE}/cameras/dock`, 'merge', { spec: { suspend: true } });
    await until('it says so', async () => (await conditionOf(readCamera('dock'), 'Recording'))?.reason === 'Suspended');
    await cluster.controlPlane.api.patch(`${BASE}/cameras/dock`, 'merge', { spec: { suspend: false } });
    assert.equal(await untilRecording('dock'), node);
  });

  test('a camera stopped through the API stays stopped when its manifest is applied again, until it is started', async () => {
    const node = await untilRecording('dock');
    const post = async (path: string): Promise<Json> => {
      const answer = await fetch(`http://${cluster.node(node).address}:9997${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'dock' }),
      });
      return (await answer.json()) as Json;
    };
    // As GitOps tools do, with fields that a person would leave out.
    const sync = (): Promise<string> => {
      const manifest = resource('Camera', 'dock', { source: camera.url, transport: 'Tcp', suspend: false });
      const args = ['apply', '--server-side', '--force-conflicts', '--field-manager=gitops', '-f', '-'];
      return cluster.kubectl(args, { input: JSON.stringify(manifest) });
    };
    await sync();
    assert.deepEqual(await post('/cameras/stop'), { status: 'ok', stopped: 1 });
    const said = await until('it says so', async () => {
      const recording = await conditionOf(readCamera('dock'), 'Recording');
      return recording?.reason === 'Suspended' && recording.message;
    });
    assert.match(said, new RegExp(`^stopped through the API .*asked at ${node}$`));
    const { generation } = (await readCamera('dock')).metadata;
    await sync();
    const synced = (await readCamera('dock')) as CameraObject & { spec: Json };
    assert.deepEqual([synced.metadata.generation, synced.spec['suspend']], [generation, false]);
    assert.equal((await conditionOf(readCamera('dock'), 'Recording'))?.reason, 'Suspended');
    assert.deepEqual(await post('/cameras/start'), { status: 'ok', started: 1 });
    assert.equal(await untilRecording('dock'), node);
    assert.equal((await post('/cameras/stop'))['stopped'], 1);
    const suspend = (is: boolean): Promise<unknown> =>
      cluster.controlPlane.api.patch(`${BASE}/cameras/dock`, 'merge', { spec: { suspend: is } });
    await suspend(true);
    await until('only the manifest counts', async () => !('override' in ((await readCamera('dock')).status ?? {})));
    await suspend(false);
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

  test('a camera that was on two nodes when their recorders hung gets no third, until a person lets it continue', async () => {
    const podOn = async (node: string): Promise<string> => {
      const pods = await cluster.controlPlane.api.list<KubeObject & { spec: { nodeName: string } }>(
        `/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=kube-nvr.dev/pool`,
      );
      return pods.find(({ spec }) => spec.nodeName === node)?.metadata.name ?? assert.fail(`no pod on ${node}`);
    };
    const untilLost = (...nodes: string[]): Promise<unknown> =>
      until(
        `gate was lost with ${nodes.join(' and ')}`,
        async () => (await readCamera('gate')).status?.assignment?.lostNodes?.join() === nodes.join(),
        SLOW_MS,
      );
    const suspend = (is: boolean): Promise<unknown> =>
      cluster.controlPlane.api.patch(`${BASE}/cameras/gate`, 'merge', { spec: { suspend: is } });
    await suspend(true);
    await until('it has no node', async () => (await readCamera('gate')).status?.assignment?.node === undefined);
    await suspend(false);
    const first = await untilRecording('gate');
    // A machine that has just come back is not Ready yet, and its silence counts for nothing.
    await until(
      'Kubernetes says that all machines live',
      async () => {
        const machines = await cluster.controlPlane.api.list<KubeObject & { status: { conditions: Condition[] } }>(
          '/api/v1/nodes',
        );
        return machines.every(({ status }) =>
          status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
        );
      },
      SLOW_MS,
    );
    const firstPod = await podOn(first);
    await cluster.node(first).freezePod(firstPod);
    const second = await untilRecording('gate', ({ node }) => node !== first);
    await untilLost(first);
    await cluster.node(first).thawPod(firstPod);
    await untilAllVote(cluster);
    const secondPod = await podOn(second);
    await cluster.node(second).freezePod(secondPod);
    const { epoch } = (await readCamera('gate')).status?.assignment ?? {};
    await untilLost(first, second);
    const said = await until('it says so', async () => {
      const assigned = await conditionOf(readCamera('gate'), 'Assigned');
      return assigned?.reason === 'TwoNodesLost' && assigned;
    });
    assert.match(said.message, new RegExp(`^it was on ${first} and ${second} `));
    const { assignment } = (await readCamera('gate')).status ?? {};
    assert.deepEqual([assignment?.node, assignment?.epoch], [second, epoch]);
    await suspend(true);
    await until('it has no node', async () => (await readCamera('gate')).status?.assignment?.node === undefined);
    await suspend(false);
    assert.notEqual(await untilRecording('gate'), second);
    await cluster.node(second).thawPod(secondPod);
    await untilAllVote(cluster);
  });

  test('another version replaces one pod after the other, and leaves each camera where it belongs', async () => {
    const cameras = ['gate', 'yard', 'dock'];
    /** Undefined: the camera was lost with the node where it belongs, in a test before, and so does not return for an hour. */
    const belongs = async (name: string): Promise<string | undefined> => {
      const { assignment } = (await readCamera(name)).status ?? {};
      const home = assignment?.home ?? assignment?.node;
      return home !== undefined && assignment?.lostNodes?.includes(home) ? undefined : home;
    };
    const homes = await Promise.all(cameras.map(belongs));
    assert.notEqual(homes[0], undefined, 'a person let gate continue');
    const pods = async () =>
      cluster.controlPlane.api.list(`/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=kube-nvr.dev/pool`);
    const before = new Set((await pods()).map(({ metadata }) => metadata.uid));
    // With a licence, so that one more update is not needed for it.
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const licence = signLicense({ holder: 'Example', cameras: 16, expires: '2099-12-31' }, privateKey);
    await cluster.controlPlane.api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'license' },
      stringData: { 'recorder.lic': licence },
    });
    const patch = {
      spec: {
        archive: { retention: { maxAgeSeconds: 86_400 } },
        licenseSecretRef: { name: 'license' },
        licensePublicKey: formatPublicKey(publicKey),
      },
    };
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
    await Promise.all(
      cameras.map((name, i) => untilRecording(name, ({ node }) => homes[i] === undefined || node === homes[i])),
    );
    const token = await metricsToken(cluster.controlPlane, NAMESPACE, 'default');
    for (const node of NODES) {
      await until(
        `${node} has its licence`,
        async () => {
          const headers = { authorization: `Bearer ${token}` };
          const url = `http://${cluster.node(node).address}:9998/metrics`;
          assert.equal((await fetch(url)).status, 401);
          const metrics = await (await fetch(url, { headers })).text();
          // 2100-01-01: the day after the last one.
          return /^kube_nvr_license_expiry_timestamp_seconds 4102444800$/m.test(metrics);
        },
        SLOW_MS,
      );
    }
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

  test('a pool with claims has a claim and a DaemonSet for each node; of a node that leaves, only the claim stays', async () => {
    const [first = '', second = ''] = NODES;
    await apply(cluster.controlPlane, localVolume({ storageClass: 'local-disks', node: first, path: '/mnt/disk' }));
    const on = (node: string): Json => ({ nodeSelector: { 'kubernetes.io/hostname': node } });
    const claim = { storageClassName: 'local-disks', resources: { requests: { storage: '1Gi' } } };
    const archive = { volumeClaimTemplate: { spec: claim } };
    await apply(cluster.controlPlane, [resource('RecorderPool', 'disks', { archive, ...on(first) })]);
    await until(
      `${first} belongs to the pool`,
      async () => (await readNodes()).some(({ metadata }) => metadata.name === first),
      SLOW_MS,
    );
    await cluster.api.patch(`${BASE}/recorderpools/disks`, 'merge', { spec: on(second) });
    const daemonSets = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`;
    await until(
      `only ${second} has a DaemonSet`,
      async () => {
        const names = (await cluster.api.list(daemonSets)).map(({ metadata }) => metadata.name);
        return names.join() === nodeRecorderName('disks', second);
      },
      SLOW_MS,
    );
    const claims = await cluster.api.list(`/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims`);
    const removed = claims.map(({ metadata: { annotations, deletionTimestamp } }) => [
      annotations?.['kube-nvr.dev/node'] ?? '',
      deletionTimestamp,
    ]);
    assert.deepEqual(Object.fromEntries(removed), { [first]: undefined, [second]: undefined });
  });

  test('every right of the operator is used, and it asks for nothing else', async () => {
    const used = new Set<string>();
    for (const { address } of operators) {
      const metrics = await (await fetch(`http://${address}/metrics`)).text();
      const series = /^kube_nvr_operator_api_requests_total\{verb="(\w+)",resource="(\w+)"\} [1-9]/gm;
      for (const [, verb, plural] of metrics.matchAll(series)) used.add(`${verb} ${plural}`);
    }
    const rules = [
      ...operatorRules(),
      ...operatorSecretRules(),
      ...operatorLeaseRules(),
      ...operatorAuthorityRules(),
      ...operatorClusterRules(),
    ];
    const rights = rules.flatMap(({ resources, verbs }) =>
      resources.flatMap((plural) => verbs.map((verb) => `${verb} ${plural.split('/')[0]}`)),
    );
    const granted = new Set(rights);
    assert.deepEqual([...used].filter((right) => !granted.has(right)).sort(), []);
    // Writes are refused, and nodes not believed, in some runs only.
    const unused = [...granted].filter((right) => !used.has(right) && !UNUSED_HERE.includes(right));
    assert.deepEqual(unused.sort(), []);
  });
});
