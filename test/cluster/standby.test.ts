// Cameras of which no second is missing, on a real control plane: one with a standby, whose node is drained, cut off, killed, and its
// recorder restarted; and one with a memory of its own, whose node is killed. The numbers of the pictures that any node answers with
// prove that none is missing and none is doubled.

import { after, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Camera as CameraResource } from '../../crds/camera.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import type { Camera } from '../camera/camera.ts';
import { EdgeCamera } from '../camera/edge-camera.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { until } from '../support/until.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, poolOfAllNodes, resource, RESOURCES } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 180_000;
/** How much a standby holds. */
const HELD_MS = 31_000;
/** The camera plays its ten seconds over and over. */
const CLIP_PICTURES = 250;
/** By then the current pictures are on disk. */
const WRITTEN_MS = 4_000;

let cluster: Cluster;
let camera: Camera;
let withMemory: EdgeCamera | undefined;

const cameraOf = async (name: string): Promise<CameraResource> =>
  (await cluster.api.get(`${RESOURCES}/cameras/${name}`)) as unknown as CameraResource;

const gate = (): Promise<CameraResource> => cameraOf('gate');

const conditionOf = async (type: string): Promise<Condition | undefined> =>
  (await gate()).status?.conditions?.find((condition) => condition.type === type);

const patchGate = (spec: object): Promise<unknown> => cluster.api.patch(`${RESOURCES}/cameras/gate`, 'merge', { spec });

/** The node of the camera and its standby, once that has held the camera for as long as it can. */
async function held(): Promise<{ readonly owner: string; readonly standby: string }> {
  await until(
    'the camera is recorded, and held for half a minute',
    async () => {
      const [ready, standby] = [await conditionOf('Ready'), await conditionOf('Standby')];
      const sinceMs = Date.parse(standby?.lastTransitionTime ?? '');
      return ready?.status === 'True' && standby?.status === 'True' && Date.now() - sinceMs > HELD_MS;
    },
    SLOW_MS,
    500,
  );
  const { assignment, standby } = (await gate()).status ?? {};
  assert.ok(assignment?.node !== undefined && standby?.node !== undefined);
  assert.notEqual(assignment.node, standby.node);
  return { owner: assignment.node, standby: standby.node };
}

const recordedBy = (node: string): Promise<unknown> =>
  until(
    `${node} records the camera`,
    async () => {
      const { assignment } = (await gate()).status ?? {};
      const isReady = (await conditionOf('Ready'))?.status === 'True';
      return isReady && assignment?.node === node && assignment.handover === 'Complete';
    },
    SLOW_MS,
  );

/** The nodes that lost the camera are forgiven, so that it gets a standby again. */
async function forgive(): Promise<void> {
  await patchGate({ suspend: true });
  await until('it is suspended', async () => (await gate()).status?.assignment?.node === undefined, SLOW_MS);
  await patchGate({ suspend: false });
}

/** Every picture of the time follows the one before it in what a node answers, which asks all others. */
async function isComplete(node: string, fromMs: number, toMs: number, name = 'gate'): Promise<void> {
  const url = `http://${cluster.node(node).address}:9996/window/${name}.mp4?from=${fromMs / 1_000}&to=${toMs / 1_000}`;
  const movie = await until(
    'all nodes answer',
    async () => {
      const answer = await fetch(url);
      if (answer.status !== 200 || answer.headers.get('x-elsewhere') !== null) return undefined;
      return Buffer.from(await answer.arrayBuffer());
    },
    SLOW_MS,
    1_000,
  );
  const file = join(cluster.directory, 'window.mp4');
  writeFileSync(file, movie);
  const { numbers, complaints } = await decodePictures(file);
  assert.equal(complaints, '');
  const others = numbers.slice(1).filter((number, i) => number !== ((numbers[i] as number) + 1) % CLIP_PICTURES);
  assert.deepEqual(others, [], `each picture follows the one before it: ${numbers.join(' ')}`);
  assert.ok(Math.abs(numbers.length - (toMs - fromMs) / 40) < 40, `${numbers.length} pictures in ${toMs - fromMs} ms`);
}

interface Ledger {
  readonly missing_seconds: number;
  readonly known_until_ms: number;
  readonly filled_seconds: number;
  readonly gaps: readonly { readonly cause: string; readonly filled_from?: string }[];
}

/** What a node says of the time, once it knows all of it. */
function ledgerOf(node: string, fromMs: number, toMs: number, name = 'gate'): Promise<Ledger> {
  const query = `from=${fromMs / 1_000}&to=${toMs / 1_000}`;
  const url = `http://${cluster.node(node).address}:9997/api/archive/${name}/gaps?${query}`;
  return until('the ledger knows', async () => {
    const answer = (await (await fetch(url)).json()) as Ledger;
    return answer.known_until_ms >= toMs - 1 && answer;
  });
}

async function nothingIsMissing(node: string, fromMs: number, toMs: number): Promise<void> {
  const ledger = await ledgerOf(node, fromMs, toMs);
  assert.equal(ledger.missing_seconds, 0, JSON.stringify(ledger));
}

const written = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, WRITTEN_MS));

