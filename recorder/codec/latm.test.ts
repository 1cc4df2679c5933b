import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { encodeAudio } from '../../test/support/encode.ts';
import { packetizeLatm, packetizePayloads } from '../../test/support/packetize.ts';
import type { AudioParameters } from './access-unit.ts';
import { LatmDepacketizer } from './latm.ts';

/** StreamMuxConfig: AAC-LC, 16 kHz, mono. */
const MUX_CONFIG = '400028103fc0';

const receiving = (config: string | undefined, configInBand: boolean, clockRate = 16_000) =>
  new Depacketizing((deps) => new LatmDepacketizer({ config, configInBand, clockRate, ...deps }), 96, clockRate);

const at = (sequenceNumber: number, timestamp: number) => ({ sequenceNumber, timestamp, ssrc: 1, payloadType: 96 });

/** The audioMuxElements of a LOAS stream: each after a sync word of 11 bits and a length of 13 bits. */
function splitLoas(stream: Buffer): Buffer[] {
  const elements: Buffer[] = [];
  for (let at = 0; at + 3 <= stream.length;) {
    assert.equal(stream.readUInt16BE(at) >> 5, 0x2b7);
    const size = stream.readUIntBE(at, 3) & 0x1fff;
    elements.push(stream.subarray(at + 3, at + 3 + size));
    at += 3 + size;
  }
  return elements;
}

test('LATM: configuration in the SDP, frames of any length, in one packet or several (mediamtx#3590)', () => {
  const stream = receiving(MUX_CONFIG, false);
  const frames = [10, 254, 255, 256, 510, 3000].map((size) => Buffer.alloc(size, size & 0x7f));
  let sequenceNumber = 0;
  for (const [i, frame] of frames.entries()) {
    const packets = packetizeLatm(frame, at(sequenceNumber, i * 1024));
    sequenceNumber += packets.length;
    stream.push(...packets);
  }
  assert.deepEqual(
    stream.units.map((unit) => unit.bytes),
    frames,
  );
  const parameters = stream.depacketizer.parameters as AudioParameters;
  assert.deepEqual([parameters.sampleRate, parameters.channels, parameters.codecString], [16_000, 1, 'mp4a.40.2']);
  assert.equal(parameters.config.toString('hex'), '1408');
});

test('LATM: configuration in band, as ffmpeg writes it', () => {
  const options = ['-c:a', 'aac', '-ar', '48000', '-ac', '2'];
  const elements = splitLoas(encodeAudio('latm', 0.3, [...options, '-flags', '+bitexact']));
  const stream = receiving(undefined, true, 48_000);
  elements.forEach((element, i) => stream.push(...packetizePayloads([element], at(i, i * 1024))));
  assert.equal(stream.units.length, elements.length);
  const parameters = stream.depacketizer.parameters as AudioParameters;
  assert.deepEqual([parameters.sampleRate, parameters.channels], [48_000, 2]);
  // ffmpeg writes the same frames after ADTS headers.
  const adts = encodeAudio('adts', 0.3, [...options, '-flags', '+bitexact']);
  for (const unit of stream.units) assert.ok(adts.includes(unit.bytes), 'a frame that the encoder did not make');
});

test('LATM: without a configuration it is dropped with a reason', () => {
  const stream = receiving(undefined, false).push(...packetizeLatm(Buffer.alloc(40), at(0, 0)));
  assert.equal(stream.units.length, 0);
  assert.equal(stream.depacketizer.problem?.code, 'latm-config-missing');
});

for (const lost of [0, 1, 2]) {
  test(`LATM: an element without its packet ${lost} is dropped`, () => {
    const stream = receiving(MUX_CONFIG, false).push(...packetizeLatm(Buffer.alloc(40, 2), at(0, 0)));
    stream.push(...packetizeLatm(Buffer.alloc(3000, 1), at(1, 1024)).filter((_, i) => i !== lost));
    stream.push(...packetizeLatm(Buffer.alloc(40, 2), at(4, 2048)));
    assert.deepEqual(
      stream.units.map((unit) => [unit.timestamp, unit.lostPackets]),
      [
        [0, 0],
        [2048, 1],
      ],
    );
  });
}

test('LATM: the backward compatible extension behind the configuration, and a configuration cut off after it (GStreamer)', () => {
  for (const config of ['40002810adca00', '400028103fc0', '40002810']) {
    const stream = receiving(config, false);
    stream.push(...packetizeLatm(Buffer.alloc(20, 7), at(0, 0)));
    assert.deepEqual(
      stream.units.map((unit) => unit.bytes),
      [Buffer.alloc(20, 7)],
      config,
    );
    const parameters = stream.depacketizer.parameters as AudioParameters;
    assert.deepEqual([parameters.sampleRate, parameters.channels, parameters.codecString], [16_000, 1, 'mp4a.40.2']);
    assert.equal(parameters.config.toString('hex', 0, 2), '1408', config);
  }
});
