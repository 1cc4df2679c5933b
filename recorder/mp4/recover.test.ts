import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeAudio, encodeVideo, probePackets } from '../../test/support/encoded-samples.ts';
import { RecordedFile, complete, fakeAudio, fakeVideo, meta, readFrom } from '../../test/support/recorded-file.ts';
import { LONG } from '../../test/support/variant.ts';
import { workspace } from '../../test/support/workspace.ts';
import { readMeta } from './reader.ts';
import type { Recovery } from './recover.ts';
import { recover } from './recover.ts';
import { readSampleIndex } from './sample-index.ts';

/** Four fragments of five pictures with some audio; small, so that every cut can be tried. */
function smallFile(video = fakeVideo(20), audio = fakeAudio(36)): RecordedFile {
  const file = new RecordedFile([video.parameters, audio.parameters]);
  file.appendAll(video, audio, 200);
  return file;
}

/** Recovers `bytes` as the archive does; returns the completed file, or undefined if it contains nothing. */
async function recovered(bytes: Buffer): Promise<Buffer | undefined> {
  const found = await recover(...readFrom(bytes));
  if (found.kind === 'finalized') return bytes;
  if (found.kind !== 'recovered') return undefined;
  return complete(bytes.subarray(0, found.cutAt), found.writer.finish());
}

const kindOf = async (bytes: Buffer): Promise<Recovery['kind']> => (await recover(...readFrom(bytes))).kind;

/**
 * Cuts the file and its finalisation at every `step`th byte from `from`. Each time recovery gives another result than for the
 * previous cut, ffprobe and ffmpeg check it.
 */
async function checkCuts(directory: string, file: RecordedFile, from: number, step: number): Promise<void> {
  const { fragmentEnds, fragmentPictures } = file;
  const appended = Buffer.concat([file.bytes, file.writer.finish().tail]);
  const path = join(directory, 'cut.mp4');
  let previous: Buffer | undefined;
  let probed = 0;
  for (let cut = from; cut <= appended.length; cut += step) {
    const whole = fragmentEnds.filter((fragmentEnd) => fragmentEnd <= cut).length;
    const pictures = fragmentPictures.slice(0, whole).reduce((sum, count) => sum + count, 0);
    const finished = await recovered(appended.subarray(0, cut));
    if (whole === 0) {
      assert.equal(finished, undefined, `cut at ${cut}`);
      continue;
    }
    assert.ok(finished, `cut at ${cut}: nothing recovered`);
    const index = await readSampleIndex(...readFrom(finished));
    assert.equal(index.tracks[0]?.sizes.length, pictures, `cut at ${cut}`);
    if (previous?.equals(finished)) continue;
    previous = finished;
    writeFileSync(path, finished);
    assert.equal(probePackets(path, 0).length, pictures, `cut at ${cut}, by ffprobe`);
    execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', path, '-f', 'null', '-'], { stdio: 'ignore' });
    probed++;
  }
  assert.ok(probed >= 2, 'nothing was looked at');
}

test('a file cut at any byte keeps exactly its whole fragments', async (t) => {
  const directory = workspace(t);
  const video = encodeVideo(directory, { codec: 'h264', encoderParameters: 'keyint=5:bframes=2', frames: 20 });
  await checkCuts(directory, smallFile(video, encodeAudio(directory, 'aac', 0.8)), 0, 1);
});

test('a file of ordinary size cut in its last 64 KiB or its finalisation keeps its whole fragments', async (t) => {
  const directory = workspace(t);
  const video = encodeVideo(directory, {
    codec: 'h264',
    encoderParameters: 'keyint=25:bframes=2:qp=20',
    size: '640x360',
    frames: 100,
  });
  const file = RecordedFile.of(video, encodeAudio(directory, 'aac', 4));
  assert.ok(file.bytes.length > 65_536);
  await checkCuts(directory, file, file.bytes.length - 65_536, LONG ? 1 : 101);
});

