// Tokens in a file of their own, as a Secret is mounted into a pod, and what comes from the environment.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../support/child.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const listOf = (...tokens: readonly string[]): string =>
  JSON.stringify(
    tokens.map((token) => ({ name: token, role: 'viewer', sha256: createHash('sha256').update(token).digest('hex') })),
  );

test('tokens of a mounted Secret are valid; a new version of it applies without a restart, and a broken one does not', async (t) => {
  const directory = workspace(t);
  const mounted = join(directory, 'secret');
  /** As a kubelet does: a new directory, to which a link is turned. */
  const mount = (version: number, text: string): void => {
    mkdirSync(join(mounted, `..${version}`), { recursive: true });
    writeFileSync(join(mounted, `..${version}`, 'tokens.yaml'), text);
    symlinkSync(`..${version}`, join(mounted, '..data_tmp'));
    renameSync(join(mounted, '..data_tmp'), join(mounted, '..data'));
  };
  mount(1, listOf('first', 'second'));
  symlinkSync('..data/tokens.yaml', join(mounted, 'tokens.yaml'));
  const tokensFile = join(mounted, 'tokens.yaml');
  await using recorder = await RecorderProcess.start({ directory, config: { auth: { mode: 'token', tokensFile } } });
  const statusWith = async (token: string): Promise<number> =>
    (await fetch(`${recorder.url}/api/cameras`, { headers: { authorization: `Bearer ${token}` } })).status;
  assert.deepEqual([await statusWith('first'), await statusWith('third')], [200, 401]);

  mount(2, listOf('second', 'third'));
  await until('the new token counts', async () => (await statusWith('third')) === 200);
  assert.deepEqual([await statusWith('first'), await statusWith('second')], [401, 200]);

  mount(3, '[{name: x, role: viewer, sha256: plain-sesame}]');
  const refusal = `${tokensFile}:1:34: auth.tokensFile[0].sha256: expected the 64 hexadecimal digits of the SHA-256 of the token`;
  await until('it is refused', () => recorder.child.output.includes(refusal));
  assert.equal(await statusWith('third'), 200);
  assert.ok(!recorder.child.output.includes('plain-sesame'));
});

test('a start without the file of tokens, or with a wrong address in the environment, ends with one line', async (t) => {
  const directory = workspace(t);
  const config = join(directory, 'config.yaml');
  const startWith = async (auth: object, env: NodeJS.ProcessEnv): Promise<string> => {
    writeFileSync(config, JSON.stringify({ auth }));
    const args = [MAIN, '--config', config, '--check-config'];
    await using child = new Child(process.execPath, args, { cwd: directory, env: { ...process.env, ...env } });
    const { code } = await child.exit();
    assert.equal(code, 1, child.output);
    return child.output.trim();
  };
  const tokensFile = join(directory, 'tokens.yaml');
  assert.equal(await startWith({ tokensFile }, {}), `recorder: ${tokensFile}: auth.tokensFile: no such file`);
  assert.equal(
    await startWith({}, { KUBE_NVR_DATABASE_URL: 'mysql://nvr:s3cret@db/x' }),
    'recorder: environment: KUBE_NVR_DATABASE_URL: expected an address that begins with postgres:// or postgresql://',
  );
});
