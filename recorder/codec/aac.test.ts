import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { encodeAudio } from '../../test/support/encode.ts';
import { aacPayload, packetizeAac, packetizePayloads, splitAdts } from '../../test/support/packetize.ts';
import type { AudioParameters } from './access-unit.ts';
import { AacDepacketizer } from './aac.ts';
import type { AuHeaderLayout } from './aac.ts';

const HIGH_BIT_RATE: AuHeaderLayout = {
  sizeLength: 13,
  indexLength: 3,
  indexDeltaLength: 3,
  ctsDeltaLength: 0,
  dtsDeltaLength: 0,
  randomAccessIndication: false,
  streamStateIndication: 0,
  auxiliaryDataSizeLength: 0,
  constantSize: 0,
};
/** AAC-LC, 48 kHz, mono. */
const CONFIG = '1188';

function receiving(
  options: { layout?: Partial<AuHeaderLayout>; config?: string | undefined; clockRate?: number } = {},
) {
  const { clockRate = 48_000, layout } = options;
  const config = 'config' in options ? options.config : CONFIG;
  return new Depacketizing(
    (deps) => new AacDepacketizer({ layout: { ...HIGH_BIT_RATE, ...layout }, config, clockRate, ...deps }),
    97,
    clockRate,
  );
}

const at = (sequenceNumber: number, timestamp: number) => ({ sequenceNumber, timestamp, ssrc: 1, payloadType: 97 });
const frame = (size: number, fill = 0x21): Buffer => Buffer.alloc(size, fill);
const adts = (data: Buffer): Buffer => {
  const size = data.length + 7;
  // AAC-LC, 16 kHz, mono.
  return Buffer.concat([
    Buffer.from([0xff, 0xf1, 0x60, 0x40 | (size >> 11), (size >> 3) & 0xff, ((size & 7) << 5) | 0x1f, 0xfc]),
    data,
  ]);
};

test('AAC: a real stream comes out frame by frame', () => {
  const frames = splitAdts(encodeAudio('adts', 0.5, ['-c:a', 'aac', '-ar', '48000', '-ac', '1']));
  const stream = receiving();
  frames.forEach((data, i) => stream.push(...packetizeAac([data], at(i, i * 1024))));
  assert.deepEqual(
    stream.units.map((unit) => unit.bytes),
    frames,
  );
  assert.ok(stream.units.every((unit, i) => unit.timestamp === i * 1024 && unit.durationTicks === 1024));
  assert.deepEqual(stream.depacketizer.parameters, {
    kind: 'audio',
    codec: 'aac',
    sampleRate: 48_000,
    channels: 1,
    config: Buffer.from(CONFIG, 'hex'),
    codecString: 'mp4a.40.2',
  });
});

test('AAC: several frames of one packet follow each other by 1024 samples, whatever the clock', () => {
  const stream = receiving({ config: '1208', clockRate: 90_000 }); // 44.1 kHz, mono
  stream.push(...packetizeAac([frame(100), frame(101), frame(102)], at(0, 0xffff_ff00)));
  assert.deepEqual(
    stream.units.map((unit) => [unit.bytes.length, unit.timestamp, unit.durationTicks]),
    [
      [100, 0xffff_ff00, 1024],
      [101, (0xffff_ff00 + 2090) % 2 ** 32, 1024],
      [102, (0xffff_ff00 + 4180) % 2 ** 32, 1024],
    ],
  );
});

test('AAC: a frame in fragments is put together, and one with a fragment lost is dropped', () => {
  const whole = Buffer.from(Array.from({ length: 3000 }, (_, i) => i & 0xff));
  const packets = packetizeAac([whole], at(0, 0));
  assert.equal(packets.length, 3);
  const stream = receiving().push(...packets);
  assert.deepEqual(
    stream.units.map((unit) => unit.bytes),
    [whole],
  );
  const cut = packetizeAac([whole], at(3, 1024)).filter((_, i) => i !== 1);
  stream.push(...cut, ...packetizeAac([frame(50)], at(6, 2048)));
  assert.deepEqual(
    stream.units.slice(1).map((unit) => [unit.timestamp, unit.bytes.length, unit.lostPackets]),
    [[2048, 50, 1]],
  );
  assert.equal(stream.depacketizer.discarded, 1);
});

test('AAC: low bit rate mode with 6 bits of size', () => {
  const layout = { sizeLength: 6, indexLength: 2, indexDeltaLength: 2 };
  const payload = Buffer.concat([Buffer.from([0, 16, 5 << 2, 7 << 2]), frame(12)]);
  const stream = receiving({ layout }).push(...packetizePayloads([payload], at(0, 0)));
  assert.deepEqual(
    stream.units.map((unit) => unit.bytes.length),
    [5, 7],
  );
});

