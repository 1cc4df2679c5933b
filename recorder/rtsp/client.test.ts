import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RtspClient } from './client.ts';
import type { ClientAction, ClientOptions } from './client.ts';
import { RtspError } from './error.ts';
import { newKeepaliveMemory } from './keepalive.ts';
import type { RtspErrorCode } from './error.ts';
import { Login } from './login.ts';
import { parseHead } from './message.ts';
import type { RtspMessage, RtspRequest } from './message.ts';
import { parseRtspUrl } from './url.ts';

const VIDEO = 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track1\r\n';
const AUDIO = 'm=audio 0 RTP/AVP 8\r\na=control:track2\r\n';

/** A client; the test plays the camera. */
class Dialogue {
  readonly client: RtspClient;
  nowMs = 1_000;
  /** All requests so far, in order. */
  readonly requests: RtspRequest[] = [];
  /** All other actions that the client returned. */
  readonly actions: ClientAction[] = [];

  constructor(options: Partial<ClientOptions> & { source?: string } = {}) {
    const { source = 'rtsp://10.0.0.9/live', ...rest } = options;
    this.client = new RtspClient({ url: parseRtspUrl(source), transport: 'tcp', ...rest });
  }

  take(actions: readonly ClientAction[]): this {
    for (const action of actions) {
      if (action.kind !== 'send') this.actions.push(action);
      else {
        const message = parseHead(action.text);
        if (message.kind === 'request') this.requests.push(message);
        else this.actions.push(action);
      }
    }
    return this;
  }

  connect(): this {
    return this.take(this.client.connected(this.nowMs));
  }

  get last(): RtspRequest {
    const last = this.requests.at(-1);
    assert.ok(last, 'no request');
    return last;
  }

  get methods(): string {
    return this.requests.map((request) => request.method).join(' ');
  }

  /** Answers the last request. `fields` are header lines. */
  answer(status: number, fields: readonly string[] = [], body = ''): this {
    const lines = [`RTSP/1.0 ${status} Reason`, `CSeq: ${this.last.headers.get('CSeq')}`, ...fields];
    return this.say({ ...parseHead(lines.join('\r\n')), body });
  }

  say(message: RtspMessage): this {
    return this.take(this.client.message(message, this.nowMs));
  }

  setUp(...mediaIndices: number[]): this {
    return this.take(
      this.client.setUp(
        mediaIndices.map((mediaIndex) => ({ mediaIndex })),
        this.nowMs,
      ),
    );
  }

  /** Runs the dialogue up to the presentation. */
  described(sdp = VIDEO, publicMethods = 'OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN'): this {
    return this.connect()
      .answer(200, [`Public: ${publicMethods}`])
      .answer(200, ['Content-Base: rtsp://10.0.0.9/live/'], sdp);
  }

