// What a camera may send when it is asked for its own footage: answers of a search over HTTP, packets and header extensions of a
// replay. Whatever it is, there is footage or a reason, in bounded time and memory, and nothing is dated without a ground.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import fc from '../support/fast-check.ts';
import { systemClock } from '../../base/clock.ts';
import { Dating } from '../../recorder/edge/dating.ts';
import { EdgeError } from '../../recorder/edge/memory.ts';
import { Progress } from '../../recorder/edge/progress.ts';
import { openEdgeMemory } from '../../recorder/edge/open.ts';
import { startOfRange } from '../../recorder/edge/times.ts';
import { SlabPool } from '../../recorder/codec/slab.ts';
import { anywhere } from '../../recorder/reach/reach.ts';
import { RtpPacket } from '../../recorder/rtp/packet.ts';
import { parseReplayExtension } from '../../recorder/rtp/replay-extension.ts';
import { withReplayExtension } from '../camera/memory-replay.ts';
import { rtpPacket } from '../support/packetize.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 3_000);
const SOAP_RUNS = Math.ceil(RUNS / 10);

const moment = fc.double({ min: 0, max: Date.UTC(2100), noNaN: true });

function stamped(timestamp: number, cameraMs: number, bits: number): Buffer {
  const payload = Buffer.from([0x41, 1, 2, 3]);
  const plain = rtpPacket({ payloadType: 96, sequenceNumber: 1, timestamp, ssrc: 3, marker: true, payload });
  return withReplayExtension(plain, { cameraMs, bits });
}

test('any packet has an extension with a time, or none', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 64 }).map((all) => Buffer.from(all)),
    fc.tuple(moment, fc.nat(255), fc.nat(35), fc.nat(255), fc.nat(35)).map(([cameraMs, bits, at, value, size]) => {
      const packet = stamped(1, cameraMs, bits);
      packet[at % packet.length] = value;
      return packet.subarray(0, size);
    }),
  );
  fc.assert(
    fc.property(bytes, (packet) => {
      const view = new RtpPacket();
      if (!view.parse(packet, 0, packet.length)) return;
      const stamp = parseReplayExtension(view);
      if (stamp) assert.ok(stamp.cameraMs >= Date.UTC(1967) && stamp.cameraMs < Date.UTC(2105), String(stamp.cameraMs));
    }),
    { numRuns: RUNS },
  );
});

test('whatever times a camera states, each unit has one with a ground, and a replay of them ends', () => {
  const packets = fc.array(
    fc.record({ timestamp: fc.nat(2 ** 32 - 1), cameraMs: fc.option(moment, { nil: undefined }), bits: fc.nat(255) }),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(packets, moment, fc.nat(3_600_000), (all, fromMs, lengthMs) => {
      const dating = new Dating(90_000);
      const window = { fromMs, untilMs: fromMs + lengthMs };
      const progress = new Progress(window, { hasOther: false, leadMs: 0 });
      let stamps = 0;
      for (const { timestamp, cameraMs, bits } of all) {
        const view = new RtpPacket();
        const bytes = stamped(timestamp, cameraMs ?? 1, bits);
        if (cameraMs === undefined) bytes.writeUInt16BE(0xbede, 12);
        assert.ok(view.parse(bytes, 0, bytes.length));
        dating.note(view);
        if (cameraMs !== undefined) stamps++;
        const dated = dating.date({ timestamp, randomAccess: true });
        assert.ok(dated === undefined || stamps > 0);
        if (!dated) continue;
        assert.ok(Number.isFinite(dated.cameraMs));
        try {
          const belongs = progress.lead({ ...dated, randomAccess: true, bytes: 1_000 });
          assert.ok(!belongs || dated.cameraMs < window.untilMs);
        } catch (error) {
          assert.ok(error instanceof EdgeError, String(error));
          return;
        }
      }
    }),
    { numRuns: RUNS },
  );
});

test('any Range of an answer is a time or none', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => `clock=${text}`),
      ),
      (text) => {
        const ms = startOfRange(text);
        assert.ok(ms === undefined || Number.isFinite(ms));
      },
    ),
    { numRuns: RUNS },
  );
});

const PIECES = [
  ...'<tse:ResultList> </tse:ResultList> <tt:SearchState>Completed</tt:SearchState> <tt:SearchState>Searching</tt:SearchState>'.split(
    ' ',
  ),
  ...'<tt:RecordingInformation> </tt:RecordingInformation> <tt:RecordingToken>a</tt:RecordingToken> <tt:Track> </tt:Track>'.split(
    ' ',
  ),
  ...'<tt:TrackType>Video</tt:TrackType> <tt:DataFrom>2026-01-01T00:00:00Z</tt:DataFrom> <tt:DataTo>x</tt:DataTo>'.split(
    ' ',
  ),
  ...'<tse:SearchToken>1</tse:SearchToken> <trp:Uri>rtsp://a/b</trp:Uri> <tt:NumberRecordings>1</tt:NumberRecordings> &lt; <a/>'.split(
    ' ',
  ),
];
const GOOD =
  '<R><tse:SearchToken>1</tse:SearchToken><tse:ResultList><tt:SearchState>Completed</tt:SearchState><tt:RecordingInformation>' +
  '<tt:RecordingToken>a</tt:RecordingToken><tt:EarliestRecording>2026-01-01T00:00:00Z</tt:EarliestRecording><tt:Track>' +
  '<tt:TrackType>Video</tt:TrackType></tt:Track></tt:RecordingInformation></tse:ResultList></R>';
const SERVICES =
  '<R>' +
  ['device', 'search', 'replay']
    .map(
      (name) =>
        `<Service><Namespace>http://www.onvif.org/ver10/${name}/wsdl</Namespace><XAddr>http://a/${name}</XAddr></Service>`,
    )
    .join('') +
  '</R>';
const soap = (content: string): string =>
  `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body>${content}</s:Body></s:Envelope>`;

let server: Server;
let answer = '';

before(async () => {
  server = createServer((request, response) => {
    request.resume();
    response.end(request.headers['content-type']?.includes('GetServices') ? soap(SERVICES) : soap(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

after(() => new Promise((resolve) => server.close(resolve)));

test('any answer of a search is a list of recordings or a reason', async () => {
  const pieces = fc.array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ maxLength: 6 })), { maxLength: 20 });
  const answers = fc.oneof(
    pieces.map((all) => `<R>${all.join('')}</R>`),
    fc
      .tuple(fc.nat(GOOD.length), fc.nat(GOOD.length), pieces)
      .map(([from, to, put]) => GOOD.slice(0, Math.min(from, to)) + put.join('') + GOOD.slice(Math.max(from, to))),
  );
  const { port } = server.address() as AddressInfo;
  const camera = {
    source: 'rtsp://127.0.0.1/',
    onvif: `http://127.0.0.1:${port}/`,
    tls: { verify: false },
    allowPlaintextLogin: false,
  };
  const deps = { clock: systemClock, reach: anywhere(), pool: new SlabPool() };
  await fc.assert(
    fc.asyncProperty(answers, async (text) => {
      answer = text;
      const memory = openEdgeMemory(camera, { kind: 'onvif', recording: undefined }, deps);
      try {
        for (const { fromMs, untilMs, tracks } of (await memory.recordings(new AbortController().signal)) ?? []) {
          assert.ok(!Number.isNaN(fromMs) && !Number.isNaN(untilMs) && tracks.length > 0);
        }
      } catch (error) {
        assert.ok(error instanceof EdgeError, String(error));
      }
    }),
    { numRuns: SOAP_RUNS },
  );
});
