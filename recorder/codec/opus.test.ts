import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { packetizeOpus } from '../../test/support/packetize.ts';
import { OpusDepacketizer, opusTicks } from './opus.ts';

const DURATIONS: readonly (readonly [string, string, number | undefined])[] = [
  ['SILK 20 ms', '08', 960],
  ['SILK 60 ms', '18', 2880],
  ['hybrid 10 ms', '60', 480],
  ['CELT 2.5 ms', '80', 120],
  ['CELT 20 ms', 'f8', 960],
  ['two CELT frames of 20 ms', 'f9', 1920],
  ['three CELT frames of 20 ms', 'fb03', 2880],
  ['three of them with padding', 'fb43', 2880],
  ['three of them of varying size, with padding', 'fbc3', 2880],
  ['a count of 0', 'fb00', undefined],
  ['more than 120 ms', 'fb07', undefined],
  ['a missing count', 'fb', undefined],
  ['nothing', '', undefined],
];
for (const [name, hex, ticks] of DURATIONS) {
  test(`Opus: length of ${name}`, () => {
    const bytes = Buffer.from(`ff${hex}ff`, 'hex');
    assert.equal(opusTicks(bytes, 1, bytes.length - 1), ticks);
  });
}

test('Opus: a packet is a frame of 48 kHz stereo, whatever the SDP says', () => {
  const stream = new Depacketizing((deps) => new OpusDepacketizer(deps), 111, 48_000);
  const packet = (i: number, hex: string) =>
    packetizeOpus(Buffer.from(hex, 'hex'), { timestamp: i * 960, sequenceNumber: i, ssrc: 1, payloadType: 111 });
  stream.push(...packet(0, 'f80102'), ...packet(1, ''), ...packet(3, 'f803'));
  assert.deepEqual(
    stream.units.map((unit) => [unit.bytes.toString('hex'), unit.timestamp, unit.durationTicks, unit.lostPackets]),
    [
      ['f80102', 0, 960, 0],
      ['f803', 2880, 960, 1],
    ],
  );
  assert.deepEqual(stream.depacketizer.parameters, {
    kind: 'audio',
    codec: 'opus',
    sampleRate: 48_000,
    channels: 2,
    config: Buffer.from('000200000000bb80000000', 'hex'),
    codecString: 'opus',
  });
  assert.equal(stream.depacketizer.discarded, 1);
});