  /** Runs the dialogue up to the response to PLAY, with video alone. */
  playing(session = 'abc', publicMethods?: string): this {
    return this.described(VIDEO, publicMethods)
      .setUp(0)
      .answer(200, [`Session: ${session}`, 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1'])
      .answer(200, []);
  }

  tick(ms: number): this {
    this.nowMs += ms;
    return this.take(this.client.tick(this.nowMs));
  }
}

function failsWith(code: RtspErrorCode): (error: unknown) => boolean {
  return (error) => error instanceof RtspError && error.code === code;
}

test('the dialogue: OPTIONS, DESCRIBE, SETUP of each stream, PLAY, with what cameras insist on', () => {
  const d = new Dialogue().described(VIDEO + AUDIO).setUp(0, 1);
  d.answer(200, ['Session: abc;timeout=60', 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=0000000A']);
  d.answer(200, ['Session: abc', 'Transport: RTP/AVP/TCP;unicast;interleaved=2-3']);
  d.answer(200, ['RTP-Info: url=track1;seq=7;rtptime=8,url=track2;seq=9;rtptime=10']);
  assert.equal(d.methods, 'OPTIONS DESCRIBE SETUP SETUP PLAY');
  assert.deepEqual(
    d.requests.map((request) => request.url),
    [
      'rtsp://10.0.0.9/live',
      'rtsp://10.0.0.9/live',
      'rtsp://10.0.0.9/live/track1',
      'rtsp://10.0.0.9/live/track2',
      'rtsp://10.0.0.9/live/',
    ],
  );
  assert.deepEqual(
    d.requests.map((request) => request.headers.get('Transport')),
    [undefined, undefined, 'RTP/AVP/TCP;unicast;interleaved=0-1', 'RTP/AVP/TCP;unicast;interleaved=2-3', undefined],
  );
  assert.equal(d.last.headers.get('Range'), 'npt=0.000-');
  assert.equal(d.requests[1]?.headers.get('Accept'), 'application/sdp');
  for (const [index, request] of d.requests.entries()) {
    assert.equal(request.headers.get('CSeq'), String(index + 1));
    assert.equal(request.headers.get('User-Agent'), 'kube-nvr');
    assert.equal(request.headers.get('Session'), index < 3 ? undefined : 'abc');
    assert.equal(request.headers.get('Require'), undefined);
  }
  const playing = d.actions.at(-1);
  assert.ok(playing?.kind === 'playing');
  assert.deepEqual(
    playing.streams.map(({ stream, ssrc, sequenceNumber, rtpTime }) => [
      stream.channels,
      ssrc,
      sequenceNumber,
      rtpTime,
    ]),
    [
      [[0, 1], 10, 7, 8],
      [[2, 3], undefined, 9, 10],
    ],
  );
});

test('OPTIONS refused does not stop the dialogue', () => {
  assert.equal(new Dialogue().connect().answer(501).methods, 'OPTIONS DESCRIBE');
});

test('other channels in the reply are obeyed; one pair for two streams is not', () => {
  const d = new Dialogue().described(VIDEO + AUDIO).setUp(0, 1);
  d.answer(200, ['Session: a', 'Transport: RTP/AVP/TCP;unicast;interleaved=10-11']);
  d.answer(200, ['Session: a', 'Transport: RTP/AVP/TCP;unicast;interleaved=10-11']);
  const channels = d.actions.flatMap((action) => (action.kind === 'established' ? [action.stream.channels] : []));
  assert.deepEqual(channels, [
    [10, 11],
    [2, 3],
  ]);
});

test('a SETUP reply without Transport and Session is taken as asked for', () => {
  const d = new Dialogue().described().setUp(0).answer(200);
  const [, established] = d.actions;
  assert.ok(established?.kind === 'established');
  assert.deepEqual(established.stream.channels, [0, 1]);
  assert.equal(d.last.headers.get('Session'), undefined);
});

test('the first session id is kept when a later SETUP names another', () => {
  const d = new Dialogue().described(VIDEO + AUDIO).setUp(0, 1);
  d.answer(200, ['Session: first']).answer(200, ['Session: second']);
  assert.equal(d.last.method, 'PLAY');
  assert.equal(d.last.headers.get('Session'), 'first');
});

for (const [session, seconds] of [
  ['abc', 30],
  ['abc; timeout=120', 30],
  ['abc;timeout=47', 23.5],
  ['       abc;timeout=60', 30],
  ['abc;timeout=0', 30],
  ['abc;timeout=10', 5],
] as const) {
  test(`keepalive every ${seconds} s for "Session: ${session}"`, () => {
    const d = new Dialogue().playing(session);
    d.tick(seconds * 1000 - 1);
    assert.equal(d.last.method, 'PLAY');
    d.tick(1);
    assert.equal(d.last.method, 'GET_PARAMETER');
    assert.equal(d.last.headers.get('Session'), 'abc');
    // Silence does not end the session: some cameras never answer keepalives.
    d.tick(seconds * 1000);
    assert.equal(d.requests.length, 6);
  });
}

for (const [methods, keepalive] of [
  ['OPTIONS, DESCRIBE, GET_PARAMETER', 'GET_PARAMETER'],
  ['OPTIONS, DESCRIBE, SET_PARAMETER', 'OPTIONS'],
  ['OPTIONS, DESCRIBE', 'OPTIONS'],
  ['', 'OPTIONS'],
] as const) {
  test(`keepalive by ${keepalive} when Public is "${methods}"`, () => {
    assert.equal(new Dialogue().playing('abc', methods).tick(30_000).last.method, keepalive);
  });
}

test('keepalive: 454 to GET_PARAMETER while media flows means OPTIONS from then on (thingino)', () => {
  const d = new Dialogue().playing().tick(30_000).answer(454).tick(30_000);
  assert.equal(d.last.method, 'OPTIONS');
  d.answer(454).tick(30_000);
  assert.equal(d.last.method, 'OPTIONS');
});

test('keepalive: a session that ended right after one makes the next use another method', () => {
  const keepalive = newKeepaliveMemory();
  const d = new Dialogue({ keepalive }).playing().tick(30_000);
  assert.equal(d.last.method, 'GET_PARAMETER');
  d.client.ended(d.nowMs + 500);
  assert.equal(new Dialogue({ keepalive }).playing().tick(30_000).last.method, 'OPTIONS');
});

test('keepalive: two sessions that ended at the same age make the next use another method, until all were tried', () => {
  const keepalive = newKeepaliveMemory();
  const methods: string[] = [];
  for (let session = 0; session < 8; session++) {
    const d = new Dialogue({ keepalive }).playing('abc;timeout=20').tick(10_000);
    methods.push(d.last.method);
    d.client.ended(d.nowMs + 11_000 + session * 10);
  }
  assert.deepEqual(methods.slice(0, 6), [
    'GET_PARAMETER',
    'GET_PARAMETER',
    'OPTIONS',
    'OPTIONS',
    'SET_PARAMETER',
    'SET_PARAMETER',
  ]);
  assert.equal(methods[6], 'GET_PARAMETER', 'when none keeps it alive, it begins again');
});

test('keepalive: sessions that end at different ages teach nothing', () => {
  const keepalive = newKeepaliveMemory();
  for (const ageMs of [45_000, 55_000, 48_000, 300_000]) {
    const d = new Dialogue({ keepalive }).playing().tick(30_000);
    assert.equal(d.last.method, 'GET_PARAMETER');
    d.client.ended(d.nowMs - 30_000 + ageMs);
  }
});

test('keepalive: a camera that ends sessions before the first one goes by a shorter timeout than it says', () => {
  const keepalive = newKeepaliveMemory();
  for (const ageMs of [20_000, 20_400]) {
    const d = new Dialogue({ keepalive }).playing();
    d.client.ended(d.nowMs + ageMs);
  }
  const d = new Dialogue({ keepalive }).playing().tick(9_900);
  assert.equal(d.last.method, 'PLAY');
  assert.equal(d.tick(100).last.method, 'GET_PARAMETER');
});

test('keepalive: a new challenge is answered', () => {
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).playing().tick(30_000);
  d.answer(401, ['WWW-Authenticate: Digest realm="a", nonce="n"']);
  assert.equal(d.last.method, 'GET_PARAMETER');
  assert.match(d.last.headers.get('Authorization') ?? '', /nonce="n"/);
});

test('login: the challenge is answered, with the hash over the URL of the request line, for all requests that follow', () => {
  const d = new Dialogue({ source: 'rtsp://admin:p%40ss@10.0.0.9/live' }).connect();
  assert.equal(d.last.headers.get('Authorization'), undefined);
  d.answer(401, ['WWW-Authenticate: Basic realm="x"', 'WWW-Authenticate: Digest realm="x", nonce="1"']);
  assert.equal(d.methods, 'OPTIONS OPTIONS');
  d.answer(200);
  for (const request of d.requests.slice(1)) {
    assert.match(request.headers.get('Authorization') ?? '', /^Digest username="admin"/);
    assert.ok(request.headers.get('Authorization')?.includes(`uri="${request.url}"`));
    assert.ok(!request.url.includes('@'));
  }
});

test('login: a stale nonce is answered once more, a wrong password is not tried again', () => {
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).connect();
  d.answer(401, ['WWW-Authenticate: Digest realm="x", nonce="1"']);
  d.answer(401, ['WWW-Authenticate: Digest realm="x", nonce="2", stale=true']);
  assert.match(d.last.headers.get('Authorization') ?? '', /nonce="2"/);
  assert.throws(() => d.answer(401, ['WWW-Authenticate: Digest realm="x", nonce="3"']), failsWith('refused-login'));
  assert.equal(d.requests.length, 3);
});

test('login: the same nonce again means a wrong password', () => {
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).connect();
  d.answer(401, ['WWW-Authenticate: Digest realm="x", nonce="1"']);
  assert.throws(() => d.answer(401, ['WWW-Authenticate: Digest realm="x", nonce="1"']), failsWith('refused-login'));
});

test('login: without credentials, or with an unknown scheme, it is refused', () => {
  const challenge = ['WWW-Authenticate: Digest realm="x", nonce="1"'];
  assert.throws(() => new Dialogue().connect().answer(401, challenge), failsWith('refused-login'));
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).connect();
  assert.throws(() => d.answer(401, ['WWW-Authenticate: Bearer']), failsWith('refused-login'));
});

