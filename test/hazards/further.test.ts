// What else cameras and their surroundings do. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reply } from '../camera/message.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack, type Track } from '../camera/tracks.ts';
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

/** A track with a picture a minute, and sender reports between them: something is sent each second. */
async function rareTrack(): Promise<Track> {
  const track = videoTrack(await videoMedia('h264'));
  const frames = track.frames.flatMap((frame, n) =>
    range(0, 60).map((part, i) => {
      const sendAtMs = n * 60_000 + i * 1_000;
      return {
        ...frame,
        index: n * 60 + part,
        sendAtMs,
        timestamp: sendAtMs * 90,
        units: part === 0 ? frame.units : [],
      };
    }),
  );
  return { ...track, frames, durationMs: track.frames.length * 60_000 };
}

test('98. one picture a minute: one connection while sender reports count the packets, new ones without', async (t) => {
  const tracks = [await rareTrack()];
  const counted = await setStage(t, { tracks, segmentDurationMs: 3_600_000 });
  await counted.play(60 * 8);
  assert.equal(counted.status.state, 'recording');
  assert.equal(counted.camera.connections.length, 1);
  await counted.expectPictures(range(0, 8));

  for (const silent of [{ reportClockOffsetMs: null }, { onReport: miscounted }]) {
    const stage = await setStage(t, { tracks, ...silent });
    await stage.play(2);
    await stage.passUntil(() => stage.camera.connections.length > 1, 'a second connection');
    assert.equal(stage.status.counters.reconnects.get('stream-silent'), 1);
  }
});

/** A camera that counts packets that never come. */
function miscounted(report: Buffer): Buffer {
  report.writeUInt32BE(report.readUInt32BE(20) * 2 + 7, 20);
  return report;
}
