// What cameras write into DESCRIBE's answer. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { formatReply, header, reply, withHeader } from '../camera/message.ts';
import { audioSpecificConfig, audioTrack, metadataTrack, videoFmtp, videoTrack } from '../camera/tracks.ts';
import { nalType } from '../support/packetize.ts';
import { linearOf } from './g711-reference.ts';
import { decodedSound, onlyFile, range, requestsOf, setStage, streamsOf } from './stage.ts';
import type { StageOptions } from './stage.ts';

const h264 = () => videoMedia('h264');

/** Every variant of an SDP must lead to the same recording. */
async function expectSameRecording(
  t: Parameters<typeof setStage>[0],
  variants: readonly StageOptions[],
): Promise<void> {
  for (const options of variants) {
    const stage = await setStage(t, options);
    await stage.play(30);
    await stage.expectPictures(range(0, 30));
  }
}

test('27. no parameter sets in the SDP, or no fmtp at all', async (t) => {
  const media = await h264();
  for (const fmtp of ['packetization-mode=1;profile-level-id=42c00c', null]) {
    const stage = await setStage(t, { tracks: [videoTrack(media, { fmtp })] });
    // In the middle of a group of pictures: recording begins with the first sets, at the next key frame.
    stage.seek(400);
    await stage.play(30);
    await stage.expectPictures(range(25, 40));
  }
});

test('28. unusable sprop-parameter-sets: Annex B tail, missing PPS, no NAL header (VStarcam)', async (t) => {
  const media = await h264();
  const sets = (media.frames[0]?.nals ?? []).filter((nal) => nalType(nal, 'h264') >= 7);
  const [sps = Buffer.alloc(0), pps = Buffer.alloc(0)] = sets;
  const base64 = (...parts: Buffer[]): string => Buffer.concat(parts).toString('base64');
  const startCode = Buffer.from([0, 0, 0, 1]);
  const values = [
    `${base64(sps, startCode)},${base64(pps, startCode)}`,
    `${base64(sps)},`,
    `${base64(sps.subarray(1))},${base64(pps.subarray(1))}`,
    `${base64(startCode, sps)},${base64(startCode, pps)}`,
    '!!!,???',
    // Zeros in front, and no start code.
    'AM4JYA==,AAAAAA==',
    ',',
    '',
  ];
  await expectSameRecording(
    t,
    values.map((value) => ({
      tracks: [videoTrack(media, { fmtp: `packetization-mode=1;sprop-parameter-sets=${value}` })],
    })),
  );
});

test('29. H.265 with only some of VPS, SPS and PPS in the SDP', async (t) => {
  const media = await videoMedia('h265');
  const fmtp = videoFmtp(media);
  await expectSameRecording(t, [
    { tracks: [videoTrack(media, { fmtp: fmtp.replace(/;sprop-pps=.*/, '') })] },
    { tracks: [videoTrack(media, { fmtp: fmtp.replace(/sprop-vps=[^;]*;/, '') })] },
    { tracks: [videoTrack(media, { fmtp: 'profile-id=1' })] },
  ]);
});

test('30. fmtp bare, with trailing semicolons and names in other letters (Ubiquiti, Reolink)', async (t) => {
  const media = await h264();
  const fmtp = videoFmtp(media);
  // The sets come by the SDP alone, so that it must have been understood.
  const withoutSets = {
    ...media,
    frames: media.frames.map((frame) => ({ ...frame, nals: frame.nals.filter((nal) => nalType(nal, 'h264') < 7) })),
  };
  await expectSameRecording(t, [
    { sdp: (sdp) => sdp.replace(/a=fmtp:96 .*/, 'a=fmtp:96') },
    { tracks: [videoTrack(withoutSets, { fmtp: `${fmtp};` })] },
    { tracks: [videoTrack(withoutSets, { fmtp: ` ${fmtp.replaceAll(';', ' ; ; ')}; ` })] },
    {
      tracks: [
        videoTrack(withoutSets, { fmtp: fmtp.replaceAll(/(?<=^|;)[\w-]+(?==)/g, (name) => name.toUpperCase()) }),
      ],
    },
  ]);
});

