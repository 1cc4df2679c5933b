// recorder --adopt-archive: the owner's word on which disk is right.

import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Child } from '../support/child.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

async function adopt(configFile: string): Promise<{ code: number | null; output: string }> {
  await using child = new Child(process.execPath, [MAIN, '--adopt-archive', '--config', configFile]);
  const { code } = await child.exit();
  return { code, output: child.output };
}

test('a recorder that runs on a directory without its id is ready as soon as the owner adopts it', async (t) => {
  const directory = workspace(t);
  const first = await RecorderProcess.start({ directory, config: {} });
  await first.stop();
  rmSync(join(first.recordPath, '.kube-nvr/archive.json'));

  const recorder = await first.restart({ waitUntilReady: false });
  t.after(() => recorder[Symbol.asyncDispose]());
  const answer = await until('an answer', () => fetch(`${recorder.url}/api/health/ready`));
  const { status, failed, warnings } = (await answer.json()) as {
    status: string;
    failed: string[];
    warnings: { code: string; detail: string }[];
  };
  assert.deepEqual([status, failed, warnings[0]?.code], ['not_ready', ['recordings_dir'], 'archive-missing']);
  assert.match(warnings[0]?.detail ?? '', /--adopt-archive/);

  const { code, output } = await adopt(recorder.configFile);
  assert.equal(code, 0, output);
  const { id } = JSON.parse(readFileSync(join(recorder.recordPath, '.kube-nvr/archive.json'), 'utf8')) as {
    id: string;
  };
  assert.ok(output.includes(id));
  await recorder.ready();
  assert.equal((await recorder.stop()).code, 0);
});

test('a record path that is not there is not adopted, and not made', async (t) => {
  const directory = workspace(t);
  const recorder = await RecorderProcess.start({ directory, config: {} });
  await recorder.stop();
  rmSync(recorder.recordPath, { recursive: true });
  const { code, output } = await adopt(recorder.configFile);
  assert.equal(code, 1);
  assert.match(output, /config\.yaml: record_path: .* does not exist/);
});
