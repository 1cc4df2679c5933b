// What cameras do in the RTSP dialogue. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Challenge } from '../camera/credentials.ts';
import { startCamera } from '../camera/camera.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { formatReply, header, reply, withHeader } from '../camera/message.ts';
import { senderReport } from '../camera/reports.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { anywhere } from '../../recorder/reach/reach.ts';
import { interleaved } from '../support/packetize.ts';
import { onlyFile, range, requestsOf, setStage, streamsOf } from './stage.ts';

const sessionsOf = (requests: readonly { headers: readonly (readonly [string, string])[] }[]): (string | undefined)[] =>
  requests.map((request) => header(request, 'Session'));

async function videoAndAudio() {
  return [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))];
}

test('1. a sender report before the reply to PLAY (Reolink, v4l2rtspserver)', async (t) => {
  const info = { trackIndex: 0, ssrc: 0x5eed0100, ntpMs: Date.UTC(2026, 0, 1), timestamp: 0, packets: 0, octets: 0 };
  const stage = await setStage(t, {
    onReply: (usual, request) =>
      request.method === 'PLAY' ? Buffer.concat([interleaved(1, senderReport(info)), formatReply(usual)]) : usual,
  });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));
});

test('2. data on interleaved channels that nobody set up', async (t) => {
  const stage = await setStage(t, {
    onPacket: (packet) => [{ channel: 6, data: Buffer.alloc(16, 0x80) }, packet],
  });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));
});

test('3. the camera takes other interleaved channels than it was asked for', async (t) => {
  const stage = await setStage(t, {
    tracks: await videoAndAudio(),
    channels: (trackIndex) => (trackIndex === 0 ? [10, 11] : [4, 5]),
  });
  await stage.play(30);
  const outcome = await stage.expectPictures(range(0, 30));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio aac']);
});

test('4. packets of an older session in the new connection (live555 before 2017.06.04)', async (t) => {
  for (const first of [true, false]) {
    const stage = await setStage(t, {
      onPacket: (packet, info) => {
        const foreign = Buffer.from(packet);
        foreign.writeUInt32BE(0x0ddba115, 8);
        foreign.writeUInt16BE((info.packetIndex * 7 + 4242) & 0xffff, 2);
        return info.packetIndex % 3 === 0 && (first || info.packetIndex > 0) ? [foreign, packet] : packet;
      },
    });
    await stage.play(60);
    await stage.expectPictures(range(0, 60));
    assert.equal(stage.camera.methods.at(-1), 'TEARDOWN', 'the recorder leaves no session behind');
  }
});

test('5. the session id changes between two SETUPs', async (t) => {
  let setups = 0;
  const stage = await setStage(t, {
    tracks: await videoAndAudio(),
    onReply: (usual, request) =>
      request.method === 'SETUP' && ++setups === 2 ? withHeader(usual, 'Session', '99999999') : usual,
  });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));
  const { camera } = stage;
  const [first] = camera.pastSessions;
  assert.deepEqual(sessionsOf(requestsOf(camera, 'PLAY')), [first?.id]);
  assert.deepEqual(sessionsOf(requestsOf(camera, 'TEARDOWN')), [first?.id]);
});

test('6. Session headers without, with long, with zero timeout and with padding set the keepalive interval', async (t) => {
  const cases: [string, number][] = [
    ['', 30],
    [';timeout=120', 30],
    [' ; timeout=20 ', 10],
    [';timeout=2', 1],
    [';timeout=0', 30],
  ];
  const tracks = [videoTrack(await videoMedia('h264-long-gop'))];
  for (const [sessionSuffix, intervalSeconds] of cases) {
    const stage = await setStage(t, {
      tracks,
      // Hikvision writes blanks before the id.
      onReply: (usual) => {
        const session = header(usual, 'Session');
        return session ? withHeader(usual, 'Session', `       ${session}${sessionSuffix}`) : usual;
      },
    });
    await stage.play(2.2 * intervalSeconds * 5);
    const [play, ...keepalives] = stage.camera.requests.slice(stage.camera.methods.indexOf('PLAY'));
    const seconds = keepalives.map((request) => (request.atMs - (play?.atMs ?? 0)) / 1000);
    assert.equal(seconds.length, 2, `'${sessionSuffix}': keepalives after ${seconds.join(', ')} s`);
    for (const [i, at] of seconds.entries()) {
      const due = (i + 1) * intervalSeconds;
      assert.ok(at >= due - 0.01 && at <= due + 1, `'${sessionSuffix}': keepalive after ${at} s, not ${due} s`);
    }
    await stage.expectPictures(range(0, Math.ceil(2.2 * intervalSeconds * 5)));
  }
});

