// What becomes of a recorder in which something is thrown that nobody catches: a fault that a test brings in.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCamera } from '../camera/camera.ts';
import { decodingErrors, topLevelBoxes } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

/** A recorder of two cameras in which `fault` happens at the signal SIGWINCH, which it does not know. */
async function stage(t: TestContext, fault: string): Promise<RecorderProcess> {
  const directory = workspace(t);
  const preload = join(directory, 'preload.mjs');
  writeFileSync(preload, `process.on('SIGWINCH', () => setImmediate(() => { ${fault} }));`);
  const cameras = await Promise.all(
    ['gate', 'yard'].map(async (id) => ({ id, camera: await startCamera({ pace: 'realtime' }) })),
  );
  t.after(() => Promise.all(cameras.map(({ camera }) => camera.close())));
  const recorder = await RecorderProcess.start({
    directory,
    config: { cameras: cameras.map(({ id, camera }) => ({ id, source: camera.url })) },
    env: { ...process.env, NODE_OPTIONS: `--import=${preload}` },
  });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  await recorder.untilRecording('gate', 'yard');
  await until('a file of each camera', async () => (await recorder.files()).length === 2);
  return recorder;
}

async function assertClosed(recorder: RecorderProcess): Promise<void> {
  const files = await recorder.files();
  assert.equal(files.length, 2);
  for (const file of files) {
    const path = join(recorder.recordPath, file);
    assert.equal((await topLevelBoxes(path)).at(-1), 'moov', file);
  }
  assert.equal(await decodingErrors(...files.map((file) => join(recorder.recordPath, file))), '');
}

test('after an uncaught exception files are closed, and the recorder ends with 1, so that it is started again', async (t) => {
  const recorder = await stage(t, "throw new Error('injected')");
  recorder.child.signal('SIGWINCH');
  const { code, signal } = await recorder.child.exit();
  assert.deepEqual({ code, signal }, { code: 1, signal: null }, recorder.child.output);
  assert.match(recorder.child.output, /"message":"injected".*"msg":"uncaught exception"/);
  await assertClosed(recorder);
});

test('exceptions that follow one another do not keep files from being closed', async (t) => {
  const recorder = await stage(
    t,
    "const again = () => { setTimeout(again, 5); throw new Error('injected'); }; again();",
  );
  recorder.child.signal('SIGWINCH');
  const { code } = await recorder.child.exit();
  assert.equal(code, 1, recorder.child.output.slice(-2_000));
  await assertClosed(recorder);
});

test('an exception during a stop: files are closed, and the recorder ends with 1', async (t) => {
  const recorder = await stage(t, "process.once('SIGTERM', () => { throw new Error('injected'); });");
  recorder.child.signal('SIGWINCH');
  // It hears the signals in their order.
  await until('it is told', async () => (await recorder.cameras()).length === 2);
  const { code } = await recorder.stop();
  assert.equal(code, 1, recorder.child.output);
  await assertClosed(recorder);
});

test('an unhandled rejection is logged, and no picture is lost', async (t) => {
  const recorder = await stage(t, "void Promise.reject(new Error('injected'));");
  recorder.child.signal('SIGWINCH');
  await until('it is logged', () => /"message":"injected".*"msg":"unhandled rejection"/.test(recorder.child.output));
  assert.deepEqual(
    (await recorder.cameras()).map(({ state }) => state),
    ['recording', 'recording'],
  );
  assert.equal((await recorder.stop()).code, 0);
  await assertClosed(recorder);
});
