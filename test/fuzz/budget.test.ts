// Time that a camera can cost: whatever it repeats, as much as fits into what it may send, is read within 50 ms of one
// core. One process serves all cameras of a node: a parser that takes longer stops them all. Processor time beside that of a reference is
// measured, not the clock, so that other work on the machine does not matter; a parser that is not linear takes seconds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDepacketizer } from '../../recorder/codec/depacketizer.ts';
import { noFaults } from '../../recorder/codec/faults.ts';
import { SlabPool } from '../../recorder/codec/slab.ts';
import { parseXml } from '../../base/xml.ts';
import { RtpReceiver } from '../../recorder/rtp/receiver.ts';
import { parseRtcp } from '../../recorder/rtp/rtcp.ts';
import { Authorizer } from '../../recorder/rtsp/authorization.ts';
import { parseChallenges, strongest } from '../../recorder/rtsp/challenge.ts';
import { resolveBase, resolveControl } from '../../recorder/rtsp/control.ts';
import { RtspError } from '../../recorder/rtsp/error.ts';
import { RtspFraming } from '../../recorder/rtsp/framing.ts';
import { parsePublic, parseRtpInfo, parseSession, parseTransport } from '../../recorder/rtsp/headers.ts';
import { matchRtpInfo } from '../../recorder/rtsp/stream-setups.ts';
import { HeaderFields, parseHead } from '../../recorder/rtsp/message.ts';
import { parseSdp } from '../../recorder/rtsp/sdp.ts';
import { parseRtspUrl } from '../../recorder/rtsp/url.ts';
import { rtpPacket } from '../support/packetize.ts';
import { processorCost } from '../support/processor-cost.ts';

const BUDGET_MS = 50;
const KIB = 1024;

/** What `step` costs, in milliseconds of processor; what it throws is its own. */
const cost = (step: () => void): number =>
  processorCost(() => {
    try {
      step();
    } catch (error) {
      // A refusal is an answer; anything else is a fault of the parser.
      if (!(error instanceof RtspError) && (error as Error).name !== 'XmlError') throw error;
    }
  }, BUDGET_MS);

const TOKENS = [
  ...'@ : / # ? % [ ] ; , = " \\ & < > | a 0 - * ( $ { \t \n \r é \u2028 \ud800'.split(' '),
  ' ',
  '@:',
  '@/',
  '@#',
  '@[',
  '@a?',
  '%zz',
  '%ff',
  '\\"',
  '""',
  ', ',
  ' ,',
  ', url=',
  'url=',
  ';a=',
  ';a="',
  'a=b;',
  '=;',
  '\r\n',
  '\r\n ',
  '\r\n\t',
  'm=video 0 RTP/AVP 96\n',
  'm=video 0 RTP/AVP 96 97 98 99\n',
  'a=rtpmap:96 H264/90000\n',
  'a=fmtp:97 a=b\n',
  'a=',
  'rtsp://',
  'rtsp://a@',
  'Digest ',
  'Digest realm="',
  'A: b\r\n',
  '<a>',
  '<a b="',
  '<a/>',
  '<a></a>',
  '<a b="c"/>',
  '</a>',
  '<!--',
  '<!---->',
  '<![CDATA[',
  '<?a?>',
  '&amp;',
  '127.0.0.1:',
  '::',
  'AAAA,',
];

