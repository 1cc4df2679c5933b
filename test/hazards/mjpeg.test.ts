// What cameras do with MJPEG. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { packetizeMjpeg } from '../support/packetize-mjpeg.ts';
import { distances, onlyFile, packetTimes, range, setStage, streamsOf } from './stage.ts';

test('66. MJPEG: every picture is a key frame at its time', async (t) => {
  const stage = await setStage(t, { tracks: [videoTrack(await videoMedia('mjpeg'))] });
  await stage.play(60);
  const outcome = await stage.expectPictures(range(0, 60));
  const { video } = outcome.status;
  assert.deepEqual([video?.codec, video?.codecString, video?.width], ['mjpeg', 'mp4v.6C', 320]);
  const file = onlyFile(outcome);
  assert.deepEqual(await streamsOf(file), ['video mjpeg']);
  const times = await packetTimes(file);
  assert.ok(times.every(({ key }) => key));
  for (const distance of distances(times)) assert.ok(Math.abs(distance - 40) < 0.1);
});

test('66. MJPEG whose quantization tables come with some pictures only', async (t) => {
  let picture = 0;
  const track = videoTrack(await videoMedia('mjpeg'), {
    packetize: ([file], options) =>
      packetizeMjpeg(file as Buffer, { ...options, q: 128, omitTables: picture++ % 10 !== 5 }),
  });
  const stage = await setStage(t, { tracks: [track] });
  await stage.play(60);
  // What came before the first tables cannot be shown.
  await stage.expectPictures(range(5, 60));
});

test('66. MJPEG larger than packets can say, or of size 0: the SDP tells', async (t) => {
  for (const attribute of ['a=framesize:26 2560-48', 'a=x-dimensions:2560,48']) {
    for (const omitSize of [false, true]) {
      const track = videoTrack(await videoMedia('mjpeg-wide'), {
        attributes: [attribute],
        packetize: ([file], options) => packetizeMjpeg(file as Buffer, { ...options, omitSize }),
      });
      const stage = await setStage(t, { tracks: [track] });
      await stage.play(10);
      const { status } = await stage.expectPictures(range(0, 10));
      assert.deepEqual([status.video?.width, status.video?.height], [2560, 48]);
    }
  }
});

test('66. MJPEG with lost packets: damaged pictures are left out, the others are kept', async (t) => {
  const stage = await setStage(t, {
    tracks: [videoTrack(await videoMedia('mjpeg'))],
    onPacket: (packet, { frame, indexInFrame }) => (frame.number % 10 === 7 && indexInFrame === 1 ? [] : packet),
  });
  await stage.play(60);
  await stage.expectPictures(range(0, 60).filter((number) => number % 10 !== 7));
});
