// What cameras do with H.264 and H.265. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { decodePictures } from '../camera/frame-numbers.ts';
import { videoMedia } from '../camera/media.ts';
import type { VideoFrame, VideoMedia } from '../camera/media.ts';
import { videoFmtp, videoTrack } from '../camera/tracks.ts';
import type { CameraFrame, Track } from '../camera/tracks.ts';
import { h264Payloads, nalType, packetizePayloads, rtpPacket } from '../support/packetize.ts';
import { brief, distances, numbersOf, onlyFile, packetTimes, range, setStage } from './stage.ts';
import type { StageOptions } from './stage.ts';

const MTU = 150;

async function fragmented(name: Parameters<typeof videoMedia>[0] = 'h264'): Promise<Track> {
  return videoTrack(await videoMedia(name), { mtu: MTU });
}

function withMarker(packet: Buffer, marker: boolean): Buffer {
  packet[1] = ((packet[1] as number) & 0x7f) | (marker ? 0x80 : 0);
  return packet;
}

/** H.264: whether this packet ends a NAL unit: it holds a whole one, or the last fragment. */
function endsNal(packet: Buffer): boolean {
  const type = (packet[12] as number) & 0x1f;
  return type !== 28 || ((packet[13] as number) & 0x40) !== 0;
}

/** Media whose pictures are those of several recordings, one after the other; times go on. */
function spliced(parts: readonly (readonly VideoFrame[])[], like: VideoMedia): VideoMedia {
  const ticks = 90_000 / like.framesPerSecond;
  const frames = parts.flat().map((frame, i) => ({ ...frame, pts90k: i * ticks, dts90k: i * ticks }));
  return { ...like, frames };
}

test('53. the marker bit on every NAL unit (Tapo TC70, Reolink Duo 2, H264DVR)', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    onPacket: (packet) => withMarker(packet, endsNal(packet)),
  });
  await stage.play(60);
  const outcome = await stage.expectPictures(range(0, 60));
  for (const distance of distances(await packetTimes(onlyFile(outcome)))) assert.ok(Math.abs(distance - 40) < 0.1);
});

test('53. the timestamp changes between the parameter sets and the picture (Reolink RLC-822A)', async (t) => {
  for (const early of [3600, 1800]) {
    for (const marker of [false, true]) {
      const stage = await setStage(t, {
        onPacket: (packet) => {
          const type = (packet[12] as number) & 0x1f;
          if (type !== 7 && type !== 8) return packet;
          packet.writeUInt32BE((packet.readUInt32BE(4) - early) >>> 0, 4);
          return withMarker(packet, marker);
        },
      });
      await stage.play(60);
      const outcome = await stage.expectPictures(range(0, 60));
      for (const distance of distances(await packetTimes(onlyFile(outcome)))) assert.ok(Math.abs(distance - 40) < 0.1);
    }
  }
});

test('54. no marker bit at all (FLIR M400)', async (t) => {
  for (const name of ['h264', 'h264-slices', 'h265'] as const) {
    const stage = await setStage(t, {
      tracks: [await fragmented(name)],
      onPacket: (packet) => withMarker(packet, false),
    });
    await stage.play(60);
    await stage.expectPictures(range(0, 60));
  }
});

test('55. the marker bit on every slice of a picture', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmented('h264-slices')],
    onPacket: (packet) => withMarker(packet, endsNal(packet)),
  });
  await stage.play(60);
  const outcome = await stage.expectPictures(range(0, 60));
  assert.equal((await packetTimes(onlyFile(outcome))).length, 60);
});

