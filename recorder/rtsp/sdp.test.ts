import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { RtspSyntaxError } from './error.ts';
import { parseSdp } from './sdp.ts';
import type { Media } from './sdp.ts';

const lines = (...text: string[]): string => text.map((line) => `${line}\r\n`).join('');
const first = (...text: string[]): Media => {
  const [media] = parseSdp(lines(...text)).media;
  assert.ok(media);
  return media;
};

test('SDP: without fmtp, and without anything before m=', () => {
  assert.deepEqual(parseSdp(lines('m=video 0 RTP/AVP 96', 'a=rtpmap:96 H264/90000', 'a=control:track1')), {
    control: undefined,
    media: [
      {
        kind: 'video',
        payloadType: 96,
        encodingName: 'H264',
        clockRate: 90_000,
        channels: 1,
        formatParameters: new Map(),
        formats: [
          { payloadType: 96, encodingName: 'H264', clockRate: 90_000, channels: 1, formatParameters: new Map() },
        ],
        encrypted: false,
        control: 'track1',
        direction: 'sendrecv',
        pictureSize: undefined,
        backchannel: false,
      },
    ],
  });
});

test('SDP: no o=, two s=, a bad c=, an odd t= and LF line ends do not matter', () => {
  const text = 'v=0\ns=a\ns=b\nc=IN IP4\nt=0 0 0 x\na=control:*\nm=video 0 RTP/AVP 96\na=rtpmap:96 H265/90000\n';
  const presentation = parseSdp(text);
  assert.equal(presentation.control, '*');
  assert.equal(presentation.media[0]?.encodingName, 'H265');
});

test('SDP: a blank after the encoding, and a tab after the payload type (VStarcam)', () => {
  const media = first('m=audio 0 RTP/AVP 8\t ', 'a=rtpmap:8 PCMA/8000 ');
  assert.deepEqual([media.payloadType, media.encodingName, media.clockRate], [8, 'PCMA', 8_000]);
});

test('SDP: rtpmap redefines a static payload type (Anpviz, GW4089IP)', () => {
  const media = first('m=audio 0 RTP/AVP 0', 'a=rtpmap:0 MPEG4-GENERIC/16000/2', 'a=fmtp:0 config=1410');
  assert.deepEqual([media.encodingName, media.clockRate, media.channels], ['MPEG4-GENERIC', 16_000, 2]);
  assert.equal(first('m=audio 0 RTP/AVP 8', 'a=rtpmap:8 PCMU/8000/1').encodingName, 'PCMU');
});

test('SDP: a static payload type needs no rtpmap', () => {
  assert.equal(first('m=audio 0 RTP/AVP 0').encodingName, 'PCMU');
  assert.equal(first('m=audio 0 RTP/AVP 9').clockRate, 8_000);
  assert.equal(first('m=video 0 RTP/AVP 96').encodingName, '');
});

test('SDP: fmtp bare, with trailing semicolon, blanks, other case and base64 padding', () => {
  assert.equal(first('m=audio 0 RTP/AVP 96', 'a=fmtp:96').formatParameters.size, 0);
  const media = first('m=video 0 RTP/AVP 96', 'a=fmtp:96 Sprop-Parameter-Sets=Z0,aA== ;; PACKETIZATION-MODE = 1;');
  assert.deepEqual(
    [...media.formatParameters],
    [
      ['sprop-parameter-sets', 'Z0,aA=='],
      ['packetization-mode', '1'],
    ],
  );
});

test('SDP: fmtp and rtpmap of another payload type are not taken', () => {
  const media = first('m=video 0 RTP/AVP 96 97', 'a=rtpmap:97 H265/90000', 'a=rtpmap:96 H264/90000', 'a=fmtp:97 a=b');
  assert.deepEqual([media.encodingName, media.formatParameters.size], ['H264', 0]);
});

test('SDP: only the section that makes no sense is skipped, with its attributes (TP-Link)', () => {
  const { media } = parseSdp(
    lines(
      'm=video 0 RTP/AVP 96',
      'a=rtpmap:96 H264/90000',
      'm=application/TP-LINK 0 RTP/AVP smart/1/90000',
      'a=control:track3',
      'm=audio 0 RTP/AVP 8',
      'a=control:track2',
    ),
  );
  assert.deepEqual(
    media.map((m) => [m.kind, m.control]),
    [
      ['video', undefined],
      ['audio', 'track2'],
    ],
  );
});

test('SDP: the way back to the loudspeaker is told from the rest', () => {
  const { media } = parseSdp(
    lines(
      'm=video 0 RTP/AVP 96',
      'a=recvonly',
      'm=audio 0 RTP/AVP 0',
      'a=recvonly',
      'm=audio 0 RTP/AVP 0',
      'a=sendonly',
    ),
  );
  assert.deepEqual(
    media.map((m) => m.backchannel),
    [false, false, true],
  );
});

test('SDP: when all media are sendonly, none is a backchannel', () => {
  const { media } = parseSdp(lines('a=sendonly', 'm=video 0 RTP/AVP 96', 'm=audio 0 RTP/AVP 0', 'a=sendonly'));
  assert.deepEqual(
    media.map((m) => [m.direction, m.backchannel]),
    [
      ['sendonly', false],
      ['sendonly', false],
    ],
  );
});

