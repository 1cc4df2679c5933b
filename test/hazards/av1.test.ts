// What cameras do with AV1. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { OBU_SEQUENCE_HEADER, obuType, packetizeAv1 } from '../support/packetize-av1.ts';
import { distances, onlyFile, packetTimes, range, setStage, streamsOf } from './stage.ts';

test('91. AV1 with hidden frames, fragments, and sizes inside or not', async (t) => {
  for (const name of ['av1', 'av1-hidden'] as const) {
    for (const sizes of [false, true]) {
      const track = videoTrack(await videoMedia(name), {
        mtu: 150,
        packetize: (units, options) => packetizeAv1(units, { ...options, mtu: 150, sizes, keepSizeFields: sizes }),
      });
      const stage = await setStage(t, { tracks: [track] });
      await stage.play(60);
      const outcome = await stage.expectPictures(range(0, 60));
      assert.equal(outcome.status.video?.codec, 'av1');
      const file = onlyFile(outcome);
      assert.deepEqual(await streamsOf(file), ['video av1']);
      const times = await packetTimes(file);
      assert.deepEqual(
        times.flatMap(({ key }, i) => (key ? [i] : [])),
        [0, 25, 50],
      );
      for (const distance of distances(times)) assert.ok(Math.abs(distance - 40) < 0.1);
    }
  }
});

test('91. AV1 that is joined between key frames, and sends its sequence header once', async (t) => {
  const media = await videoMedia('av1');
  let headers = 0;
  const stage = await setStage(t, {
    tracks: [videoTrack(media)],
    onFrame: (frame) => ({
      ...frame,
      units: frame.units.filter((obu) => obuType(obu) !== OBU_SEQUENCE_HEADER || headers++ === 0),
    }),
  });
  stage.seek(5 * 40);
  await stage.play(75);
  await stage.expectPictures(range(25, 80));
});

test('91. AV1 with lost packets: damaged pictures are left out', async (t) => {
  const stage = await setStage(t, {
    tracks: [videoTrack(await videoMedia('av1'), { mtu: 150 })],
    onPacket: (packet, { frame, indexInFrame }) => (frame.number === 24 && indexInFrame === 0 ? [] : packet),
  });
  await stage.play(60);
  await stage.expectPictures([...range(0, 24), ...range(25, 60)]);
});