test('56. an SEI alone after the picture, with its timestamp and marker (Tapo C260)', async (t) => {
  const seis = { h264: '0605100123456789abcdef0123456789abcdef80', h265: '4e0105100123456789abcdef0123456789abcdef80' };
  for (const name of ['h264', 'h265'] as const) {
    const stage = await setStage(t, {
      tracks: [await fragmented(name)],
      onFrame: (frame) => (frame.key ? { ...frame, units: [...frame.units, Buffer.from(seis[name], 'hex')] } : frame),
      onPacket: (packet, { frame, lastInFrame }) => {
        const isSei = packet.subarray(12).equals(Buffer.from(seis[name], 'hex'));
        const endsSlice = name === 'h264' ? endsNal(packet) : ((packet[14] as number) & 0x40) !== 0;
        return withMarker(packet, isSei || (frame.key ? endsSlice : lastInFrame));
      },
    });
    await stage.play(60);
    const outcome = await stage.expectPictures(range(0, 60));
    const times = await packetTimes(onlyFile(outcome));
    assert.equal(times.length, 60);
    for (const distance of distances(times)) assert.ok(Math.abs(distance - 40) < 0.1);
  }
});

/** A track that fragments every slice, even a small one, and lets a test change the payloads of each NAL unit. */
async function rewrittenFragments(rewrite: (payloads: Buffer[], picture: number) => Buffer[]): Promise<Track> {
  const media = await videoMedia('h264');
  let picture = 0;
  return videoTrack(media, {
    packetize: (units, options) => {
      const payloads = units.flatMap((nal) => {
        if (nalType(nal, 'h264') >= 7) return [nal];
        return rewrite(h264Payloads([nal], Math.min(MTU, nal.length - 1)), picture);
      });
      picture++;
      return packetizePayloads(payloads, options);
    },
  });
}

const damaged = 12;

test('57. fragments without a start, without an end', async (t) => {
  const cases: StageOptions[] = [
    // Never sent, so that no sequence number is missing.
    { tracks: [await rewrittenFragments((payloads, picture) => (picture === damaged ? payloads.slice(1) : payloads))] },
    {
      tracks: [await fragmented()],
      onPacket: (packet, { frame, indexInFrame }) =>
        frame.number === damaged && indexInFrame === 0 ? undefined : packet,
    },
    {
      tracks: [await fragmented()],
      onPacket: (packet, { frame, lastInFrame }) => (frame.number === damaged && lastInFrame ? undefined : packet),
    },
  ];
  for (const options of cases) {
    const stage = await setStage(t, options);
    await stage.play(60);
    const numbers = await numbersOf((await stage.finish()).files);
    assert.equal(brief(numbers.slice(0, damaged)), brief(range(0, damaged)));
    assert.ok(!numbers.includes(damaged), 'a picture without all of its data is not recorded');
    assert.equal(brief(numbers.slice(-35)), brief(range(25, 60)), 'whole again from the next key frame on');
  }
});

test('57. one fragment that is start and end (CostarHD, OpenIPC), empty fragments, reserved bit (Longse), types that vary (Tiandy)', async (t) => {
  const flags = (payload: Buffer, change: (header: number) => number): Buffer => {
    const copy = Buffer.from(payload);
    copy[1] = change(copy[1] as number);
    return copy;
  };
  const whole = (payloads: Buffer[]): Buffer[] => {
    const [first = Buffer.alloc(2)] = payloads;
    const body = Buffer.concat(payloads.map((payload) => payload.subarray(2)));
    return [Buffer.concat([Buffer.from([first[0] as number, (first[1] as number) | 0xc0]), body])];
  };
  const cases: Record<string, (payloads: Buffer[]) => Buffer[]> = {
    'start and end': whole,
    'empty fragments': ([first = Buffer.alloc(2), ...rest]) => [
      first,
      flags(first.subarray(0, 2), (header) => header & 0x1f),
      ...rest,
    ],
    'reserved bit': (payloads) => payloads.map((payload) => flags(payload, (header) => header | 0x20)),
    'varying type': (payloads) =>
      payloads.map((payload, i) => (i === 0 ? payload : flags(payload, (header) => (header & 0xe0) | ((i % 5) + 1)))),
  };
  for (const rewrite of Object.values(cases)) {
    const stage = await setStage(t, { tracks: [await rewrittenFragments(rewrite)] });
    await stage.play(60);
    await stage.expectPictures(range(0, 60));
  }
});