test('every state between a growing and a finished file opens fully as it lies on disk', (t) => {
  const directory = workspace(t);
  const video = encodeVideo(directory, { codec: 'h264', encoderParameters: 'keyint=5:bframes=2', frames: 20 });
  const file = smallFile(video, encodeAudio(directory, 'aac', 0.8));
  const open = file.bytes;
  const end = file.writer.finish();
  const states = {
    open,
    'half-written moov': Buffer.concat([open, end.tail.subarray(0, end.tail.length >> 1)]),
    'moov without effect': Buffer.concat([open, end.tail]),
    finished: complete(open, end),
  };
  for (const [state, bytes] of Object.entries(states)) {
    const path = join(directory, 'state.mp4');
    writeFileSync(path, bytes);
    const said = execFileSync(
      'ffprobe',
      [
        '-v',
        'quiet',
        '-count_packets',
        '-select_streams',
        'v',
        '-of',
        'csv=p=0',
        '-show_entries',
        'stream=nb_read_packets',
        path,
      ],
      { encoding: 'utf8' },
    );
    assert.equal(Number(said), 20, state);
  }
});

test('each byte of the header patch may be missing', async () => {
  const file = smallFile();
  const open = file.bytes;
  const { tail, patch } = file.writer.finish({ lostPackets: 9 });
  for (let written = 0; written <= 16; written++) {
    const bytes = Buffer.concat([open, tail]);
    patch.bytes.copy(bytes, patch.offset, 0, written);
    const state = await recover(...readFrom(bytes));
    // Sixteen bytes are in one sector and are written completely or not at all: anything else is damage.
    if (written === 16) assert.equal(state.kind, 'finalized');
    else if (written === 0) assert.ok(state.kind === 'recovered' && state.meta.lostPackets === 9);
    else assert.ok(state.kind === 'recovered' || state.kind === 'foreign', state.kind);
  }
});

test('recovery of a finished file changes nothing', async () => {
  const file = smallFile();
  const { meta: closed } = file.finish({ lostPackets: 2 });
  assert.deepEqual(await recover(...readFrom(file.bytes)), { kind: 'finalized', meta: closed });
});

test('recovery gives the file that an orderly end would have given', async () => {
  const file = smallFile();
  const bytes = await recovered(Buffer.concat([file.bytes, Buffer.from('torn')]));
  file.finish();
  assert.deepEqual(bytes, file.bytes);
});

test('a final moov that a crash left without effect still tells what only the end knew', async () => {
  const file = smallFile();
  const open = file.bytes;
  const { tail } = file.writer.finish({ wallDurationMs: 801, lostPackets: 5, clock: 'settled' });
  const bytes = await recovered(Buffer.concat([open, tail]));
  assert.ok(bytes);
  const state = await readMeta(...readFrom(bytes));
  assert.ok(state.kind === 'finalized');
  assert.equal(state.meta.wallDurationMs, 801);
  assert.equal(state.meta.lostPackets, 5);
  assert.equal(state.meta.clock, 'settled');
});

test('zeros after any byte, as a power cut leaves them, cost only the fragments that they cover', async () => {
  const file = smallFile();
  const headerSize = file.writer.header().length;
  const length = file.bytes.length;
  for (let cut = 0; cut < length; cut++) {
    const bytes = Buffer.from(file.bytes).fill(0, cut);
    const found = await recover(...readFrom(bytes));
    const whole = file.fragmentEnds.filter((end) => end <= cut).length;
    if (found.kind !== 'recovered') {
      assert.equal(found.kind, 'empty', `zeros from ${cut}`);
      assert.equal(whole, 0, `zeros from ${cut}`);
      continue;
    }
    assert.ok(cut > headerSize);
    const kept = file.fragmentEnds.indexOf(found.cutAt) + 1;
    assert.equal(kept, whole, `zeros from ${cut}`);
  }
});

