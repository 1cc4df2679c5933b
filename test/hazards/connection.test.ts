// How cameras start, stop and come back, and what they send in place of pictures. The numbers are those of
// docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startCamera } from '../camera/camera.ts';
import type { CameraConnection } from '../camera/connection.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { formatReply, reply } from '../camera/message.ts';
import type { CameraOptions } from '../camera/options.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { range, requestsOf, setStage } from './stage.ts';
import type { Stage } from './stage.ts';

async function videoAndAudio() {
  return [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))];
}

/** Packets whose sequence goes on, whose payload is none that a picture could be made of. */
const senseless: Readonly<Record<string, (packet: Buffer) => Buffer>> = {
  'scrambled payloads': (packet) => packet.map((byte, i) => (i < 12 ? byte : byte ^ 0x5a)) as Buffer,
  'another codec': (packet) =>
    Buffer.concat([packet.subarray(0, 12), Buffer.from('0201d0', 'hex'), packet.subarray(12)]),
  'fragments that never begin': (packet) =>
    Buffer.concat([packet.subarray(0, 12), Buffer.from([0x7c, 0x05]), packet.subarray(12)]),
  'SEI and nothing else': (packet) => Buffer.concat([packet.subarray(0, 12), Buffer.from('0605010080', 'hex')]),
};

test('85. packets of which no picture can be made end the connection within 15 s, and what came is said', async (t) => {
  for (const [what, spoil] of Object.entries(senseless)) {
    for (const before of [0, 50]) {
      let spoilt = before === 0;
      const stage = await setStage(t, { onPacket: (packet) => (spoilt ? spoil(packet) : packet) });
      if (before > 0) await stage.play(before);
      spoilt = true;
      for (let pictures = 0; stage.camera.connections[0]?.closed !== true; pictures += 5) {
        assert.ok(pictures <= 15 * 25, `${what}: 15 s of packets, and the connection still stands`);
        await stage.play(5);
      }
      assert.equal(stage.status.counters.reconnects.get('not-decodable'), 1, what);
      assert.match(stage.status.reason?.message ?? '', /no picture could be made of them for 1\d s: \d+ of/);
      spoilt = false;
      await stage.passUntil(() => stage.camera.playing.length === 1, 'a new session');
      stage.seek(4_000);
      await stage.play(25, { connection: 2 });
      await stage.expectPictures([...range(0, before), ...range(100, 125)]);
    }
  }
});

test('85. a stream without a key frame for a minute says so while it is waited for', async (t) => {
  let keyFrames = false;
  const stage = await setStage(t, { onFrame: (frame) => (frame.key && !keyFrames ? undefined : frame) });
  await stage.play(60 * 24);
  assert.equal(stage.camera.connections.length, 1);
  assert.deepEqual([stage.status.state, stage.status.reason?.code], ['connecting', 'no-key-frame']);
  keyFrames = true;
  stage.seek(4_000);
  await stage.play(25);
  assert.equal(stage.status.reason, undefined);
  await stage.expectPictures(range(100, 125));
});

/** Holds back the replies to a method until the test lets them go. */
function late(method: string): { options: CameraOptions; answer: () => void; asked: () => boolean } {
  const waiting: { connection: CameraConnection; bytes: Buffer }[] = [];
  return {
    options: {
      onReply: (usual, request, connection) => {
        if (request.method !== method) return usual;
        waiting.push({ connection, bytes: formatReply(usual) });
        return Buffer.alloc(0);
      },
    },
    answer: () => {
      for (const { connection, bytes } of waiting.splice(0)) connection.write(bytes);
    },
    asked: () => waiting.length > 0,
  };
}

test('86. OPTIONS is never answered: DESCRIBE follows anyway', async (t) => {
  const stage = await setStage(t, { onRequest: (request) => (request.method === 'OPTIONS' ? 'ignore' : undefined) });
  await stage.passUntil(() => stage.camera.playing.length === 1, 'a session', 5_000);
  await stage.play(25);
  await stage.expectPictures(range(0, 25));
  assert.equal(stage.camera.connections.length, 1);
});

test('86. DESCRIBE is answered after 12 s', async (t) => {
  const { options, answer, asked } = late('DESCRIBE');
  const stage = await setStage(t, options);
  await stage.passUntil(asked, 'DESCRIBE', 5_000);
  await stage.pass(12_000);
  answer();
  await stage.play(25);
  await stage.expectPictures(range(0, 25));
  assert.equal(stage.camera.connections.length, 1);
});

test('86. the first picture comes 30 s after PLAY', async (t) => {
  const stage = await setStage(t);
  await stage.camera.untilPlaying();
  await stage.pass(30_000);
  await stage.play(25);
  await stage.expectPictures(range(0, 25));
  assert.equal(stage.camera.connections.length, 1);
});