test('58. garbage after the SPS; H.265 parameter sets with sub-layers', async (t) => {
  const media = await videoMedia('h264');
  const tail = Buffer.from([0, 0, 3, 0xff]);
  const withTail = (nals: readonly Buffer[]): Buffer[] =>
    nals.map((nal) => (nalType(nal, 'h264') === 7 ? Buffer.concat([nal, tail]) : nal));
  const odd = { ...media, frames: media.frames.map((frame) => ({ ...frame, nals: withTail(frame.nals) })) };
  const h264 = await setStage(t, { tracks: [videoTrack(odd)] });
  await h264.play(30);
  assert.deepEqual([h264.status.video?.width, h264.status.video?.height], [320, 180]);
  await h264.expectPictures(range(0, 30));

  const h265 = await setStage(t, { tracks: [await fragmented('h265-layers')] });
  await h265.play(60);
  assert.deepEqual([h265.status.video?.width, h265.status.video?.height], [320, 180]);
});

test('59. the resolution changes in the stream: no reconnect, no picture lost', async (t) => {
  const large = await videoMedia('h264');
  const small = await videoMedia('h264-small');
  const media = spliced([large.frames.slice(0, 50), small.frames.slice(0, 50), large.frames.slice(50, 100)], large);
  const stage = await setStage(t, { tracks: [videoTrack(media, { mtu: MTU })] });
  await stage.play(150);
  assert.equal(stage.camera.connections.length, 1);
  await stage.expectPictures([...range(0, 50), ...range(1000, 1050), ...range(50, 100)]);
});

test('59. the picture parameter set changes at every key frame', async (t) => {
  const one = await videoMedia('h264-main');
  const other = await videoMedia('h264-main-chroma');
  const groups = range(0, 6).map((i) => (i % 2 === 0 ? one : other).frames.slice(i * 25, i * 25 + 25));
  const stage = await setStage(t, { tracks: [videoTrack(spliced(groups, one), { mtu: MTU })] });
  await stage.play(150);
  assert.equal(stage.camera.connections.length, 1);
  const outcome = await stage.expectPictures(range(0, 150));
  assert.equal(outcome.files.length, 1, 'a new PPS is no reason for a new file');
});

test('59. parameter sets that a loss has damaged are not used', async (t) => {
  const stage = await setStage(t, {
    // So small that the SPS itself travels in fragments.
    tracks: [videoTrack(await videoMedia('h264'), { mtu: 30 })],
    onPacket: (packet, { frame, indexInFrame }) => (frame.number === 25 && indexInFrame === 1 ? [] : packet),
  });
  await stage.play(75);
  assert.deepEqual([stage.status.video?.width, stage.status.video?.height], [320, 180]);
  const numbers = await numbersOf((await stage.finish()).files);
  assert.equal(brief(numbers.slice(0, 25)), brief(range(0, 25)));
  assert.equal(brief(numbers.slice(-25)), brief(range(50, 75)));
});

test('60. H.265 with decoding order numbers, single, fragmented and aggregated', async (t) => {
  const media = await videoMedia('h265');
  for (const options of [{ mtu: 1400 }, { mtu: MTU }, { aggregate: true }]) {
    const track = videoTrack(media, {
      ...options,
      fmtp: `${videoFmtp(media)};sprop-max-don-diff=1`,
      decodingOrderNumbers: true,
    });
    const stage = await setStage(t, { tracks: [track] });
    await stage.play(60);
    await stage.expectPictures(range(0, 60));
  }
});

test('61. B-frames are shown in their order and at their time', async (t) => {
  const stage = await setStage(t, { tracks: [await fragmented('h264-bframes')] });
  await stage.play(102);
  const outcome = await stage.finish();
  const numbers = await numbersOf(outcome.files);
  // The last pictures in decoding order may precede others that were never sent.
  assert.equal(brief(numbers.slice(0, 98)), brief(range(0, 98)));
  const packets = await packetTimes(onlyFile(outcome));
  assert.equal(packets.length, 102);
  for (const [i, packet] of packets.entries()) {
    assert.ok(packet.ptsMs >= packet.dtsMs, `picture ${i} is shown before it is decoded`);
    if (i > 0) assert.ok(Math.abs(packet.dtsMs - (packets[i - 1]?.dtsMs ?? 0) - 40) < 0.1, 'decoded at a steady pace');
  }
  for (const distance of distances(packets).slice(0, 97)) assert.ok(Math.abs(distance - 40) < 0.1);
});

