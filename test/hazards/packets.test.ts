// What cameras do with sequence numbers, sources, payload types and frames. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audioMedia, videoMedia } from '../camera/media.ts';
import type { VideoName } from '../camera/media.ts';
import type { Outgoing, PacketInfo } from '../camera/options.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { interleaved, rtpPacket } from '../support/packetize.ts';
import { numbersOf, onlyFile, range, setStage, streamsOf } from './stage.ts';

/** Small packets, so that every picture travels in several. */
async function fragmented(name: VideoName = 'h264') {
  return videoTrack(await videoMedia(name), { mtu: 150 });
}

/** A picture's group: the media have a key frame each second. */
const groupOf = ({ frame }: PacketInfo): number => Math.floor(frame.index / 25);

const withSequence = (packet: Buffer, number: number): Buffer => {
  packet.writeUInt16BE(number & 0xffff, 2);
  return packet;
};
const withSource = (packet: Buffer, ssrc: number): Buffer => {
  packet.writeUInt32BE(ssrc, 8);
  return packet;
};
const withType = (packet: Buffer, payloadType: number): Buffer => {
  packet[1] = ((packet[1] as number) & 0x80) | payloadType;
  return packet;
};
const goodbye = (ssrc: number): Buffer => {
  const packet = Buffer.from('81cb000100000000', 'hex');
  packet.writeUInt32BE(ssrc >>> 0, 4);
  return packet;
};

test('77. sequence numbers over TCP begin again, never count, or count pictures', async (t) => {
  const numbers: ((info: PacketInfo) => number)[] = [
    (info) => info.packetIndex % 333,
    () => 0,
    (info) => info.frame.index,
    (info) => 65_000 - info.packetIndex,
  ];
  for (const number of numbers) {
    const stage = await setStage(t, {
      tracks: [await fragmented()],
      onPacket: (packet, info) => withSequence(packet, number(info)),
    });
    await stage.play(100);
    const { status } = await stage.expectPictures(range(0, 100));
    assert.equal(status.counters.framesDiscarded, 0);
    assert.equal(stage.camera.connections.length, 1);
  }
});

test('77. a packet sent twice over TCP is taken once', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    onPacket: (packet, { packetIndex }) => (packetIndex % 7 === 3 ? [packet, packet] : packet),
  });
  await stage.play(60);
  await stage.expectPictures(range(0, 60));
});

test('78. another source (SSRC) with each group of pictures (Uniview), over TCP and UDP', async (t) => {
  for (const transport of ['tcp', 'udp'] as const) {
    for (const restarts of [false, true]) {
      const first = new Map<number, number>();
      const stage = await setStage(t, {
        transport,
        tracks: [await fragmented()],
        onPacket: (packet, info) => {
          const group = groupOf(info);
          if (!first.has(group)) first.set(group, info.packetIndex);
          if (restarts) withSequence(packet, info.packetIndex - (first.get(group) as number));
          return withSource(packet, 0x1000 + group);
        },
      });
      await stage.play(150);
      await stage.pass(300);
      await stage.expectPictures(range(0, 150));
    }
  }
});

test('78. a source that says goodbye, and the next one at once', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    onPacket: (packet, info): Outgoing[] => {
      const changes = info.frame.index === 50 && info.indexInFrame === 0;
      if (info.frame.index < 50) return [packet];
      const bye = { rtcp: goodbye(packet.readUInt32BE(8)) };
      return changes ? [bye, withSource(packet, 0xb)] : [withSource(packet, 0xb)];
    },
  });
  await stage.play(100);
  await stage.expectPictures(range(0, 100));
});

test('79. the second of two payload types of a section is sent (Bosch)', async (t) => {
  for (const other of ['a=rtpmap:98 H265/90000', 'a=rtpmap:98 VP8/90000', 'a=x:98']) {
    const stage = await setStage(t, {
      tracks: [await fragmented()],
      sdp: (sdp) => sdp.replace('RTP/AVP 96', 'RTP/AVP 98 96').replace('a=rtpmap:96', `${other}\r\na=rtpmap:96`),
    });
    await stage.play(60);
    await stage.expectPictures(range(0, 60));
  }
});

test('79. a payload type that the SDP does not name, from the start or in the middle (Uniview)', async (t) => {
  const always = await setStage(t, {
    tracks: [await fragmented()],
    onPacket: (packet) => withType(packet, 50),
  });
  await always.play(60);
  await always.expectPictures(range(0, 60));

  const changing = await setStage(t, {
    tracks: [await fragmented()],
    onPacket: (packet, { frame }) => withType(packet, frame.index < 30 ? 96 : 104),
  });
  await changing.play(100);
  // A group of pictures is lost, as after any break.
  await changing.expectPictures([...range(0, 30), ...range(50, 100)]);
  assert.equal(changing.camera.connections.length, 1);
});