test('31. blanks and tabs at the end of rtpmap and m= lines (VStarcam)', async (t) => {
  const tracks = [videoTrack(await h264()), audioTrack(await audioMedia('pcma'))];
  const stage = await setStage(t, {
    tracks,
    sdp: (sdp) => sdp.replace('H264/90000', 'H264/90000 ').replace('RTP/AVP 8', 'RTP/AVP 8\t '),
  });
  await stage.play(30);
  const outcome = await stage.expectPictures(range(0, 30));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio flac']);
});

test('32. rtpmap gives a static payload type another meaning (anpviz: AAC as 0, GW: PCMU as 8)', async (t) => {
  const video = videoTrack(await h264());
  const aac = await audioMedia('aac');
  const config = audioSpecificConfig(aac).toString('hex');
  const attributes = [
    `a=rtpmap:0 MPEG4-GENERIC/16000/1`,
    `a=fmtp:0 streamtype=5;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=${config}`,
  ];
  const anpviz = await setStage(t, { tracks: [video, audioTrack(aac, { payloadType: 0, attributes })] });
  await anpviz.play(30);
  assert.deepEqual(await streamsOf(onlyFile(await anpviz.expectPictures(range(0, 30)))), ['video h264', 'audio aac']);

  const pcmu = await audioMedia('pcmu');
  const gw = await setStage(t, {
    tracks: [video, audioTrack(pcmu, { payloadType: 8, attributes: ['a=rtpmap:8 PCMU/8000/1', 'a=fmtp:8 vad=no'] })],
  });
  await gw.play(50);
  const sound = await decodedSound(onlyFile(await gw.expectPictures(range(0, 50))));
  const source = linearOf(Buffer.concat(pcmu.frames.map((frame) => frame.data)), 'ulaw');
  assert.ok(sound.length > 1.5 * 2 * 8000, `${sound.length} bytes of sound`);
  assert.ok(source.indexOf(sound) >= 0, 'what was decoded by the µ-law is in the file, sample for sample');
});

test('33. an application section that is not RTP/AVP as the standard knows it (TP-Link)', async (t) => {
  const tracks = [videoTrack(await h264()), audioTrack(await audioMedia('pcma'))];
  const stage = await setStage(t, {
    tracks,
    sdp: (sdp) =>
      `${sdp}m=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=rtpmap:95 TP-LINK/90000\r\na=control:track3\r\n`,
  });
  await stage.play(30);
  const outcome = await stage.expectPictures(range(0, 30));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio flac']);
  assert.equal(requestsOf(stage.camera, 'SETUP').length, 2);
});

test('34. session lines missing, doubled or malformed (macrovideo and others)', async (t) => {
  await expectSameRecording(t, [
    { sdp: (sdp) => sdp.replace(/^o=.*\r\n/m, '') },
    { sdp: (sdp) => sdp.replace(/^s=.*\r\n/m, 's=one\r\ns=two\r\n') },
    { sdp: (sdp) => sdp.replace(/^c=.*\r\n/m, 'c=IN IP4\r\n') },
    { sdp: (sdp) => sdp.replace(/^t=.*\r\n/m, 't=now-\r\n') },
    { sdp: (sdp) => sdp.slice(sdp.indexOf('m=')) },
    { sdp: (sdp) => sdp.replaceAll('\r\n', '\n') },
    { sdp: (sdp) => `${sdp}\0` },
    { sdp: (sdp) => sdp.replace('a=range', '\r\n garbage without a type\r\na=range') },
  ]);
});

test('35. Content-Base absent, without scheme, with two schemes, or only a path', async (t) => {
  const bases: ((base: string) => string | undefined)[] = [
    () => undefined,
    (base) => base.replace('rtsp://', ''),
    (base) => `rtsp://${base}`,
    () => '/stream/',
  ];
  for (const rewrite of bases) {
    const stage = await setStage(t, {
      onReply: (usual) => {
        const base = header(usual, 'Content-Base');
        return base === undefined ? usual : withHeader(usual, 'Content-Base', rewrite(base));
      },
    });
    await stage.play(30);
    const [setup] = requestsOf(stage.camera, 'SETUP');
    assert.equal(setup?.uri, `${stage.camera.url}/trackID=1`);
    await stage.expectPictures(range(0, 30));
  }
});

