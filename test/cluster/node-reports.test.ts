// What a recorder of a large pool knows of the other nodes, on a real API server.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { systemClock } from '../../base/clock.ts';
import { concurrently } from '../../base/concurrently.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, poolLabels } from '../../crds/names.ts';
import { KubeConfigConnection, loadKubeConfig } from '../../operator/kube/kube-config.ts';
import { ApiServer } from '../../recorder/cluster/api-server.ts';
import { NodeReports } from '../../recorder/cluster/node-reports.ts';
import { until } from '../support/until.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing } from './programs.ts';

const NAMESPACE = 'large';
const PATH = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/recordernodes`;
const NODES = Array.from({ length: 101 }, (_, n) => `node-${n}`);

let controlPlane: ControlPlane;
let api: ApiServer;
let reports: NodeReports;

const move = (node: string, address: string): Promise<unknown> =>
  controlPlane.api.patch(`${PATH}/${node}`, 'merge', { spec: { address } });

suite('a pool of 101 nodes', { skip: apiServerMissing() }, () => {
  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    await controlPlane.kubectl(['create', 'namespace', NAMESPACE]);
    await controlPlane.installKinds();
    await concurrently(NODES, 8, async (name) => {
      await controlPlane.api.create(PATH, {
        apiVersion: API_VERSION,
        kind: 'RecorderNode',
        metadata: { name, labels: poolLabels('default') },
        spec: { nodeName: name, poolRef: { name: 'default' }, address: `http://${name}:9997` },
      });
    });
    api = new ApiServer(new KubeConfigConnection(loadKubeConfig(controlPlane.kubeconfig), systemClock));
    reports = new NodeReports({
      api,
      namespace: NAMESPACE,
      nodeId: 'node-0',
      pool: 'default',
      changed: () => {},
      clock: systemClock,
      log: silentLog,
    });
    reports.start();
    await until('all are listed', () => reports.objects.size === NODES.length && reports.own !== undefined);
  });

  after(async () => {
    await reports?.close();
    await api?.close();
    await controlPlane?.close();
  });

  test('a change of its own RecorderNode reaches a recorder without a question', async () => {
    await move('node-0', 'http://own:1');
    await until('it is known', () => reports.own?.spec.address === 'http://own:1');
  });

  test('a change of another one reaches it with the next question', async () => {
    await move('node-7', 'http://other:1');
    assert.equal(reports.objects.get('node-7')?.spec.address, 'http://node-7:9997');
    await until('a question is answered by it', async () => {
      await reports.look();
      return reports.objects.get('node-7')?.spec.address === 'http://other:1';
    });
  });
});
