// Two recorders and one directory: one of them has it, the other says who has, and a kill -9 gives it free.

import assert from 'node:assert/strict';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCamera } from '../camera/camera.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { Child } from '../support/child.ts';
import { decodingErrors } from '../support/probe.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

interface Ready {
  readonly status: string;
  readonly warnings?: readonly { readonly code: string; readonly detail: string }[];
}

async function footage(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter(({ name, parentPath }) => name.endsWith('.mp4') && !parentPath.includes('.kube-nvr'))
    .map(({ parentPath, name }) => join(parentPath, name));
}

test('a record_path that cannot be used is named with its key, also after the first start and by --check-config', async (t) => {
  const directory = workspace(t);
  await using recorder = await RecorderProcess.start({ directory, config: {} });
  await recorder.stop();
  writeFileSync(join(directory, 'file'), '');
  const refused = async (path: string, problem: string): Promise<void> => {
    recorder.rewriteConfig({ record_path: path });
    for (const args of [['--check-config'], []]) {
      await using child = new Child(process.execPath, [MAIN, '--config', recorder.configFile, ...args]);
      assert.notEqual((await child.exit()).code, 0);
      assert.match(child.output, new RegExp(`config\\.yaml:\\d+:\\d+: record_path: .*${problem}`));
    }
  };
  await refused(join(directory, 'file/archive'), 'is not a directory, or its path contains a file');
  await refused('recordings', 'expected an absolute path');
});

test('a second recorder with the workDir of a running one does not start, and names the first', async (t) => {
  const directory = workspace(t);
  await using first = await RecorderProcess.start({ directory, config: { nodeName: 'gatehouse' } });
  const apart = join(directory, 'apart');
  mkdirSync(apart);
  const config = { workDir: join(directory, 'work') };
  await using second = await RecorderProcess.start({ directory: apart, config, waitUntilReady: false });
  const { code } = await second.child.exit();
  assert.equal(code, 1);
  const { pid } = first.child;
  assert.match(
    second.child.output,
    new RegExp(
      `recorder: workDir: ${directory}/work is used by another recorder: node gatehouse, host .*, process ${pid}, `,
    ),
  );
  assert.ok((await first.fetch('/api/health/ready')).ok);
});

test('a second recorder with the archive of one that runs leaves it alone, and takes it when the first is killed', async (t) => {
  const directory = workspace(t);
  const camera = await startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' });
  t.after(() => camera.close());
  const cameras = [{ id: 'gate', source: camera.url }];
  const record_path = join(directory, 'recordings');
  await using first = await RecorderProcess.start({ directory, config: { record_path, cameras } });
  await first.untilRecording('gate');
  const before = await until('a file', async () => (await footage(record_path)).length > 0 && footage(record_path));

  const apart = join(directory, 'apart');
  mkdirSync(apart);
  await using second = await RecorderProcess.start({
    directory: apart,
    config: { record_path, cameras, nodeName: 'copy' },
    waitUntilReady: false,
  });
  const refused = await until('the second says why', async () => {
    const ready = (await (await second.fetch('/api/health/ready')).json()) as Ready;
    return ready.warnings?.find(({ code }) => code === 'archive-in-use');
  });
  assert.ok(refused.detail.startsWith(`${record_path}/.kube-nvr is used by another recorder: node test-node, `));
  assert.ok(!second.child.output.includes('left open by a crash'), 'what the first writes is nothing to repair');
  assert.deepEqual(await footage(record_path), before);
  assert.ok((await first.fetch('/api/health/ready')).ok);

  first.child.signal('SIGKILL');
  await first.child.exit();
  await second.ready();
  await second.untilRecording('gate');
  assert.equal((await second.stop()).code, 0);
  assert.equal(await decodingErrors(...(await footage(record_path))), '');
});

test('files of a recorder can be read by its user and group only', async (t) => {
  const directory = workspace(t);
  const camera = await startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' });
  t.after(() => camera.close());
  const [record_path, workDir] = [join(directory, 'new/recordings'), join(directory, 'new/work')];
  const config = { record_path, workDir, cameras: [{ id: 'gate', source: camera.url }] };
  await using recorder = await RecorderProcess.start({
    directory,
    config,
    through: ['sh', '-c', 'umask 0; exec "$0" "$@"'],
  });
  await recorder.untilRecording('gate');
  await until('a file', async () => (await footage(record_path)).length > 0);
  await recorder.stop();
  const listed = [record_path, workDir].map((root) => readdir(root, { recursive: true, withFileTypes: true }));
  const made = (await Promise.all(listed)).flat();
  assert.ok(made.length > 10);
  for (const entry of made) {
    const path = join(entry.parentPath, entry.name);
    assert.equal(statSync(path).mode & (entry.isDirectory() ? 0o027 : 0o137), 0, path);
  }
});

test('a recorder that was killed starts again at once', async (t) => {
  const directory = workspace(t);
  await using first = await RecorderProcess.start({ directory, config: {} });
  for (let last = first, round = 0; round < 3; round++) {
    last.child.signal('SIGKILL');
    await last.child.exit();
    last = await last.restart();
    t.after(() => last[Symbol.asyncDispose]());
  }
});