test('login: credentials given apart from the URL are taken literally', () => {
  const credentials = { username: 'a', password: 'p@ss:/#%41' };
  const d = new Dialogue({ loginAt: () => new Login({ credentials, secure: false }) })
    .connect()
    .answer(401, ['WWW-Authenticate: Basic realm="x"']);
  assert.equal(d.last.headers.get('Authorization'), `Basic ${Buffer.from('a:p@ss:/#%41').toString('base64')}`);
});

test('login: a camera that closes after each 401 gets the answer on another connection', () => {
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).connect();
  d.answer(401, ['WWW-Authenticate: Digest realm="x", nonce="1"']);
  d.take(d.client.disconnected());
  assert.equal(d.actions[0]?.kind, 'reconnect');
  d.connect();
  assert.equal(d.last.method, 'OPTIONS');
  assert.match(d.last.headers.get('Authorization') ?? '', /nonce="1"/);
  // The second time it is an error.
  d.answer(401, ['WWW-Authenticate: Digest realm="x", nonce="2"']);
  assert.deepEqual(d.client.disconnected(), []);
});

test('TP-Link Streaming Media without login: requests name 127.0.0.1', () => {
  const d = new Dialogue({ source: 'rtsp://10.0.0.9:554/s' }).connect();
  d.answer(401, ['WWW-Authenticate: Digest realm="TP-LINK Streaming Media", nonce="1"']);
  assert.equal(d.last.url, 'rtsp://127.0.0.1/s');
  assert.equal(d.last.headers.get('Authorization'), undefined);
  assert.throws(
    () => d.answer(401, ['WWW-Authenticate: Digest realm="TP-LINK Streaming Media", nonce="1"']),
    failsWith('refused-login'),
  );
});

