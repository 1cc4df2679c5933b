// What Argo CD and Flux see of the charts: after they have applied what helm renders, and after the operator has worked with it,
// nothing differs. Compared by their own libraries (test/rig/gitops).

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { API_VERSION, GROUP } from '../../crds/names.ts';
import type { RecorderPoolStatus } from '../../crds/recorder-pool.ts';
import { startControlPlane, type ControlPlane } from '../cluster/control-plane.ts';
import { apiServerMissing, gitopsMissing, needProgram } from '../cluster/programs.ts';
import { until } from '../support/until.ts';
import { Helm, helmMissing, KINDS_CHART, type Manifest } from './helm.ts';
import { startOperatorOf } from './operator.ts';

const NAMESPACE = 'video';
const SLOW_MS = 180_000;
const VALUES = { pool: { enabled: true, spec: { archive: { hostPath: '/mnt/archive' } } } };

interface Compared {
  readonly object: string;
  readonly changed: boolean;
  readonly live?: object;
  readonly wanted?: object;
}

suite('the charts under GitOps', { skip: helmMissing() || apiServerMissing() || gitopsMissing() }, () => {
  let controlPlane: ControlPlane;
  let helm: Helm;
  let kinds: string;
  let chart: string;

  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    helm = new Helm(controlPlane.kubeconfig);
    await controlPlane.kubectl(['create', 'namespace', NAMESPACE]);
    // As both do: no cluster is asked while rendering.
    kinds = await helm.run(['template', 'kube-nvr-crds', KINDS_CHART, '--namespace', NAMESPACE]);
    chart = await helm.templateText(VALUES, '--no-hooks');
    const again = await helm.templateText(VALUES, '--no-hooks');
    assert.equal(again, chart, 'what is rendered is the same each time');
  });

  after(async () => {
    helm?.close();
    await controlPlane?.close();
  });

  const gitops = async (comparison: string, objects: string): Promise<readonly Compared[]> => {
    const env = { ...process.env, KUBECONFIG: controlPlane.kubeconfig };
    const child = spawn(needProgram('gitops'), [comparison], { env, stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.end(objects);
    const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.equal(errors, '');
    const lines = out.trim().split('\n');
    assert.ok(lines.length > 2, out);
    return lines.map((line) => JSON.parse(line) as Compared);
  };
  const changed = async (comparison: string): Promise<readonly Compared[]> =>
    (await gitops(comparison, `${kinds}\n---\n${chart}`)).filter((found) => found.changed);

  /** Until it has made the recorders of the pool and shown its status. */
  const letOperatorWork = async (): Promise<void> => {
    await using operator = await startOperatorOf(controlPlane, helm, NAMESPACE, VALUES);
    const ours = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/recorderpools/default`;
    await until(
      'the pool has a status',
      async () => {
        const { status } = await controlPlane.api.get<Manifest>(ours);
        return (status as RecorderPoolStatus | undefined)?.conditions?.some(({ type }) => type === 'Ready');
      },
      SLOW_MS,
    );
    await until(
      'it has recorders',
      () => controlPlane.api.get(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/default-recorder`),
      SLOW_MS,
    );
    operator.signal('SIGTERM');
    assert.equal((await operator.exit()).code, 0, operator.output);
  };

  test('Flux changes nothing that it has applied, before and after the operator has worked', async () => {
    await gitops('flux-apply', kinds);
    await until(
      'the kinds are known',
      () => controlPlane.kubectl(['get', 'recorderpools', '-A']).then(() => true),
      SLOW_MS,
    );
    await gitops('flux-apply', chart);
    assert.deepEqual(await changed('flux-apply'), []);
    await letOperatorWork();
    assert.deepEqual(await changed('flux'), []);
    assert.deepEqual(await changed('flux-apply'), []);
  });

  test('to Argo CD all is in sync that it has applied, before and after the operator has worked', async () => {
    await controlPlane.kubectl(['delete', '--filename', '-', '--wait'], { input: chart });
    // As Argo CD does, with the code of kubectl.
    const apply = (input: string): Promise<string> =>
      controlPlane.kubectl(['apply', '--field-manager=argocd-controller', '--filename', '-'], { input });
    await apply(kinds);
    await apply(chart);
    const inSync = async (): Promise<void> => {
      assert.deepEqual(await changed('argo'), []);
      assert.deepEqual(await changed('argo-server-side'), []);
    };
    await inSync();
    await letOperatorWork();
    await inSync();
    // The comparison does see a difference.
    await controlPlane.kubectl(['-n', NAMESPACE, 'scale', 'deployment', '--all', '--replicas=5']);
    assert.deepEqual(
      (await changed('argo')).map(({ object }) => object),
      [`Deployment/${NAMESPACE}/nvr-kube-nvr-operator`],
    );
  });

  test('what is no longer in Git is deleted, but kinds and pools stay, and with them all cameras', async () => {
    const kept = [
      `CustomResourceDefinition/archivetargets.${GROUP}`,
      `CustomResourceDefinition/cameras.${GROUP}`,
      `CustomResourceDefinition/recordernodes.${GROUP}`,
      `CustomResourceDefinition/recorderpools.${GROUP}`,
      `CustomResourceDefinition/recordingobjectives.${GROUP}`,
      `RecorderPool/${NAMESPACE}/default`,
    ];
    for (const tool of ['argo-prune', 'flux-prune']) {
      const found = await gitops(tool, `${kinds}\n---\n${chart}`);
      const names = found.filter((one) => !one.changed).map(({ object }) => object);
      assert.deepEqual(names.filter((name) => !name.startsWith('PriorityClass/')).sort(), kept, tool);
      assert.ok(found.length > names.length + 5, `${tool}: ${found.length} objects, ${names.length} kept`);
    }
    await controlPlane.kubectl(['get', 'recorderpool', 'default', '--namespace', NAMESPACE]);
  });
});