const BASE = 'rtsp://10.0.0.9:554/stream';
/** Everything that is made of text of a camera. */
const TEXTS: readonly (readonly [string, (text: string) => void])[] = [
  ['URL', (text) => parseRtspUrl(`rtsp://${text}`)],
  ['URL behind a host', (text) => parseRtspUrl(`rtsp://x${text}`)],
  ['control', (text) => resolveControl(BASE, text)],
  ['Content-Base', (text) => resolveBase(BASE, new HeaderFields().add('Content-Base', text))],
  ['SDP', (text) => parseSdp(`v=0\r\n${text}\r\nm=video 0 RTP/AVP 96\r\na=control:${text}\r\n`)],
  ['SDP attributes', (text) => parseSdp(`m=video 0 RTP/AVP 96\r\na=rtpmap:96 ${text}\r\na=fmtp:96 ${text}\r\n`)],
  ['SDP m=', (text) => parseSdp(`m=video 0 ${text}\r\nm=video 0 RTP/AVP 96\r\na=${text}`)],
  ['SDP session part', (text) => parseSdp(`a=fmtp:96 ${text}\r\na=rtpmap:${text}\r\nm=video 0 RTP/AVP 96\r\n`)],
  ['RTP-Info', (text) => matchRtpInfo(parseRtpInfo(`url=${text}`), [{ url: BASE, control: text }], BASE)],
  ['Transport', (text) => parseTransport(`RTP/AVP;${text}`)],
  ['Session', (text) => parseSession(`1;${text}`)],
  ['Public', (text) => parsePublic(text)],
  [
    'WWW-Authenticate',
    (text) => {
      for (const line of [text, `Digest ${text}`, `Digest nonce=1,realm="${text}`]) {
        const challenge = strongest(parseChallenges([line]));
        if (challenge) new Authorizer(challenge, { username: 'a', password: 'b' }).authorize('PLAY', BASE);
      }
    },
  ],
  ['status line', (text) => parseHead(`RTSP/1.0 200 ${text}`)],
  ['request line', (text) => parseHead(`OPTIONS ${text} RTSP/1.0`)],
  ['header', (text) => parseHead(`RTSP/1.0 200 OK\r\nA: ${text}`)],
  ['folded header', (text) => parseHead(`RTSP/1.0 200 OK\r\nA:\r\n ${text}`)],
  ['XML', (text) => parseXml(text)],
  ['XML content', (text) => parseXml(`<a>${text}</a>`)],
  ['XML attribute', (text) => parseXml(`<a b="${text}"/>`)],
  [
    'framing',
    (text) => {
      const framing = new RtspFraming({ interleaved: () => {}, message: () => {} });
      framing.expect(0, 1, [96]);
      const bytes = Buffer.from(`RTSP/1.0 200 OK\r\nA: ${text}`);
      for (let at = 0; at < bytes.length; at += 100) framing.push(bytes, at, Math.min(at + 100, bytes.length));
    },
  ],
  [
    'sprop',
    (text) => {
      for (const name of ['sprop-parameter-sets', 'sprop-vps', 'sprop-sps', 'sprop-pps', 'config']) {
        for (const encodingName of ['H264', 'H265', 'MPEG4-GENERIC', 'MP4A-LATM']) open(encodingName, { [name]: text });
      }
    },
  ],
];

for (const [name, parse] of TEXTS) {
  test(`any text repeated up to 256 KiB is read or refused within 50 ms: ${name}`, () => {
    for (const token of TOKENS) {
      for (const size of [2 * KIB, 8 * KIB, 64 * KIB, 256 * KIB]) {
        for (const end of ['', 'x', 'a\u2028b']) {
          const text = `${token.repeat(Math.ceil(size / token.length))}${end}`;
          const ms = cost(() => parse(text));
          assert.ok(
            ms <= BUDGET_MS,
            `${ms} ms for ${size} characters of ${JSON.stringify(token)}, then ${JSON.stringify(end)}`,
          );
        }
      }
    }
  });
}

function open(encodingName: string, parameters: Record<string, string>) {
  const choice = createDepacketizer(
    {
      kind: encodingName.startsWith('H26') || encodingName === 'JPEG' ? 'video' : 'audio',
      encodingName,
      payloadType: 96,
      clockRate: encodingName.startsWith('H26') ? 90_000 : 16_000,
      channels: 1,
      formatParameters: new Map(Object.entries(parameters)),
    },
    { pool: new SlabPool(), emit: (unit) => unit.data.slab.release(), faults: noFaults() },
  );
  return 'unsupported' in choice ? undefined : choice.depacketizer;
}

