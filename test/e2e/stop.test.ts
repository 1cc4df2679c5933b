// SIGTERM while twenty cameras record.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCamera, type Camera } from '../camera/camera.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { decodingErrors, topLevelBoxes } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const COUNT = 20;

test('SIGTERM with 20 cameras: exit 0 within 5 s, every file finalised, every session torn down', async (t) => {
  const directory = workspace(t);
  const [video, audio] = [await videoMedia('h264'), await audioMedia('aac')];
  const cameras: Camera[] = [];
  t.after(() => Promise.all(cameras.map((camera) => camera.close())));
  for (let i = 0; i < COUNT; i++) {
    cameras.push(await startCamera({ tracks: [videoTrack(video), audioTrack(audio)], pace: 'realtime' }));
  }
  const ids = cameras.map((_, i) => `camera-${i}`);
  await using recorder = await RecorderProcess.start({
    directory,
    config: { cameras: cameras.map((camera, i) => ({ id: ids[i], source: camera.url })) },
  });
  await recorder.untilRecording(...ids);
  await until('a file of each camera', async () => (await recorder.files()).length === COUNT);

  const ended = await recorder.stop();
  assert.deepEqual({ code: ended.code, signal: ended.signal }, { code: 0, signal: null }, recorder.child.output);
  assert.ok(ended.elapsedMs < 5_000, `stopped in ${ended.elapsedMs} ms`);
  for (const camera of cameras) {
    assert.equal(camera.methods.filter((method) => method === 'TEARDOWN').length, 1);
    assert.equal(camera.sessions.size, 0);
  }
  const files = await recorder.files();
  assert.equal(files.length, COUNT);
  for (const file of files) {
    const path = join(recorder.recordPath, file);
    assert.equal((await topLevelBoxes(path)).at(-1), 'moov', file);
  }
  assert.equal(await decodingErrors(...files.map((file) => join(recorder.recordPath, file))), '');
});

test('SIGTERM while cameras cannot be reached, do not answer or refuse the login: exit 0 within 5 s', async (t) => {
  const directory = workspace(t);
  await using silent = await startCamera({ onRequest: () => 'ignore' });
  await using locked = await startCamera({ credentials: { username: 'a', password: 'b' } });
  const gone = await startCamera();
  const goneUrl = gone.url;
  await gone.close();
  await using recorder = await RecorderProcess.start({
    directory,
    config: {
      cameras: [
        { id: 'silent', source: silent.url },
        { id: 'locked', source: locked.url },
        { id: 'gone', source: goneUrl },
      ],
    },
  });
  await silent.until(() => silent.requests.length > 0, 'a request to the silent camera');
  await locked.until(() => locked.requests.length > 0, 'a request to the locked camera');
  const ended = await recorder.stop();
  assert.deepEqual({ code: ended.code, signal: ended.signal }, { code: 0, signal: null }, recorder.child.output);
  assert.ok(ended.elapsedMs < 5_000, `stopped in ${ended.elapsedMs} ms`);
});

test('SIGTERM in the moment in which cameras are asked: exit 0', async (t) => {
  const directory = workspace(t);
  const preload = join(directory, 'preload.cjs');
  // It comes before anything else can happen.
  writeFileSync(
    preload,
    `const fs = require('node:fs');
     for (const name of ['write', 'writeSync']) {
       const write = fs[name];
       fs[name] = (fd, text, ...rest) => {
         if (String(text).includes('the cameras were configured')) process.kill(process.pid, 'SIGTERM');
         return write(fd, text, ...rest);
       };
     }`,
  );
  await using camera = await startCamera();
  await using recorder = await RecorderProcess.start({
    directory,
    config: { cameras: [{ id: 'gate', source: camera.url }] },
    env: { ...process.env, NODE_OPTIONS: `--require ${preload}` },
    waitUntilReady: false,
  });
  const { code, signal } = await recorder.child.exit();
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, recorder.child.output);
});

test('SIGTERM while a disk does not answer: the files on other disks are finalised, and the process ends by itself', async (t) => {
  const directory = workspace(t);
  // Opening a pipe that nobody writes to holds a thread as a disk does that is gone.
  const pipe = join(directory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const preload = join(directory, 'preload.cjs');
  writeFileSync(preload, `require('node:fs').open(${JSON.stringify(pipe)}, 'r', () => {});`);
  await using camera = await startCamera({ pace: 'realtime' });
  await using recorder = await RecorderProcess.start({
    directory,
    config: { cameras: [{ id: 'gate', source: camera.url }] },
    env: { ...process.env, NODE_OPTIONS: `--require ${preload}` },
  });
  await recorder.untilRecording('gate');
  await until('a file', async () => (await recorder.files()).length === 1);
  const { signal } = await recorder.child.stop('SIGTERM', 120_000);
  assert.equal(signal, 'SIGKILL', recorder.child.output);
  assert.match(recorder.child.output, /could not be stopped in time/);
  const [file = ''] = await recorder.files();
  assert.equal((await topLevelBoxes(join(recorder.recordPath, file))).at(-1), 'moov');
});