test('7. keepalive by the method that the camera can: OPTIONS (GW4089IP, Hipcam), GET_PARAMETER (VLC)', async (t) => {
  const cases = [
    { publicMethods: ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY', 'TEARDOWN'], fails: [], seen: ['OPTIONS', 'OPTIONS'] },
    { publicMethods: ['OPTIONS', 'PLAY', 'GET_PARAMETER'], fails: [], seen: ['GET_PARAMETER', 'GET_PARAMETER'] },
    {
      publicMethods: ['OPTIONS', 'PLAY', 'GET_PARAMETER'],
      fails: ['GET_PARAMETER'],
      seen: ['GET_PARAMETER', 'OPTIONS'],
    },
    // Old MediaMTX closes the connection on it.
    { publicMethods: ['OPTIONS', 'PLAY', 'SET_PARAMETER'], fails: [], seen: ['OPTIONS', 'OPTIONS'] },
  ];
  for (const { publicMethods, fails, seen } of cases) {
    const stage = await setStage(t, {
      publicMethods,
      sessionSuffix: ';timeout=2',
      onRequest: (request) => {
        if (request.method === 'SET_PARAMETER') return 'close';
        return fails.includes(request.method) ? reply(501) : undefined;
      },
    });
    await stage.play(65);
    const { methods } = stage.camera;
    assert.deepEqual(methods.slice(methods.indexOf('PLAY') + 1), seen);
    await stage.expectPictures(range(0, 65));
    assert.equal(stage.camera.connections.length, 1);
  }
});

test('7. a camera that closes the connection on GET_PARAMETER is kept alive by OPTIONS from then on', async (t) => {
  const stage = await setStage(t, {
    sessionSuffix: ';timeout=4',
    onRequest: (request) => (request.method === 'GET_PARAMETER' ? 'close' : undefined),
  });
  await stage.play(60);
  await stage.passUntil(() => stage.camera.connections.length === 2, 'a second connection');
  stage.seek(4_000);
  await stage.play(150, { connection: 2 });
  const { methods, connections } = stage.camera;
  assert.equal(connections.length, 2);
  assert.deepEqual(methods.slice(methods.lastIndexOf('PLAY') + 1), ['OPTIONS', 'OPTIONS']);
  const outcome = await stage.finish();
  assert.deepEqual(Object.fromEntries(outcome.status.counters.reconnects), { 'closed-by-camera': 1 });
});

test('8. the camera drops sessions whose keepalives do not name them', async (t) => {
  const stage = await setStage(t, {
    tracks: [videoTrack(await videoMedia('h264-long-gop'))],
    sessionTimeoutSeconds: 60,
  });
  await stage.play(600);
  await stage.expectPictures(range(0, 600));
  assert.equal(stage.camera.connections.length, 1, 'two minutes on one connection');
});

test('9. 454 to GET_PARAMETER while media flows (thingino)', async (t) => {
  const stage = await setStage(t, {
    sessionSuffix: ';timeout=2',
    onRequest: (request) => (request.method === 'GET_PARAMETER' ? reply(454) : undefined),
  });
  await stage.play(65);
  await stage.expectPictures(range(0, 65));
  const { methods, connections } = stage.camera;
  assert.deepEqual(methods.slice(methods.indexOf('PLAY') + 1, -1), ['GET_PARAMETER', 'OPTIONS']);
  assert.equal(connections.length, 1);
});

for (const method of ['SETUP', 'PLAY']) {
  test(`9. 454 to ${method} is answered by a new connection`, async (t) => {
    let refused = false;
    const stage = await setStage(t, {
      onRequest: (request) => {
        if (request.method !== method || refused) return undefined;
        refused = true;
        return reply(454);
      },
    });
    await stage.play(30);
    await stage.expectPictures(range(0, 30));
    assert.equal(stage.camera.connections.length, 2);
  });
}

const login = { username: 'admin', password: 'secret' };

test('10. of several challenges the strongest is answered, and its algorithm named (Prama and Hikvision OEM)', async (t) => {
  const sha256: Challenge = { scheme: 'digest', algorithm: 'SHA-256' };
  const md5: Challenge = { scheme: 'digest', algorithm: 'MD5' };
  const basic: Challenge = { scheme: 'basic' };
  const cases: { challenges: Challenge[]; answered: Challenge }[] = [
    { challenges: [sha256], answered: sha256 },
    { challenges: [sha256, md5], answered: sha256 },
    { challenges: [basic, md5, sha256], answered: sha256 },
    { challenges: [basic, md5], answered: md5 },
    { challenges: [basic], answered: basic },
  ];
  for (const { challenges, answered } of cases) {
    const stage = await setStage(t, { credentials: { ...login, challenges } });
    await stage.play(10);
    assert.deepEqual([...new Set(stage.camera.logins)], [answered]);
    assert.deepEqual(stage.camera.refusals, ['no Authorization header']);
    await stage.expectPictures(range(0, 10));
  }
});

test('11. Digest without qop, with qop, with -sess and with opaque', async (t) => {
  const challenges: Challenge[] = [
    { scheme: 'digest' },
    { scheme: 'digest', qop: 'auth' },
    { scheme: 'digest', qop: 'auth,auth-int', algorithm: 'SHA-256' },
    { scheme: 'digest', qop: 'auth', algorithm: 'MD5-sess', opaque: '5ccc069c403ebaf9f0171e9517f40e41' },
    { scheme: 'digest', qop: 'auth', algorithm: 'SHA-256-sess' },
  ];
  for (const challenge of challenges) {
    const stage = await setStage(t, { credentials: { ...login, challenges: [challenge] } });
    await stage.play(10);
    assert.deepEqual(stage.camera.refusals, ['no Authorization header'], JSON.stringify(challenge));
    await stage.expectPictures(range(0, 10));
  }
});

test('12. a realm with quotes and commas, an unquoted nonce, trailing blanks', async (t) => {
  const challenge: Challenge = {
    scheme: 'digest',
    realm: 'Cam, "A"',
    nonce: 'abc123',
    header: String.raw`Digest realm="Cam, \"A\"" ,nonce=abc123, stale=FALSE` + '  \t ',
  };
  const stage = await setStage(t, { credentials: { ...login, challenges: [challenge] } });
  await stage.play(10);
  assert.deepEqual(stage.camera.refusals, ['no Authorization header']);
  await stage.expectPictures(range(0, 10));
});

test('13. the Digest uri is the one of the request line, and holds no password', async (t) => {
  const stage = await setStage(t, {
    path: '/cam/realmonitor?channel=1&subtype=0',
    credentials: login,
    // A control URL of its own, with a query: what is signed must be what is asked for.
    tracks: [videoTrack(await videoMedia('h264'), { control: 'trackID=1?profile=Profile_1' })],
  });
  await stage.play(10);
  assert.deepEqual(stage.camera.refusals, ['no Authorization header']);
  for (const request of stage.camera.requests) assert.doesNotMatch(request.uri, /secret|admin/);
  await stage.expectPictures(range(0, 10));
});

test('14. passwords with @ # % ^ / in the URL, escaped or as typed, and never shown', async (t) => {
  const cases: { password: string; typed: string }[] = [
    { password: 'p@ss:/#%41', typed: encodeURIComponent('p@ss:/#%41') },
    { password: 'p@ss:/#%zz^', typed: 'p@ss:/#%zz^' },
    { password: '100%', typed: '100%' },
  ];
  for (const { password, typed } of cases) {
    const stage = await setStage(t, {
      credentials: { username: 'admin', password },
      source: (camera) => camera.url.replace('://', `://admin:${typed}@`),
    });
    await stage.play(10);
    assert.deepEqual(stage.camera.refusals, ['no Authorization header'], typed);
    await stage.expectPictures(range(0, 10));
    const shown = stage.log.text + JSON.stringify(stage.status);
    for (const secret of [password, typed]) assert.ok(!shown.includes(secret), `${secret} is shown`);
  }
});

test('14. a refused login says so without the password', async (t) => {
  const stage = await setStage(t, {
    credentials: { username: 'admin', password: 'right' },
    source: (camera) => camera.url.replace('://', '://admin:wr0ng-secret@'),
  });
  await stage.until((status) => status.state === 'retrying');
  assert.equal(stage.status.reason?.code, 'refused-login');
  assert.ok(!(stage.log.text + JSON.stringify(stage.status)).includes('wr0ng-secret'));
});

test('15. a redirect is followed within the camera, and to TLS, with the login', async (t) => {
  const stage = await setStage(t, {
    credentials: login,
    onRequest: ({ method, uri }) =>
      method === 'DESCRIBE' && !uri.endsWith('/moved') ? reply(302, [['Location', `${uri}/moved`]]) : undefined,
  });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));

  await using secure = await startCamera({ credentials: login, tls: true });
  const led = await setStage(t, {
    onRequest: ({ method }) => (method === 'DESCRIBE' ? reply(301, [['Location', secure.url]]) : undefined),
    source: (camera) => camera.url.replace('://', `://${login.username}:${login.password}@`),
  });
  await secure.untilPlaying();
  secure.send(30);
  await secure.settled();
  assert.ok(secure.logins.length > 0);
  await led.expectPictures(range(0, 30));
});

