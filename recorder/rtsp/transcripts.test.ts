import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { resolveBase, resolveControl } from './control.ts';
import { RtspFraming } from './framing.ts';
import { parsePublic, parseRtpInfo, parseSession, parseTransport } from './headers.ts';
import { matchRtpInfo } from './stream-setups.ts';
import type { RtspResponse } from './message.ts';
import { parseSdp, type Media } from './sdp.ts';

const file = (name: string): Buffer =>
  readFileSync(new URL(`../../test/testdata/cameras/${name}.txt`, import.meta.url));

/** The only response in the file, as parsed from a connection. */
function response(name: string): RtspResponse {
  const messages: RtspResponse[] = [];
  const framing = new RtspFraming({
    interleaved: () => assert.fail('no packets here'),
    message: (message) => {
      if (message.kind === 'response') messages.push(message);
    },
  });
  const bytes = file(name);
  framing.push(bytes, 0, bytes.length);
  assert.equal(messages.length, 1);
  return messages[0] as RtspResponse;
}

/** `kind encoding/clock/channels payload type` of each medium, with its control URL. */
function describe(request: string, reply: RtspResponse) {
  const presentation = parseSdp(reply.body);
  const base = resolveBase(request, reply.headers);
  return {
    aggregate: resolveControl(base, presentation.control),
    streams: presentation.media.map((m) => `${summary(m)} ${resolveControl(base, m.control)}`),
    media: presentation.media,
  };
}

const summary = (m: Media): string =>
  `${m.kind} ${m.encodingName}/${m.clockRate}/${m.channels} ${m.payloadType}${m.backchannel ? ' backchannel' : ''}`;

const describes: { name: string; aggregate: string; streams: string[]; parameters: Record<string, string>[] }[] = [
  {
    name: 'bunny_describe',
    aggregate: 'rtsp://wowzaec2demo.streamlock.net/vod/mp4:BigBuckBunny_115k.mov/',
    streams: [
      'audio MPEG4-GENERIC/12000/2 96 rtsp://wowzaec2demo.streamlock.net/vod/mp4:BigBuckBunny_115k.mov/trackID=1',
      'video H264/90000/1 97 rtsp://wowzaec2demo.streamlock.net/vod/mp4:BigBuckBunny_115k.mov/trackID=2',
    ],
    parameters: [
      { config: '1490', sizelength: '13', mode: 'AAC-hbr' },
      { 'sprop-parameter-sets': 'Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg==', 'profile-level-id': '42C01E' },
    ],
  },
  {
    name: 'dahua_describe_h264_aac_onvif',
    aggregate: 'rtsp://192.168.5.111:554/cam/realmonitor?channel=1&subtype=1&unicast=true&proto=Onvif/',
    streams: [
      'video H264/90000/1 96 rtsp://192.168.5.111:554/cam/realmonitor?channel=1&subtype=1&unicast=true&proto=Onvif/trackID=0',
      'audio MPEG4-GENERIC/48000/1 97 rtsp://192.168.5.111:554/cam/realmonitor?channel=1&subtype=1&unicast=true&proto=Onvif/trackID=1',
      'application VND.ONVIF.METADATA/90000/1 107 rtsp://192.168.5.111:554/cam/realmonitor?channel=1&subtype=1&unicast=true&proto=Onvif/trackID=4',
    ],
    parameters: [{ 'sprop-parameter-sets': 'Z2QAHqwsaoLA9puCgIKgAAADACAAAAMD0IAA,aO4xshsA' }, { config: '1188' }, {}],
  },
  {
    name: 'dahua_describe_h265_pcma',
    aggregate: 'rtsp://cam-driveway/cam/realmonitor?channel=1&subtype=2/',
    streams: [
      'video H265/90000/1 98 rtsp://cam-driveway/cam/realmonitor?channel=1&subtype=2/trackID=0',
      'audio PCMA/8000/1 8 rtsp://cam-driveway/cam/realmonitor?channel=1&subtype=2/trackID=1',
    ],
    parameters: [
      {
        'sprop-vps': 'QAEMAf//AWAAAAMAsAAAAwAAAwBarAwAAAMABAAAAwAyqA==',
        'sprop-sps': 'QgEBAWAAAAMAsAAAAwAAAwBaoAWCAeFja5JFL83BQYFBAAADAAEAAAMADKE=',
        'sprop-pps': 'RAHA8saNA7NA',
      },
      {},
    ],
  },
  {
    name: 'foscam_describe',
    aggregate: 'rtsp://192.168.5.107:65534/videoMain/',
    streams: [
      'video H264/90000/1 96 rtsp://192.168.5.107:65534/videoMain/track1',
      'audio PCMU/8000/1 0 rtsp://192.168.5.107:65534/videoMain/track2',
    ],
    parameters: [{ 'sprop-parameter-sets': 'Z00AH5WoFAFuQA==,aO48gA==' }, {}],
  },
  {
    name: 'gw_main_describe',
    aggregate: 'rtsp://192.168.1.110:5050/H264?channel=1&subtype=0&unicast=true&proto=Onvif',
    streams: [
      'video H264/90000/1 96 rtsp://192.168.1.110:5050/H264?channel=1&subtype=0&unicast=true&proto=Onvif/video',
      'audio PCMU/8000/1 8 rtsp://192.168.1.110:5050/H264?channel=1&subtype=0&unicast=true&proto=Onvif/audio',
    ],
    parameters: [{ 'sprop-parameter-sets': 'Z00AKpWoHgCJ+WbgICAgQAAAAAE=,aO48gAAAAAE=' }, { vad: 'no' }],
  },
  {
    name: 'hikvision_describe',
    aggregate: 'rtsp://192.168.5.106:554/Streaming/Channels/101/?transportmode=unicast&profile=Profile_1',
    streams: [
      'video H264/90000/1 96 rtsp://192.168.5.106:554/Streaming/Channels/101/trackID=1?transportmode=unicast&profile=Profile_1',
      'application VND.ONVIF.METADATA/90000/1 107 rtsp://192.168.5.106:554/Streaming/Channels/101/trackID=3?transportmode=unicast&profile=Profile_1',
    ],
    parameters: [{ 'sprop-parameter-sets': 'Z00AKZpkA8ARPyzUBAQFAAADA+gAAOpgBA==,aO48gA==' }, {}],
  },
  ...['reolink_describe', 'reolink_describe_control_first'].map((name) => ({
    name,
    aggregate: 'rtsp://192.168.5.206/h264Preview_01_main/',
    streams: [
      'video H264/90000/1 96 rtsp://192.168.5.206/h264Preview_01_main/trackID=1',
      'audio MPEG4-GENERIC/16000/1 97 rtsp://192.168.5.206/h264Preview_01_main/trackID=2',
    ],
    parameters: [
      { 'sprop-parameter-sets': 'Z2QAM6zoAoALWQ==,aO48MA==' },
      { config: '1408', profile: '1', indexdeltalength: '3' },
    ],
  })),
];