test('redirect: followed with the login within the camera, whatever login it names itself', () => {
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9:8554/live' }).connect().answer(200);
  d.answer(302, ['Location: rtsp://eve:hers@10.0.0.9:8554/other']);
  const [first] = d.actions;
  assert.ok(first?.kind === 'reconnect');
  assert.deepEqual([first.url.port, first.url.request], [8554, 'rtsp://10.0.0.9:8554/other']);
  d.connect().answer(401, ['WWW-Authenticate: Basic realm="x"']);
  assert.equal(d.last.headers.get('Authorization'), `Basic ${Buffer.from('u:p').toString('base64')}`);
  d.answer(301, ['Location: rtsps://10.0.0.9/other']).connect();
  assert.equal(d.last.url, 'rtsps://10.0.0.9/other');
  d.answer(401, ['WWW-Authenticate: Basic realm="x"']);
  assert.equal(d.last.headers.get('Authorization'), `Basic ${Buffer.from('u:p').toString('base64')}`);
});

for (const [source, location] of [
  ['rtsp://10.0.0.9/live', 'rtsp://10.0.0.9:8555/live'],
  ['rtsp://10.0.0.9/live', 'rtsp://10.0.0.10/live'],
  ['rtsp://10.0.0.9/live', 'rtsps://10.0.0.10/live'],
  ['rtsps://10.0.0.9/live', 'rtsps://10.0.0.9:8322/live'],
  ['rtsps://10.0.0.9/live', 'rtsp://10.0.0.9/live'],
  ['rtsps://10.0.0.9/live', 'rtsp://10.0.0.9:322/live'],
  ['rtsp+https://10.0.0.9/live', 'rtsp://10.0.0.10/live'],
] as const) {
  test(`redirect: from ${source} to ${location} is refused`, () => {
    const d = new Dialogue({ source }).connect();
    assert.throws(() => d.answer(302, [`Location: ${location}`]), failsWith('redirect-refused'));
  });
}

