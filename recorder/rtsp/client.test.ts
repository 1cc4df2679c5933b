import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RtspClient } from './client.ts';
import type { ClientAction, ClientOptions } from './client.ts';
import { RtspError } from './error.ts';
import type { RtspErrorCode } from './error.ts';
import { parseHead } from './message.ts';
import type { RtspMessage, RtspRequest } from './message.ts';
import { parseRtspUrl } from './url.ts';

const VIDEO = 'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track1\r\n';
const AUDIO = 'm=audio 0 RTP/AVP 8\r\na=control:track2\r\n';

/** A client with the camera's side played by the test. */
class Dialogue {
  readonly client: RtspClient;
  nowMs = 1_000;
  /** Requests in order. */
  readonly requests: RtspRequest[] = [];
  /** What else the client asked for. */
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

  /** Answers the last request. `fields` are lines. */
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

  /** Up to the description. */
  described(sdp = VIDEO, publicMethods = 'OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN'): this {
    return this.connect()
      .answer(200, [`Public: ${publicMethods}`])
      .answer(200, ['Content-Base: rtsp://10.0.0.9/live/'], sdp);
  }

  /** Up to PLAY's answer, video alone. */
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
    // The camera's silence is no reason to stop: some never answer.
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

test('keepalive by OPTIONS only, when the camera was seen to close on GET_PARAMETER', () => {
  const d = new Dialogue({ keepaliveByOptions: true }).playing().tick(30_000);
  assert.equal(d.last.method, 'OPTIONS');
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

test('login: without credentials, or with a scheme nobody knows, it is refused', () => {
  const challenge = ['WWW-Authenticate: Digest realm="x", nonce="1"'];
  assert.throws(() => new Dialogue().connect().answer(401, challenge), failsWith('refused-login'));
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).connect();
  assert.throws(() => d.answer(401, ['WWW-Authenticate: Bearer']), failsWith('refused-login'));
});

test('login: credentials given apart from the URL are taken literally', () => {
  const credentials = { username: 'a', password: 'p@ss:/#%41' };
  const d = new Dialogue({ credentials }).connect().answer(401, ['WWW-Authenticate: Basic realm="x"']);
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
  // A second time it is the camera's fault.
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

test('redirect: followed to another port with the login, to another host without it', () => {
  const d = new Dialogue({ source: 'rtsp://u:p@10.0.0.9/live' }).connect().answer(200);
  d.answer(302, ['Location: rtsp://10.0.0.9:8555/other']);
  const [first] = d.actions;
  assert.ok(first?.kind === 'reconnect');
  assert.deepEqual([first.url.port, first.url.request], [8555, 'rtsp://10.0.0.9:8555/other']);
  d.connect().answer(401, ['WWW-Authenticate: Basic realm="x"']);
  assert.match(d.last.headers.get('Authorization') ?? '', /^Basic /);
  d.answer(301, ['Location: rtsp://10.0.0.10/other']).connect();
  assert.equal(d.last.headers.get('Authorization'), undefined);
  assert.throws(() => d.answer(401, ['WWW-Authenticate: Basic realm="x"']), failsWith('refused-login'));
});

test('redirect: a loop ends, and TLS is never left', () => {
  const d = new Dialogue().connect();
  assert.throws(() => {
    for (let hop = 0; hop < 10; hop++) d.answer(302, ['Location: rtsp://10.0.0.9/live']).connect();
  }, failsWith('redirect-refused'));
  assert.equal(d.requests.length, 6);
  const secure = new Dialogue({ source: 'rtsps://10.0.0.9/live' }).connect();
  assert.throws(() => secure.answer(302, ['Location: rtsp://10.0.0.9/live']), failsWith('redirect-refused'));
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

test('PLAY refused for its trailing slash is tried without it, and the other way round, once', () => {
  const d = new Dialogue().described().setUp(0).answer(200, ['Session: a']);
  assert.equal(d.last.url, 'rtsp://10.0.0.9/live/');
  d.answer(405);
  assert.equal(d.last.url, 'rtsp://10.0.0.9/live');
  d.answer(200).tick(30_000);
  assert.equal(d.last.url, 'rtsp://10.0.0.9/live');
  const again = new Dialogue().described().setUp(0).answer(200).answer(400);
  assert.throws(() => again.answer(400), failsWith('status'));
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

test('a request without answer for 10 s fails', () => {
  const d = new Dialogue().connect().tick(9_999);
  assert.throws(() => d.tick(1), failsWith('no-answer'));
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

test('errors repeat neither password nor control characters of the camera', () => {
  const d = new Dialogue({ source: 'rtsp://u:secret@10.0.0.9/live' }).connect().answer(200);
  const reply = { ...parseHead('RTSP/1.0 500 x\u0007y'), body: '' };
  assert.throws(
    () => d.say(reply),
    (error: Error) => error.message === 'the camera answered DESCRIBE with 500 xy',
  );
});
