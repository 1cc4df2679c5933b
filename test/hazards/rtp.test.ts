// What cameras do with RTP and RTCP. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { Socket } from 'node:dgram';
import { basename } from 'node:path';
import { test } from 'node:test';
import { audioMedia, videoMedia } from '../camera/media.ts';
import type { VideoName } from '../camera/media.ts';
import type { Outgoing } from '../camera/options.ts';
import { senderReport, sourceDescription } from '../camera/reports.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { rtpPacket } from '../support/packetize.ts';
import { STOCK_BUFFER_BYTES } from '../support/preload.ts';
import { distances, numbersOf, onlyFile, packetTimes, range, setStage } from './stage.ts';
import type { Outcome } from './stage.ts';

/** Small packets, so that every picture travels in several. */
async function fragmentedVideo(name: VideoName = 'h264') {
  return videoTrack(await videoMedia(name), { mtu: 150 });
}

async function videoAndAudio() {
  return [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))];
}

async function expectSteadyPictures(outcome: Outcome, ms = 40): Promise<void> {
  const seen = distances(await packetTimes(onlyFile(outcome)));
  for (const distance of seen) assert.ok(Math.abs(distance - ms) < 0.05, `pictures ${distance} ms apart`);
}

/** All pictures are there but the damaged one; those up to the next key frame may show what it would have. */
async function expectHole(outcome: Outcome, damaged: number, key: number, end: number): Promise<void> {
  const numbers = await numbersOf(outcome.files);
  assert.equal(numbers.length, end - 1);
  assert.deepEqual(numbers.slice(0, damaged), range(0, damaged));
  assert.ok(!numbers.includes(damaged), 'the damaged picture is not recorded');
  assert.deepEqual(numbers.slice(key - end), range(key, end));
}

/** The sound follows the picture from the start, without a hole, and each frame of it lies where it belongs. */
async function expectSoundInPlace(file: string): Promise<void> {
  const [picture] = await packetTimes(file);
  const sound = await packetTimes(file, 'a');
  const media = await audioMedia('aac');
  const frameMs = (media.samplesPerFrame * 1000) / media.sampleRate;
  const firstMs = (sound[0]?.ptsMs ?? 0) - (picture?.ptsMs ?? 0);
  assert.ok(firstMs >= 0 && firstMs <= 2 * frameMs, `sound begins ${firstMs} ms after the picture`);
  // The last frame of sound is the one that was complete when the last picture was taken.
  const pictures = (await packetTimes(file)).length;
  const trueMs = (Math.floor(((pictures - 1) * 40) / frameMs) - 1) * frameMs;
  const lastMs = (sound.at(-1)?.ptsMs ?? 0) - (picture?.ptsMs ?? 0);
  assert.ok(Math.abs(lastMs - trueMs) <= 40, `sound ${lastMs - trueMs} ms beside its place`);
  const steps = sound.slice(1).map((packet, i) => packet.ptsMs - (sound[i]?.ptsMs ?? 0));
  for (const step of steps) assert.ok(Math.abs(step - frameMs) < 0.1, `frames of sound ${step} ms apart`);
}

test('40. RTP-Info absent, empty, wrong or with seq=0 and rtptime=-1 (Hikvision, Tapo C320WS, GW)', async (t) => {
  const values = [
    null,
    'url=trackID=1;seq=0;rtptime=0',
    'url=trackID=1;seq=1;rtptime=-1',
    'url=trackID=1;seq=16852;rtptime=1070938629;',
    'url=rtsp://192.168.1.110:5050/H264/video;seq=271;rtptime=1621990950',
    ';,;;',
  ];
  for (const rtpInfo of values) {
    const stage = await setStage(t, { rtpInfo, tracks: await videoAndAudio() });
    await stage.play(30);
    assert.equal(stage.status.counters.packetsLost, 0);
    const outcome = await stage.expectPictures(range(0, 30));
    await expectSteadyPictures(outcome);
  }
});

test('41. sender reports of another SSRC (Tapo C320WS), or followed by a broken description (Hanwha)', async (t) => {
  const reports: ((report: Buffer) => Buffer)[] = [
    (report) => {
      report.writeUInt32BE(0x0ddba115, 4);
      return report;
    },
    (report) => {
      // A CNAME that says it is longer than the packet, and no terminator.
      const description = sourceDescription(report.readUInt32BE(4));
      description[9] = 0xff;
      return Buffer.concat([report.subarray(0, 28), description.subarray(0, 16)]);
    },
    (report) => Buffer.concat([report.subarray(0, 28), Buffer.from([0xff, 0xff])]),
  ];
  for (const onReport of reports) {
    const stage = await setStage(t, { tracks: await videoAndAudio(), reportIntervalMs: 500, onReport });
    await stage.play(75);
    const outcome = await stage.expectPictures(range(0, 75));
    await expectSteadyPictures(outcome);
    await expectSoundInPlace(onlyFile(outcome));
  }
});

