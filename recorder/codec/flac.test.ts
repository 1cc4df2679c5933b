import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ffmpeg, flacFile } from '../../test/support/encode.ts';
import { FLAC_MAX_BLOCK, FlacEncoder, flacStreamInfo } from './flac.ts';

function encode(samples: Int16Array[], sampleRate: number, blocks: readonly number[]): Buffer {
  const encoder = new FlacEncoder(sampleRate, samples.length);
  const frames: Buffer[] = [];
  let at = 0;
  for (const count of blocks) {
    frames.push(
      Buffer.from(
        encoder.encode(
          samples.map((channel) => channel.subarray(at)),
          count,
        ),
      ),
    );
    at += count;
  }
  return flacFile(flacStreamInfo(sampleRate, samples.length), frames);
}

const decode = (file: Buffer): Buffer => ffmpeg(['-xerror', '-f', 'flac', '-i', '-', '-f', 's16le', '-'], file);

function littleEndian(samples: readonly number[]): Buffer {
  const bytes = Buffer.alloc(samples.length * 2);
  for (const [i, sample] of samples.entries()) bytes.writeInt16LE(sample, i * 2);
  return bytes;
}

const SIGNALS: Record<string, (i: number) => number> = {
  silence: () => 0,
  constant: () => -1234,
  sine: (i) => Math.round(30_000 * Math.sin(i / 9)),
  'sine of few bits': (i) => Math.round(1000 * Math.sin(i / 9)) * 8,
  noise: (i) => ((i * 2_654_435_761) >>> 16) - 32_768,
  extremes: (i) => (i % 3 === 0 ? 32_767 : -32_768),
  'a click': (i) => (i === 100 ? 32_767 : 0),
};
for (const [name, signal] of Object.entries(SIGNALS)) {
  test(`FLAC: ffmpeg decodes ${name} to the same samples, in blocks of any size`, () => {
    const blocks = [16, 160, 256, 257, 1000, FLAC_MAX_BLOCK, 33];
    const samples = Int16Array.from({ length: blocks.reduce((a, b) => a + b) }, (_, i) => signal(i));
    assert.deepEqual(decode(encode([samples], 8000, blocks)), littleEndian([...samples]));
  });
}

test('FLAC: two channels and a sample rate that only STREAMINFO tells', () => {
  const left = Int16Array.from({ length: 800 }, (_, i) => Math.round(9000 * Math.sin(i / 7)));
  const right = Int16Array.from({ length: 800 }, (_, i) => i * 4);
  const interleaved = [...left].flatMap((sample, i) => [sample, right[i] as number]);
  assert.deepEqual(decode(encode([left, right], 11_025, [400, 400])), littleEndian(interleaved));
});

test('FLAC: frame numbers grow beyond one byte without a break', () => {
  const blocks = Array<number>(700).fill(160);
  const samples = Int16Array.from({ length: 700 * 160 }, (_, i) => (i % 64) * 100);
  assert.deepEqual(decode(encode([samples], 8000, blocks)), littleEndian([...samples]));
});

test('FLAC: speech-like sound takes less room than its samples', () => {
  const samples = Int16Array.from({ length: 160 }, (_, i) => Math.round(1000 * Math.sin(i / 9)) * 8);
  const frame = new FlacEncoder(8000, 1).encode([samples], 160);
  assert.ok(frame.length < 220, `${frame.length} bytes`);
});