test('15. a redirect to another host or port, from rtsps to rtsp, or in a circle ends with an error', async (t) => {
  for (const host of ['127.0.0.2', '127.0.0.1']) {
    await using other = await startCamera({ host });
    const stage = await setStage(t, {
      credentials: login,
      onRequest: ({ method }) => (method === 'DESCRIBE' ? reply(302, [['Location', other.url]]) : undefined),
    });
    await stage.until((status) => status.state === 'retrying');
    assert.equal(stage.status.reason?.message, 'the camera redirects to another host or port, or from rtsps to rtsp');
    assert.equal(other.connections.length, 0);
  }
  const circle = await setStage(t, {
    onRequest: (request) => (request.method === 'DESCRIBE' ? reply(302, [['Location', request.uri]]) : undefined),
  });
  await circle.until((status) => status.state === 'retrying');
  assert.equal(circle.status.reason?.code, 'protocol');
  assert.match(circle.status.reason?.message ?? '', /redirect/);
  assert.ok(circle.camera.connections.length <= 8);

  await using open = await startCamera();
  const secure = await setStage(t, {
    tls: true,
    onRequest: (request) => (request.method === 'DESCRIBE' ? reply(302, [['Location', open.url]]) : undefined),
  });
  await secure.until((status) => status.state === 'retrying');
  assert.match(secure.status.reason?.message ?? '', /redirect/);
  assert.equal(open.connections.length, 0);
});

