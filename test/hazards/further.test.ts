// What else cameras and their surroundings do. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reply } from '../camera/message.ts';
import { startMsOf } from '../support/file-start.ts';
import { distances, onlyFile, packetTimes, range, setStage } from './stage.ts';

test('74. the realm “TP-LINK Streaming Media” wants no login but requests for 127.0.0.1', async (t) => {
  const stage = await setStage(t, {
    host: '127.0.0.2',
    onRequest: (request) =>
      request.method === 'OPTIONS' || request.uri.startsWith('rtsp://127.0.0.1')
        ? undefined
        : reply(401, [['WWW-Authenticate', 'Digest realm="TP-LINK Streaming Media", nonce="1"']]),
  });
  await stage.play(10);
  await stage.expectPictures(range(0, 10));
});

test('75. two seconds of video captured before the connection arrive at once', async (t) => {
  const stage = await setStage(t);
  const startMs = stage.clock.wallMs();
  await stage.camera.untilPlaying();
  stage.camera.send(50);
  await stage.camera.settled();
  await stage.play(100);
  const file = onlyFile(await stage.expectPictures(range(0, 150)));
  // The picture that follows the burst at once was captured as it was sent.
  const capturedMs = startMs - 50 * 40;
  assert.ok(Math.abs(startMsOf(file) - capturedMs) <= 100, `${startMsOf(file) - capturedMs} ms from the first capture`);
  for (const distance of distances(await packetTimes(file))) assert.ok(Math.abs(distance - 40) < 1);
});

test('76. the clock of the host is set back an hour, and forward', async (t) => {
  for (const stepMs of [-3_600_000, 3_600_000]) {
    const stage = await setStage(t);
    await stage.play(30);
    stage.clock.stepWall(stepMs);
    await stage.play(100);
    // Files are in the order of their names.
    const before = range(0, 50);
    const after = range(50, 130);
    const outcome = await stage.expectPictures(stepMs < 0 ? [...after, ...before] : [...before, ...after]);
    assert.equal(stage.camera.connections.length, 1);
    assert.equal(outcome.files.length, 2, 'the time after the step is in a file of its own');
    for (const file of outcome.files) {
      for (const distance of distances(await packetTimes(file))) assert.ok(Math.abs(distance - 40) < 1);
    }
    const starts = outcome.files.map(startMsOf).sort((a, b) => a - b);
    const apart = (starts[1] ?? 0) - (starts[0] ?? 0);
    assert.ok(Math.abs(apart - Math.abs(stepMs)) <= 3_000, `files begin ${apart} ms apart`);
  }
});