/** A count of 2^31 in Exp-Golomb code, and what such codes make of a set of parameters. */
const HUGE = Buffer.from('00000001fffffffe', 'hex');
const PATTERNS: readonly Buffer[] = [
  '00',
  'ff',
  '01',
  '80',
  '55',
  '000001',
  '00000001',
  '00000167',
  '0000016742c01e',
  '00000168ce',
  '0000010600',
  '000001420101',
  '000001440101',
  '00000126014000',
  '000067',
  '00026742',
  '000168',
  '0003680800',
  '7c85',
  '7c05',
  '2401',
  '240002',
  'fff150',
  'fff1508000ff',
  '4101',
  '6241',
  '000003',
  '0000ff',
].map((hex) => Buffer.from(hex, 'hex'));
/** What begins a packet: single NAL units and sets, aggregates, fragments of both codecs; AAC, LATM and Opus as they come. */
const STARTS = [
  '',
  '18',
  '1c',
  '7c85',
  '7c45',
  '67',
  '68',
  '06',
  '65',
  '6742c01e',
  '6764001e',
  '6001',
  '6201',
  '4201',
  '4401',
  '2601',
]
  .map((hex) => Buffer.from(hex, 'hex'))
  .flatMap((start) => [start, Buffer.concat([start, HUGE, HUGE])]);

/** Codecs whose bytes are samples, all of which are encoded: 4000 bytes are half a second. */
const SAMPLED = ['PCMA', 'L16', 'G722', 'G726-32'];

for (const encodingName of ['H264', 'H265', 'JPEG', 'MPEG4-GENERIC', 'MP4A-LATM', 'OPUS', 'MPA', ...SAMPLED]) {
  const isSampled = SAMPLED.includes(encodingName);
  const size = isSampled ? 4_000 : 64_000;
  test(`any four packets of ${size} bytes are taken within 50 ms: ${encodingName}`, () => {
    for (const start of isSampled ? [Buffer.alloc(0)] : STARTS) {
      for (const pattern of PATTERNS) {
        const payload = Buffer.concat([start, Buffer.alloc(size, pattern)]);
        const packets = Array.from({ length: 4 }, (_, i) =>
          rtpPacket({ payloadType: 96, marker: i === 3, sequenceNumber: i, timestamp: 0, ssrc: 1, payload }),
        );
        const ms = cost(() => {
          const depacketizer = open(encodingName, {});
          const receiver = new RtpReceiver({
            payloadType: 96,
            clockRate: 90_000,
            reorder: false,
            onPacket: (packet) => depacketizer?.push(packet),
          });
          for (const packet of packets) receiver.receive(packet, 0, packet.length, 0);
          depacketizer?.flush();
          depacketizer?.close();
        });
        assert.ok(ms <= BUDGET_MS, `${ms} ms for ${start.toString('hex')} and ${pattern.toString('hex')} repeated`);
      }
    }
  });
}

test('64 KiB between frames, as frames and in RTCP are taken within 50 ms', () => {
  const marks = ['24', '2400', '240000', '24000001', '240000ff80', '2400ffff8060', '52', '525453502f'];
  for (const pattern of [...PATTERNS, ...marks.map((hex) => Buffer.from(hex, 'hex'))]) {
    const bytes = Buffer.alloc(64 * KIB, pattern);
    for (const step of [64 * KIB, 1000, 7]) {
      const ms = cost(() => {
        const framing = new RtspFraming({ interleaved: () => {}, message: () => {} });
        framing.expect(0, 1, [96]);
        for (let at = 0; at < bytes.length; at += step) framing.push(bytes, at, Math.min(bytes.length, at + step));
      });
      assert.ok(ms <= BUDGET_MS, `framing: ${ms} ms for ${pattern.toString('hex')} in pieces of ${step}`);
    }
    for (const type of ['80c8', '9fcb', '9fc9', '9fca']) {
      const rtcp = Buffer.concat([Buffer.from(`${type}0001`, 'hex'), bytes]);
      const ms = cost(() => void parseRtcp(rtcp, 0, rtcp.length));
      assert.ok(ms <= BUDGET_MS, `RTCP: ${ms} ms for ${pattern.toString('hex')}`);
    }
  }
});
