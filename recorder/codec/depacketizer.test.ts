import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDepacketizer } from './depacketizer.ts';
import type { MediaDescription } from './depacketizer.ts';
import { noFaults } from './faults.ts';
import { SlabPool } from './slab.ts';

function choose(media: Partial<MediaDescription>, parameters: Record<string, string> = {}) {
  const choice = createDepacketizer(
    {
      kind: 'audio',
      encodingName: undefined,
      payloadType: 96,
      clockRate: undefined,
      channels: undefined,
      formatParameters: new Map(Object.entries(parameters)),
      ...media,
    },
    { pool: new SlabPool(), emit: () => {}, faults: noFaults() },
  );
  if ('unsupported' in choice) return choice.unsupported.code;
  const { parameters: track } = choice.depacketizer;
  const known = track?.kind === 'audio' ? [track.codec, track.sampleRate, track.channels] : [track?.codec];
  return [choice.depacketizer.constructor.name, choice.clockRate, ...known];
}

const SPROP = { 'sprop-parameter-sets': 'Z00AKpWoHgCJ+WbgICAgQA==,aO48gA==' };

const CASES: readonly (readonly [string, Partial<MediaDescription>, Record<string, string>, unknown])[] = [
  ['H.264', { kind: 'video', encodingName: 'H264', clockRate: 90_000 }, SPROP, ['H264Depacketizer', 90_000, 'h264']],
  ['H.264 without fmtp', { kind: 'video', encodingName: 'h264 ' }, {}, ['H264Depacketizer', 90_000, undefined]],
  ['H.264 interleaved', { kind: 'video', encodingName: 'H264' }, { 'packetization-mode': '2' }, 'h264-interleaved'],
  ['H.265', { kind: 'video', encodingName: 'H265', clockRate: 90_000 }, {}, ['H265Depacketizer', 90_000, undefined]],
  ['AV1', { kind: 'video', encodingName: 'AV1', clockRate: 90_000 }, {}, ['Av1Depacketizer', 90_000, undefined]],
  ['MJPEG', { kind: 'video', encodingName: 'JPEG' }, {}, ['MjpegDepacketizer', 90_000, undefined]],
  ['MJPEG without rtpmap', { kind: 'video', payloadType: 26 }, {}, ['MjpegDepacketizer', 90_000, undefined]],
  ['MPEG-4 part 2', { kind: 'video', encodingName: 'MP4V-ES' }, {}, 'codec-unsupported'],
  ['G.711 without rtpmap', { payloadType: 0 }, {}, ['PcmDepacketizer', 8000, 'flac', 8000, 1]],
  ['G.711 A-law without rtpmap', { payloadType: 8 }, {}, ['PcmDepacketizer', 8000, 'flac', 8000, 1]],
  [
    'PCMU on payload type 8 (gw_main)',
    { payloadType: 8, encodingName: 'PCMU', clockRate: 8000 },
    {},
    ['PcmDepacketizer', 8000, 'flac', 8000, 1],
  ],
  [
    'AAC on payload type 0 (Anpviz)',
    { payloadType: 0, encodingName: 'MPEG4-GENERIC', clockRate: 16_000, channels: 2 },
    { config: '1410' },
    ['AacDepacketizer', 16_000, 'aac', 16_000, 2],
  ],
  [
    'AAC in mode AAC_hbr (AVoIP encoders)',
    { encodingName: 'MPEG4-GENERIC', clockRate: 16_000 },
    { mode: 'AAC_hbr', config: '1410' },
    ['AacDepacketizer', 16_000, 'aac', 16_000, 2],
  ],
  [
    'AAC without config',
    { encodingName: 'mpeg4-generic', clockRate: 16_000 },
    {},
    ['AacDepacketizer', 16_000, undefined],
  ],
  ['speech in MPEG4-GENERIC', { encodingName: 'mpeg4-generic' }, { mode: 'CELP-cbr' }, 'aac-mode-unsupported'],
  [
    'LATM with cpresent=0 (mediamtx#3590)',
    { encodingName: 'MP4A-LATM', clockRate: 16_000 },
    { cpresent: '0', config: '400028103fc0' },
    ['LatmDepacketizer', 16_000, 'aac', 16_000, 1],
  ],
  [
    'Opus announced as 8000/1',
    { encodingName: 'opus', clockRate: 8000, channels: 1 },
    {},
    ['OpusDepacketizer', 48_000, 'opus', 48_000, 2],
  ],
  [
    'L16 stereo',
    { encodingName: 'L16', clockRate: 48_000, channels: 2 },
    {},
    ['PcmDepacketizer', 48_000, 'flac', 48_000, 2],
  ],
  ['G.722', { encodingName: 'G722', clockRate: 8000 }, {}, ['PcmDepacketizer', 8000, 'flac', 16_000, 1]],
  ['G.722 stereo', { encodingName: 'G722', clockRate: 8000, channels: 2 }, {}, 'channels-unsupported'],
  ['G.726', { encodingName: 'G726-40', clockRate: 8000 }, {}, ['PcmDepacketizer', 8000, 'flac', 8000, 1]],
  ['G.726 of AAL2', { encodingName: 'aal2-g726-16', clockRate: 8000 }, {}, ['PcmDepacketizer', 8000, 'flac', 8000, 1]],
  ['G.726 at no such rate', { encodingName: 'G726-48', clockRate: 8000 }, {}, 'codec-unsupported'],
  ['MP2 or MP3', { encodingName: 'MPA', clockRate: 90_000 }, {}, ['MpegAudioDepacketizer', 90_000, undefined]],
  ['MPA-ROBUST', { encodingName: 'mpa-robust', clockRate: 90_000 }, {}, 'codec-unsupported'],
  ['an unknown static payload type', { payloadType: 34 }, {}, 'codec-unsupported'],
  ['G.711 of 9 channels', { encodingName: 'PCMA', clockRate: 8000, channels: 9 }, {}, 'channels-unsupported'],
  ['G.711 at no rate', { encodingName: 'PCMA', clockRate: 0 }, {}, ['PcmDepacketizer', 8000, 'flac', 8000, 1]],
];
for (const [name, media, parameters, expected] of CASES) {
  test(`media: ${name}`, () => assert.deepEqual(choose(media, parameters), expected));
}
