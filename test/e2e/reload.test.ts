// Cameras in files are reloaded on SIGHUP and when a file changes; cameras that did not change notice nothing.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { newToken, sha256 } from '../../base/new-token.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { untilRemovalIsTold } from '../support/removal.ts';
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
  await until('the removed camera is not listed', async () => (await ids(recorder)).join() === 'added,changed,kept');
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

interface Ready {
  readonly warnings: readonly { readonly code: string; readonly camera_id: string | null; readonly detail: string }[];
}

const warnings = async (recorder: RecorderProcess, code: string): Promise<Ready['warnings']> =>
  ((await recorder.get('/api/health/ready')) as Ready).warnings.filter((warning) => warning.code === code);

for (const [what, text] of [
  ['empty', ''],
  ['a comment', '# cameras:\n'],
  ['null', 'null\n'],
] as const)
  test(`reload: a file that is ${what} for a moment stops no camera, and is a warning until it is whole`, async (t) => {
    const { cameras, recorder } = await setting(t);
    const whole = readFileSync(recorder.configFile, 'utf8');
    writeFileSync(recorder.configFile, text);
    await until('it is refused', async () => (await warnings(recorder, 'configuration-refused')).length === 1);
    const [warning] = await warnings(recorder, 'configuration-refused');
    assert.match(warning?.detail ?? '', /config\.yaml: is empty/);
    writeFileSync(recorder.configFile, whole);
    await until('it is whole', async () => (await warnings(recorder, 'configuration-refused')).length === 0);
    for (const id of ['kept', 'changed', 'removed'] as const) assert.equal(cameras[id].connections.length, 1, id);
  });

test('reload: a file that was cut, or a conf.d that is gone, removes most cameras only by a signal', async (t) => {
  const { cameras, recorder } = await setting(t);
  const directory = join(dirname(recorder.configFile), 'conf.d');
  mkdirSync(directory);
  const entry = (id: string, camera: Camera) => `  - {id: ${id}, source: "${camera.url}"}\n`;
  const list = (['kept', 'changed', 'removed'] as const).map((id) => entry(id, cameras[id]));
  recorder.rewriteConfig({ cameras: [] });
  writeFileSync(join(directory, 'all.yaml'), `cameras:\n${list.join('')}${entry('added', cameras.added)}`);
  recorder.child.signal('SIGHUP');
  await recorder.untilRecording('added');
  writeFileSync(join(directory, 'all.yaml'), `cameras:\n${list[0]}`);
  await until('most are missing', async () => (await warnings(recorder, 'configuration-refused')).length === 1);
  const [cut] = await warnings(recorder, 'configuration-refused');
  assert.match(cut?.detail ?? '', /cameras: no longer there: changed, removed, added; send SIGHUP/);
  rmSync(directory, { recursive: true });
  const isGone = /no longer there: kept, changed, removed, added/;
  await until('all are missing', async () =>
    isGone.test((await warnings(recorder, 'configuration-refused'))[0]?.detail ?? ''),
  );
  for (const id of ['kept', 'changed', 'removed'] as const) assert.equal(cameras[id].connections.length, 1, id);
  recorder.child.signal('SIGHUP');
  await until('they are removed', async () => (await recorder.cameras()).length === 0);
  assert.deepEqual(await warnings(recorder, 'configuration-refused'), []);
  await untilRemovalIsTold(recorder, 'kept', 'changed', 'removed', 'added');
});

test('reload: a file that was cut before its tokens takes none away, except by a signal', async (t) => {
  const token = newToken();
  const wall = { name: 'wall', role: 'viewer', sha256: sha256(token).toString('hex') };
  const headers = { authorization: `Bearer ${token}` };
  await using recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: { auth: { mode: 'token', tokens: [wall] } },
  });
  const ask = async (path: string): Promise<Response> => recorder.fetch(path, { headers });
  recorder.rewriteConfig({ auth: { mode: 'token' } });
  await until('it is refused', async () => {
    const { warnings: shown } = (await (await ask('/api/health/ready')).json()) as Ready;
    return shown.some(({ detail }) => /auth\.tokens: no longer there: wall; send SIGHUP/.test(detail));
  });
  assert.equal((await ask('/api/cameras')).status, 200);
  recorder.child.signal('SIGHUP');
  await until('the token is gone', async () => (await ask('/api/cameras')).status === 401);
});

test('reload: a camera that is gone is named in the log, an event, the audit, and for an hour in ready', async (t) => {
  const { cameras, recorder } = await setting(t);
  const entries = (...ids: readonly (keyof Setting['cameras'])[]) => ids.map((id) => ({ id, source: cameras[id].url }));
  recorder.rewriteConfig({ cameras: entries('kept', 'changed') });
  await until('it is gone', async () => !(await ids(recorder)).includes('removed'));
  const named = async () => (await warnings(recorder, 'camera-removed')).map((warning) => warning.camera_id);
  await until('ready names it', async () => (await named()).length > 0);
  assert.deepEqual(await named(), ['removed']);
  assert.match(recorder.child.output, /"level":40.*"removed":\["removed"\],"msg":"the cameras were configured"/);
  await untilRemovalIsTold(recorder, 'removed');
  recorder.rewriteConfig({ cameras: entries('kept', 'changed', 'removed') });
  await until('it is there again', async () => (await ids(recorder)).includes('removed'));
  await until('ready has no warning', async () => (await named()).length === 0);
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