test('16. CSeq in other letters, with a blank after it, or missing (longse); ours is written CSeq', async (t) => {
  const rewrites: ((text: string) => string)[] = [
    (text) => text.replace(/^CSeq: (\d+)/m, 'Cseq: $1 '),
    (text) => text.replace(/^CSeq: (\d+)/m, 'cseq:$1'),
    (text) => text.replace(/^CSeq: .*\r\n/m, ''),
  ];
  for (const rewrite of rewrites) {
    const stage = await setStage(t, {
      onReply: (usual) => Buffer.from(rewrite(formatReply(usual).toString('latin1')), 'latin1'),
    });
    await stage.play(10);
    for (const request of stage.camera.requests) assert.ok(request.headers.some(([name]) => name === 'CSeq'));
    await stage.expectPictures(range(0, 10));
  }
});

test('17. 401 to requests without User-Agent', async (t) => {
  const stage = await setStage(t, {
    onRequest: (request) => (header(request, 'User-Agent') ? undefined : reply(401)),
  });
  await stage.play(10);
  await stage.expectPictures(range(0, 10));
});

test('18. requests of the camera on our connection are answered', async (t) => {
  const stage = await setStage(t);
  await stage.play(10);
  const [connection] = stage.camera.connections;
  connection?.write('OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n');
  connection?.write('ANNOUNCE rtsp://client/ RTSP/1.0\r\nCSeq: 2\r\nContent-Length: 4\r\n\r\nv=0\n');
  await stage.camera.settled();
  assert.deepEqual(connection?.clientReplies, [200, 501]);
  await stage.play(20);
  await stage.expectPictures(range(0, 30));
});

