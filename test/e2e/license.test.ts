// A recorder that needs a licence, as a process: which cameras it records, what ready says, and how a licence arrives.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCamera } from '../camera/camera.ts';
import { RecorderProcess, type CameraAnswer } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const TOOL = join(import.meta.dirname, '../../tools/license.ts');

type Ready = {
  status: string;
  failed?: string[];
  checks?: { license: { valid: boolean; reason?: { code: string; message: string } } };
};

test('a recorder that needs a licence: which cameras record, and how licences come and go without a restart', async (t) => {
  const directory = workspace(t);
  const tool = (...args: string[]): string =>
    execFileSync(process.execPath, [TOOL, ...args], { cwd: directory, encoding: 'utf8' }).trim();
  const publicKey = tool('keygen', '--key', 'vendor.key');
  const file = join(directory, 'recorder.lic');
  const sign = (cameras: number, expires = '2099-12-31'): string =>
    tool('sign', '--key', 'vendor.key', '--holder', 'Example', '--cameras', `${cameras}`, '--expires', expires);
  await using camera = await startCamera({ pace: 'realtime' });
  const cameras = ['gate', 'yard'].map((id) => ({ id, source: camera.url }));
  const config = { license: { file, publicKey, required: true }, cameras };
  writeFileSync(file, sign(1));
  await using recorder = await RecorderProcess.start({ directory, config, waitUntilReady: false });
  const ready = async (): Promise<[number, Ready]> => {
    const answer = await fetch(`${recorder.url}/api/health/ready`);
    return [answer.status, (await answer.json()) as Ready];
  };
  const view = async (id: string): Promise<CameraAnswer & { reason: { code: string; message: string } | null }> =>
    (await recorder.get(`/api/cameras/${id}`)) as never;
  const start = (id: string) =>
    fetch(`${recorder.url}/cameras/start`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id }),
    });

  // For fewer cameras than there are.
  await until('it listens', async () => (await ready())[0] === 503);
  await recorder.untilRecording('gate');
  const refused = await view('yard');
  assert.deepEqual(
    [refused.state, refused.reason],
    [
      'stopped',
      {
        code: 'license-exceeded',
        message: 'the licence allows 1 camera',
        todo: 'turn cameras off, or get a larger licence',
      },
    ],
  );
  const [status, body] = await ready();
  assert.deepEqual([status, body.status, body.failed], [503, 'not_ready', ['license']]);
  assert.deepEqual(body.checks?.license, {
    valid: false,
    reason: { code: 'license-exceeded', message: 'the licence allows 1 camera' },
  });
  const answer = await start('yard');
  assert.deepEqual([answer.status, ((await answer.json()) as { code: string }).code], [409, 'license-exceeded']);
  const { gaps } = (await recorder.get('/api/archive/yard/gaps')) as { gaps: { cause: string }[] };
  assert.ok(gaps.every(({ cause }) => cause === 'unlicensed'));

  // One for enough of them: noticed by itself.
  writeFileSync(file, sign(2));
  await recorder.untilRecording('gate', 'yard');
  assert.deepEqual((await ready())[0], 200);
  const sessions = camera.playing.length;
  assert.equal(sessions, 2);

  // Lost, forged, expired: what runs goes on, and no other camera begins.
  const more = [...cameras, { id: 'dock', source: camera.url }];
  recorder.rewriteConfig({ cameras: more });
  for (const [make, code] of [
    [() => rmSync(file), 'license-missing'],
    [() => writeFileSync(file, `${sign(5).slice(0, -4)}AAAA`), 'license-forged'],
    [() => writeFileSync(file, sign(5, '2020-01-01')), 'license-expired'],
  ] as const) {
    make();
    recorder.child.signal('SIGHUP');
    await until(code, async () => (await ready())[1].checks?.license.reason?.code === code);
    assert.deepEqual((await ready())[1].failed, ['license']);
    // The camera may be taken up after the licence.
    const dock = await until('the camera says so', async () => {
      const seen = await view('dock');
      return seen.reason?.code === code && seen;
    });
    assert.equal(dock.state, 'stopped');
    const metrics = await (await fetch(recorder.metricsUrl)).text();
    assert.match(metrics, /^kube_nvr_license_valid 0$/m);
  }
  assert.equal(camera.connections.length, 2, 'the first two were never connected anew');
  assert.equal(camera.playing.length, 2);

  writeFileSync(file, sign(3));
  recorder.child.signal('SIGHUP');
  await recorder.untilRecording('dock');
  assert.equal((await ready())[0], 200);
  const metrics = await (await fetch(recorder.metricsUrl)).text();
  assert.match(metrics, /^kube_nvr_license_valid 1$/m);
  assert.match(metrics, new RegExp(`^kube_nvr_license_expiry_timestamp_seconds ${Date.UTC(2100, 0, 1) / 1000}$`, 'm'));
  assert.equal((await recorder.stop()).code, 0);
});