test('42. sender reports absent, from 1970, or stepping back an hour', async (t) => {
  const wallMs = Date.UTC(2026, 0, 1, 12);
  const cases = [
    { reportClockOffsetMs: null },
    { reportClockOffsetMs: -wallMs },
    { onReport: (report: Buffer) => (report.fill(0, 8, 16), report) },
    {
      onReport: (_: Buffer, info: Parameters<typeof senderReport>[0]) =>
        senderReport({ ...info, ntpMs: info.ntpMs - (info.packets > 20 ? 3_600_000 : 0) }),
    },
  ];
  for (const options of cases) {
    const stage = await setStage(t, { tracks: await videoAndAudio(), reportIntervalMs: 500, ...options });
    await stage.play(75);
    const outcome = await stage.expectPictures(range(0, 75));
    await expectSteadyPictures(outcome);
    const file = onlyFile(outcome);
    assert.match(basename(file), /_20260101_120000/, 'the recorder’s own clock names the file');
    await expectSoundInPlace(file);
  }
});

test('43. the sequence number wraps inside a fragmented picture', async (t) => {
  const stage = await setStage(t, { tracks: [await fragmentedVideo()], firstSequenceNumber: 65_530 });
  await stage.play(30);
  assert.equal(stage.status.counters.packetsLost, 0);
  await stage.expectPictures(range(0, 30));
});

test('44. the timestamp wraps, as every 13 hours', async (t) => {
  for (const name of ['h264', 'h264-bframes'] as const) {
    const stage = await setStage(t, { tracks: [await fragmentedVideo(name)], firstTimestamp: 0xffffff00 - 36_000 });
    await stage.play(50);
    const outcome = await stage.expectPictures(range(0, 50));
    await expectSteadyPictures(outcome);
  }
});

test('45. single pictures stamped hours away (Intelbras)', async (t) => {
  const stage = await setStage(t, {
    onFrame: (frame) => (frame.index % 50 === 49 ? { ...frame, timestamp: frame.timestamp - 882_000_000 } : frame),
  });
  await stage.play(130);
  const outcome = await stage.expectPictures(range(0, 130));
  await expectSteadyPictures(outcome);
});

test('45. a camera whose clock has jumped for good begins a new file, without a stretched picture', async (t) => {
  const stage = await setStage(t, {
    onFrame: (frame) => (frame.index >= 60 ? { ...frame, timestamp: frame.timestamp - 882_000_000 } : frame),
  });
  await stage.play(130);
  const outcome = await stage.expectPictures(range(0, 130));
  assert.equal(outcome.files.length, 2);
  for (const file of outcome.files) {
    assert.ok(Math.max(...distances(await packetTimes(file))) <= 41);
  }
});

test('46. timestamps step back once, or for good, without B-frames', async (t) => {
  const once = await setStage(t, {
    onFrame: (frame) => (frame.index === 40 ? { ...frame, timestamp: frame.timestamp - 9_000 } : frame),
  });
  await once.play(75);
  const packets = await packetTimes(onlyFile(await once.expectPictures(range(0, 75))));
  for (const distance of distances(packets)) assert.ok(distance > 0 && distance <= 80);
  assert.ok(Math.abs((packets.at(-1)?.ptsMs ?? 0) - (packets[0]?.ptsMs ?? 0) - 74 * 40) <= 40);

  const forGood = await setStage(t, {
    onFrame: (frame) => (frame.index >= 40 ? { ...frame, timestamp: frame.timestamp - 90_000 } : frame),
  });
  await forGood.play(130);
  const outcome = await forGood.expectPictures(range(0, 130));
  const apart = (await Promise.all(outcome.files.map((file) => packetTimes(file)))).map(distances);
  for (const distance of apart.flat()) assert.ok(distance > 0 && distance <= 80, `pictures ${distance} ms apart`);
  const squeezed = apart.flat().filter((distance) => distance < 30);
  assert.ok(squeezed.length <= 3, `${squeezed.length} pictures squeezed together`);
});

