// The operator as the chart's Deployment would run it, as a process of the test.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from '../cluster/control-plane.ts';
import { Child } from '../support/child.ts';
import { mainOf } from '../support/own-programs.ts';
import { freePorts } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { one, type Helm, type Values } from './helm.ts';

const ROOT = join(import.meta.dirname, '../..');
const SLOW_MS = 60_000;

/** With the arguments of the Deployment and the rights of its service account; ready. */
export async function startOperatorOf(
  controlPlane: ControlPlane,
  helm: Helm,
  namespace: string,
  values: Values,
): Promise<Child> {
  const { spec } = one(await helm.template(values), 'Deployment').spec.template;
  const token = await controlPlane.kubectl(['-n', namespace, 'create', 'token', spec.serviceAccountName]);
  const kubeconfig = join(controlPlane.directory, 'operator.kubeconfig');
  const cluster = { server: controlPlane.server, 'certificate-authority': controlPlane.authority.certFile };
  const named = { name: 'a', cluster, user: { token: token.trim() }, context: { cluster: 'a', user: 'a' } };
  const config = { 'current-context': 'a', clusters: [named], users: [named], contexts: [named] };
  writeFileSync(kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...config }));
  const [port] = await freePorts(1);
  const own = ['--kubeconfig', kubeconfig, '--listen', `127.0.0.1:${port}`];
  const operator = new Child(process.execPath, [mainOf('operator'), ...spec.containers[0].args, ...own], {
    cwd: ROOT,
    env: { ...process.env, POD_NAMESPACE: namespace },
  });
  await until('it is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, SLOW_MS).catch(
    async (err: unknown) => {
      await operator[Symbol.asyncDispose]();
      throw err;
    },
  );
  return operator;
}
