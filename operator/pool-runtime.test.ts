// One pool over an API server in memory and time that is moved by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { parseCamera, type Camera } from '../crds/camera.ts';
import { API_VERSION, nodeLeaseName } from '../crds/names.ts';
import { nodeOf, poolOf } from '../test/support/snapshots.ts';
import type { EventText } from './kube/events.ts';
import { CAMERA } from './kube/resources.ts';
import { MemoryApi, settle } from './kube/test-support.ts';
import { OperatorMetrics } from './metrics.ts';
import { viewOfCamera } from './observe/views.ts';
import type { PoolObjects } from './plan/snapshot.ts';
import { PoolRuntime } from './pool-runtime.ts';
import { Queues } from './queues.ts';

const NAMESPACE = 'video';
const STEP_MS = 250;
/** Longer than showing cameras waits after the last assignment. */
const HELD_MS = 6_000;

/** A pool with one node, which renews its Lease while time passes. */
class Stage {
  readonly api = new MemoryApi();
  readonly clock = new VirtualClock();
  readonly queues: Queues;
  readonly events: EventText[] = [];
  readonly pool: PoolRuntime;
  isLeader = true;
  #cameras: readonly Camera[] = [];
  #renewals = 0;

  constructor() {
    const { api, clock, events } = this;
    const metrics = new OperatorMetrics();
    this.queues = new Queues(clock, metrics);
    const options = {
      api,
      caches: {
        poolObjects: () => this.#objects(),
        isSynced: true,
        isSyncedIn: () => true,
        cameras: {
          get: (key: string) => this.#cameras.find(({ metadata }) => key === `${NAMESPACE}/${metadata.name}`),
        },
        leases: { get: () => undefined },
      },
      queues: this.queues,
      events: { record: (_regarding: unknown, text: EventText) => void events.push(text) },
      metrics,
      isLeader: () => this.isLeader,
      clock,
      log: silentLog,
    };
    this.pool = new PoolRuntime(`${NAMESPACE}/default`, this.#objects(), options);
  }

  async addCamera(name: string): Promise<void> {
    const spec = { source: `rtsp://10.0.0.1/${name}`, poolRef: { name: 'default' } };
    await this.api.create(CAMERA, {
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: { namespace: NAMESPACE, name },
      spec,
    });
    await this.#look();
    this.pool.changed();
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      const metadata = { name: nodeLeaseName('a'), resourceVersion: String(++this.#renewals) };
      this.pool.sawLease('a', { metadata });
      this.clock.advance(STEP_MS);
      await settle();
      await this.#look();
    }
  }

  assigned(): readonly (string | undefined)[] {
    return this.#cameras.map(({ status }) => status?.assignment?.node);
  }

  async #look(): Promise<void> {
    const { items } = await this.api.list(CAMERA, { namespace: NAMESPACE });
    this.#cameras = items.map((item) => parseCamera(item));
  }

  #objects(): PoolObjects {
    return { pool: poolOf(), nodes: [nodeOf('a')], cameras: this.#cameras.map(viewOfCamera) };
  }
}

test('before its first plan nothing is known of a pool', () => {
  const { pool } = new Stage();
  assert.equal(pool.lastPlan, undefined);
  assert.equal(pool.isTooEarly, true);
  assert.equal(pool.isLive('a'), false);
  assert.equal(pool.holds('video/gate'), false);
});

test('a replica that does not lead makes no plan', async () => {
  const stage = new Stage();
  stage.isLeader = false;
  await stage.addCamera('gate');
  await stage.pass(HELD_MS);
  assert.equal(stage.pool.lastPlan, undefined);
  assert.deepEqual(stage.assigned(), [undefined]);
  stage.isLeader = true;
  await stage.pass(HELD_MS);
  assert.deepEqual(stage.assigned(), ['a']);
});

test('a node that renews its Lease is live, and its pool is settled', async () => {
  const stage = new Stage();
  await stage.pass(HELD_MS);
  assert.equal(stage.pool.isLive('a'), true);
  assert.equal(stage.pool.isLive('b'), false);
  assert.equal(stage.pool.isTooEarly, false);
});

test('an assignment is reported as an event, and its camera and pool are looked at', async () => {
  const stage = new Stage();
  await stage.addCamera('gate');
  await stage.pass(HELD_MS);
  assert.deepEqual(stage.assigned(), ['a']);
  assert.deepEqual(stage.events, [{ type: 'Normal', reason: 'Scheduled', action: 'Assign', note: 'assigned to a' }]);
  assert.equal(await stage.queues.camera.take(), 'video/gate');
  assert.equal(await stage.queues.pool.take(), 'video/default');
});

test('while cameras are given to nodes, showing a camera waits until that is over', async () => {
  const stage = new Stage();
  await stage.addCamera('gate');
  await stage.pass(STEP_MS);
  assert.equal(stage.pool.holds('video/yard'), true);
  await stage.pass(HELD_MS);
  assert.equal(stage.pool.holds('video/yard'), false);
  const shown = new Set([await stage.queues.camera.take(), await stage.queues.camera.take()]);
  assert.deepEqual(shown, new Set(['video/gate', 'video/yard']));
});

test('a pool that is closed shows what waits, and plans no more', async () => {
  const stage = new Stage();
  await stage.addCamera('gate');
  await stage.pass(STEP_MS);
  assert.equal(stage.pool.holds('video/yard'), true);
  stage.pool.close();
  assert.equal(await stage.queues.camera.take(), 'video/yard');
  const last = stage.pool.lastPlan;
  await stage.addCamera('hall');
  await stage.pass(HELD_MS);
  assert.equal(stage.pool.lastPlan, last);
});