test('36. a backchannel is not set up, and nothing is required of the camera (VLC answers 551)', async (t) => {
  const backchannel = { ...audioTrack(await audioMedia('pcmu'), { control: 'backchannel' }) };
  const stage = await setStage(t, {
    tracks: [
      videoTrack(await h264()),
      { ...backchannel, sdp: [...backchannel.sdp, 'a=sendonly'] },
      audioTrack(await audioMedia('aac')),
    ],
    onRequest: (request) => (header(request, 'Require') === undefined ? undefined : reply(551)),
  });
  await stage.play(30);
  const setups = requestsOf(stage.camera, 'SETUP').map((request) => request.uri.split('/').at(-1));
  assert.deepEqual(setups, ['trackID=1', 'trackID=2']);
  const outcome = await stage.expectPictures(range(0, 30));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio aac']);
});

test('36. where every section says sendonly, none is a backchannel', async (t) => {
  const stage = await setStage(t, {
    tracks: [videoTrack(await h264()), audioTrack(await audioMedia('aac'))],
    sdp: (sdp) => sdp.replaceAll('a=control:trackID', 'a=sendonly\r\na=control:trackID'),
  });
  await stage.play(30);
  const outcome = await stage.expectPictures(range(0, 30));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio aac']);
});

test('37. ONVIF metadata that is silent for five minutes is nobody’s concern', async (t) => {
  const stage = await setStage(t, {
    tracks: [metadataTrack('trackID=0'), videoTrack(await videoMedia('h264-long-gop'))],
    segmentDurationMs: 600_000,
  });
  await stage.play(5 * 60 * 5);
  assert.deepEqual(
    stage.status.notRecorded.map(({ kind, codec, reason }) => [kind, codec, reason.code]),
    [['application', 'VND.ONVIF.METADATA', 'no-media']],
  );
  assert.equal(requestsOf(stage.camera, 'SETUP').length, 1);
  assert.equal(stage.camera.connections.length, 1);
  // The test media is 130 s long and starts over.
  await stage.expectPictures([...range(0, 650), ...range(0, 650), ...range(0, 200)]);
});

test('38. several sections with one payload type (Ubiquiti)', async (t) => {
  const stage = await setStage(t, {
    tracks: [
      audioTrack(await audioMedia('aac'), { payloadType: 96, control: 'trackID=0' }),
      audioTrack(await audioMedia('opus'), { payloadType: 96, control: 'trackID=1' }),
      videoTrack(await h264(), { payloadType: 96, control: 'trackID=2' }),
    ],
  });
  await stage.play(30);
  const outcome = await stage.expectPictures(range(0, 30));
  assert.deepEqual(await streamsOf(onlyFile(outcome)), ['video h264', 'audio aac']);
  assert.deepEqual(
    outcome.status.notRecorded.map(({ kind, codec, reason }) => [kind, codec, reason.code]),
    [['audio', 'OPUS', 'second-stream']],
  );
});

test('38. MJPEG stands before H.264: the latter is recorded', async (t) => {
  const stage = await setStage(t, {
    tracks: [
      videoTrack(await videoMedia('mjpeg'), { control: 'trackID=1' }),
      videoTrack(await h264(), { payloadType: 97, control: 'trackID=2' }),
    ],
  });
  // Each picture comes twice, once of each stream.
  await stage.play(60);
  const { status } = await stage.expectPictures(range(0, 30));
  assert.equal(status.video?.codec, 'h264');
});

test('39. Content-Length missing in the answer to DESCRIBE', async (t) => {
  const stage = await setStage(t, {
    onReply: (usual, request) => {
      if (request.method !== 'DESCRIBE') return usual;
      return Buffer.from(
        formatReply(usual)
          .toString('latin1')
          .replace(/^Content-Length: .*\r\n/im, ''),
        'latin1',
      );
    },
  });
  await stage.passUntil(() => stage.camera.playing.length === 1, 'a session', 5_000);
  await stage.play(25);
  await stage.expectPictures(range(0, 25));
  assert.equal(stage.camera.connections.length, 1);
});

test('39. Content-Type missing or with parameters; a=framerate lies', async (t) => {
  const contentType = (value: string | undefined): StageOptions => ({
    onReply: (usual, request) => (request.method === 'DESCRIBE' ? withHeader(usual, 'Content-Type', value) : usual),
  });
  const framerate = (value: string): StageOptions => ({
    sdp: (sdp) => sdp.replace('a=control:trackID', `a=framerate:${value}\r\na=control:trackID`),
  });
  await expectSameRecording(t, [
    contentType(undefined),
    contentType('application/sdp;charset=utf-8'),
    contentType('text/plain'),
    framerate('0S'),
    framerate('5'),
  ]);
});
