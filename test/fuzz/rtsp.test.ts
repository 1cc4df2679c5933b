// What a stranger on the network may send in place of a camera: whatever the bytes are, the rtsp room understands them
// or throws its own error, within bounded memory, and a session through sockets ends as a camera's failure.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { CameraError } from '../../recorder/camera/error.ts';
import { runSession } from '../../recorder/camera/session.ts';
import { Authorizer } from '../../recorder/rtsp/authorization.ts';
import { parseChallenges, strongest } from '../../recorder/rtsp/challenge.ts';
import { RtspClient, type ClientAction } from '../../recorder/rtsp/client.ts';
import { resolveBase, resolveControl } from '../../recorder/rtsp/control.ts';
import { RtspError } from '../../recorder/rtsp/error.ts';
import { RtspFraming } from '../../recorder/rtsp/framing.ts';
import { parsePublic, parseRtpInfo, parseSession, parseTransport } from '../../recorder/rtsp/headers.ts';
import { matchRtpInfo } from '../../recorder/rtsp/stream-setups.ts';
import { formatMessage, HeaderFields, parseHead } from '../../recorder/rtsp/message.ts';
import { parseSdp, type Presentation } from '../../recorder/rtsp/sdp.ts';
import { parseRtspUrl } from '../../recorder/rtsp/url.ts';
import { anywhere } from '../../recorder/reach/reach.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 3_000);
/** A packet or a message with its body, and room to grow by doubling. */
const MAX_CARRY_BYTES = 1024 * 1024;

const directory = new URL('../testdata/cameras/', import.meta.url);
const transcripts = new Map(
  readdirSync(directory)
    .filter((name) => name.endsWith('.txt') && !name.startsWith('LICENSE'))
    .map((name) => [name.replace('.txt', ''), readFileSync(new URL(name, directory)).toString('latin1')]),
);
const transcript = (name: string): string => {
  const text = transcripts.get(name);
  assert.ok(text, name);
  return text;
};

/** Runs `step`; what it throws must be of the room. */
function onlyRtspErrors(step: () => void): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof RtspError)) throw error;
  }
}

/** Words of the protocol, to get past the first look. */
const word = fc.constantFrom(
  ...'RTSP/1.0 200 401 302 OK CSeq: Session: Transport: RTP/AVP/TCP unicast interleaved= 0-1 - ssrc= timeout= 60'.split(
    ' ',
  ),
  ...'WWW-Authenticate: Digest Basic realm= nonce= algorithm= SHA-256 MD5-sess qop= auth Content-Length: 99 url='.split(
    ' ',
  ),
  ...'m= a= video audio 0 RTP/AVP 96 rtpmap: fmtp: H264/90000 control: * rtsp:// [::1] host @ : Location: Public:'.split(
    ' ',
  ),
  '\r\n',
  '\r\n\r\n',
  '\n',
  ' ',
  ';',
  ',',
  '"',
  '\\',
  '%',
  '/',
  '=',
);
const nonsense = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.array(fc.oneof(word, fc.string({ maxLength: 4 })), { maxLength: 40 }).map((words) => words.join('')),
  fc
    .tuple(fc.constantFrom(...transcripts.values()), fc.nat(1_000), fc.nat(200), fc.string({ maxLength: 6 }))
    .map(([text, at, length, inserted]) => text.slice(0, at) + inserted + text.slice(at + length)),
);

test('messages, headers, SDP and URLs: nonsense is understood or refused, never a crash', () => {
  fc.assert(
    fc.property(nonsense, (text) => {
      onlyRtspErrors(() => formatMessage(parseHead(text)));
      onlyRtspErrors(() => parseSdp(text));
      onlyRtspErrors(() => parseSession(text));
      onlyRtspErrors(() => parseTransport(text));
      onlyRtspErrors(() => parseRtspUrl(text));
      const base = resolveBase('rtsp://h/s', new HeaderFields().add('Content-Base', text));
      resolveControl(base, text);
      matchRtpInfo(parseRtpInfo(text), [{ url: base, control: text }], base);
      parsePublic(text);
      const challenge = strongest(parseChallenges([text, text]));
      if (challenge) new Authorizer(challenge, { username: text, password: text }).authorize('PLAY', base);
    }),
    { numRuns: RUNS },
  );
});

