// `tls: auto` of a server on its own, as curl and openssl see it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const run = promisify(execFile);

test('one line turns TLS on: the log has the fingerprint that openssl shows, and it stays over a restart', async (t) => {
  const directory = workspace(t);
  const start = async () => {
    const recorder = await RecorderProcess.start({ directory, config: { tls: 'auto' }, waitUntilReady: false });
    t.after(() => recorder.child[Symbol.asyncDispose]());
    const [, fingerprint = ''] = await until(
      'it says its fingerprint',
      async () => /"fingerprint":"([0-9A-F:]+)"/.exec(recorder.child.output) ?? false,
    );
    await until('it has started', async () => recorder.child.output.includes('recorder started'));
    return { recorder, fingerprint, host: recorder.url.replace(/^https?:\/\//, '') };
  };
  const { recorder, fingerprint, host } = await start();
  const certificate = join(directory, 'work/tls/certificate.pem');
  const shown = await run('openssl', ['x509', '-in', certificate, '-noout', '-fingerprint', '-sha256']);
  assert.match(shown.stdout, new RegExp(`=${fingerprint}\\s`));
  for (const at of [host, recorder.playbackUrl.replace('http://', '')]) {
    const { stdout } = await run('sh', [
      '-c',
      `openssl s_client -connect ${at} </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256`,
    ]);
    assert.match(stdout, new RegExp(`=${fingerprint}\\s`), at);
  }
  // Who trusts this certificate, and no system's authority, gets an answer under each of its names.
  for (const url of [`https://${host}`, `https://localhost:${host.split(':')[1]}`]) {
    const args = ['-sS', '--fail', '--noproxy', '*', '--cacert', certificate];
    const { stdout } = await run('curl', [...args, `${url}/api/health/live`]);
    assert.equal(stdout, '{"status":"live"}');
  }
  await assert.rejects(run('curl', ['-sS', '--noproxy', '*', `https://${host}/api/health/live`]), /certificate/);
  await recorder.stop();
  assert.ok(
    !recorder.child.output.includes(readFileSync(join(directory, 'work/tls/key.pem'), 'utf8').split('\n')[1] ?? ''),
  );
  assert.equal((await start()).fingerprint, fingerprint);
});

test('a listener that others reach without TLS says so once at its start, and in the warnings of ready', async (t) => {
  const config = { listen: '0.0.0.0:0', auth: { mode: 'none', allowAnonymousNetwork: true } };
  const recorder = await RecorderProcess.start({ directory: workspace(t), config, waitUntilReady: false });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  const [, port = ''] = await until(
    'it has started',
    async () => /"address":"http:\/\/[^"]*:(\d+)"/.exec(recorder.child.output) ?? false,
  );
  const said = recorder.child.output.split('\n').filter((line) => line.includes('over plain HTTP'));
  assert.equal(said.length, 1);
  const answer = (await (await fetch(`http://127.0.0.1:${port}/api/health/ready`)).json()) as {
    warnings: { code: string; detail: string }[];
  };
  assert.deepEqual(
    answer.warnings.filter(({ code }) => code === 'no-tls').map(({ detail }) => detail.includes('0.0.0.0:0')),
    [true],
  );
});
