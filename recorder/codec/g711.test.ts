import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing, decodedFlac } from '../../test/support/depacketize.ts';
import { encodeAudio, ffmpeg } from '../../test/support/encode.ts';
import { packetizeG711 } from '../../test/support/packetize.ts';
import { G711Decoder, aLawTable, muLawTable } from './g711.ts';
import type { G711Law } from './g711.ts';
import { PcmDepacketizer } from './pcm.ts';

const receiving = (law: G711Law, channels = 1, sampleRate = 8000) =>
  new Depacketizing(
    (deps) => new PcmDepacketizer({ decoder: new G711Decoder(law, channels), sampleRate, channels, ...deps }),
    0,
    sampleRate,
  );

const packet = (octets: Buffer, index: number, timestamp: number): Buffer[] =>
  packetizeG711(octets, { timestamp, sequenceNumber: index, ssrc: 1, payloadType: 0 });

const tableBytes = (table: Int16Array): Buffer => {
  const bytes = Buffer.alloc(512);
  for (const [i, sample] of table.entries()) bytes.writeInt16LE(sample, i * 2);
  return bytes;
};

for (const [law, format, table] of [
  ['mu', 'mulaw', muLawTable()],
  ['a', 'alaw', aLawTable()],
] as const) {
  test(`G.711 ${format}: all 256 octets decode as ffmpeg decodes them`, () => {
    const octets = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const expected = ffmpeg(['-f', format, '-ar', '8000', '-ac', '1', '-i', '-', '-f', 's16le', '-'], octets);
    assert.deepEqual(tableBytes(table), expected);
  });

  test(`G.711 ${format} becomes FLAC without a difference`, () => {
    const octets = encodeAudio(format, 0.5, ['-ar', '8000', '-ac', '1']);
    const stream = receiving(law);
    for (let at = 0; at < octets.length; at += 160) stream.push(...packet(octets.subarray(at, at + 160), at / 160, at));
    stream.end();
    assert.equal(stream.units.length, 25);
    assert.ok(stream.units.every((unit, i) => unit.timestamp === i * 160 && unit.durationTicks === 160));
    const expected = ffmpeg(['-f', format, '-ar', '8000', '-ac', '1', '-i', '-', '-f', 's16le', '-'], octets);
    assert.deepEqual(decodedFlac(stream), expected);
  });
}

test('G.711: packets of 10 ms are put together to frames of 20 ms, those of 160 ms stay whole', () => {
  const stream = receiving('mu');
  for (let i = 0; i < 4; i++) stream.push(...packet(Buffer.alloc(80, i), i, 1000 + i * 80));
  stream.push(...packet(Buffer.alloc(1280, 9), 4, 1320));
  assert.deepEqual(
    stream.units.map((unit) => [unit.timestamp, unit.durationTicks]),
    [
      [1000, 160],
      [1160, 160],
      [1320, 1280],
    ],
  );
});

test('G.711: a packet longer than the longest FLAC block is cut', () => {
  const stream = receiving('a');
  stream.push(...packet(Buffer.alloc(5000), 0, 0xffff_ff00));
  assert.deepEqual(
    stream.units.map((unit) => [unit.timestamp, unit.durationTicks]),
    [
      [0xffff_ff00, 4096],
      [0xf00, 904],
    ],
  );
});

test('G.711: what is lost is reported, and what waited keeps its own time', () => {
  const stream = receiving('mu');
  stream.push(...packet(Buffer.alloc(80, 1), 0, 0));
  stream.push(...packet(Buffer.alloc(160, 2), 3, 240));
  stream.push(...packet(Buffer.alloc(160, 3), 4, 8000)); // A jump of the camera's clock without loss.
  stream.end();
  assert.deepEqual(
    stream.units.map((unit) => [unit.timestamp, unit.durationTicks, unit.lostPackets]),
    [
      [0, 80, 0],
      [240, 160, 2],
      [8000, 160, 0],
    ],
  );
});

test('G.711: two channels', () => {
  const octets = Buffer.from(Array.from({ length: 640 }, (_, i) => (i * 7) & 0xff));
  const stream = receiving('mu', 2, 16_000)
    .push(...packet(octets, 0, 0))
    .end();
  const expected = ffmpeg(['-f', 'mulaw', '-ar', '16000', '-ac', '2', '-i', '-', '-f', 's16le', '-'], octets);
  assert.deepEqual(decodedFlac(stream), expected);
  assert.equal(stream.units[0]?.durationTicks, 320);
});

test('G.711: empty packets and half frames do no harm', () => {
  const stream = receiving('a', 2)
    .push(...packet(Buffer.alloc(0), 0, 0), ...packet(Buffer.alloc(21), 1, 0))
    .end();
  assert.equal(stream.units.length, 0);
  assert.equal(stream.fault('audio-too-short'), 1);
});