test('62. temporal layers and open groups of pictures: CRA and recovery points are key frames', async (t) => {
  for (const name of ['h265-layers', 'h265-open-gop', 'h264-open-gop'] as const) {
    const stage = await setStage(t, { tracks: [await fragmented(name)], segmentDurationMs: 1_000 });
    await stage.play(110);
    const outcome = await stage.finish();
    assert.ok(outcome.files.length >= 3, `${name}: ${outcome.files.length} files`);
    let packets = 0;
    for (const file of outcome.files) {
      const times = await packetTimes(file);
      packets += times.length;
      assert.ok(times[0]?.key, `${name}: each file begins with a key frame`);
    }
    assert.equal(packets, 110, `${name}: every picture is in a file`);
  }
});

test('62. a stream that is refreshed in slices and has one key frame only is recorded from that', async (t) => {
  const stage = await setStage(t, { tracks: [await fragmented('h264-intra-refresh')], segmentDurationMs: 1_000 });
  await stage.play(110);
  await stage.expectPictures(range(0, 110));
});

test('94. a stream that is refreshed in slices is joined where a refresh begins, and so do its files', async (t) => {
  const stage = await setStage(t, { tracks: [await fragmented('h264-intra-refresh')], segmentDurationMs: 2_000 });
  stage.seek(500);
  await stage.play(230);
  assert.equal(stage.status.videoRemark?.code, 'gradual-refresh');
  const { files } = await stage.finish();
  // From the first refresh behind the start on: a new file where one begins 5 s later.
  assert.deepEqual(await Promise.all(files.map(async (file) => (await packetTimes(file)).length)), [125, 93]);
  for (const [i, file] of files.entries()) {
    const { numbers, complaints } = await decodePictures(file);
    assert.equal(complaints, '');
    // Decoders know by the same message from which picture on they are whole.
    const last = i === 0 ? 149 : 242;
    assert.equal(brief(numbers), brief(range(last - numbers.length + 1, last + 1)));
    assert.ok(numbers.length >= (i === 0 ? 100 : 68), `${numbers.length} whole pictures`);
  }
});

test('94. open groups are said in the state of the camera, because Chromium may stop at them', async (t) => {
  for (const [name, code] of [
    ['h264-open-gop', 'open-gop'],
    ['h264-bframes', undefined],
    ['h264', undefined],
  ] as const) {
    const stage = await setStage(t, { tracks: [await fragmented(name)] });
    await stage.play(60);
    assert.equal(stage.status.videoRemark?.code, code, name);
  }
});

test('62. a stream that is joined at an open group begins with its key frame', async (t) => {
  for (const name of ['h265-open-gop', 'h264-open-gop'] as const) {
    const stage = await setStage(t, { tracks: [await fragmented(name)] });
    stage.seek(500);
    await stage.play(60);
    const numbers = await numbersOf((await stage.finish()).files);
    assert.equal(brief(numbers.slice(0, 25)), brief(range(25, 50)), name);
  }
});

