// What cameras do with sound. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { audioMedia, videoMedia } from '../camera/media.ts';
import type { AudioMedia } from '../camera/media.ts';
import { senderReport } from '../camera/reports.ts';
import { adtsFrame, audioTrack, videoTrack } from '../camera/tracks.ts';
import type { AudioTrackOptions, Track } from '../camera/tracks.ts';
import { packetizeAac } from '../support/packetize.ts';
import { linearOf } from './g711-reference.ts';
import { decodedSound, onlyFile, packetTimes, range, setStage, streamsOf } from './stage.ts';
import type { Stage } from './stage.ts';

const run = promisify(execFile);

type Test = Parameters<typeof setStage>[0];

async function playWithSound(t: Test, audio: Track, pictures = 60): Promise<{ stage: Stage; file: string }> {
  const stage = await setStage(t, { tracks: [videoTrack(await videoMedia('h264')), audio] });
  await stage.play(pictures);
  return { stage, file: onlyFile(await stage.expectPictures(range(0, pictures))) };
}

/** The test sound is loud at the start of every second. */
async function expectTone(file: string): Promise<void> {
  const sound = await decodedSound(file);
  let loudest = 0;
  for (let at = 0; at + 1 < sound.length; at += 2) loudest = Math.max(loudest, Math.abs(sound.readInt16LE(at)));
  assert.ok(loudest > 10_000, `loudest sample ${loudest}`);
}

const withoutConfig = (media: AudioMedia): readonly string[] => [
  `a=rtpmap:97 MPEG4-GENERIC/${media.sampleRate}/1`,
  'a=fmtp:97 streamtype=5;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3',
];

test('67. AAC without config, and ADTS headers inside the packets: taken from the headers', async (t) => {
  const aac = await audioMedia('aac');
  const packetize: Track['packetize'] = (units, options) =>
    packetizeAac(
      units.map((frame) => adtsFrame(aac, frame)),
      options,
    );
  const cases: AudioTrackOptions[] = [{ packetize, attributes: withoutConfig(aac) }, { packetize }];
  for (const options of cases) {
    const { file } = await playWithSound(t, audioTrack(aac, options));
    assert.deepEqual(await streamsOf(file), ['video h264', 'audio aac']);
    await expectTone(file);
  }
});

test('67. AAC as LATM with its configuration in the SDP', async (t) => {
  const { file } = await playWithSound(t, audioTrack(await audioMedia('aac'), { latm: true }));
  assert.deepEqual(await streamsOf(file), ['video h264', 'audio aac']);
  await expectTone(file);
});

test('67. sound that cannot be understood is left out and said so; the video continues', async (t) => {
  const aac = await audioMedia('aac');
  const noConfig = await playWithSound(t, audioTrack(aac, { attributes: withoutConfig(aac) }));
  assert.deepEqual(await streamsOf(noConfig.file), ['video h264']);

  const unknown = await setStage(t, {
    tracks: [videoTrack(await videoMedia('h264')), audioTrack(aac, { attributes: ['a=rtpmap:97 G723/8000'] })],
  });
  await unknown.play(60);
  assert.equal(typeof unknown.status.audioDropped?.message, 'string');
  assert.deepEqual(await streamsOf(onlyFile(await unknown.expectPictures(range(0, 60)))), ['video h264']);
});

test('68. AAC: several frames in a packet, frames in fragments, a clock of 44.1 kHz', async (t) => {
  const cases: [AudioMedia, AudioTrackOptions][] = [
    [await audioMedia('aac'), { framesPerPacket: 4 }],
    [await audioMedia('aac'), { mtu: 100 }],
    [await audioMedia('aac-44k'), {}],
    [await audioMedia('aac-44k'), { framesPerPacket: 3, mtu: 1400 }],
  ];
  for (const [media, options] of cases) {
    const { file } = await playWithSound(t, audioTrack(media, options));
    await expectTone(file);
    const frameMs = (1024 * 1000) / media.sampleRate;
    const times = await packetTimes(file, 'a');
    assert.ok(times.length * frameMs > 1_800, `${times.length} frames`);
    for (const [i, packet] of times.entries()) {
      assert.ok(Math.abs(packet.durationMs - frameMs) < 0.1, `a frame of ${packet.durationMs} ms`);
      if (i > 0) assert.ok(Math.abs(packet.ptsMs - (times[i - 1]?.ptsMs ?? 0) - frameMs) < 0.1);
    }
  }
});

test('69. Opus announced with 8000 Hz and one channel', async (t) => {
  for (const attributes of [['a=rtpmap:97 opus/8000/1'], ['a=rtpmap:97 OPUS/48000'], ['a=rtpmap:97 opus/16000/2']]) {
    const { file } = await playWithSound(t, audioTrack(await audioMedia('opus'), { attributes }));
    assert.deepEqual(await streamsOf(file), ['video h264', 'audio opus']);
    await expectTone(file);
    // ffprobe does not say how long the last packet of Opus lasts.
    for (const packet of (await packetTimes(file, 'a')).slice(0, -1)) assert.ok(Math.abs(packet.durationMs - 20) < 0.1);
  }
});

