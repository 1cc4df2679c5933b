import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';

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
    execFile(process.execPath, ['--import', WITNESS, MAIN], { env, timeout: 60_000 }, (_err, _stdout, stderr) =>
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