test('framing: any bytes in any pieces give packets and messages, or an end, within bounded memory', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array)),
    nonsense.map((text) => Buffer.from(text, 'latin1')),
    fc.record({ channel: fc.nat(255), length: fc.nat(0xffff), size: fc.nat(400), first: fc.nat(255) }).map((frame) => {
      const buffer = Buffer.alloc(4 + frame.size, frame.first);
      buffer.set([0x24, frame.channel, frame.length >> 8, frame.length & 0xff]);
      return buffer;
    }),
  );
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 30 }), (chunks) => {
      const framing = new RtspFraming({
        interleaved: (_channel, buffer, start, end) => assert.ok(start >= 0 && start < end && end <= buffer.length),
        message: () => {},
      });
      framing.expect(0, 1, [96]);
      onlyRtspErrors(() => {
        for (const chunk of chunks) framing.push(chunk, 0, chunk.length);
      });
      assert.ok(framing.carryBytes <= MAX_CARRY_BYTES);
    }),
    { numRuns: RUNS },
  );
});

function frame(channel: number, payloadType: number, size: number): string {
  const bytes = Buffer.alloc(16 + size, size & 0xff);
  bytes.set([0x24, channel, (12 + size) >> 8, (12 + size) & 0xff, 0x80, payloadType]);
  return bytes.toString('latin1');
}

/** All that a server sends in a session: its captured replies with the right CSeq, and packets between and behind. */
function serverStream(describe: string, setups: readonly string[], play: string, challenge: boolean): Buffer {
  const replies = [
    transcript('dahua_options'),
    ...(challenge
      ? ['RTSP/1.0 401 Unauthorized\r\nCSeq: 1\r\nWWW-Authenticate: Digest realm="a, b", nonce="c"\r\n\r\n']
      : []),
    transcript(describe),
    ...setups.map(transcript),
    transcript(play),
    'RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n',
    transcript('reolink_teardown'),
  ].map((reply, index) => reply.replace(/CSeq: \d+/, `CSeq: ${index + 1}`));
  const early = frame(1, 200, 16);
  const media = Array.from({ length: 12 }, (_, n) => frame(0, 96, 50 + n * 97) + (n % 4 === 0 ? frame(2, 97, 30) : ''));
  const playIndex = replies.length - 3;
  return Buffer.from(
    [
      ...replies.slice(0, playIndex),
      early,
      replies[playIndex],
      ...media.slice(0, 8),
      replies[playIndex + 1],
      'OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\n',
      ...media.slice(8),
      replies[playIndex + 2],
    ].join(''),
    'latin1',
  );
}

const streams = [
  serverStream('reolink_describe', ['reolink_setup', 'gw_main_setup_audio'], 'reolink_play', false),
  serverStream('dahua_describe_h264_aac_onvif', ['dahua_setup', 'gw_main_setup_audio'], 'dahua_play', true),
  serverStream('hikvision_describe', ['hikvision_setup'], 'hikvision_play', true),
  serverStream('gw_main_describe', ['gw_main_setup_video', 'gw_main_setup_audio'], 'gw_main_play', false),
  serverStream('bunny_describe', ['bunny_setup', 'gw_main_setup_audio'], 'bunny_play', false),
];