test('SDP: without media it is refused', () => {
  assert.throws(() => parseSdp('v=0\r\n'), RtspSyntaxError);
  assert.throws(() => parseSdp(''), RtspSyntaxError);
});

test('SDP: thousands of sections and parameters are cut', () => {
  const many = 'm=video 0 RTP/AVP 96\n'.repeat(2_000);
  const parameters = Array.from({ length: 2_000 }, (_, i) => `k${i}=v`).join(';');
  const { media } = parseSdp(`m=video 0 RTP/AVP 96\na=fmtp:96 ${parameters}\n${many}`);
  assert.equal(media.length, 32);
  assert.equal(media[0]?.formatParameters.size, 64);
});

test('SDP: a line beyond 20 KiB is ignored, a description beyond 64 KiB refused', () => {
  const media = first('m=video 0 RTP/AVP 96', `a=control:${'x'.repeat(20 * 1024)}`, 'a=control:short');
  assert.equal(media.control, 'short');
  assert.throws(() => parseSdp(lines('m=video 0 RTP/AVP 96') + 'a=x\n'.repeat(16 * 1024)), RtspSyntaxError);
});

test('SDP: all payload types of a section are reported, each with its own rtpmap and fmtp (Bosch: 98 96)', () => {
  const { formats } = first(
    'm=video 0 RTP/AVP 98 96 98 x',
    'a=rtpmap:96 H264/90000',
    'a=fmtp:96 packetization-mode=1',
    'a=rtpmap:98 H265/90000',
    'a=fmtp:98 sprop-vps=a',
  );
  assert.deepEqual(
    formats.map((format) => [format.payloadType, format.encodingName, ...format.formatParameters]),
    [
      [98, 'H265', ['sprop-vps', 'a']],
      [96, 'H264', ['packetization-mode', '1']],
    ],
  );
});

test('SDP: an rtpmap or fmtp of an unused type belongs to the only format without one', () => {
  const wrong = first('m=video 0 RTP/AVP 97', 'a=rtpmap:104 H264/90000', 'a=fmtp:97 packetization-mode=1');
  assert.equal(wrong.encodingName, 'H264');
  assert.equal(wrong.formatParameters.get('packetization-mode'), '1');
  const fmtp = first('m=video 0 RTP/AVP 104', 'a=rtpmap:104 H264/90000', 'a=fmtp:97 packetization-mode=1');
  assert.equal(fmtp.formatParameters.get('packetization-mode'), '1');
  const two = first('m=video 0 RTP/AVP 96 98', 'a=rtpmap:96 H264/90000', 'a=rtpmap:98 H265/90000', 'a=fmtp:97 x=1');
  assert.ok(
    two.formats.every((format) => format.formatParameters.size === 0),
    'no format is the only one',
  );
});

test('SDP: rtpmap and fmtp of the session part go to the format that they name, or to the only one without', () => {
  const audio = ['m=audio 0 RTP/AVP 8', 'a=control:2'];
  for (const type of [96, 97]) {
    const text = lines(
      `a=rtpmap:${type} H264/90000`,
      `a=fmtp:${type} x=1`,
      'm=video 0 RTP/AVP 96',
      'a=control:1',
      ...audio,
    );
    const [video, sound] = parseSdp(text).media;
    assert.equal(video?.encodingName, 'H264');
    assert.equal(video?.formatParameters.get('x'), '1');
    assert.equal(sound?.encodingName, 'PCMA');
    assert.equal(sound?.formatParameters.size, 0);
  }
});

test('SDP: SRTP is told from RTP', () => {
  for (const [protocol, encrypted] of [
    ['RTP/AVP', false],
    ['RTP/AVP/TCP', false],
    ['rtp/savp', true],
    ['RTP/SAVPF', true],
    ['UDP/TLS/RTP/SAVPF', true],
  ] as const) {
    assert.equal(first(`m=video 0 ${protocol} 96`).encrypted, encrypted, protocol);
  }
});

test('SDP: any input parses or throws RtspSyntaxError', () => {
  const piece = fc.constantFrom(
    'm=',
    'a=',
    'video 0 RTP/AVP 96',
    'rtpmap:96 H264/90000/2',
    'fmtp:96 a=b;',
    'control:',
    '\r\n',
    ' ',
    ':',
  );
  const input = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece).map((pieces) => pieces.join('')),
  );
  fc.assert(
    fc.property(input, (text) => {
      try {
        assert.ok(parseSdp(text).media.length > 0);
      } catch (error) {
        assert.ok(error instanceof RtspSyntaxError, String(error));
      }
    }),
  );
});

test('SDP: the size of pictures is that of a=framesize or a=x-dimensions', () => {
  const sizes = [
    'framesize:26 1920-1080',
    'x-dimensions:2560,1440',
    'x-dimensions: 640 , 480',
    'framesize:26 0-5',
    'x-dimensions:9',
  ];
  const offered = sizes.map((line) => parseSdp(`m=video 0 RTP/AVP 26\r\na=${line}\r\n`).media[0]?.pictureSize);
  assert.deepEqual(offered, [
    { width: 1920, height: 1080 },
    { width: 2560, height: 1440 },
    { width: 640, height: 480 },
    undefined,
    undefined,
  ]);
});