test('70. G.711 is stored without loss, as FLAC', async (t) => {
  for (const [name, law] of [['pcma', 'alaw'] as const, ['pcmu', 'ulaw'] as const]) {
    const media = await audioMedia(name);
    // Without rtpmap: both are static payload types.
    for (const options of [{}, { attributes: [] }]) {
      const { file } = await playWithSound(t, audioTrack(media, options));
      assert.deepEqual(await streamsOf(file), ['video h264', 'audio flac']);
      const sound = await decodedSound(file);
      const source = linearOf(Buffer.concat(media.frames.map((frame) => frame.data)), law);
      assert.ok(sound.length > 1.8 * 2 * 8000, `${sound.length} bytes of sound`);
      assert.ok(source.indexOf(sound) >= 0, 'sample for sample what the camera sent');
    }
  }
});

test('70. L16, G.722 and G.726 are stored as FLAC', async (t) => {
  for (const [name, sampleRate] of [['l16', 44_100] as const, ['g722', 16_000] as const, ['g726-32', 8000] as const]) {
    const media = await audioMedia(name);
    const { file } = await playWithSound(t, audioTrack(media));
    assert.deepEqual(await streamsOf(file), ['video h264', 'audio flac']);
    await expectTone(file);
    const sound = await decodedSound(file);
    assert.ok(sound.length > 1.8 * 2 * sampleRate, `${sound.length} bytes of sound`);
    if (name === 'l16') {
      const source = Buffer.from(Buffer.concat(media.frames.map((frame) => frame.data))).swap16();
      assert.ok(source.indexOf(sound) >= 0, 'sample for sample what the camera sent');
    }
  }
});

test('70. MP2 and MP3 are stored as they are, also where frames come in fragments or several in a packet', async (t) => {
  for (const name of ['mp2', 'mp3'] as const) {
    const media = await audioMedia(name);
    for (const options of [{}, { mtu: 60 }, { framesPerPacket: 3 }]) {
      const { file } = await playWithSound(t, audioTrack(media, options));
      // An MP4 does not tell the layer: ffprobe calls both so, and decoders look into the frames.
      assert.deepEqual(await streamsOf(file), ['video h264', 'audio mp3']);
      const { stdout } = await run('ffmpeg', ['-v', 'error', '-i', file, ...'-map 0:a -c copy -f data -'.split(' ')], {
        encoding: 'buffer',
      });
      assert.ok(
        Buffer.concat(media.frames.map((frame) => frame.data)).includes(stdout),
        'the bytes that the camera sent',
      );
      await expectTone(file);
      const times = await packetTimes(file, 'a');
      const frameMs = (media.samplesPerFrame * 1000) / media.sampleRate;
      assert.ok(times.length * frameMs > 1_800, `${times.length} frames`);
      // The movie begins and ends inside of a frame.
      for (const { durationMs } of times.slice(1, -1))
        assert.ok(Math.abs(durationMs - frameMs) < 0.1, `a frame of ${durationMs} ms`);
    }
  }
});

test('71. the clock of the sound runs 0.1 % fast: it stays with the picture', async (t) => {
  const FAST = 1.001;
  const media = await audioMedia('aac');
  const seconds = 120;
  for (const reports of [true, false]) {
    const stage = await setStage(t, {
      tracks: [videoTrack(await videoMedia('h264')), audioTrack(media)],
      onFrame: (frame) => (frame.track === 1 ? { ...frame, timestamp: frame.timestamp * FAST } : frame),
      reportClockOffsetMs: reports ? 0 : null,
      onReport: (report, info) => {
        if (info.trackIndex === 0) return report;
        const elapsed = info.timestamp - 0x10_0000;
        return senderReport({ ...info, timestamp: 0x10_0000 + Math.round(elapsed * FAST) });
      },
    });
    await stage.play(25 * seconds);
    const file = onlyFile(await stage.finish());
    const [picture] = await packetTimes(file);
    const sound = await packetTimes(file, 'a');
    // By true time the last frame of sound ends when the last picture is sent, to within its own length.
    const lastMs = (sound.at(-1)?.ptsMs ?? 0) - (picture?.ptsMs ?? 0);
    const frameMs = (1024 * 1000) / media.sampleRate;
    const sentMs = (25 * seconds - 1) * 40;
    // The media repeats every 10 s with 156 frames in each; the sixteenth of a frame left over is its own little gap.
    const round = Math.floor(sentMs / 10_000);
    const trueMs = round * 10_000 + (Math.floor((sentMs % 10_000) / frameMs) - 1) * frameMs;
    const offsetMs = lastMs - trueMs;
    assert.ok(Math.abs(offsetMs) <= 40, `sound ${offsetMs} ms from its place after ${seconds} s`);
    for (let i = 1; i < sound.length; i++) {
      const step = (sound[i]?.ptsMs ?? 0) - (sound[i - 1]?.ptsMs ?? 0);
      assert.ok(step > frameMs - 0.1 && step < 2 * frameMs + 40, `frames of sound ${step} ms apart`);
    }
  }
});
