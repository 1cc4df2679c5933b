import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { encodeAudio } from '../../test/support/encode.ts';
import { packetizeMpegAudio, packetizePayloads } from '../../test/support/packetize.ts';
import { MpegAudioDepacketizer } from './mpeg-audio.ts';

const receiving = () => new Depacketizing((deps) => new MpegAudioDepacketizer({ clockRate: 90_000, ...deps }));

const at = (timestamp: number, sequenceNumber: number) => ({ timestamp, sequenceNumber, ssrc: 1, payloadType: 96 });

const facts = ({ depacketizer: { parameters } }: Depacketizing): unknown[] =>
  parameters?.kind === 'audio'
    ? [parameters.codec, parameters.sampleRate, parameters.channels, parameters.codecString]
    : [];

const STREAMS = [
  { format: 'mp2', rate: 48_000, channels: 2, kbps: 128, samples: 1152, codecString: 'mp4a.40.33' },
  { format: 'mp2', rate: 16_000, channels: 1, kbps: 32, samples: 1152, codecString: 'mp4a.40.33' },
  { format: 'mp3', rate: 44_100, channels: 2, kbps: 128, samples: 1152, codecString: 'mp4a.6B' },
  { format: 'mp3', rate: 22_050, channels: 1, kbps: 64, samples: 576, codecString: 'mp4a.69' },
  { format: 'mp3', rate: 8000, channels: 1, kbps: 16, samples: 576, codecString: 'mp4a.69' },
] as const;
for (const { format, rate, channels, kbps, samples, codecString } of STREAMS) {
  test(`MPEG audio: ${format} of ${rate} Hz leaves as it came, whole, in packets of many frames and in fragments`, () => {
    const encoder = format === 'mp3' ? 'libmp3lame' : 'mp2';
    // The packets of the encoder as one stream, divided by the lengths of its frames.
    const bytes = encodeAudio(format, 0.5, [
      ...`-c:a ${encoder} -ar ${rate} -ac ${channels} -b:a ${kbps}k`.split(' '),
      ...(format === 'mp3' ? ['-write_xing', '0', '-id3v2_version', '0'] : []),
    ]);
    const joined = receiving()
      .push(...packetizeMpegAudio([bytes], { ...at(1000, 0), mtu: 65_000 }))
      .end();
    assert.deepEqual(facts(joined), [format, rate, channels, codecString]);
    assert.ok(Buffer.concat(joined.units.map((unit) => unit.bytes)).equals(bytes));
    for (const [i, unit] of joined.units.entries()) {
      assert.equal(unit.durationTicks, samples);
      assert.equal(unit.timestamp, 1000 + Math.round((i * samples * 90_000) / rate));
    }
    const inFragments = receiving();
    let sequence = 0;
    for (const { bytes: frame, timestamp } of joined.units) {
      const packets = packetizeMpegAudio([frame], { ...at(timestamp, sequence), mtu: 66 });
      sequence += packets.length;
      inFragments.push(...packets);
    }
    assert.deepEqual(
      inFragments.end().units.map((unit) => [unit.timestamp, unit.bytes]),
      joined.units.map((unit) => [unit.timestamp, unit.bytes]),
    );
  });
}

/** MPEG-2, layer III, 24 kbit/s at 24 kHz, one channel: 72 bytes. */
const FRAME = Buffer.concat([Buffer.from('fff334c4', 'hex'), Buffer.alloc(68, 7)]);

test('MPEG audio: a frame of which a fragment is lost is left out, and the next one says so', () => {
  const [first, , third] = packetizeMpegAudio([FRAME], { ...at(0, 0), mtu: 46 }) as [Buffer, Buffer, Buffer];
  const stream = receiving()
    .push(first, third, ...packetizeMpegAudio([FRAME], at(2160, 3)))
    .end();
  assert.deepEqual(
    stream.units.map((unit) => [unit.timestamp, unit.lostPackets, unit.bytes.length]),
    [[2160, 1, 72]],
  );
  assert.equal(stream.depacketizer.discarded, 1);
});

test('MPEG audio: a fragment that comes twice, under numbers of its own, makes no frame', () => {
  const [first, second, third] = packetizeMpegAudio([FRAME], { ...at(0, 0), mtu: 46 }) as [Buffer, Buffer, Buffer];
  const again = Buffer.from(second);
  again.writeUInt16BE(2, 2);
  third.writeUInt16BE(3, 2);
  const stream = receiving()
    .push(first, second, again, third, ...packetizeMpegAudio([FRAME], at(2160, 4)))
    .end();
  assert.deepEqual(
    stream.units.map((unit) => [unit.timestamp, unit.bytes.length]),
    [[2160, 72]],
  );
});

test('MPEG audio: other parameters inside a stream are a change', () => {
  const stereo = Buffer.from(FRAME);
  stereo[3] = 0x04;
  const stream = receiving().push(...packetizeMpegAudio([FRAME, FRAME, stereo], at(0, 0)));
  const parameters = stream.units.map((unit) => unit.parameters);
  assert.equal(parameters[0], parameters[1]);
  assert.notEqual(parameters[1], parameters[2]);
  assert.deepEqual(facts(stream), ['mp3', 24_000, 2, 'mp4a.69']);
});

test('MPEG audio: layer I is not recorded and says so', () => {
  // MPEG-1, layer I, 32 kbit/s at 32 kHz: 48 bytes.
  const frame = Buffer.concat([Buffer.from('ffff18c4', 'hex'), Buffer.alloc(44)]);
  const stream = receiving().push(...packetizeMpegAudio([frame], at(0, 0)));
  assert.equal(stream.units.length, 0);
  assert.equal(stream.depacketizer.problem?.code, 'mpa-layer-unsupported');
});

test('MPEG audio: what is no frame is counted and left out', () => {
  const payloads = [Buffer.alloc(3), Buffer.alloc(40, 0xff), Buffer.from('0000000afff334c4', 'hex'), Buffer.alloc(40)];
  const stream = receiving().push(...packetizePayloads(payloads, at(0, 0)));
  assert.equal(stream.units.length, 0);
  assert.deepEqual(Object.fromEntries(stream.faults.counts), {
    'packet-cut': 1,
    'fragment-without-start': 2,
    'frame-header-invalid': 1,
  });
});
