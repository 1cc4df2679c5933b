// Named test recordings: ffmpeg makes each at first use and keeps it outside the checkout, keyed by its command line.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { assertNever } from '../../base/assert.ts';
import { OBU_DELIMITER, obuType, splitObus } from '../support/packetize-av1.ts';
import { nalType, splitAnnexB } from '../support/packetize.ts';
import { drawingExpression } from './frame-numbers.ts';

const run = promisify(execFile);

/** One coded picture, in decoding order. */
export interface VideoFrame {
  /** NAL units; of MJPEG one JPEG file; of AV1 the OBUs of a temporal unit, without its delimiter. */
  readonly nals: readonly Buffer[];
  /** The number drawn into the picture. */
  readonly number: number;
  /** Presentation time, 90 kHz ticks from the first picture's. */
  readonly pts90k: number;
  /** When an encoder hands the picture out: 90 kHz ticks from the first one's. */
  readonly dts90k: number;
  /** The encoder's key flag: IDR, and H.264 recovery points and H.265 CRA. */
  readonly key: boolean;
}

export interface VideoMedia {
  readonly kind: 'video';
  readonly codec: 'h264' | 'h265' | 'mjpeg' | 'av1';
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
  readonly frames: readonly VideoFrame[];
}

interface AudioFrame {
  readonly data: Buffer;
  /** Ticks of `sampleRate` from the start of the recording. */
  readonly pts: number;
}

export interface AudioMedia {
  readonly kind: 'audio';
  readonly codec: 'aac' | 'opus' | 'pcma' | 'pcmu' | 'l16' | 'g722' | 'g726-32' | 'mp2' | 'mp3';
  readonly sampleRate: number;
  readonly channels: number;
  readonly samplesPerFrame: number;
  readonly frames: readonly AudioFrame[];
}

interface VideoSpec {
  readonly codec: VideoMedia['codec'];
  readonly size: `${number}x${number}`;
  readonly fps: number;
  readonly seconds: number;
  readonly firstNumber: number;
  readonly profile?: string;
  readonly encoder: string;
}

const H264 = { codec: 'h264', size: '320x180', fps: 25, seconds: 10, firstNumber: 0 } as const;
const H265 = { ...H264, codec: 'h265' } as const;
const MJPEG = { codec: 'mjpeg', size: '320x180', fps: 25, seconds: 4, firstNumber: 0, encoder: '' } as const;
const AV1 = { codec: 'av1', size: '320x180', fps: 25, seconds: 10, firstNumber: 0 } as const;
const MAIN = 'keyint=25:scenecut=0:bframes=0:weightp=0:ref=1';
const CLOSED_H265 = 'keyint=25:min-keyint=25:scenecut=0:open-gop=0';

const VIDEO = {
  h264: { ...H264, profile: 'baseline', encoder: 'keyint=25:scenecut=0' },
  'h264-bframes': { ...H264, encoder: 'keyint=50:scenecut=0:bframes=3:b-pyramid=normal:b-adapt=0' },
  'h264-slices': { ...H264, profile: 'baseline', encoder: 'keyint=25:scenecut=0:slices=4' },
  // Another size and numbers that cannot be taken for the first one's: what a camera sends after a settings change.
  'h264-small': { ...H264, size: '160x96', firstNumber: 1000, profile: 'baseline', encoder: 'keyint=25:scenecut=0' },
  'h264-long-gop': {
    ...H264,
    size: '160x96',
    fps: 5,
    seconds: 130,
    profile: 'baseline',
    encoder: 'keyint=300:scenecut=0',
  },
  'h264-open-gop': { ...H264, encoder: 'keyint=25:scenecut=0:bframes=3:b-adapt=0:open-gop=1' },
  'h264-intra-refresh': { ...H264, encoder: 'keyint=25:scenecut=0:bframes=0:intra-refresh=1' },
  // The same sequence parameter set, picture parameter sets that differ.
  'h264-main': { ...H264, profile: 'main', encoder: MAIN },
  'h264-main-chroma': { ...H264, profile: 'main', encoder: `${MAIN}:chroma-qp-offset=4` },
  // 1080p of pure noise is not needed anywhere; this one only has pictures of many packets.
  'h264-large': { ...H264, size: '640x360', seconds: 4, profile: 'baseline', encoder: 'keyint=25:scenecut=0:crf=18' },
  // A constant 0.7 Mbit/s, several packets a picture: for links that are narrow, or lose packets.
  'h264-busy': {
    ...H264,
    profile: 'baseline',
    encoder: 'keyint=25:scenecut=0:bitrate=700:vbv-maxrate=700:vbv-bufsize=140',
  },
  h265: { ...H265, encoder: `${CLOSED_H265}:bframes=0` },
  'h265-layers': { ...H265, encoder: `${CLOSED_H265}:bframes=3:b-adapt=0:b-pyramid=1:temporal-layers=1` },
  mjpeg: MJPEG,
  // A size that packets cannot say.
  'mjpeg-wide': { ...MJPEG, size: '2560x48' },
  av1: { ...AV1, encoder: '-c:v libaom-av1 -usage realtime -cpu-used 8 -crf 40 -g 25 -keyint_min 25 -lag-in-frames 0' },
  // Hidden frames that others refer to, and frames that show one that came before.
  'av1-hidden': {
    ...AV1,
    encoder: '-c:v libsvtav1 -preset 12 -crf 50 -g 25 -svtav1-params irefresh-type=2:hierarchical-levels=3',
  },
  'h265-open-gop': { ...H265, encoder: 'keyint=25:min-keyint=25:scenecut=0:open-gop=1:bframes=3:b-adapt=0' },
} as const satisfies Record<string, VideoSpec>;

