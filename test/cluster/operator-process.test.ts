// The operator as a process that Kubernetes watches over: probes, what ends it, and what does not give it work.

import { after, before, suite, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { API_VERSION, nodeLeaseName, poolLabels } from '../../crds/names.ts';
import { Child } from '../support/child.ts';
import { mainOf } from '../support/own-programs.ts';
import { freePorts } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing } from './programs.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'default';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const OPERATOR_LEASE = `${LEASES}/kube-nvr-operator`;
const SLOW_MS = 180_000;
/** From SIGTERM to SIGKILL of a pod. */
const MAX_STOP_MS = 15_000;

type Lease = KubeObject & { spec: { holderIdentity?: string | null } };

suite('the operator process', { skip: apiServerMissing() }, () => {
  let controlPlane: ControlPlane;

  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    await controlPlane.installKinds();
  });

  after(() => controlPlane?.close());

  async function start(t: TestContext, name: string) {
    const [port] = await freePorts(1);
    const args = [mainOf('operator'), '--namespace', NAMESPACE, '--kubeconfig', controlPlane.kubeconfig];
    const child = new Child(process.execPath, [...args, '--listen', `127.0.0.1:${port}`], {
      cwd: ROOT,
      env: { ...process.env, POD_NAMESPACE: NAMESPACE, POD_NAME: name },
    });
    t.after(() => child[Symbol.asyncDispose]());
    const ask = (path: string): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(2_000) });
    const probe = async (path: string): Promise<number> => (await ask(path)).status;
    /** Sum over all label values. */
    const metric = async (metricName: string): Promise<number> =>
      (await (await ask('/metrics')).text())
        .split('\n')
        .filter((line) => line.startsWith(`${metricName}{`) || line.startsWith(`${metricName} `))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    return { child, probe, metric };
  }

  const holder = async (): Promise<string> =>
    (await controlPlane.api.get<Lease>(OPERATOR_LEASE)).spec.holderIdentity ?? '';
  const untilLeads = (name: string): Promise<boolean> =>
    until(`${name} leads`, async () => (await holder()).startsWith(`${name}/`), SLOW_MS);

  test('it is ready when its caches are filled and alive all the while; that the API server is away changes neither', async (t) => {
    await controlPlane.stop('kube-apiserver');
    const { probe, metric } = await start(t, 'early');
    const failures = (): Promise<number> => metric('kube_nvr_operator_watch_failures_total');
    await until('it listens', async () => (await probe('/healthz')) === 200, SLOW_MS);
    assert.equal(await probe('/readyz'), 503, 'nothing is known yet');
    await controlPlane.start('kube-apiserver');
    await until('it is ready', async () => (await probe('/readyz')) === 200, SLOW_MS);
    const before = await failures();
    await controlPlane.stop('kube-apiserver');
    await until('it has noticed', async () => (await failures()) > before + 3, SLOW_MS);
    await until('it leads no more', async () => (await metric('kube_nvr_operator_leader')) === 0, SLOW_MS);
    assert.deepEqual([await probe('/readyz'), await probe('/healthz')], [200, 200]);
    await controlPlane.start('kube-apiserver');
  });

  test('a loop that stands still does not answer, and is alive again when it turns', async (t) => {
    const { child, probe } = await start(t, 'frozen');
    await until('it is ready', async () => (await probe('/readyz')) === 200, SLOW_MS);
    child.signal('SIGSTOP');
    await assert.rejects(probe('/healthz'), { name: 'TimeoutError' });
    child.signal('SIGCONT');
    await until('it is alive', async () => (await probe('/healthz')) === 200, SLOW_MS);
    child.signal('SIGTERM');
    await child.exit();
  });

  test('SIGTERM ends the leader within its time and frees the Lease: the next one leads at once', async (t) => {
    const first = await start(t, 'first');
    await untilLeads('first');
    const second = await start(t, 'second');
    await until('it is ready', async () => (await second.probe('/readyz')) === 200, SLOW_MS);
    first.child.signal('SIGTERM');
    const { code, elapsedMs } = await first.child.exit();
    assert.equal(code, 0, first.child.output);
    assert.ok(elapsedMs < MAX_STOP_MS, `${elapsedMs} ms`);
    assert.ok(!(await holder()).startsWith('first/'), 'the Lease is not held by who has ended');
    await untilLeads('second');
  });

  test('it ends within its time also while the API server does not answer', async (t) => {
    const { child } = await start(t, 'stuck');
    await untilLeads('stuck');
    await controlPlane.pause('kube-apiserver');
    try {
      child.signal('SIGTERM');
      const { elapsedMs } = await child.exit();
      assert.ok(elapsedMs < MAX_STOP_MS, `${elapsedMs} ms`);
    } finally {
      controlPlane.resume('kube-apiserver');
    }
  });

  test('renewals of Leases, which come all the time, put nothing into a queue', async (t) => {
    const { probe, metric } = await start(t, 'calm');
    await untilLeads('calm');
    await controlPlane.kubectl(['apply', '-f', '-'], {
      input: JSON.stringify({
        apiVersion: API_VERSION,
        kind: 'RecorderPool',
        metadata: { name: 'default', namespace: NAMESPACE },
        spec: { archive: { hostPath: '/mnt/archive' } },
      }),
    });
    const name = nodeLeaseName('node-1');
    await controlPlane.api.create(LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, labels: poolLabels('default') },
      spec: { holderIdentity: 'node-1/0' },
    });
    await until('it is ready', async () => (await probe('/readyz')) === 200, SLOW_MS);
    const added = (): Promise<number> => metric('workqueue_adds_total');
    const seen = (): Promise<number> => metric('kube_nvr_operator_watch_events_total');
    await until('the pool was looked at', async () => (await added()) > 0, SLOW_MS);
    const [addedBefore, seenBefore] = [await added(), await seen()];
    const renewals = 100;
    for (let i = 1; i <= renewals; i++) {
      await controlPlane.api.patch(`${LEASES}/${name}`, 'merge', { spec: { holderIdentity: `node-1/${i}` } });
    }
    await until('it has seen them', async () => (await seen()) - seenBefore >= renewals, SLOW_MS);
    const more = (await added()) - addedBefore;
    assert.ok(more < renewals / 4, `${more} additions`);
  });
});