for (const { name, aggregate, streams, parameters } of describes) {
  test(`${name}: streams, control URLs and parameters`, () => {
    const found = describe('rtsp://unused/', response(name));
    assert.equal(found.aggregate, aggregate);
    assert.deepEqual(found.streams, streams);
    for (const [index, wanted] of parameters.entries()) {
      for (const [key, value] of Object.entries(wanted)) {
        assert.equal(found.media[index]?.formatParameters.get(key), value);
      }
      if (Object.keys(wanted).length === 0) assert.equal(found.media[index]?.formatParameters.size, 0);
    }
  });
}

const sdps: { name: string; streams: string[]; sprop: [number, string, string] }[] = [
  {
    name: 'geovision_sdp',
    streams: [
      'video H264/90000/1 105 rtsp://192.168.5.237/media/video1/video',
      'application VND.ONVIF.METADATA/90000/1 107 rtsp://192.168.5.237/media/video1/metadata',
    ],
    sprop: [0, 'sprop-parameter-sets', 'Z01AMpWgCoAwfiZuAgICgAAB9AAAdTBC,aO48gA=='],
  },
  {
    name: 'tplink_sdp',
    streams: ['video H265/90000/1 96 rtsp://cam/s/track1', 'audio PCMA/8000/1 8 rtsp://cam/s/track2'],
    sprop: [0, 'sprop-pps', 'RAHAcvAbJA=='],
  },
  {
    name: 'ubiquiti_sdp',
    streams: [
      'audio MPEG4-GENERIC/48000/1 96 rtsp://cam/s/trackID=0',
      'audio OPUS/48000/2 96 rtsp://cam/s/trackID=1',
      'video H264/90000/1 97 rtsp://cam/s/trackID=2',
    ],
    sprop: [2, 'sprop-parameter-sets', 'Z01AKo2NQDwBE/LgLcBAQFAAAD6AABX5CdoIhGo=,aO44gA=='],
  },
];
for (const { name, streams, sprop } of sdps) {
  test(`${name}: streams and parameters`, () => {
    const { media } = parseSdp(file(name).toString());
    assert.deepEqual(
      media.map((m) => `${summary(m)} ${resolveControl('rtsp://cam/s', m.control)}`),
      streams,
    );
    const [index, key, value] = sprop;
    assert.equal(media[index]?.formatParameters.get(key), value);
  });
}