interface AudioSpec {
  readonly codec: AudioMedia['codec'];
  readonly sampleRate: number;
  readonly samplesPerFrame: number;
}

const AUDIO = {
  aac: { codec: 'aac', sampleRate: 16_000, samplesPerFrame: 1024 },
  'aac-44k': { codec: 'aac', sampleRate: 44_100, samplesPerFrame: 1024 },
  opus: { codec: 'opus', sampleRate: 48_000, samplesPerFrame: 960 },
  pcma: { codec: 'pcma', sampleRate: 8_000, samplesPerFrame: 160 },
  pcmu: { codec: 'pcmu', sampleRate: 8_000, samplesPerFrame: 160 },
  l16: { codec: 'l16', sampleRate: 44_100, samplesPerFrame: 441 },
  g722: { codec: 'g722', sampleRate: 16_000, samplesPerFrame: 320 },
  'g726-32': { codec: 'g726-32', sampleRate: 8_000, samplesPerFrame: 160 },
  mp2: { codec: 'mp2', sampleRate: 48_000, samplesPerFrame: 1152 },
  mp3: { codec: 'mp3', sampleRate: 16_000, samplesPerFrame: 576 },
} as const satisfies Record<string, AudioSpec>;

export type VideoName = keyof typeof VIDEO;
export type AudioName = keyof typeof AUDIO;
export const VIDEO_NAMES = Object.keys(VIDEO) as VideoName[];
export const AUDIO_NAMES = Object.keys(AUDIO) as AudioName[];

/** A moving picture of 4 to 130 s. */
export async function videoMedia(name: VideoName): Promise<VideoMedia> {
  const spec: VideoSpec = VIDEO[name];
  const packets = await encoded([
    '-f',
    'lavfi',
    '-i',
    `color=c=gray:s=${spec.size}:r=${spec.fps}:d=${spec.seconds},format=gray,` +
      `geq=lum='${drawingExpression(spec.firstNumber)}',format=yuv420p`,
    ...'-map 0:v -flags +bitexact -threads 1'.split(' '),
    ...(spec.profile ? ['-profile:v', spec.profile] : []),
    ...encoderOf(spec),
  ]);
  const [width = 0, height = 0] = spec.size.split('x').map(Number);
  const firstDts = packets[0]?.dts ?? 0;
  const ticks = 90_000 / spec.fps;
  const frames = packets.map((packet) => ({
    nals: unitsOf(packet.data, spec.codec),
    number: spec.firstNumber + packet.pts,
    pts90k: packet.pts * ticks,
    dts90k: (packet.dts - firstDts) * ticks,
    key: packet.key,
  }));
  return { kind: 'video', codec: spec.codec, width, height, framesPerSecond: spec.fps, frames };
}

const ENCODERS: Readonly<Record<AudioMedia['codec'], string>> = {
  aac: 'aac',
  opus: 'libopus',
  pcma: 'pcm_alaw',
  pcmu: 'pcm_mulaw',
  l16: 'pcm_s16be',
  g722: 'g722',
  'g726-32': 'g726le',
  mp2: 'mp2',
  mp3: 'libmp3lame',
};
/** Of the codecs whose samples all take the same room. */
const BITS_PER_SAMPLE = { pcma: 8, pcmu: 8, l16: 16, g722: 4, 'g726-32': 4 } as const;