suite('a camera with a standby', { skip: clusterMissing() }, () => {
  onStage({
    nodes: 3,
    begin: async (...stage) => {
      [cluster, camera] = stage;
      await apply(cluster.controlPlane, [
        poolOfAllNodes({ failover: { standby: true } }),
        resource('Camera', 'gate', { source: camera.url, transport: 'Tcp' }),
      ]);
      await held();
    },
  });
  after(() => withMemory?.close());

  const unavailableAfter = (seconds: number | null): Promise<unknown> =>
    cluster.api.patch(`${RESOURCES}/recorderpools/default`, 'merge', {
      spec: { failover: { unavailableAfterSeconds: seconds } },
    });

  /** Its kubelet starts the recorder of a node again: at once the first time, and later after ten seconds. */
  const restarted = (how: 'restartPod' | 'killPod', name: string): void => {
    test(name, async () => {
      // On a slow machine the pause of the kubelet and the start take longer than a node may be silent.
      await unavailableAfter(120);
      const { owner, standby } = await held();
      const { epoch } = (await gate()).status?.assignment ?? {};
      const node = cluster.node(owner);
      const recorder = (await node.processes()).find(({ container }) => container === 'recorder');
      const strikeMs = Date.now();
      await node[how](recorder?.pod ?? '');
      await until('the standby knows of another process', async () => Date.now() - strikeMs > 5_000, SLOW_MS);
      await recordedBy(owner);
      const backMs = Date.now();
      await until('the standby has written', async () => Date.now() - backMs > 20_000, SLOW_MS);
      const overMs = Date.now() - WRITTEN_MS;
      await isComplete(owner, strikeMs - 10_000, overMs);
      const { gaps } = await ledgerOf(owner, strikeMs - 10_000, overMs);
      assert.deepEqual([...new Set(gaps.map(({ cause }) => cause))], ['on-other-node']);
      const after = (await gate()).status;
      assert.deepEqual([after?.assignment?.epoch, after?.standby?.node], [epoch, standby], 'nothing moves');
      await unavailableAfter(null);
    });
  };

  restarted('killPod', 'a recorder that is killed and started again: its standby writes what it has missed');

  test('a node that is drained: its standby continues the recording', async () => {
    const { owner, standby } = await held();
    const startMs = Date.now();
    await cluster.api.patch(`${RESOURCES}/recordernodes/${owner}`, 'merge', { spec: { drain: true } });
    await recordedBy(standby);
    await written();
    const overMs = Date.now() - WRITTEN_MS;
    await isComplete(standby, startMs - 10_000, overMs);
    await nothingIsMissing(standby, startMs - 10_000, overMs);
    await cluster.api.patch(`${RESOURCES}/recordernodes/${owner}`, 'merge', { spec: { drain: false } });
  });

  restarted('restartPod', 'a recorder that is restarted in place: its standby writes what it has missed');

  test('a node that is killed: its standby has recorded the camera since before', async () => {
    const { owner, standby } = await held();
    const strikeMs = Date.now();
    await cluster.node(owner).kill();
    await until('another node has it', async () => (await gate()).status?.assignment?.node !== owner, SLOW_MS);
    await recordedBy(standby);
    await written();
    const overMs = Date.now() - WRITTEN_MS;
    await nothingIsMissing(standby, strikeMs - 10_000, overMs);
    await cluster.node(owner).start();
    await isComplete(standby, strikeMs - 10_000, overMs);
    await forgive();
  });

  test('a node that is cut off: both record for a while, and each picture is listed once', async () => {
    const { owner, standby } = await held();
    const strikeMs = Date.now();
    cluster.node(owner).cutOff('api', 'peers', 'viewers');
    await recordedBy(standby);
    await written();
    const healMs = Date.now();
    cluster.node(owner).reconnect();
    await until(
      'it has stopped',
      async () => (await conditionOf('Ready'))?.status === 'True' && Date.now() - healMs > 8_000,
      SLOW_MS,
    );
    await isComplete(standby, strikeMs - 10_000, healMs);
    await nothingIsMissing(standby, strikeMs - 10_000, healMs);
    await forgive();
  });

  test('a node that is killed: the next one fetches what it missed from the memory of the camera', async () => {
    const host = cluster.network.addresses.cameras;
    withMemory = await EdgeCamera.start({ pace: 'realtime', host, device: { host } });
    await apply(cluster.controlPlane, [
      resource('Camera', 'yard', {
        source: withMemory.camera.url,
        transport: 'Tcp',
        onvif: withMemory.device.url,
        edge: { onvif: true },
        placement: { standby: false },
      }),
    ]);
    const owner = await until(
      'the camera is recorded',
      async () => {
        const { assignment, conditions } = (await cameraOf('yard')).status ?? {};
        return conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') && assignment?.node;
      },
      SLOW_MS,
    );
    await until('it has footage', () => (withMemory?.memory.frames.length ?? 0) > 15 * 25, SLOW_MS);
    const strikeMs = Date.now();
    await cluster.node(owner).kill();
    const next = await until(
      'another node has it',
      async () => {
        const { assignment } = (await cameraOf('yard')).status ?? {};
        return assignment?.node !== owner && assignment?.node;
      },
      SLOW_MS,
    );
    const { gaps } = await until(
      'it has filled the gap',
      async () => {
        const ledger = await ledgerOf(next, strikeMs - 5_000, Date.now() - WRITTEN_MS, 'yard');
        return ledger.filled_seconds > 10 && ledger.missing_seconds === 0 && ledger;
      },
      SLOW_MS,
      1_000,
    );
    assert.deepEqual(
      gaps.filter(({ cause }) => cause === 'moved').map(({ filled_from: from }) => from),
      ['edge'],
    );
    const overMs = Date.now() - WRITTEN_MS;
    await cluster.node(owner).start();
    await isComplete(next, strikeMs - 10_000, overMs, 'yard');
  });
});