test('no sector of a fragment, and no byte of its head, that differs from what was written is mistaken for video', async () => {
  const file = smallFile();
  const [first, second] = file.fragmentEnds as [number, number];
  const cutAt = async (from: number, to: number): Promise<number> => {
    const bytes = Buffer.from(file.bytes);
    for (let at = from; at < to; at++) bytes.writeUInt8(bytes.readUInt8(at) ^ 0x10, at);
    const found = await recover(...readFrom(bytes));
    assert.ok(found.kind === 'recovered');
    return found.cutAt;
  };
  const headEnd = file.bytes.indexOf('mdat', first) + 4;
  for (let at = first; at < headEnd; at++) assert.equal(await cutAt(at, at + 1), first, `byte ${at}`);
  // For all alignments of sectors; of those at its ends, the part inside the fragment.
  for (let at = first - 511; at < second; at++) {
    assert.equal(await cutAt(Math.max(at, first), Math.min(at + 512, second)), first, `sector ${at}`);
  }
});

test('a hole of zeros where samples were not written before a power cut is not mistaken for video', async () => {
  const file = smallFile();
  const [, second, third] = file.fragmentEnds as [number, number, number];
  const bytes = Buffer.from(file.bytes);
  bytes.fill(0, third - 36 - 35, third); // the samples of the third fragment; its moof and the fourth fragment are intact
  const found = await recover(...readFrom(bytes));
  assert.ok(found.kind === 'recovered');
  assert.equal(found.cutAt, second);
});

test('garbage after the last fragment is cut off', async () => {
  const file = smallFile();
  const whole = file.bytes.length;
  for (const garbage of [
    'ffffffff6d6f6f66',
    '000000016d6f6f66ffffffffffffffff',
    '00000008',
    '0000000066726565',
    '0000001066726565',
  ]) {
    const found = await recover(...readFrom(Buffer.concat([file.bytes, Buffer.from(garbage, 'hex')])));
    assert.ok(found.kind === 'recovered');
    assert.equal(found.cutAt, whole, garbage);
  }
});

test('files that are not ours are left alone', async (t) => {
  const directory = workspace(t);
  const path = join(directory, 'other.mp4');
  for (const flags of ['+faststart', '+frag_keyframe+empty_moov+default_base_moof']) {
    execFileSync('ffmpeg', [
      '-v',
      'error',
      '-y',
      '-f',
      'lavfi',
      '-i',
      'testsrc=size=64x64',
      '-frames:v',
      '5',
      '-pix_fmt',
      'yuv420p',
      '-movflags',
      flags,
      path,
    ]);
    const bytes = readFileSync(path);
    assert.equal(await kindOf(bytes), 'foreign');
    assert.deepEqual(await readMeta(...readFrom(bytes)), { kind: 'foreign' });
  }
  assert.equal(await kindOf(Buffer.from('hello, world: this is no movie')), 'foreign');
});

test('a file with a damaged header and footage behind it is not called empty', async () => {
  const bytes = smallFile().bytes;
  bytes.write('oops', bytes.indexOf('mdia'));
  assert.equal(await kindOf(bytes), 'foreign');
});

test('a progressive file is finished, and half of one is not ours to repair', async () => {
  const progressive = smallFile().progressive();
  const state = await readMeta(...readFrom(progressive));
  assert.ok(state.kind === 'finalized');
  assert.equal(state.meta.cameraId, meta.cameraId);
  assert.equal(await kindOf(progressive), 'finalized');
  assert.equal(await kindOf(progressive.subarray(0, progressive.length - 1)), 'foreign');
});

test('recovery reads a few kilobytes a fragment, and samples only of the last minute', async () => {
  const video = fakeVideo(2500);
  const large = Buffer.alloc(4_000, 1);
  const file = RecordedFile.of(
    { ...video, samples: video.samples.map((sample) => ({ ...sample, bytes: large, size: large.length })) },
    undefined,
  );
  assert.equal(file.fragmentEnds.length, 100);
  let bytesRead = 0;
  const found = await recover(async (offset, length) => {
    bytesRead += length;
    return file.bytes.subarray(offset, offset + length);
  }, file.bytes.length);
  assert.ok(found.kind === 'recovered');
  assert.equal(found.cutAt, file.bytes.length);
  const samplesRead = 64 * 25 * large.length;
  assert.ok(bytesRead < samplesRead + 100 * 6_000, `${bytesRead} bytes read of ${file.bytes.length}`);
});