test('86. a camera that needs longer than a limit has twice as long the next time', async (t) => {
  const { options, answer, asked } = late('DESCRIBE');
  const stage = await setStage(t, options);
  await stage.passUntil(() => stage.status.state === 'retrying', 'the end of patience');
  assert.equal(stage.status.reason?.code, 'no-answer');
  answer();
  await stage.passUntil(asked, 'another DESCRIBE');
  await stage.pass(50_000);
  answer();
  await stage.play(25);
  await stage.expectPictures(range(0, 25));
  assert.equal(stage.camera.connections.length, 2);
});

test('87. SETUP of the sound is refused, with any status', async (t) => {
  for (const status of [401, 403, 404, 453, 454, 461, 500, 503]) {
    for (const transport of ['tcp', 'udp', 'auto'] as const) {
      const tracks = await videoAndAudio();
      const stage = await setStage(t, {
        transport,
        // The sound stands first in the description.
        tracks: tracks.toReversed(),
        onRequest: (request) =>
          request.method === 'SETUP' && request.uri.includes('trackID=2') ? reply(status) : undefined,
      });
      await stage.play(25);
      assert.match(requestsOf(stage.camera, 'SETUP')[0]?.uri ?? '', /trackID=1/, 'the video is set up first');
      assert.equal(stage.camera.connections.length, 1, `${status} ${transport}`);
      const { audioDropped, audio } = stage.status;
      assert.deepEqual([audioDropped?.code, audio], ['refused', undefined]);
      assert.match(audioDropped?.message ?? '', new RegExp(`${status}`));
      await stage.expectPictures(range(0, 25));
    }
  }
});

test('87. SETUP of the sound is never answered', async (t) => {
  const stage = await setStage(t, {
    tracks: await videoAndAudio(),
    onRequest: (request) => (request.method === 'SETUP' && request.uri.includes('trackID=2') ? 'ignore' : undefined),
  });
  await stage.passUntil(() => stage.camera.playing.length === 1, 'a session', 6_000);
  await stage.play(25);
  assert.equal(stage.status.audioDropped?.code, 'refused');
  stage.camera.disconnect();
  await stage.passUntil(
    () => stage.camera.connections.length === 2 && stage.camera.playing.length === 1,
    'another session',
    3_000,
  );
  assert.equal(requestsOf(stage.camera, 'SETUP').length, 3, 'its sound is not asked for again so soon');
  stage.seek(5_000);
  await stage.play(25, { connection: 2 });
  await stage.expectPictures([...range(0, 25), ...range(125, 150)]);
});

test('87. the camera hangs, or closes, when it is asked for its sound', async (t) => {
  for (const how of ['hang', 'close'] as const) {
    let hung = false;
    const stage = await setStage(t, {
      tracks: await videoAndAudio(),
      onRequest: (request) => {
        const isSound = request.method === 'SETUP' && request.uri.includes('trackID=2');
        if (isSound && how === 'close') return 'close';
        if (request.method === 'OPTIONS') hung = false;
        hung ||= isSound;
        return hung ? 'ignore' : undefined;
      },
    });
    await stage.passUntil(() => stage.camera.playing.length === 1, 'a session', 60_000);
    await stage.play(25);
    assert.equal(stage.camera.connections.length, 2);
    assert.equal(stage.status.audioDropped?.code, 'refused');
    await stage.expectPictures(range(0, 25));
  }
});

/** Plays until more than 10 s are recorded, then takes the camera away: its port is closed. */
async function takeAway(stage: Stage): Promise<number> {
  await stage.play(300);
  const { port } = stage.camera;
  await stage.camera.close();
  return port;
}

/** Milliseconds of the camera's time until a camera that has come back is asked to play. */
async function untilAsked(stage: Stage, camera: { requests: readonly { method: string }[] }): Promise<number> {
  const sinceMs = stage.clock.monotonicMs();
  await stage.passUntil(() => camera.requests.some(({ method }) => method === 'PLAY'), 'PLAY', 40_000);
  return stage.clock.monotonicMs() - sinceMs;
}

test('88. a camera is back after an outage: it plays within two seconds, however long it was away', async (t) => {
  for (const seconds of [3, 20, 90]) {
    const stage = await setStage(t);
    const port = await takeAway(stage);
    await stage.pass(seconds * 1000);
    assert.equal(stage.status.reason?.code, 'unreachable');
    await using back = await startCamera({ clock: stage.clock, port });
    const ms = await untilAsked(stage, back);
    assert.ok(ms < 2_000, `asked to play ${ms} ms after it was back, away for ${seconds} s`);
  }
});

