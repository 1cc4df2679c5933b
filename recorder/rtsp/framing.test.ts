import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { RtspError } from './error.ts';
import { RtspFraming } from './framing.ts';

/** The contents of a stream in order of arrival, packets as hex. */
function read(chunks: readonly Buffer[], channels: readonly (readonly [number, number, number])[] = [[0, 1, 96]]) {
  const seen: string[] = [];
  let skippedBytes = 0;
  const framing = new RtspFraming({
    interleaved: (channel, buffer, start, end) => seen.push(`${channel}:${buffer.toString('hex', start, end)}`),
    message: (message) =>
      seen.push(message.kind === 'response' ? `${message.status} ${message.body}`.trim() : message.method),
    skipped: (bytes) => (skippedBytes += bytes),
  });
  for (const [rtp, rtcp, payloadType] of channels) framing.expect(rtp, rtcp, [payloadType]);
  // One receive buffer for all chunks, overwritten each time, as a socket does.
  const receiveBuffer = Buffer.alloc(70_000);
  for (const chunk of chunks) {
    receiveBuffer.fill(0xee);
    chunk.copy(receiveBuffer);
    framing.push(receiveBuffer, 0, chunk.length);
  }
  return { seen, skippedBytes };
}

const text = (string: string): Buffer => Buffer.from(string, 'latin1');

function frame(channel: number, packet: Buffer): Buffer {
  const header = Buffer.from([0x24, channel, 0, 0]);
  header.writeUInt16BE(packet.length, 2);
  return Buffer.concat([header, packet]);
}

function rtp(size: number, filler = 0x24, payloadType = 96): Buffer {
  const packet = Buffer.alloc(12 + size, filler);
  packet.set([0x80, payloadType, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4]);
  return packet;
}

const rtcp = Buffer.from('81c90007' + '00'.repeat(28), 'hex');
const OK = text('RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n');
const DESCRIBED = text('RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 5\r\n\r\n$v=0\n');
const OPTIONS = text('OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n');

const stream = Buffer.concat([
  OK,
  frame(1, rtcp),
  DESCRIBED,
  frame(0, rtp(40)),
  frame(0, Buffer.alloc(0)),
  text('\r\n'),
  frame(0, rtp(1)),
  OPTIONS,
  frame(6, rtcp),
  text('RTSP/1.0 454 Gone\n\n'),
  frame(0, rtp(300, 0x52)),
]);
const expected = [
  '200',
  `1:${rtcp.toString('hex')}`,
  '200 $v=0',
  `0:${rtp(40).toString('hex')}`,
  `0:${rtp(1).toString('hex')}`,
  'OPTIONS',
  `6:${rtcp.toString('hex')}`,
  '454',
  `0:${rtp(300, 0x52).toString('hex')}`,
];

test('framing: messages and packets come apart, also before the reply to PLAY and on unknown channels', () => {
  assert.deepEqual(read([stream]), { seen: expected, skippedBytes: 0 });
});

test('framing: chopped at every byte, the same comes out', () => {
  for (let cut = 1; cut < stream.length; cut++) {
    assert.deepEqual(read([stream.subarray(0, cut), stream.subarray(cut)]).seen, expected, `cut at ${cut}`);
  }
});

test('framing: while media flows, a message that is not understood is skipped, and ends the dialogue before', () => {
  const senseless = [
    text('HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nnope'),
    text('RTSP/1.0 what is this\r\n\r\n'),
    text(`OPTIONS * RTSP/1.0\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`),
    text('RTSP/1.0 200 OK\r\nContent-Length: 999999\r\n\r\n'),
  ];
  for (const bytes of senseless) {
    const packets: number[] = [];
    const framing = new RtspFraming({ interleaved: (channel) => packets.push(channel), message: () => {} });
    framing.expect(0, 1, [96]);
    const chunk = Buffer.concat([frame(0, rtp(40)), bytes, frame(0, rtp(40)), OK, frame(0, rtp(40))]);
    assert.throws(() => framing.push(chunk, 0, chunk.length), RtspError);
    const playing = new RtspFraming({ interleaved: (channel) => packets.push(channel), message: () => {} });
    playing.expect(0, 1, [96]);
    playing.playing = true;
    packets.length = 0;
    playing.push(chunk, 0, chunk.length);
    assert.deepEqual(packets, [0, 0, 0]);
  }
});

test('framing: a description without Content-Length ends when nothing more has come for a while', () => {
  const bytes = text(
    'RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\n\r\nv=0\r\nm=video 0 RTP/AVP 96\r\n',
  );
  for (let cut = 1; cut <= bytes.length; cut++) {
    const seen: string[] = [];
    const framing = new RtspFraming({
      interleaved: () => {},
      message: (message) => seen.push(message.kind === 'response' ? message.body : message.method),
    });
    framing.push(bytes, 0, cut);
    framing.push(bytes, cut, bytes.length);
    assert.deepEqual(seen, []);
    framing.settle();
    assert.deepEqual(seen, ['v=0\r\nm=video 0 RTP/AVP 96\r\n'], `cut at ${cut}`);
    framing.push(OPTIONS, 0, OPTIONS.length);
    assert.equal(seen.at(-1), 'OPTIONS');
  }
  const endless = new RtspFraming({ interleaved: () => {}, message: () => {} });
  endless.push(bytes, 0, bytes.length);
  const lines = text('a=x\r\n'.repeat(60_000));
  assert.throws(() => endless.push(lines, 0, lines.length), RtspError);
});

test('framing: byte by byte, the same comes out', () => {
  assert.deepEqual(read([...stream].map((byte) => Buffer.from([byte]))).seen, expected);
});