test('19. line ends and stray bytes between interleaved frames', async (t) => {
  const garbage = [
    Buffer.from('\r\n'),
    Buffer.from([0x9f, 0x24, 0x31]),
    Buffer.from('\r\n\r\n'),
    Buffer.from([0, 1, 2]),
  ];
  const sent: Buffer[] = [];
  const stage = await setStage(t, {
    onPacket: (packet, { packetIndex }) => {
      if (packetIndex % 5 !== 4) return packet;
      const raw = garbage[(packetIndex >> 2) % garbage.length] as Buffer;
      sent.push(raw);
      return [{ raw }, packet];
    },
  });
  await stage.play(50);
  await stage.expectPictures(range(0, 50));
  assert.equal(stage.camera.connections.length, 1);
  const stray = sent.filter((bytes) => bytes[0] !== 0x0d);
  assert.ok(stray.length > 5);
  // Line ends belong to no message, and are no fault either.
  assert.equal(stage.status.counters.bytesSkipped, Buffer.concat(stray).length);
});

test('19. a connection whose framing is lost for good is given up', async (t) => {
  const stage = await setStage(t);
  await stage.play(25);
  for (let i = 0; i < 64; i++) stage.camera.transmit(0, { raw: Buffer.alloc(64 * 1024, 0x55) });
  await stage.camera.settled();
  await stage.passUntil(() => stage.camera.connections.length === 2, 'a second connection');
  assert.equal(stage.status.counters.reconnects.get('protocol'), 1);
  await stage.expectPictures(range(0, 25));
});

test('19. an HTTP answer between packets is skipped', async (t) => {
  const answer = 'HTTP/1.1 400 Bad Request\r\nServer: cam\r\nContent-Length: 6\r\n\r\n<html>';
  const stage = await setStage(t);
  await stage.play(25);
  stage.camera.connections[0]?.write(answer);
  await stage.play(25);
  await stage.expectPictures(range(0, 50));
  assert.equal(stage.camera.connections.length, 1);
});

test('20. PLAY with a Range is refused: it is tried without', async (t) => {
  for (const status of [400, 456, 457]) {
    const stage = await setStage(t, {
      onRequest: (request) => (request.method === 'PLAY' && header(request, 'Range') ? reply(status) : undefined),
    });
    await stage.play(10);
    await stage.expectPictures(range(0, 10));
    assert.equal(stage.camera.connections.length, 1);
  }
});

test('20. PLAY must have a Range (Parrot), and npt=0- starves', async (t) => {
  const stage = await setStage(t, {
    onRequest: (request) =>
      request.method === 'PLAY' && header(request, 'Range') !== 'npt=0.000-' ? reply(400) : undefined,
  });
  await stage.play(10);
  await stage.expectPictures(range(0, 10));
});

test('21. a trailing slash in PLAY is refused', async (t) => {
  for (const status of [400, 405]) {
    const stage = await setStage(t, {
      onRequest: (request) => (request.method === 'PLAY' && request.uri.endsWith('/') ? reply(status) : undefined),
    });
    await stage.play(10);
    await stage.expectPictures(range(0, 10));
    assert.equal(stage.camera.connections.length, 1);
  }
});

