import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Depacketizing, decodedFlac } from '../../test/support/depacketize.ts';
import { ffmpeg } from '../../test/support/encode.ts';
import { packetizePayloads } from '../../test/support/packetize.ts';
import { createDepacketizer } from './depacketizer.ts';
import type { MediaDescription } from './depacketizer.ts';
import { G726Decoder } from './g726.ts';
import type { G726Packing, G726Rate } from './g726.ts';

/** Two seconds of noise that resembles speech: stronger at low frequencies. */
const NOISE = ['-f', 'lavfi', '-i', 'anoisesrc=color=pink:amplitude=0.5:duration=2:sample_rate=16000:seed=1'];
const RATES: readonly G726Rate[] = [16, 24, 32, 40];

function receive(octets: Buffer, media: Partial<MediaDescription>, octetsPerPacket: number, ticks: number) {
  const description = { kind: 'audio', payloadType: 96, formatParameters: new Map(), ...media } as MediaDescription;
  const stream = new Depacketizing((deps) => {
    const choice = createDepacketizer(description, deps);
    assert.ok('depacketizer' in choice, JSON.stringify(choice));
    return choice.depacketizer;
  });
  for (let i = 0; i * octetsPerPacket < octets.length; i++) {
    const payload = octets.subarray(i * octetsPerPacket, (i + 1) * octetsPerPacket);
    const options = { timestamp: i * ticks, sequenceNumber: i, ssrc: 1, payloadType: 96 };
    stream.push(...packetizePayloads([payload], options));
  }
  return stream.end();
}

function decodeG726(rate: G726Rate, packing: G726Packing, octets: Buffer): Int16Array {
  const decoder = new G726Decoder(rate, packing);
  const samples = new Int16Array((octets.length / decoder.octets) * decoder.samples);
  for (let i = 0; i * decoder.octets < octets.length; i++) {
    decoder.decode(octets, i * decoder.octets, [samples], i * decoder.samples);
  }
  return samples;
}

const littleEndian = (samples: Int16Array): Buffer => {
  const bytes = Buffer.alloc(samples.length * 2);
  for (const [i, sample] of samples.entries()) bytes.writeInt16LE(sample, i * 2);
  return bytes;
};

/** Signal to noise in dB. */
function likeness(original: Buffer, decoded: Buffer): number {
  let signal = 0;
  let noise = 0;
  for (let at = 0; at + 1 < Math.min(original.length, decoded.length); at += 2) {
    const sample = original.readInt16LE(at);
    signal += sample ** 2;
    noise += (sample - decoded.readInt16LE(at)) ** 2;
  }
  return 10 * Math.log10(signal / noise);
}

/** Octets that no encoder would produce, to reach every branch of a decoder. */
function anyOctets(length: number): Buffer {
  let state = 12_345;
  return Buffer.from(
    Array.from({ length }, () => (state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff) >> 16),
  );
}

test('L16 becomes FLAC without a difference, mono and stereo', () => {
  for (const [channels, clockRate] of [
    [1, 44_100],
    [2, 48_000],
  ] as const) {
    const format = ['-ar', String(clockRate), '-ac', String(channels), '-f'];
    const expected = ffmpeg([...NOISE, ...format, 's16le', '-']);
    const octets = Buffer.from(expected).swap16();
    const stream = receive(octets, { encodingName: 'L16', clockRate, channels }, channels * 2 * 441, 441);
    assert.deepEqual(decodedFlac(stream), expected);
    assert.deepEqual(
      stream.depacketizer.parameters?.kind === 'audio' && stream.depacketizer.parameters.channels,
      channels,
    );
  }
});

test('G.722 decodes as ffmpeg decodes it, to 16 kHz, and its clock is 8 kHz', () => {
  for (const octets of [ffmpeg([...NOISE, '-c:a', 'g722', '-f', 'g722', '-']), anyOctets(16_000)]) {
    const expected = ffmpeg(['-f', 'g722', '-i', '-', '-f', 's16le', '-'], octets);
    const stream = receive(octets, { encodingName: 'G722', clockRate: 8000 }, 160, 160);
    assert.deepEqual(decodedFlac(stream), expected);
    assert.ok(stream.units.every((unit, i) => unit.timestamp === i * 160 && unit.durationTicks === 320));
  }
});

for (const rate of [16, 24, 32] as const) {
  test(`G.726 at ${rate} kbit/s of another encoder sounds like what was encoded`, () => {
    const original = ffmpeg([...NOISE, '-ar', '8000', '-f', 's16le', '-']);
    const encode = (codec: string): Buffer =>
      ffmpeg([...NOISE, '-ar', '8000', '-c:a', codec, '-b:a', `${rate}k`, '-f', codec, '-']);
    const decoded = decodedFlac(
      receive(encode('g726le'), { encodingName: `G726-${rate}`, clockRate: 8000 }, rate * 2.5, 160),
    );
    // ffmpeg's own decoder reaches 12.5, 18.3 and 24.0 dB.
    assert.ok(likeness(original, decoded) > rate * 0.7, `${likeness(original, decoded)} dB`);
    const aal2 = { encodingName: `AAL2-G726-${rate}`, clockRate: 8000 };
    assert.deepEqual(decodedFlac(receive(encode('g726'), aal2, rate * 2.5, 160)), decoded);
  });
}

/**
 * Digests of the samples of `anyOctets(60_000)`; another implementation of the Recommendation, in C, gives the same. (ffmpeg
 * cannot be the reference: at 40 kbit/s its predictor leaks twice as fast.)
 */
const G726_DIGESTS: Readonly<Record<G726Rate, string>> = {
  16: 'a62bb52fabf3241a1f2c2fddbb07b352',
  24: '937087e5d7987aeb6ecc6d13f0a874a4',
  32: 'a119e783e8e10805f96c96788d300c81',
  40: 'a0df7e5ad2195eae346497bfb509501a',
};
for (const rate of RATES) {
  test(`G.726 at ${rate} kbit/s decodes any octets to known samples`, () => {
    const samples = littleEndian(decodeG726(rate, 'first-low', anyOctets(60_000)));
    assert.equal(createHash('sha256').update(samples).digest('hex').slice(0, 32), G726_DIGESTS[rate]);
  });
}

test('G.726: octets that are no whole number of codes do no harm', () => {
  const stream = receive(Buffer.alloc(164, 0x55), { encodingName: 'G726-40', clockRate: 8000 }, 82, 128);
  assert.deepEqual(
    stream.units.map((unit) => [unit.timestamp, unit.durationTicks]),
    [[0, 256]],
  );
});