test('47. the timestamps say 25 pictures a second, the camera delivers 21', async (t) => {
  const stage = await setStage(t, { tracks: await videoAndAudio() });
  const seconds = 150;
  await stage.play(25 * seconds, { stretch: 25 / 21 });
  const outcome = await stage.finish();
  // The media repeats every 10 s.
  const numbers = await numbersOf(outcome.files);
  assert.equal(numbers.length, 25 * seconds, 'no picture is lost');
  assert.deepEqual(
    numbers,
    range(0, 25 * seconds).map((n) => n % 250),
  );
  // Once the stamps have fallen 12 s behind, which no buffer explains, the pictures have the times of their arrival.
  const packets = await packetTimes(outcome.files.at(-1) as (typeof outcome.files)[0]);
  assert.ok(packets.length > 25 * 30);
  const lengthMs = (packets.at(-1)?.ptsMs ?? 0) - (packets[0]?.ptsMs ?? 0);
  const trueMs = ((packets.length - 1) * 1000) / 21;
  assert.ok(Math.abs(lengthMs - trueMs) < 200, `${lengthMs} ms recorded of ${trueMs} ms`);
  assert.equal(stage.camera.connections.length, 1);
});

test('48. two pictures with one timestamp', async (t) => {
  const stage = await setStage(t, {
    onFrame: (frame) => (frame.index % 25 === 1 ? { ...frame, timestamp: frame.timestamp - 3600 } : frame),
  });
  await stage.play(60);
  const packets = await packetTimes(onlyFile(await stage.expectPictures(range(0, 60))));
  for (const packet of packets) assert.ok(packet.durationMs > 0);
  for (const distance of distances(packets)) assert.ok(distance > 0 && distance <= 80);
});

test('49. header extensions, contributing sources and padding', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmentedVideo()],
    onPacket: (packet, { packetIndex }) => {
      const fields = {
        payloadType: (packet[1] as number) & 0x7f,
        marker: ((packet[1] as number) & 0x80) !== 0,
        sequenceNumber: packet.readUInt16BE(2),
        timestamp: packet.readUInt32BE(4),
        ssrc: packet.readUInt32BE(8),
        payload: packet.subarray(12),
      };
      switch (packetIndex % 5) {
        case 0:
          return rtpPacket({ ...fields, extension: { profile: 0xbede, data: Buffer.from([0x10, 0xff, 0, 0]) } });
        case 1:
          return rtpPacket({ ...fields, csrc: [1, 2, 3] });
        case 2:
          return rtpPacket({ ...fields, paddingBytes: 4 });
        case 3:
          return rtpPacket({
            ...fields,
            csrc: [7],
            extension: { profile: 0xbede, data: Buffer.alloc(0) },
            paddingBytes: 200,
          });
        default:
          return packet;
      }
    },
  });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));
});

test('50. UDP packets swapped and doubled', async (t) => {
  let held: Buffer | undefined;
  const stage = await setStage(t, {
    tracks: [await fragmentedVideo()],
    transport: 'udp',
    onPacket: (packet, { packetIndex }): Outgoing[] => {
      if (packetIndex % 7 === 3) {
        held = packet;
        return [];
      }
      const before = held;
      held = undefined;
      const out = packetIndex % 11 === 5 ? [packet, packet] : [packet];
      return before ? [...out, before] : out;
    },
  });
  await stage.play(75);
  // The last packet may be the held one.
  await stage.pass(300);
  assert.equal(stage.status.counters.packetsLost, 0);
  await stage.expectPictures(range(0, 75));
});

test('50. the first UDP packets of a session swapped cost no picture', async (t) => {
  const held: Buffer[] = [];
  const stage = await setStage(t, {
    tracks: [await fragmentedVideo()],
    transport: 'udp',
    onPacket: (packet, { packetIndex }): Outgoing[] => {
      if (packetIndex < 3) held.unshift(packet);
      return packetIndex < 3 ? [] : packetIndex === 3 ? [packet, ...held] : [packet];
    },
  });
  await stage.play(75);
  await stage.pass(300);
  assert.equal(stage.status.counters.packetsLost, 0);
  await stage.expectPictures(range(0, 75));
});

test('50. a lost UDP packet costs pictures up to the next key frame, and no more', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmentedVideo()],
    transport: 'udp',
    onPacket: (packet, { frame, indexInFrame }) => (frame.number === 30 && indexInFrame === 1 ? [] : packet),
  });
  await stage.play(100);
  const outcome = await stage.finish();
  assert.equal(outcome.status.counters.packetsLost, 1);
  await expectHole(outcome, 30, 50, 100);
});

test('50. UDP packets that the kernel drops are counted as such, and the small buffer is known', async (t) => {
  const set = Object.getOwnPropertyDescriptor(Socket.prototype, 'setRecvBufferSize')
    ?.value as Socket['setRecvBufferSize'];
  t.mock.method(Socket.prototype, 'setRecvBufferSize', function smallest(this: Socket) {
    set.call(this, 2_304);
  });
  const stage = await setStage(t, { tracks: [await fragmentedVideo()], transport: 'udp' });
  await stage.play(60);
  const { counters } = stage.status;
  assert.ok(counters.packetsLost > 0);
  await stage.until(() => counters.packetsDropped >= counters.packetsLost);
  assert.equal(stage.status.receiveBufferBytes, 2_304);
});