test('22. a camera of one stream refuses with 453 until the stale session is gone', async (t) => {
  const stage = await setStage(t, { maxSessions: 1, sessionsOutliveConnections: true });
  await stage.play(25);
  stage.camera.disconnect();
  await stage.passUntil(() => requestsOf(stage.camera, 'SETUP').length >= 4, 'two more tries');
  await stage.until((status) => status.state === 'retrying');
  assert.equal(stage.status.reason?.code, 'too-many-streams');
  // The camera's own timeout.
  stage.camera.sessions.clear();
  await stage.passUntil(() => stage.camera.playing.length === 1, 'a new session');
  stage.seek(2_000);
  await stage.play(25, { connection: 2 });
  const [first, second] = requestsOf(stage.camera, 'SETUP').slice(1, 3);
  assert.ok((second?.atMs ?? 0) - (first?.atMs ?? 0) >= 1_000, 'tries come with pauses between them');
  await stage.expectPictures([...range(0, 25), ...range(50, 75)]);
});

test('22. a recorder that stops frees its stream for the next one', async (t) => {
  await using camera = await startCamera({ maxSessions: 1, sessionsOutliveConnections: true });
  for (const connection of [1, 2]) {
    const stage = await setStage(t, { source: () => camera.url });
    await camera.untilPlaying(connection);
    camera.seek(0);
    camera.send(10);
    await camera.settled();
    await stage.expectPictures(range(0, 10));
  }
  assert.deepEqual(
    camera.methods.filter((method) => method === 'SETUP' || method === 'TEARDOWN'),
    ['SETUP', 'TEARDOWN', 'SETUP', 'TEARDOWN'],
  );
});

test('23. no video for 10 s ends the connection, although replies and sound continue', async (t) => {
  const stage = await setStage(t, { tracks: await videoAndAudio(), sessionSuffix: ';timeout=6' });
  await stage.play(50);
  stage.camera.options.onFrame = (frame) => (frame.track === 0 ? undefined : frame);
  await stage.play(225);
  assert.equal(stage.camera.connections.length, 1, 'nine seconds are no reason');
  await stage.play(50);
  stage.camera.options.onFrame = (frame) => frame;
  await stage.passUntil(() => stage.camera.playing.length === 1, 'a new session');
  assert.equal(stage.status.counters.reconnects.get('stream-silent'), 1);
  stage.seek(4_000);
  await stage.play(25, { connection: 2 });
  await stage.expectPictures([...range(0, 50), ...range(100, 125)]);
});

test('23. a camera that hangs with its connection open is left after 10 s', async (t) => {
  const stage = await setStage(t);
  await stage.play(25);
  const [connection] = stage.camera.connections;
  if (connection) connection.deaf = true;
  await stage.passUntil(
    () => stage.camera.playing.length === 2 || stage.camera.connections.length === 2,
    'a new try',
    15_000,
  );
  stage.seek(2_000);
  await stage.play(25, { connection: 2 });
  await stage.expectPictures([...range(0, 25), ...range(50, 75)]);
});

test('24. 461 to TCP: the stream is taken over UDP (VLC)', async (t) => {
  const stage = await setStage(t, { transport: 'auto', transports: ['udp'] });
  await stage.play(30);
  assert.equal(stage.status.transport, 'udp');
  await stage.expectPictures(range(0, 30));
});

test('24. a UDP transport in reply to TCP: the stream is taken over UDP', async (t) => {
  const stage = await setStage(t, {
    transport: 'auto',
    onReply: (usual, request) => {
      const asked = header(request, 'Transport') ?? '';
      if (request.method !== 'SETUP' || !asked.includes('TCP')) return usual;
      return withHeader(usual, 'Transport', 'RTP/AVP;unicast;client_port=50000-50001;server_port=50002-50003');
    },
  });
  await stage.camera.until(() => requestsOf(stage.camera, 'PLAY').length > 0, 'PLAY over UDP');
  await stage.play(30);
  assert.equal(stage.status.transport, 'udp');
  await stage.expectPictures(range(0, 30));
});