const place = fc.noBias(fc.nat(999_999));
const change = fc.oneof(
  fc.record({ kind: fc.constant('byte' as const), at: place, value: fc.nat(255) }),
  fc.record({ kind: fc.constant('cut' as const), at: place, length: fc.nat(300) }),
  fc.record({ kind: fc.constant('repeat' as const), at: place, length: fc.nat(600) }),
  fc.record({
    kind: fc.constant('insert' as const),
    at: place,
    text: fc.oneof(word, fc.string({ unit: 'binary', maxLength: 20 })),
  }),
  fc.record({ kind: fc.constant('splice' as const), at: place, other: fc.nat(streams.length - 1), from: place }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

function mutate(bytes: Buffer, { at: millionths, ...how }: Change): Buffer {
  const at = Math.floor((millionths / 1e6) * bytes.length);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (how.kind) {
    case 'byte':
      return Buffer.concat([before, Buffer.from([how.value]), after.subarray(1)]);
    case 'cut':
      return Buffer.concat([before, after.subarray(how.length)]);
    case 'repeat':
      return Buffer.concat([before, after.subarray(0, how.length), after]);
    case 'insert':
      return Buffer.concat([before, Buffer.from(how.text, 'latin1'), after]);
    default: {
      const other = streams[how.other] as Buffer;
      return Buffer.concat([before, other.subarray(Math.floor((how.from / 1e6) * other.length))]);
    }
  }
}

const mutated = fc
  .tuple(fc.constantFrom(...streams), fc.array(change, { maxLength: 6 }))
  .map(([bytes, changes]) => changes.reduce(mutate, bytes));

/** One video and one audio, as the corridor chooses. */
function choose({ media }: Presentation): number[] {
  const indices = ['video', 'audio'].map((kind) => media.findIndex((m) => m.kind === kind && !m.backchannel));
  return indices.filter((index) => index >= 0);
}

/** The whole dialogue over a recorded stream, without sockets; counts what was delivered. */
class Replay {
  readonly client = new RtspClient({ url: parseRtspUrl('rtsp://u:p@10.0.0.9/s'), transport: 'tcp' });
  packets = 0;
  sent = 0;
  played = false;
  nowMs = 0;
  #framing = this.#newFraming();

  #newFraming(): RtspFraming {
    return new RtspFraming({
      interleaved: () => this.packets++,
      message: (message) => this.take(this.client.message(message, this.nowMs)),
    });
  }

  get carryBytes(): number {
    return this.#framing.carryBytes;
  }

  take(actions: readonly ClientAction[]): void {
    for (const action of actions) {
      if (action.kind === 'send') this.sent++;
      else if (action.kind === 'playing') this.played = true;
      else if (action.kind === 'established') {
        const { channels, media } = action.stream;
        if (channels) this.#framing.expect(channels[0], channels[1], [media.payloadType]);
      } else if (action.kind === 'reconnect') {
        this.#framing = this.#newFraming();
        this.take(this.client.connected(this.nowMs));
      } else if (action.kind === 'select') {
        const chosen = choose(action.presentation);
        if (chosen.length === 0) throw new RtspError('status', 'nothing to choose');
        this.take(
          this.client.setUp(
            chosen.map((mediaIndex) => ({ mediaIndex })),
            this.nowMs,
          ),
        );
      }
    }
  }

  run(bytes: Buffer, pieceBytes: number): void {
    this.take(this.client.connected(this.nowMs));
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      this.nowMs += 100;
      this.#framing.push(bytes, at, Math.min(bytes.length, at + pieceBytes));
      this.take(this.client.tick(this.nowMs));
    }
    this.take(this.client.tearDown(this.nowMs));
  }
}

test('dialogue: each recorded stream plays to its end when nothing is changed', () => {
  for (const [index, bytes] of streams.entries()) {
    const replay = new Replay();
    replay.run(bytes, 1_000);
    assert.ok(replay.played, `stream ${index}`);
    assert.equal(replay.packets, 16, `stream ${index}`);
  }
});

test('dialogue: recorded streams, mutated and chopped, end in nothing worse than an error of the room', () => {
  let played = 0;
  fc.assert(
    fc.property(mutated, fc.integer({ min: 1, max: 3_000 }), (bytes, pieceBytes) => {
      const replay = new Replay();
      onlyRtspErrors(() => replay.run(bytes, pieceBytes));
      assert.ok(replay.carryBytes <= MAX_CARRY_BYTES);
      // Whatever comes in: what goes out stays in proportion.
      assert.ok(replay.sent < 200, `${replay.sent} requests sent`);
      if (replay.played) played++;
    }),
    { numRuns: RUNS },
  );
  // Mutations that break every dialogue at once would test only its beginning.
  assert.ok(played > RUNS / 10, `${played} of ${RUNS} came to play`);
});

test('session: mutated streams through a socket end as a camera that failed', async (t) => {
  let bytes: Buffer = Buffer.alloc(0);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.resume();
    socket.end(bytes);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const deps = { reach: anywhere(), clock: new VirtualClock(), log: silentLog, receiveBuffer: Buffer.alloc(1_500) };
  let packets = 0;
  const handler = { select: choose, playing: () => {}, rtp: () => packets++, rtcp: () => {} };
  await fc.assert(
    fc.asyncProperty(mutated, async (stream) => {
      // A redirect would lead out of this machine.
      fc.pre(!/location/i.test(stream.toString('latin1')));
      bytes = stream;
      const options = { source: `rtsp://u:p@127.0.0.1:${port}/s`, transport: 'tcp' as const, handler, deps };
      const signal = AbortSignal.timeout(5_000);
      const outcome = await runSession(options, signal).catch((error: unknown) => error);
      assert.ok(outcome === undefined || outcome instanceof CameraError, String(outcome));
    }),
    { numRuns: Math.ceil(RUNS / 20) },
  );
  assert.ok(packets > 0);
});