test('88. a camera that starts answers 404, 503 and 401 for a while: it plays soon after', async (t) => {
  const stage = await setStage(t);
  const port = await takeAway(stage);
  await stage.pass(20_000);
  const statuses = [404, 503, 401, 454, 500];
  let asked = 0;
  let starting = true;
  await using back = await startCamera({
    clock: stage.clock,
    port,
    onRequest: (request) => {
      if (request.method !== 'DESCRIBE' || !starting) return undefined;
      return reply(statuses[asked++ % statuses.length] as number);
    },
  });
  await stage.pass(25_000);
  assert.ok(asked >= 8 && asked <= 14, `asked ${asked} times in 25 s`);
  starting = false;
  const ms = await untilAsked(stage, back);
  // 2.4 s with the spread of pauses, then some steps of the stage.
  assert.ok(ms < 4_000, `asked to play ${ms} ms after it had started`);
});

test('88. a camera that keeps refusing is asked less and less often', async (t) => {
  const stage = await setStage(t, { onRequest: (request) => (request.method === 'DESCRIBE' ? reply(453) : undefined) });
  for (let second = 0; second < 300; second++)
    await stage.passUntil(() => stage.status.state === 'retrying', 'a refusal').then(() => stage.pass(1_000));
  const asked = requestsOf(stage.camera, 'DESCRIBE').length;
  assert.ok(asked >= 10 && asked <= 20, `asked ${asked} times in five minutes`);
});

test('88. a connection that recorded is followed by the next at once', async (t) => {
  const stage = await setStage(t);
  await stage.play(300);
  stage.camera.disconnect();
  const sinceMs = stage.clock.monotonicMs();
  await stage.passUntil(() => stage.camera.playing.length === 1 && stage.camera.connections.length === 2, 'a session');
  assert.ok(stage.clock.monotonicMs() - sinceMs < 1_000, `${stage.clock.monotonicMs() - sinceMs} ms`);
});

test('89. a goodbye (RTCP BYE) and silence: the next connection follows at once', async (t) => {
  const stage = await setStage(t);
  await stage.play(300);
  const [session] = stage.camera.playing;
  const bye = Buffer.from('81cb000100000000', 'hex');
  bye.writeUInt32BE(session?.deliveries.get(0)?.ssrc ?? 0, 4);
  stage.camera.transmit(0, { rtcp: bye });
  const sinceMs = stage.clock.monotonicMs();
  await stage.passUntil(() => stage.camera.connections.length === 2, 'a new connection', 3_000);
  assert.ok(stage.clock.monotonicMs() - sinceMs <= 2_000);
  assert.equal(stage.status.counters.reconnects.get('closed-by-camera'), 1);
});

/** Plays session after session until one lives for half a minute; how many the camera ended before. */
async function untilKeptAlive(stage: Stage): Promise<number> {
  const { camera } = stage;
  const plays = (connection: number): boolean =>
    camera.connections.length === connection && camera.playing.length === 1;
  for (let connection = 1; connection <= 10; connection++) {
    await stage.passUntil(() => plays(connection), 'a session', 5_000);
    stage.seek(0);
    for (let sent = 0; sent < 30 * 25 && plays(connection); sent += 5) await stage.play(5, { connection });
    if (plays(connection)) return connection - 1;
  }
  return assert.fail('ten sessions ended');
}

test('90. only SET_PARAMETER keeps the session alive (ONVIF allows it)', async (t) => {
  let countedAtMs = 0;
  const stage = await setStage(t, {
    sessionSuffix: ';timeout=10',
    sessionTimeoutSeconds: 10,
    onRequest: (request, connection) => {
      // What does not count is answered all the same.
      if (!['OPTIONS', 'GET_PARAMETER'].includes(request.method)) countedAtMs = request.atMs;
      for (const session of connection.sessions) session.lastRequestMs = countedAtMs;
      return undefined;
    },
  });
  const ended = await untilKeptAlive(stage);
  assert.ok(ended >= 2 && ended <= 4, `${ended} sessions ended`);
  const { methods } = stage.camera;
  assert.deepEqual(new Set(methods.slice(methods.lastIndexOf('PLAY') + 1)), new Set(['SET_PARAMETER']));
});

test('90. a camera that goes by a shorter timeout than it says is asked in time', async (t) => {
  const stage = await setStage(t, { sessionTimeoutSeconds: 18 });
  assert.equal(await untilKeptAlive(stage), 2);
});

test('90. receiver reports are sent over TCP, too: some cameras take nothing else for a sign of life', async (t) => {
  const stage = await setStage(t, { tracks: await videoAndAudio() });
  await stage.play(1_000);
  const frames = stage.camera.connections[0]?.clientFrames ?? [];
  for (const channel of [1, 3]) {
    const times = frames.filter((frame) => frame.channel === channel).map(({ atMs }) => atMs);
    assert.ok(times.length >= 7, `${times.length} reports in 40 s on channel ${channel}`);
    assert.ok(frames.every(({ data }) => data[1] === 201));
  }
});
