// Cameras in files are reloaded on SIGHUP and when a file changes; cameras that did not change notice nothing.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { startCamera, type Camera } from '../camera/camera.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

interface Setting {
  readonly cameras: Record<'kept' | 'changed' | 'removed' | 'added', Camera>;
  readonly recorder: RecorderProcess;
}

/** Three cameras recording, a fourth that the configuration does not name yet. */
async function setting(t: TestContext): Promise<Setting> {
  const start = async (): Promise<Camera> => {
    const camera = await startCamera({ pace: 'realtime' });
    t.after(() => camera.close());
    return camera;
  };
  const cameras = { kept: await start(), changed: await start(), removed: await start(), added: await start() };
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      cameras: (['kept', 'changed', 'removed'] as const).map((id) => ({ id, source: cameras[id].url })),
    },
  });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  await recorder.untilRecording('kept', 'changed', 'removed');
  return { cameras, recorder };
}

const ids = async (recorder: RecorderProcess): Promise<string[]> =>
  (await recorder.cameras()).map((camera) => camera.id).sort();

async function assertChanged({ cameras, recorder }: Setting): Promise<void> {
  await recorder.untilRecording('added', 'changed', 'kept');
  assert.deepEqual(await ids(recorder), ['added', 'changed', 'kept']);
  await until('the removed camera is left alone', () => cameras.removed.sessions.size === 0);
  assert.equal(cameras.removed.methods.filter((method) => method === 'TEARDOWN').length, 1);
  await until('the changed camera was started anew', () => cameras.changed.pastSessions.length === 1);
  assert.equal(cameras.changed.sessions.size, 1);
  assert.equal(cameras.kept.connections.length, 1, 'the kept camera has its first connection');
  assert.equal(cameras.kept.sessions.size, 1);
  assert.ok(!cameras.kept.methods.includes('TEARDOWN'));
}

for (const how of ['SIGHUP', 'file change'] as const) {
  test(`reload by ${how}: cameras are added, changed and removed, the others are not touched`, async (t) => {
    const state = await setting(t);
    const { cameras, recorder } = state;
    recorder.rewriteConfig({
      cameras: [
        { id: 'kept', source: cameras.kept.url },
        { id: 'changed', name: 'Another name', source: cameras.changed.url },
        { id: 'added', source: cameras.added.url },
      ],
    });
    if (how === 'SIGHUP') recorder.child.signal('SIGHUP');
    await assertChanged(state);
    assert.equal((await recorder.stop()).code, 0);
  });
}

test('reload: a camera in conf.d joins when its file appears and leaves when it goes', async (t) => {
  const { cameras, recorder } = await setting(t);
  const directory = join(dirname(recorder.configFile), 'conf.d');
  mkdirSync(directory, { recursive: true });
  const file = join(directory, 'more.yaml');
  writeFileSync(file, `cameras:\n  - {id: added, source: "${cameras.added.url}"}\n`);
  recorder.child.signal('SIGHUP');
  await recorder.untilRecording('added', 'kept');
  writeFileSync(file, 'cameras:\n');
  recorder.child.signal('SIGHUP');
  await until('the camera is gone', async () => !(await ids(recorder)).includes('added'));
  await until('its session ended', () => cameras.added.sessions.size === 0);
  assert.equal(cameras.kept.connections.length, 1);
});

test('reload: where cameras may be counts for the next connection, and takes no running one away', async (t) => {
  const { cameras, recorder } = await setting(t);
  const entries = (...ids: readonly (keyof Setting['cameras'])[]) => ids.map((id) => ({ id, source: cameras[id].url }));
  recorder.rewriteConfig({ cameraNetworks: ['10.0.0.0/8'], cameras: entries('kept', 'added') });
  recorder.child.signal('SIGHUP');
  const stateOf = async (id: string) => (await recorder.cameras()).find((camera) => camera.id === id);
  await until('the new camera is refused', async () =>
    JSON.stringify(await stateOf('added')).includes('address-refused'),
  );
  assert.equal(cameras.added.connections.length, 0);
  assert.equal(cameras.kept.connections.length, 1);
  assert.equal((await stateOf('kept'))?.state, 'recording');
  recorder.rewriteConfig({ cameraNetworks: ['127.0.0.0/8'], cameras: entries('kept', 'added') });
  recorder.child.signal('SIGHUP');
  await recorder.untilRecording('added', 'kept');
  assert.doesNotMatch(recorder.child.output, /need a restart/);
});

test('reload: a file with a mistake changes nothing and is named in the log with its key', async (t) => {
  const { cameras, recorder } = await setting(t);
  recorder.rewriteConfig({ cameras: [{ id: 'kept', source: 'http://not-a-camera/' }] });
  recorder.child.signal('SIGHUP');
  await until('the mistake is logged', () => recorder.child.output.includes('cameras[0].source'));
  assert.deepEqual(await ids(recorder), ['changed', 'kept', 'removed']);
  assert.equal(cameras.kept.connections.length, 1);
  assert.ok(recorder.child.output.includes(recorder.configFile));
  assert.equal((await recorder.stop()).code, 0);
});

test('reload: what all cameras inherit is taken over without a new connection, and no restart is asked for', async (t) => {
  const { cameras, recorder } = await setting(t);
  const files = async (): Promise<number> =>
    ((await recorder.get('/api/archive/kept/segments')) as { archive: unknown[] }).archive.length;
  const before = await files();
  recorder.rewriteConfig({
    cameras: (['kept', 'changed', 'removed'] as const).map((id) => ({ id, source: cameras[id].url })),
    archive: { segmentDuration: '1s' },
  });
  recorder.child.signal('SIGHUP');
  await until('files are of a second now', async () => (await files()) >= before + 3);
  for (const id of ['kept', 'changed', 'removed'] as const) assert.equal(cameras[id].connections.length, 1, id);
  assert.doesNotMatch(recorder.child.output, /need a restart/);
  assert.equal((await recorder.stop()).code, 0);
});