test('AAC: time differences, stream state and auxiliary data in front of frames are skipped', () => {
  const layout = { ctsDeltaLength: 4, dtsDeltaLength: 4, randomAccessIndication: true, auxiliaryDataSizeLength: 8 };
  // size 3 (13 bits), index 0 (3 bits), CTS flag 1 and 4 bits, DTS flag 0, random access 1; then 8 bits of auxiliary data.
  const header = Buffer.from([0x00, 0x18, 0b1_1010_0_10]);
  const payload = Buffer.concat([Buffer.from([0, 23]), header, Buffer.from([8, 0xaa]), frame(3)]);
  const stream = receiving({ layout }).push(...packetizePayloads([payload], at(0, 0)));
  assert.deepEqual(
    stream.units.map((unit) => unit.bytes),
    [frame(3)],
  );
});

test('AAC: ADTS headers inside RFC 3640 are taken off (go2rtc#1328)', () => {
  const data = frame(60);
  const stream = receiving().push(...packetizeAac([adts(data)], at(0, 0)));
  stream.push(...packetizePayloads([Buffer.concat([adts(data), adts(data)])], at(1, 1024))); // No AU headers at all.
  assert.deepEqual(
    stream.units.map((unit) => [unit.bytes, unit.timestamp]),
    [
      [data, 0],
      [data, 1024],
      [data, 2048],
    ],
  );
});

test('AAC: without a configuration it is read from ADTS headers', () => {
  const stream = receiving({ config: undefined, clockRate: 16_000 });
  stream.push(...packetizeAac([adts(frame(60))], at(0, 0)));
  const parameters = stream.units[0]?.parameters as AudioParameters;
  assert.deepEqual([parameters.sampleRate, parameters.channels, parameters.codecString], [16_000, 1, 'mp4a.40.2']);
  assert.equal(parameters.config.toString('hex'), '1408');
});

test('AAC: without a configuration and without ADTS it is dropped with a reason', () => {
  for (const config of [undefined, '', 'zz', '1']) {
    const stream = receiving({ config }).push(...packetizeAac([frame(60)], at(0, 0)));
    assert.equal(stream.units.length, 0);
    assert.equal(stream.depacketizer.problem?.code, 'aac-config-missing');
    assert.equal(stream.depacketizer.discarded, 1);
  }
});

test('AAC: a configuration of something else is a reason, too', () => {
  assert.equal(receiving({ config: 'f9460000' }).depacketizer.problem?.code, 'aac-config-unsupported');
});

test('AAC: HE-AAC counts frames in the rate of its core', () => {
  const { parameters } = receiving({ config: '2b098800' }).depacketizer as AacDepacketizer;
  assert.deepEqual([parameters?.sampleRate, parameters?.codecString], [24_000, 'mp4a.40.5']);
});

test('AAC: headers that promise more than there is do no harm', () => {
  const stream = receiving();
  stream.push(...packetizePayloads([Buffer.from('ffff', 'hex')], at(0, 0)));
  stream.push(...packetizePayloads([Buffer.from('0010', 'hex')], at(1, 0)));
  stream.push(...packetizePayloads([aacPayload([frame(10)], [0, 8191])], at(2, 0)));
  stream.push(...packetizePayloads([aacPayload([frame(10)], [10])], at(3, 1024))).end();
  assert.deepEqual(
    stream.units.map((unit) => unit.timestamp),
    [1024],
  );
});

/** Converts a text of `0` and `1`, with spaces for readability, to bytes. */
function bits(text: string): Buffer {
  const digits = text.replaceAll(' ', '');
  const padded = digits.padEnd(Math.ceil(digits.length / 8) * 8, '0');
  return Buffer.from((padded.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

test('AAC: without a channel configuration, the program config element tells the channels', () => {
  // AAC-LC, 48 kHz, channelConfiguration 0, then the program_config_element: tag, profile, rate, element counts, no mixdowns.
  const start = '00010 0011 0000 000   0000 01 0011';
  for (const [elements, channels] of [
    ['0001 0000 0000 00 000 0000 000   0 0000', 1],
    ['0001 0000 0000 00 000 0000 000   1 0000', 2],
    ['0010 0000 0001 01 000 0000 000   0 0000 1 0000  1 0001  0000', 6],
  ] as const) {
    const element = bits(start + elements);
    const config = Buffer.concat([element, Buffer.from([0])]).toString('hex');
    const parameters = receiving({ config }).depacketizer.parameters as AudioParameters;
    assert.deepEqual([parameters?.sampleRate, parameters?.channels], [48_000, channels]);
    assert.equal(parameters.config.toString('hex'), config);
  }
});

test('AAC: without channel configuration and element, the channels of the SDP are what there is', () => {
  const make = (channels: number | undefined) =>
    new Depacketizing(
      (deps) => new AacDepacketizer({ layout: HIGH_BIT_RATE, config: '1180', channels, clockRate: 48_000, ...deps }),
      97,
      48_000,
    ).depacketizer;
  const parameters = make(2).parameters as AudioParameters;
  assert.deepEqual([parameters?.channels, parameters?.config.toString('hex')], [2, '1190']);
  assert.equal(make(undefined).problem?.code, 'aac-config-unsupported');
});