test('79. picture and sound have exchanged their payload types', async (t) => {
  const tracks = [await fragmented(), audioTrack(await audioMedia('aac'))];
  const stage = await setStage(t, {
    tracks,
    onPacket: (packet, { trackIndex }) => withType(packet, tracks[1 - trackIndex]?.payloadType ?? 0),
  });
  await stage.play(100);
  const outcome = await stage.expectPictures(range(25, 100));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio aac']);
});

test('79. the sound comes on the channel of the picture', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmented(), audioTrack(await audioMedia('aac'))],
    onPacket: (packet, { trackIndex }) => (trackIndex === 1 ? { channel: 0, data: packet } : packet),
  });
  await stage.play(60);
  const outcome = await stage.expectPictures(range(0, 60));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio aac']);
});

test('79. each picture is sent twice, with sequence numbers of its own: it is recorded once', async (t) => {
  const picture: Buffer[] = [];
  let number = 0;
  const numbered = (packet: Buffer): Buffer => withSequence(packet, number++);
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    onPacket: (packet, { lastInFrame }) => {
      picture.push(packet);
      return lastInFrame ? [...picture, ...picture.splice(0)].map(numbered) : [];
    },
  });
  await stage.play(60);
  const { status } = await stage.expectPictures(range(0, 60));
  assert.ok((status.counters.streams.video.faults.counts.get('picture-twice') ?? 0) >= 58);
});

test('79. a camera that states H.264 and sends H.265 is recorded at the third attempt', async (t) => {
  const stage = await setStage(t, {
    tracks: [videoTrack(await videoMedia('h265'), { fmtp: null })],
    sdp: (sdp) => sdp.replace('H265/90000', 'H264/90000'),
  });
  for (const connection of [1, 2]) {
    await stage.play(260, { connection });
    await stage.passUntil(() => stage.camera.connections.length > connection, 'another attempt');
    stage.seek(0);
  }
  await stage.play(50, { connection: 3 });
  await stage.until(({ video }) => video?.codec === 'h265');
});

test('79. packets of a type of their own inside the pictures’ sequence cost no picture', async (t) => {
  for (const transport of ['tcp', 'udp'] as const) {
    let shift = 0;
    const stage = await setStage(t, {
      transport,
      tracks: [await fragmented()],
      onPacket: (packet, { packetIndex }) => {
        const number = packet.readUInt16BE(2) + shift;
        if (packetIndex % 5 !== 4) return withSequence(packet, number);
        shift++;
        return [withType(withSequence(Buffer.from(packet), number), 107), withSequence(packet, number + 1)];
      },
    });
    await stage.play(60);
    await stage.pass(300);
    const { status } = await stage.expectPictures(range(0, 60));
    assert.equal(status.counters.packetsLost, 0);
  }
});

test('80. rtpmap or fmtp under another payload type, or in the session part', async (t) => {
  const media = await videoMedia('h264');
  // The parameter sets stand in the SDP only.
  const bare = {
    ...media,
    frames: media.frames.map((frame) => ({
      ...frame,
      nals: frame.nals.filter((nal) => ![7, 8].includes((nal[0] as number) & 0x1f)),
    })),
  };
  const fmtp = /a=fmtp:96 (.*)\r\n/;
  for (const sdp of [
    (text: string) => text.replace('a=fmtp:96', 'a=fmtp:97'),
    (text: string) => text.replace('a=rtpmap:96', 'a=rtpmap:104'),
    (text: string) => text.replace(fmtp, '').replace('m=video', `a=fmtp:96 ${fmtp.exec(text)?.[1]}\r\nm=video`),
    (text: string) => text.replace(fmtp, '').replace('m=video', `a=fmtp:99 ${fmtp.exec(text)?.[1]}\r\nm=video`),
  ]) {
    const track = videoTrack(bare, { fmtp: videoFmtpOf(media) });
    const stage = await setStage(t, { tracks: [track], sdp });
    await stage.play(30);
    await stage.expectPictures(range(0, 30));
  }
});

function videoFmtpOf(media: Awaited<ReturnType<typeof videoMedia>>): string {
  const line = videoTrack(media).sdp.find((text) => text.startsWith('a=fmtp:96 '));
  return (line ?? '').slice('a=fmtp:96 '.length);
}