test('50. the buffer of a stock kernel holds a key frame of 150 KiB that comes at once over UDP, and not one of 550 KiB', async (t) => {
  const media = await videoMedia('h264');
  const withKeyFramesOf = (bytes: number) => {
    // Filler data (H.264 §7.3.2.7).
    const filler = Buffer.concat([Buffer.of(0x0c), Buffer.alloc(bytes, 0xff), Buffer.of(0x80)]);
    const frames = media.frames.map((frame) => (frame.key ? { ...frame, nals: [...frame.nals, filler] } : frame));
    return videoTrack({ ...media, frames });
  };
  const stage = await setStage(t, { tracks: [withKeyFramesOf(150 * 1024)], transport: 'udp' });
  await stage.play(60);
  assert.equal(stage.status.receiveBufferBytes, STOCK_BUFFER_BYTES);
  assert.equal(stage.status.counters.packetsLost, 0);
  await stage.expectPictures(range(0, 60));
  const large = await setStage(t, { tracks: [withKeyFramesOf(550 * 1024)], transport: 'udp' });
  await large.play(60);
  const { counters } = large.status;
  assert.ok(counters.packetsLost > 0);
  await large.until(() => counters.packetsDropped >= counters.packetsLost);
});

test('51. nothing arrives over UDP: after 3 s the stream is taken over TCP', async (t) => {
  const stage = await setStage(t, { transport: 'auto', transports: ['udp'], udp: { silent: true } });
  await stage.camera.untilPlaying();
  const playedAtMs = stage.clock.monotonicMs();
  stage.camera.options.transports = ['tcp'];
  await stage.passUntil(() => stage.camera.playing.length === 1 && stage.camera.connections.length > 2, 'TCP');
  assert.ok(stage.clock.monotonicMs() - playedAtMs <= 4_000);
  await stage.play(30, { connection: 2 });
  assert.equal(stage.status.transport, 'tcp');
  await stage.expectPictures(range(0, 30));
});

test('51. a camera that names no server_port (OpenIPC) is received anyway', async (t) => {
  const stage = await setStage(t, { transport: 'udp', udp: { nameServerPort: false } });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));
});

test('51. datagrams that open the way go to the ports that the camera names', async (t) => {
  const stage = await setStage(t, { transport: 'udp' });
  await stage.play(10);
  assert.ok((stage.camera.playing[0]?.punches ?? 0) >= 1);
  await stage.expectPictures(range(0, 10));
});

test('51. packets of strangers are not mistaken for the camera’s', async (t) => {
  const stage = await setStage(t, {
    transport: 'udp',
    onPacket: (packet, { packetIndex }) => {
      const forged = Buffer.from(packet);
      forged.writeUInt16BE((packet.readUInt16BE(2) + 1) & 0xffff, 2);
      forged.fill(0x55, 12);
      return packetIndex % 3 === 0 ? [{ from: '127.0.0.3', data: forged }, packet] : packet;
    },
  });
  await stage.play(30);
  assert.equal(stage.status.counters.packetsLost, 0);
  await stage.expectPictures(range(0, 30));
});

test('52. packets missing over TCP: the camera dropped them itself', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmentedVideo('h264-large')],
    onPacket: (packet, { frame, indexInFrame }) =>
      frame.number === 30 && indexInFrame >= 1 && indexInFrame <= 3 ? [] : packet,
  });
  await stage.play(100);
  const outcome = await stage.finish();
  assert.equal(outcome.status.counters.packetsLost, 3);
  assert.equal(stage.camera.connections.length, 1, 'the stream goes on');
  await expectHole(outcome, 30, 50, 100);
});

test('72. a camera that stops without receiver reports over UDP', async (t) => {
  const stage = await setStage(t, { transport: 'udp', udp: { requireReportsSeconds: 6 } });
  await stage.play(500);
  assert.equal(stage.camera.connections.length, 1);
  const [session] = stage.camera.playing;
  const reports = session?.clientReportsAtMs ?? [];
  assert.ok(reports.length >= 4, `${reports.length} reports in 20 s`);
  await stage.expectPictures([...range(0, 250), ...range(0, 250)]);
});

test('73. source= names another address from which the packets come, or their own by a name', async (t) => {
  for (const source of ['127.0.0.2', 'localhost']) {
    const sendFrom = source === 'localhost' ? '127.0.0.1' : source;
    const stage = await setStage(t, { transport: 'udp', udp: { source, sendFrom } });
    await stage.camera.untilPlaying();
    await stage.play(30);
    await stage.expectPictures(range(0, 30));
  }
});