test('24. channels in the answer without /TCP are TCP', async (t) => {
  const stage = await setStage(t, {
    onReply: (usual, request) =>
      request.method === 'SETUP' ? withHeader(usual, 'Transport', 'RTP/AVP;unicast;interleaved=0-1') : usual,
  });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));
});

test('25. IPv6 addresses with a zone, and without brackets in Content-Base', async (t) => {
  for (const transport of ['tcp', 'udp'] as const) {
    const stage = await setStage(t, {
      host: '::1',
      transport,
      contentBase: 'rtsp://::1/stream/',
      source: (camera) => camera.url.replace('[::1]', '[::1%25lo]'),
    });
    await stage.play(30);
    for (const request of stage.camera.requests) assert.doesNotMatch(request.uri, /%/);
    await stage.expectPictures(range(0, 30));
  }
});

test('26. a camera that drops packets for slow readers loses none while the disk stands still', async (t) => {
  // More than the system's socket buffers hold; filler is not stored, so the file stays small.
  const filler = Buffer.concat([Buffer.from([0x0c]), Buffer.alloc(120_000, 0xff), Buffer.from([0x80])]);
  const stage = await setStage(t, {
    sendBufferBytes: 1024 * 1024,
    onFrame: (frame) => ({ ...frame, units: [...frame.units, filler] }),
  });
  await stage.play(25);
  stage.disk.stall();
  await stage.play(125);
  stage.disk.release();
  await stage.play(25);
  const [session] = stage.camera.playing;
  assert.equal(session?.packetsDropped, 0);
  assert.ok(stage.status.counters.bytesReceived > 20e6);
  await stage.expectPictures(range(0, 175));
});

const portOf = ({ url }: { readonly url: string }): number => Number(new URL(url.replace('rtsp', 'http')).port);

test('97. a camera that took Digest, or led to TLS, and wants Basic in clear gets no password, until its owner allows it', async (t) => {
  const digest: Challenge[] = [{ scheme: 'digest' }];
  const basic: Challenge[] = [{ scheme: 'basic' }];
  const reach = anywhere();
  const first = await setStage(t, { credentials: { ...login, challenges: digest }, reach });
  await first.play(5);
  await first.finish();
  const port = portOf(first.camera);
  await first.camera.close();
  // Another one answers at its address.
  const thief = { port, credentials: { ...login, challenges: basic }, reach };
  const second = await setStage(t, thief);
  await second.until((status) => status.state === 'retrying');
  assert.equal(second.status.reason?.code, 'login-downgraded');
  assert.match(second.status.reason?.message ?? '', /Basic without TLS.* accepted Digest before.*allowPlaintextLogin/);
  for (const request of second.camera.requests) assert.equal(header(request, 'Authorization'), undefined);
  await second.finish();
  await second.camera.close();
  const allowed = await setStage(t, { ...thief, allowPlaintextLogin: true });
  await allowed.play(5);
  assert.ok(allowed.camera.logins.length > 0);
  await allowed.finish();

  await using tls = await startCamera({ credentials: login, tls: true });
  const led = await setStage(t, {
    onRequest: ({ method }) => (method === 'DESCRIBE' ? reply(301, [['Location', tls.url]]) : undefined),
    source: (camera) => camera.url.replace('://', `://${login.username}:${login.password}@`),
    reach,
  });
  await tls.untilPlaying();
  await led.finish();
  const ledPort = portOf(led.camera);
  await led.camera.close();
  const stripped = await setStage(t, { ...thief, port: ledPort });
  await stripped.until((status) => status.state === 'retrying');
  assert.match(stripped.status.reason?.message ?? '', /accepted TLS before/);
  assert.equal(stripped.camera.logins.length, 0);
});

test('97. a camera that has only ever wanted Basic gets it', async (t) => {
  const reach = anywhere();
  for (let connection = 0; connection < 2; connection++) {
    const stage = await setStage(t, { credentials: { ...login, challenges: [{ scheme: 'basic' }] }, reach });
    await stage.play(5);
    await stage.finish();
  }
});