test('63. one key frame a minute and 1 to 25 pictures a second (Hikvision H.264+)', async (t) => {
  const media = await videoMedia('h264-long-gop');
  // 3 pictures at one a second, 7 at 5 a second, 20 at 25 a second, in turn: 300 of them take 52 s.
  let ms = 0;
  const times = media.frames.map((_, i) => {
    const now = ms;
    ms += i % 30 < 3 ? 1000 : i % 30 < 10 ? 200 : 40;
    return now;
  });
  const track = videoTrack(media, { mtu: MTU });
  const frames: Track['frames'] = track.frames.map((frame, i) => ({
    ...frame,
    sendAtMs: times[i] ?? 0,
    timestamp: (times[i] ?? 0) * 90,
  }));
  const stage = await setStage(t, { tracks: [{ ...track, frames, durationMs: ms }], segmentDurationMs: 10_000 });
  await stage.play(330);
  const open = (await readdir(stage.recording.root, { recursive: true })).filter((name) => name.endsWith('.mp4'));
  const growing = await readFile(join(stage.recording.root, open.toSorted().at(-1) ?? ''));
  assert.ok(growing.includes('moof'), 'what a crash would leave is more than nothing');
  const outcome = await stage.expectPictures(range(0, 330));
  assert.equal(outcome.files.length, 2, 'files end at key frames: at the one of minute two');
  const expected = times.slice(1, 300).map((at, i) => at - (times[i] ?? 0));
  assert.deepEqual(distances(await packetTimes(outcome.files[0] ?? '')).map(Math.round), expected);
});

/** Memory of buffers that somebody holds. Garbage is given back by another thread, a little after it was found. */
async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 10; round++) {
    collect();
    await sleep(5);
    least = Math.min(least, process.memoryUsage().arrayBuffers);
  }
  return least;
}

test('64. fifty megabytes of one picture that never ends', async (t) => {
  const stage = await setStage(t);
  await stage.play(30);
  const [session] = stage.camera.playing;
  const delivery = session?.deliveries.get(0);
  assert.ok(session && delivery);
  const before = await heldBytes();
  let most = 0;
  for (let i = 0; i < 850; i++) {
    // 0xb5 begins with the bit that makes it the first slice of a picture.
    const fragment = {
      payloadType: 96,
      marker: false,
      sequenceNumber: delivery.sequenceNumber++,
      timestamp: session.firstTimestamp + 30 * 3600,
      ssrc: delivery.ssrc,
      payload: Buffer.concat([Buffer.from([0x7c, i === 0 ? 0x85 : 0x05]), Buffer.alloc(60_000, 0xb5)]),
    };
    stage.camera.transmit(0, rtpPacket(fragment));
    if (i % 10 === 0) await stage.camera.settled();
    if (i % 200 === 199) most = Math.max(most, (await heldBytes()) - before);
  }
  assert.ok(most < 40e6, `${Math.round(most / 1e6)} MB more in use`);
  stage.camera.send(1);
  await stage.play(44);
  assert.equal(stage.camera.connections.length, 1);
  const numbers = await numbersOf((await stage.finish()).files);
  assert.equal(brief(numbers.slice(0, 30)), brief(range(0, 30)));
  assert.equal(brief(numbers.slice(-25)), brief(range(50, 75)));
});

test('65. delimiters and filler are dropped, SEI is kept, parameter sets that repeat are not stored again', async (t) => {
  const media = await videoMedia('h264');
  const delimiter = Buffer.from([0x09, 0xf0]);
  const filler = Buffer.from([0x0c, 0xff, 0xff, 0xff, 0x80]);
  const sei = Buffer.from('0605100123456789abcdef0123456789abcdef80', 'hex');
  const stage = await setStage(t, {
    onFrame: (frame): CameraFrame => {
      const sets = frame.units.filter((nal) => nalType(nal, 'h264') >= 7);
      const slices = frame.units.filter((nal) => nalType(nal, 'h264') < 7);
      return { ...frame, units: [delimiter, ...sets, sei, ...slices, filler] };
    },
  });
  await stage.play(60);
  const outcome = await stage.expectPictures(range(0, 60));
  const sizes = (await packetTimes(onlyFile(outcome))).map((packet) => packet.size);
  const expected = media.frames.slice(0, 60).map((frame) => {
    const slices = frame.nals.filter((nal) => nalType(nal, 'h264') < 7);
    return [sei, ...slices].reduce((sum, nal) => sum + 4 + nal.length, 0);
  });
  // Where sets are stored in band at the start of a file, they may be there once.
  assert.deepEqual(sizes.slice(1), expected.slice(1));
});
