// Rows of a Postgres as Cameras of a pool, on a real control plane with real recorders: they fail over as other cameras do, while Postgres
// lives, hangs, is dead, and comes back with rows of yesterday.

import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import type { Camera as CameraResource } from '../../crds/camera.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { operatorRowRules, operatorRules, operatorSecretRules } from '../../operator/manifests/operator-access.ts';
import type { Camera } from '../camera/camera.ts';
import { Postgres, postgresMissing } from '../support/postgres.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { apply, NAMESPACE, poolOfAllNodes, RESOURCES, startOperator, untilAllVote } from './own-operator.ts';
import { onStage } from './stage.ts';

const SLOW_MS = 180_000;
const ALL_AT_HOME = /^gate: node-1, hall: node-2, yard: node-2$/;

let cluster: Cluster;
let camera: Camera;
let postgres: Postgres;
let proxy: TcpProxy;
let operator: string;
const ends: (() => unknown)[] = [];

/** Such as `gate: node-1, hall: stopped`: who records each Camera. */
async function places(): Promise<string> {
  const cameras = (await cluster.api.list(`${RESOURCES}/cameras`)) as unknown as readonly CameraResource[];
  return cameras
    .map(({ metadata, spec, status }) => {
      const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
      const { node, handover } = status?.assignment ?? {};
      if (spec.suspend) return `${metadata.name}: stopped`;
      return `${metadata.name}: ${isReady && handover !== 'Pending' ? node : 'not recorded'}`;
    })
    .sort()
    .join(', ');
}

/** The condition RowsFollowed of the pool: its reason and message. */
async function followed(): Promise<string> {
  const { status } = (await cluster.api.get(`${RESOURCES}/recorderpools/default`)) as unknown as RecorderPool;
  const { reason, message } = status?.conditions?.find(({ type }) => type === 'RowsFollowed') ?? {};
  return `${reason} ${message}`;
}

const untilMatching = (ask: () => Promise<string>, wanted: RegExp): Promise<unknown> =>
  until(
    `${ask.name}() answers as wanted`,
    async () => {
      assert.match(await ask(), wanted);
      return true;
    },
    SLOW_MS,
    250,
  );

const insert = (id: string, node: string): Promise<unknown> =>
  postgres.query('INSERT INTO cameras (id, node_name, source) VALUES ($1, $2, $3)', [id, node, camera.url]);

suite('rows of a database as cameras of a pool', { skip: clusterMissing() || postgresMissing() }, () => {
  onStage({
    nodes: 3,
    async operator({ controlPlane, directory }) {
      const { address, program } = await startOperator(controlPlane, directory);
      operator = address;
      return () => program.kill();
    },
    begin: async (...stage) => {
      [cluster, camera] = stage;
      const { viewers } = cluster.network.addresses;
      postgres = await Postgres.start({ after: (end) => void ends.push(end as () => unknown) });
      proxy = await TcpProxy.to(postgres.port, '127.0.0.1', viewers);
      ends.push(() => proxy.close());
      const url = postgres.url('postgres', proxy.port).replace('127.0.0.1', viewers);
      await cluster.api.create(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
        metadata: { name: 'database' },
        stringData: { url },
      });
      const database = { databaseSecretRef: { name: 'database' }, camerasFromDatabase: true };
      await apply(cluster.controlPlane, [poolOfAllNodes({ ...database, failover: { failbackAfterSeconds: 5 } })]);
      await until('the recorders have made the tables', () => postgres.query('SELECT FROM kube_nvr_rows'), SLOW_MS);
    },
  });
  after(async () => {
    for (const end of ends.reverse()) await end();
  });

  test('a row is recorded by the node that it names, every node redirects to it, and its login is in no Camera', async () => {
    await insert('gate', 'node-1');
    await insert('hall', 'node-2');
    await untilMatching(places, /^gate: node-1, hall: node-2$/);
    const url = `http://${cluster.node('node-3').address}:9997/api/archive/hall/current`;
    const location = await until('node-3 knows who records it', async () => {
      const asked = await fetch(url, { redirect: 'manual' });
      assert.equal(asked.status, 307);
      return asked.headers.get('location') ?? undefined;
    });
    assert.ok(location.includes(cluster.node('node-2').address));
    const { spec } = (await cluster.api.get(`${RESOURCES}/cameras/hall`)) as unknown as CameraResource;
    assert.equal(spec.source, `rtsp://${new URL(camera.url).host}/`);
    await untilMatching(followed, /^Followed $/);
  });

  test('a node that dies while Postgres hangs loses its cameras to others, and gets them back', async () => {
    // As it is yesterday, for the next test.
    await postgres.query('CREATE TABLE backup AS SELECT * FROM cameras');
    await postgres.query('CREATE TABLE backup_rows AS SELECT * FROM kube_nvr_rows');
    await insert('yard', 'node-2');
    await untilMatching(places, ALL_AT_HOME);
    await untilAllVote(cluster);
    proxy.silence();
    await cluster.node('node-2').kill();
    await untilMatching(places, /^gate: node-1, hall: node-[13], yard: node-[13]$/);
    await untilMatching(followed, /^TableUnusable/);
    // Recorders start without it as well.
    await postgres.stop('kill');
    proxy.heal();
    await cluster.node('node-2').start();
    await untilMatching(places, ALL_AT_HOME);
  });

  test('a table that comes back with rows of yesterday stops nothing, and a row counts again when it changes', async () => {
    proxy.silence();
    await postgres.start();
    await postgres.query(`TRUNCATE cameras, kube_nvr_rows`);
    await postgres.query('INSERT INTO cameras SELECT * FROM backup');
    await postgres.query('INSERT INTO kube_nvr_rows SELECT * FROM backup_rows');
    proxy.heal();
    await untilMatching(followed, /^TableRestored .* yard is recorded/);
    assert.match(await places(), ALL_AT_HOME);
    await postgres.query(`UPDATE cameras SET enabled = false WHERE id = 'hall'`);
    await untilMatching(places, /^gate: node-1, hall: stopped, yard: node-2$/);
  });

  test('the operator uses no rights that its roles do not have', async () => {
    const rights = [...operatorRules(), ...operatorSecretRules(), ...operatorRowRules()].flatMap(
      ({ resources, verbs }) => resources.flatMap((plural) => verbs.map((verb) => `${verb} ${plural}`)),
    );
    const metrics = await (await fetch(`http://${operator}/metrics`)).text();
    const series =
      /^kube_nvr_operator_api_requests_total\{verb="(\w+)",resource="(cameras|secrets|recorderpools)"\} [1-9]/gm;
    const used = [...metrics.matchAll(series)].map(([, verb, plural]) => `${verb} ${plural}`);
    assert.deepEqual(
      used.filter((right) => !rights.includes(right)),
      [],
    );
    for (const right of ['patch cameras', 'patch secrets', 'patch recorderpools'])
      assert.ok(used.includes(right), right);
  });
});