test('redirect: in a tunnel another path is asked for in the same tunnel', () => {
  const d = new Dialogue({ source: 'rtsp+https://camera.example/rtsp' }).connect();
  d.answer(302, ['Location: rtsp://Camera.example:554/other']).connect();
  const [first] = d.actions;
  assert.ok(first?.kind === 'reconnect');
  assert.deepEqual(
    [first.url.tunnel?.path, first.url.port, d.last.url],
    ['/rtsp', 443, 'rtsp://Camera.example:554/other'],
  );
});

test('redirect: a loop ends', () => {
  const d = new Dialogue().connect();
  assert.throws(() => {
    for (let hop = 0; hop < 10; hop++) d.answer(302, ['Location: rtsp://10.0.0.9/live']).connect();
  }, failsWith('redirect-refused'));
  assert.equal(d.requests.length, 6);
});

for (const [status, code] of [
  [404, 'not-found'],
  [403, 'refused-login'],
  [453, 'too-many-streams'],
  [503, 'too-many-streams'],
  [500, 'status'],
] as const) {
  test(`DESCRIBE answered with ${status}: ${code}`, () => {
    const d = new Dialogue().connect().answer(200);
    assert.throws(() => d.answer(status), failsWith(code));
  });
}

test('SETUP answered with 461, or with UDP for TCP, or with multicast: the transport is refused', () => {
  const setup = (): Dialogue => new Dialogue().described().setUp(0);
  assert.throws(() => setup().answer(461), failsWith('transport-refused'));
  const udp = ['Session: a', 'Transport: RTP/AVP;unicast;client_port=1-2;server_port=3-4'];
  const d = setup();
  assert.throws(() => d.answer(200, udp), failsWith('transport-refused'));
  assert.throws(() => setup().answer(200, ['Transport: RTP/AVP/TCP;multicast']), failsWith('transport-refused'));
});

test('a redirect into a tunnel is refused: the camera has no say in what is asked for in HTTP', () => {
  const d = new Dialogue().connect().answer(200);
  assert.throws(() => d.answer(302, ['Location: rtsp+http://10.0.0.1/']), failsWith('redirect-refused'));
});

test('SETUP answered with 454: a new connection, once', () => {
  const d = new Dialogue().described().setUp(0).answer(454);
  assert.equal(d.actions.at(-1)?.kind, 'reconnect');
  d.described().setUp(0);
  assert.throws(() => d.answer(454), failsWith('session-lost'));
});

test('audio that the camera refuses to set up does not stop video', () => {
  const d = new Dialogue().described(VIDEO + AUDIO).setUp(1, 0);
  d.answer(500).answer(200, ['Session: a', 'Transport: RTP/AVP/TCP;unicast;interleaved=2-3']).answer(200);
  const playing = d.actions.at(-1);
  assert.ok(playing?.kind === 'playing');
  assert.deepEqual(
    playing.streams.map(({ stream }) => [stream.streamIndex, stream.media.kind]),
    [[1, 'video']],
  );
});