test('ubiquiti_sdp: a bare fmtp and keys in mixed case', () => {
  const { media } = parseSdp(file('ubiquiti_sdp').toString());
  assert.equal(media[0]?.formatParameters.get('sizelength'), '13');
  assert.equal(media[1]?.formatParameters.size, 0);
});

const setups: [name: string, id: string, timeout: number | undefined, channels: string, ssrc: number | undefined][] = [
  ['bunny_setup', '1642021126', 60, '0-1', undefined],
  ['dahua_setup', '634214675641', 60, '0-1', 0x30a98ee7],
  ['gw_main_setup_video', '9a90de54', 60, '0-1', undefined],
  ['gw_main_setup_audio', '9a90de54', 60, '2-3', undefined],
  ['hikvision_setup', '708345999', 60, '0-1', 0x4cacc3d1],
  ['hikvision_setup_ssrc_space', '708886412', 60, '0-1', 0xd6d6627],
  ['reolink_setup', 'F8F8E425', undefined, '0-1', undefined],
];
for (const [name, id, timeoutSeconds, channels, ssrc] of setups) {
  test(`${name}: session, keepalive and channels`, () => {
    const { headers } = response(name);
    assert.deepEqual(parseSession(headers.get('Session') ?? ''), { id, timeoutSeconds });
    const transport = parseTransport(headers.get('Transport') ?? '');
    assert.equal(transport.protocol, 'tcp');
    assert.equal(transport.interleaved?.join('-'), channels);
    assert.equal(transport.ssrc, ssrc);
  });
}

/** What RTP-Info says about the streams of a description. */
function hints(describeName: string, playName: string) {
  const described = response(describeName);
  const base = resolveBase('rtsp://unused/', described.headers);
  const streams = parseSdp(described.body).media.map((m) => ({
    url: resolveControl(base, m.control),
    control: m.control,
  }));
  const play = response(playName);
  const found = matchRtpInfo(parseRtpInfo(play.headers.get('RTP-Info') ?? ''), streams, base);
  return {
    session: parseSession(play.headers.get('Session') ?? ''),
    hints: found.map((hint) => hint && [hint.sequenceNumber, hint.rtpTime, hint.ssrc]),
  };
}

const plays: [describe: string, play: string, id: string, timeout: number | undefined, hints: unknown[]][] = [
  [
    'bunny_describe',
    'bunny_play',
    '551045787',
    60,
    [
      [1, 0, undefined],
      [1, 0, undefined],
    ],
  ],
  [
    'dahua_describe_h264_aac_onvif',
    'dahua_play',
    '634214684047',
    undefined,
    [
      [47121, 3475222385, undefined],
      [45186, 2234446919, undefined],
      [36583, 816418535, undefined],
    ],
  ],
  ['gw_main_describe', 'gw_main_play', '9a90de54', 120, [[271, 1621990950, undefined], undefined]],
  ['hikvision_describe', 'hikvision_play', '708345999', undefined, [[24104, 1270711678, undefined], undefined]],
  [
    'reolink_describe',
    'reolink_play',
    'F8F8E425',
    undefined,
    [
      [16852, 1070938629, 0xdcc4a0d8],
      [39409, 3075976528, 0x9fc9fff8],
    ],
  ],
];
for (const [describeName, playName, id, timeoutSeconds, wanted] of plays) {
  test(`${playName}: RTP-Info finds its streams`, () => {
    assert.deepEqual(hints(describeName, playName), { session: { id, timeoutSeconds }, hints: wanted });
  });
}

test('dahua_options: the methods', () => {
  assert.deepEqual(
    parsePublic(response('dahua_options').headers.get('Public') ?? ''),
    'OPTIONS DESCRIBE ANNOUNCE SETUP PLAY RECORD PAUSE TEARDOWN SET_PARAMETER GET_PARAMETER'.split(' '),
  );
});

test('reolink_teardown: the end', () => {
  assert.equal(response('reolink_teardown').status, 200);
});