test('framing: chopped anyhow, the same comes out', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 12 }), (cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), stream.length];
      const chunks = edges.slice(1).map((edge, index) => stream.subarray(edges[index], edge));
      assert.deepEqual(read(chunks).seen, expected);
    }),
  );
});

test('framing: the largest packet, in pieces', () => {
  const large = rtp(65_535 - 12);
  const bytes = frame(0, large);
  const chunks = [0, 1, 2, 3].map((n) => bytes.subarray(n * 20_000, (n + 1) * 20_000));
  assert.deepEqual(read(chunks).seen, [`0:${large.toString('hex')}`]);
});

for (const [name, garbage] of [
  ['three random bytes', Buffer.from('9f02e1', 'hex')],
  ['a dollar sign and nonsense', Buffer.from('240100ff00112233', 'hex')],
  ['letters', text('RTXP/1.0 200')],
  ['half a packet', frame(0, rtp(500, 0x41)).subarray(300)],
] as const) {
  test(`framing: after ${name} between frames the next packet is found, however the bytes are chopped`, () => {
    const bytes = Buffer.concat([frame(0, rtp(8)), garbage, frame(0, rtp(9)), frame(1, rtcp), OK]);
    const wanted = [`0:${rtp(8).toString('hex')}`, `0:${rtp(9).toString('hex')}`, `1:${rtcp.toString('hex')}`, '200'];
    for (let cut = 0; cut < bytes.length; cut++) {
      const { seen, skippedBytes } = read([bytes.subarray(0, cut), bytes.subarray(cut)]);
      assert.deepEqual(seen, wanted, `cut at ${cut}`);
      assert.equal(skippedBytes, garbage.length, `cut at ${cut}`);
    }
    assert.deepEqual(read([...bytes].map((byte) => Buffer.from([byte]))).seen, wanted);
  });
}

test('framing: a stray dollar sign in front of a packet costs only itself, also byte by byte', () => {
  const bytes = Buffer.concat([Buffer.from('$'), frame(0, rtp(300, 0x24)), OK]);
  const wanted = [`0:${rtp(300, 0x24).toString('hex')}`, '200'];
  for (let cut = 0; cut < bytes.length; cut++) {
    assert.deepEqual(read([bytes.subarray(0, cut), bytes.subarray(cut)]).seen, wanted, `cut at ${cut}`);
  }
  assert.deepEqual(read([...bytes].map((byte) => Buffer.from([byte]))).seen, wanted);
});

test('framing: a response is found after garbage before any stream is set up', () => {
  assert.deepEqual(read([Buffer.concat([Buffer.from('0011243344', 'hex'), OK])], []).seen, ['200']);
});

test('framing: in garbage, a packet of another payload type is not believed', () => {
  const bytes = Buffer.concat([Buffer.from([0xff]), frame(0, rtp(20, 0, 33)), frame(0, rtp(9))]);
  assert.deepEqual(read([bytes]).seen, [`0:${rtp(9).toString('hex')}`]);
});

test('framing: a frame that the camera cut off is no packet, and the frames that filled it up are found', () => {
  const numbered = (n: number, size: number): Buffer => {
    const packet = rtp(size, 0x30 + n);
    packet.writeUInt16BE(n, 2);
    return packet;
  };
  const frames = Array.from({ length: 9 }, (_, n) => frame(0, numbered(n, 40 + n * 7)));
  for (const kept of [20, 30, 41, 55]) {
    const cut = frames.map((bytes, n) => (n === 4 ? bytes.subarray(0, kept) : bytes));
    const wanted = [0, 1, 2, 3, 5, 6, 7, 8].map((n) => `0:${numbered(n, 40 + n * 7).toString('hex')}`);
    const bytes = Buffer.concat([...cut, OK]);
    assert.deepEqual(read([bytes]).seen, [...wanted, '200'], `${kept} bytes kept`);
    // If a read ends exactly with the oversized frame, nothing after it shows that it is wrong.
    const swollenEnd = cut.slice(0, 4).reduce((sum, { length }) => sum + length, 0) + (frames[4] as Buffer).length;
    for (let at = 1; at < bytes.length; at++) {
      if (at === swollenEnd) continue;
      assert.deepEqual(read([bytes.subarray(0, at), bytes.subarray(at)]).seen, [...wanted, '200'], `read at ${at}`);
    }
  }
});

test('framing: a packet of a type that was not announced is found after garbage once it was seen', () => {
  const other = frame(0, rtp(20, 0, 104));
  const { seen } = read([Buffer.concat([other, Buffer.from([0xff, 0xfe]), other, other])]);
  assert.equal(seen.length, 3);
});

test('framing: garbage is given up when it does not end, however much of it lies between good packets', () => {
  const { skippedBytes } = read(
    Array.from({ length: 20 }, () => Buffer.concat([Buffer.alloc(60_000, 0x55), frame(0, rtp(8))])),
  );
  assert.equal(skippedBytes, 1_200_000);
});

test('framing: garbage without end is given up', () => {
  const garbage = Buffer.alloc(60_000, 0x55);
  assert.throws(
    () => read([garbage, garbage, garbage, garbage, garbage]),
    (error) => error instanceof RtspError && error.code === 'lost-framing',
  );
});

test('framing: a head without end and a huge body are refused', () => {
  const tooLarge = (error: unknown): boolean => error instanceof RtspError && error.code === 'too-large';
  assert.throws(() => read([text(`RTSP/1.0 200 OK\r\nA: ${'x'.repeat(20_000)}`)]), tooLarge);
  assert.throws(() => read([text('RTSP/1.0 200 OK\r\nContent-Length: 999999\r\n\r\n')]), tooLarge);
});