test('81. interleaved frames that are cut off in the middle', async (t) => {
  const stage = await setStage(t, {
    tracks: [await fragmented()],
    onPacket: (packet, { frame, lastInFrame, indexInFrame }) => {
      const isCut = frame.index === 30 ? lastInFrame : frame.index === 60 && indexInFrame === 1;
      return isCut ? { raw: interleaved(0, packet).subarray(0, packet.length >> 1) } : packet;
    },
  });
  await stage.play(100);
  const outcome = await stage.finish();
  const numbers = await numbersOf(outcome.files);
  // What refers to a picture that is missing may show another number.
  assert.equal(numbers.length, 98);
  assert.deepEqual(numbers.slice(0, 30), range(0, 30));
  assert.deepEqual(numbers.slice(-25), range(75, 100));
  assert.equal(outcome.status.counters.packetsLost, 2);
  assert.equal(stage.camera.connections.length, 1);
});

test('82. video over SRTP only is named as the reason', async (t) => {
  const stage = await setStage(t, { sdp: (sdp) => sdp.replace('RTP/AVP', 'RTP/SAVP') });
  await stage.until((status) => status.state === 'retrying');
  assert.equal(stage.status.reason?.code, 'encrypted');
  assert.match(stage.status.reason?.message ?? '', /SRTP/);
});

test('82. sound over SRTP is left out, the video is recorded', async (t) => {
  const tracks = [await fragmented(), audioTrack(await audioMedia('aac'))];
  const stage = await setStage(t, { tracks, sdp: (sdp) => sdp.replace('m=audio 0 RTP/AVP', 'm=audio 0 RTP/SAVP') });
  await stage.play(30);
  const outcome = await stage.expectPictures(range(0, 30));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264']);
  assert.equal(outcome.status.audioDropped?.code, 'encrypted');
});

test('83. packets of several NAL units that are cut off after the picture', async (t) => {
  for (const name of ['h264', 'h265'] as const) {
    const media = await videoMedia(name);
    const header = name === 'h264' ? Buffer.from([24]) : Buffer.from([48 << 1, 1]);
    const sei = name === 'h264' ? Buffer.from('0605032a2a2a80', 'hex') : Buffer.from('4e0105032a2a2a80', 'hex');
    const sized = (nal: Buffer): Buffer[] => [Buffer.from([nal.length >> 8, nal.length & 0xff]), nal];
    const track = videoTrack(media, { mtu: 60_000 });
    const stage = await setStage(t, {
      tracks: [
        {
          ...track,
          packetize: (units, options) => {
            const packets = track.packetize([Buffer.concat([header, ...units.flatMap(sized), ...sized(sei)])], options);
            return packets.map((packet) => packet.subarray(0, -3));
          },
        },
      ],
    });
    await stage.play(60);
    await stage.expectPictures(range(0, 60));
  }
});

test('84. a byte stream in one NAL unit that begins with SEI', async (t) => {
  const media = await videoMedia('h264');
  const sei = Buffer.from('0605032a2a2a80', 'hex');
  for (const mtu of [60_000, 150]) {
    const track = videoTrack(media, { mtu, fmtp: 'packetization-mode=1' });
    const stage = await setStage(t, {
      tracks: [
        {
          ...track,
          packetize: (units, options) => {
            const stream = [sei, ...units].flatMap((nal) => [Buffer.from([0, 0, 0, 1]), nal]).slice(1);
            return track.packetize([Buffer.concat(stream)], options);
          },
        },
      ],
    });
    await stage.play(60);
    await stage.expectPictures(range(0, 60));
  }
});

test('95. a bit rate beyond maxBitrate ends the connection, until the camera is back at its rate on average', async (t) => {
  for (const transport of ['tcp', 'udp'] as const) {
    const flood = rtpPacket({
      payloadType: 107,
      marker: false,
      sequenceNumber: 0,
      timestamp: 0,
      ssrc: 1,
      payload: Buffer.alloc(10_000),
    });
    const stage = await setStage(t, { transport, maxBitrate: 1_000_000, tracks: [await fragmented()] });
    await stage.play(30);
    // Ten seconds of the rate are 1.25 MB.
    for (let i = 0; i < 130 && stage.status.state === 'recording'; i++) {
      stage.camera.transmit(0, flood);
      if (i % 10 === 9) await stage.camera.settled();
    }
    await stage.until((status) => status.state === 'retrying');
    assert.equal(stage.status.reason?.code, 'bitrate-exceeded');
    await stage.pass(8_000);
    assert.equal(stage.camera.connections.length, 1, 'left alone');
    await stage.passUntil(() => stage.camera.playing.length === 1, 'a second connection', 5_000);
    await stage.expectPictures(range(0, 30));
  }
});