/** Ten seconds of a 440 Hz tone that sounds for the first tenth of every second. */
export async function audioMedia(name: AudioName): Promise<AudioMedia> {
  const spec: AudioSpec = AUDIO[name];
  const encoder = ENCODERS[spec.codec];
  const packets = await encoded([
    '-f',
    'lavfi',
    '-i',
    `aevalsrc='0.5*sin(2*PI*440*t)*lt(mod(t,1),0.1)':s=${spec.sampleRate}:d=10`,
    ...`-map 0:a -c:a ${encoder} -b:a ${spec.codec === 'g722' ? '64k' : '32k'} -flags +bitexact`.split(' '),
  ]);
  const media = { kind: 'audio', ...spec, channels: 1 } as const;
  if (spec.codec === 'aac' || spec.codec === 'opus' || spec.codec === 'mp2' || spec.codec === 'mp3') {
    // Frames before time zero only prime the decoder.
    const frames = packets.filter((packet) => packet.pts >= 0).map(({ data, pts }) => ({ data, pts }));
    return { ...media, frames };
  }
  const octets = Buffer.concat(packets.map((packet) => packet.data));
  const frameOctets = (spec.samplesPerFrame * BITS_PER_SAMPLE[spec.codec]) / 8;
  const frames = Array.from({ length: Math.floor(octets.length / frameOctets) }, (_, i) => ({
    data: octets.subarray(i * frameOctets, (i + 1) * frameOctets),
    pts: i * spec.samplesPerFrame,
  }));
  return { ...media, frames };
}

function encoderOf({ codec, encoder }: VideoSpec): string[] {
  switch (codec) {
    case 'h264':
      return ['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '28', '-x264-params', encoder];
    case 'h265':
      return [
        '-c:v',
        'libx265',
        '-preset',
        'ultrafast',
        '-crf',
        '30',
        '-x265-params',
        `log-level=none:info=0:${encoder}`,
      ];
    case 'mjpeg':
      // RTP cannot carry other Huffman tables than those of the standard's annex.
      return ['-pix_fmt', 'yuvj420p', '-c:v', 'mjpeg', '-huffman', 'default', '-q:v', '5'];
    case 'av1':
      return encoder.split(' ');
    default:
      return assertNever(codec);
  }
}

/** x264 writes its name into an SEI although it is asked for exact bits; cameras do not. */
function unitsOf(data: Buffer, codec: VideoMedia['codec']): Buffer[] {
  if (codec === 'mjpeg') return [data];
  if (codec === 'av1') return splitObus(data).filter((obu) => obuType(obu) !== OBU_DELIMITER);
  return splitAnnexB(data).filter((nal) => !(codec === 'h264' && nalType(nal, codec) === 6 && nal[1] === 5));
}

interface EncodedPacket {
  readonly data: Buffer;
  readonly pts: number;
  readonly dts: number;
  readonly key: boolean;
}

/** Runs ffmpeg with these arguments unless its result is at hand; two processes that both run it do no harm. */
async function encoded(args: readonly string[]): Promise<EncodedPacket[]> {
  const root = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kube-nvr', 'media');
  const directory = join(root, createHash('sha256').update(JSON.stringify(args)).digest('hex').slice(0, 24));
  const read = async (): Promise<EncodedPacket[]> =>
    slicePackets(await readFile(join(directory, 'data')), await readFile(join(directory, 'index'), 'utf8'));
  try {
    return await read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await mkdir(root, { recursive: true });
  const scratch = await mkdtemp(`${directory}.`);
  try {
    const outputs = '[f=data]data|[f=framecrc]index';
    await run('ffmpeg', ['-v', 'error', '-nostdin', ...args, '-f', 'tee', outputs], { cwd: scratch });
    await rename(scratch, directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return read();
}

/** `index` has a line a packet: stream, dts, pts, duration, size, checksum, and `F=` with flags when it is no key. */
function slicePackets(data: Buffer, index: string): EncodedPacket[] {
  const packets: EncodedPacket[] = [];
  let at = 0;
  for (const line of index.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, dts = 0, pts = 0, , size = 0] = line.split(',').map(Number);
    packets.push({ data: data.subarray(at, at + size), pts, dts, key: !line.includes('F=0x') });
    at += size;
  }
  return packets;
}