for (const status of [400, 401, 403, 404, 453, 454, 461, 500, 503]) {
  test(`sound whose SETUP is answered with ${status} does not stop video, and the reason is given`, () => {
    const d = new Dialogue().described(VIDEO + AUDIO).setUp(0, 1);
    d.answer(200, ['Session: a', 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1']).answer(status).answer(200);
    const playing = d.actions.at(-1);
    assert.ok(playing?.kind === 'playing');
    assert.deepEqual(
      playing.streams.map(({ stream }) => stream.media.kind),
      ['video'],
    );
    assert.match(playing.soundRefused ?? '', new RegExp(`SETUP with ${status}`));
  });
}

test('sound alone that the camera refuses to set up ends the dialogue', () => {
  assert.throws(() => new Dialogue().described(AUDIO).setUp(0).answer(453), failsWith('too-many-streams'));
  const d = new Dialogue().described(AUDIO).setUp(0).tick(29_999);
  assert.ok(!d.client.soundAsked);
  assert.throws(() => d.tick(1), failsWith('no-answer'));
});

test('sound that the camera sets up in another way, or redirects, does not stop video', () => {
  for (const lines of [
    ['Transport: RTP/AVP;unicast;client_port=1-2'],
    ['Session: ;;', 'Transport: RTP/AVP/TCP;multicast'],
  ]) {
    const d = new Dialogue()
      .described(VIDEO + AUDIO)
      .setUp(0, 1)
      .answer(200)
      .answer(200, lines)
      .answer(200);
    assert.equal(d.actions.at(-1)?.kind, 'playing', lines.join());
  }
  const moved = new Dialogue()
    .described(VIDEO + AUDIO)
    .setUp(0, 1)
    .answer(200);
  moved.answer(302, ['Location: rtsp://10.0.0.9/sound']).answer(200);
  assert.equal(moved.actions.at(-1)?.kind, 'playing');
});

test('sound whose SETUP is not answered for 5 s does not stop video, and an answer that comes late is none to PLAY', () => {
  const d = new Dialogue()
    .described(VIDEO + AUDIO)
    .setUp(0, 1)
    .answer(200)
    .tick(4_999);
  assert.ok(d.client.soundAsked && !d.client.soundHung);
  d.tick(1);
  assert.equal(d.methods, 'OPTIONS DESCRIBE SETUP SETUP PLAY');
  assert.ok(d.client.soundHung);
  const setUp = d.requests.at(-2)?.headers.get('CSeq');
  d.say(parseHead(`RTSP/1.0 200 OK\r\nCSeq: ${setUp}`));
  assert.ok(!d.client.playing);
  d.answer(200);
  assert.ok(d.client.playing);
});

test('PLAY refused for its trailing slash is tried without it, and the other way round, once', () => {
  const d = new Dialogue().described().setUp(0).answer(200, ['Session: a']);
  assert.equal(d.last.url, 'rtsp://10.0.0.9/live/');
  d.answer(405);
  assert.equal(d.last.url, 'rtsp://10.0.0.9/live');
  d.answer(200).tick(30_000);
  assert.equal(d.last.url, 'rtsp://10.0.0.9/live');
  const again = new Dialogue().described().setUp(0).answer(200).answer(400).answer(400);
  assert.throws(() => again.answer(400), failsWith('status'));
});

test('PLAY refused with any 4xx is tried without its Range, once', () => {
  for (const status of [400, 451, 455, 457]) {
    const d = new Dialogue().described().setUp(0).answer(200, ['Session: a']).answer(status);
    if (d.last.headers.get('Range') !== undefined) d.answer(status);
    assert.equal(d.last.headers.get('Range'), undefined);
    assert.equal(d.last.url, 'rtsp://10.0.0.9/live/');
    d.answer(200);
    assert.equal(d.actions.at(-1)?.kind, 'playing');
  }
  const refused = new Dialogue().described().setUp(0).answer(200).answer(457);
  assert.throws(() => refused.answer(457), failsWith('status'));
});

test('UDP: ports are asked for, and what the camera says about its own is passed on', () => {
  const d = new Dialogue({ transport: 'udp' }).described();
  d.take(d.client.setUp([{ mediaIndex: 0, clientPorts: [5000, 5001] }], d.nowMs));
  assert.equal(d.last.headers.get('Transport'), 'RTP/AVP;unicast;client_port=5000-5001');
  d.answer(200, [
    'Session: a',
    'Transport: RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;source=10.0.0.8',
  ]);
  const established = d.actions.at(-1);
  assert.ok(established?.kind === 'established');
  const { channels, serverPorts, source } = established.stream;
  assert.deepEqual([channels, serverPorts, source], [undefined, [6000, 6001], '10.0.0.8']);
});

test('a reply with odd or no CSeq answers the request that waits; a late one answers nothing', () => {
  const d = new Dialogue().connect();
  d.say(parseHead('RTSP/1.0 200 OK\r\nCseq: 99'));
  assert.equal(d.last.method, 'DESCRIBE');
  d.say({ ...parseHead('RTSP/1.0 200 OK'), body: VIDEO });
  assert.equal(d.actions[0]?.kind, 'select');
  const late = new Dialogue().connect().answer(200);
  late.say(parseHead('RTSP/1.0 200 OK\r\nCSeq: 1'));
  assert.equal(late.methods, 'OPTIONS DESCRIBE');
  assert.equal(late.actions.length, 0);
});

test('requests of the camera: OPTIONS is answered, the rest is not implemented', () => {
  const d = new Dialogue().playing();
  d.actions.length = 0;
  d.say(parseHead('OPTIONS * RTSP/1.0\r\nCSeq: 5')).say(parseHead('SET_PARAMETER * RTSP/1.0\r\nCSeq: 6'));
  assert.deepEqual(
    d.actions.map((action) => action.kind === 'send' && action.text),
    ['RTSP/1.0 200 OK\r\nCSeq: 5\r\nPublic: OPTIONS\r\n\r\n', 'RTSP/1.0 501 Not Implemented\r\nCSeq: 6\r\n\r\n'],
  );
});

test('a request without answer for 30 s, or as long as is said, fails', () => {
  const d = new Dialogue().connect().answer(200).tick(29_999);
  assert.throws(() => d.tick(1), failsWith('no-answer'));
  const hasty = new Dialogue({ answerMs: 12_000 }).connect().answer(200).tick(11_999);
  assert.throws(() => hasty.tick(1), failsWith('no-answer'));
});

test('OPTIONS without an answer for 3 s: DESCRIBE follows, and an answer that comes late is none to it', () => {
  const d = new Dialogue().connect().tick(2_999);
  assert.equal(d.methods, 'OPTIONS');
  d.tick(1);
  assert.equal(d.methods, 'OPTIONS DESCRIBE');
  d.say(parseHead('RTSP/1.0 200 OK\r\nCSeq: 1'));
  assert.equal(d.actions.length, 0);
  d.answer(200, [], VIDEO);
  assert.equal(d.actions[0]?.kind, 'select');
});

test('TEARDOWN ends a session and is over with whatever answer; without a session there is nothing to do', () => {
  const d = new Dialogue().playing();
  assert.ok(d.client.hasSession);
  d.take(d.client.tearDown(d.nowMs)).take(d.client.tearDown(d.nowMs));
  assert.equal(d.methods, 'OPTIONS DESCRIBE SETUP PLAY TEARDOWN');
  assert.equal(d.last.headers.get('Session'), 'abc');
  d.answer(454);
  assert.deepEqual(d.actions.at(-1), { kind: 'closed' });
  const early = new Dialogue().connect();
  assert.deepEqual(early.client.tearDown(0), [{ kind: 'closed' }]);
});

test('TEARDOWN before a SETUP is answered ends the dialogue: whatever the answer, no request follows', () => {
  for (const status of [200, 302, 401, 454]) {
    const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).described(VIDEO + AUDIO).setUp(0, 1);
    d.answer(200, ['Session: abc', 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1']);
    const late = ['RTSP/1.0', String(status), 'Reason\r\nCSeq:', d.last.headers.get('CSeq')].join(' ');
    const fields = 'Location: rtsp://10.0.0.9/x\r\nWWW-Authenticate: Digest realm="c", nonce="n"';
    d.take(d.client.tearDown(d.nowMs)).say({ ...parseHead(`${late}\r\n${fields}`), body: '' });
    assert.equal(d.methods, 'OPTIONS DESCRIBE SETUP SETUP TEARDOWN', String(status));
    d.answer(200);
    assert.deepEqual(d.actions.at(-1), { kind: 'closed' });
  }
});

test('errors repeat neither password nor control characters of the camera', () => {
  const d = new Dialogue({ source: 'rtsp://u:secret@10.0.0.9/live' }).connect().answer(200);
  const reply = { ...parseHead('RTSP/1.0 500 x\u0007y'), body: '' };
  assert.throws(
    () => d.say(reply),
    (error: Error) => error.message === 'the camera answered DESCRIBE with 500 xy',
  );
});

test('a connection that is replaced within the dialogue takes its streams with it', () => {
  const d = new Dialogue().described(VIDEO + AUDIO).setUp(0, 1);
  d.answer(200, ['Session: abc', 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1']);
  d.answer(200, ['Session: abc', 'Transport: RTP/AVP/TCP;unicast;interleaved=2-3']);
  // PLAY fails because the session is unknown; the client starts again on a new connection.
  d.answer(454);
  assert.equal(d.actions.at(-1)?.kind, 'reconnect');
  d.described(VIDEO + AUDIO).setUp(0, 1);
  d.answer(200, ['Session: def', 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1']);
  d.answer(200, ['Session: def', 'Transport: RTP/AVP/TCP;unicast;interleaved=2-3']).answer(200);
  const playing = d.actions.at(-1);
  assert.ok(playing?.kind === 'playing');
  assert.deepEqual(
    playing.streams.map(({ stream }) => [stream.streamIndex, stream.channels]),
    [
      [0, [0, 1]],
      [1, [2, 3]],
    ],
  );
});
