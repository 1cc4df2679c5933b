import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Child } from '../test/support/child.ts';
import { PATIENCE_MS, until } from '../test/support/until.ts';

const MAIN = new URL('main.ts', import.meta.url).pathname;
/** Says on standard error that the library for kubeconfig files is loaded. */
const WITNESS = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({ resolve(specifier, context, next) {
    if (specifier === '@kubernetes/client-node') process.stderr.write('the library is loaded\\n');
    return next(specifier, context);
  } });`)}`;

/** What the operator says before it ends. Its environment has nothing else in it. */
const start = (env: Readonly<Record<string, string>>): Promise<string> =>
  new Promise((resolve) => {
    execFile(process.execPath, ['--import', WITNESS, MAIN], { env, timeout: PATIENCE_MS }, (_err, _stdout, stderr) =>
      resolve(stderr),
    );
  });

test('a pod does not load the library for kubeconfig files', async () => {
  const said = await start({ KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBE_NVR_SERVICE_ACCOUNT_DIR: '/nonexistent' });
  assert.equal(said, 'operator: the files of the service account cannot be read\n');
});

test('a kubeconfig file is read with the library', async () => {
  const said = await start({ KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBECONFIG: '/nonexistent' });
  assert.match(said, /^the library is loaded\n/);
});

test('a stop soon after the start is a clean end, also while the API server says nothing', async (t) => {
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const directory = mkdtempSync(join(tmpdir(), 'operator-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const kubeconfig = join(directory, 'config');
  const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const named = { name: 'a', cluster: { server }, user: {}, context: { cluster: 'a', user: 'a' } };
  const config = { 'current-context': 'a', clusters: [named], users: [named], contexts: [named] };
  writeFileSync(kubeconfig, JSON.stringify({ apiVersion: 'v1', kind: 'Config', ...config }));
  await using operator = new Child(process.execPath, [MAIN, '--kubeconfig', kubeconfig, '--listen', '127.0.0.1:0']);
  await until('it has started', () => operator.output.includes('operator started'), 60_000);
  operator.signal('SIGTERM');
  const { code, signal } = await operator.exit();
  assert.deepEqual([code, signal], [0, null], operator.output);
});
