// Tiny encodes as samples with exact times: ffmpeg writes an MP4, ffprobe lists its samples. Both results are kept outside of the
// checkout, by the command line: the tests ask for the same few films again and again.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { AudioCodec, AudioParameters, NalParameters } from '../../recorder/codec/access-unit.ts';
import type { FragmentSample } from '../../recorder/mp4/fragment.ts';

export interface EncodedSample extends FragmentSample {
  readonly bytes: Buffer;
  readonly dts: number;
}

export interface Encoded<Parameters> {
  readonly parameters: Parameters;
  readonly samples: readonly EncodedSample[];
}

interface VideoOptions {
  readonly codec: 'h264' | 'h265';
  /** Parameters of the encoder, such as `bframes=3:keyint=10`. */
  readonly encoderParameters: string;
  readonly size?: string;
  readonly frames?: number;
  readonly extra?: readonly string[];
}

const FRAME_TICKS = 3600; // 25 pictures per second

export function encodeVideo(directory: string, options: VideoOptions): Encoded<NalParameters> {
  const { codec, encoderParameters, size = '160x96', frames = 50, extra = [] } = options;
  const encoder =
    codec === 'h264'
      ? ['-c:v', 'libx264', '-x264-params', encoderParameters]
      : ['-c:v', 'libx265', '-x265-params', `log-level=none:${encoderParameters}`, '-tag:v', 'hvc1'];
  // prettier-ignore
  const { bytes, packets } = encoded(directory, ['-f', 'lavfi', '-i', `testsrc=size=${size}:rate=25`, '-frames:v', `${frames}`, '-pix_fmt', 'yuv420p',
    '-preset', 'ultrafast', ...encoder, ...extra, '-video_track_timescale', '90000']);
  const first = packets[0]?.dts ?? 0;
  const samples = packets.map((packet, i) => ({
    bytes: bytes.subarray(packet.pos, packet.pos + packet.size),
    size: packet.size,
    dts: packet.dts - first,
    duration: (packets[i + 1]?.dts ?? packet.dts + FRAME_TICKS) - packet.dts,
    compositionOffset: packet.pts - packet.dts,
    sync: packet.flags.startsWith('K'),
  }));
  const [width = 0, height = 0] = size.split('x').map(Number);
  const sets = codec === 'h264' ? avcSets(bytes) : hevcSets(bytes);
  const codecString =
    codec === 'h264' ? `avc1.${(sets.sps[0] as Buffer).subarray(1, 4).toString('hex')}` : 'hvc1.1.6.L30.90';
  const parameters: NalParameters = {
    kind: 'video',
    codec,
    width,
    height,
    ...sets,
    codecString,
    reorderDepth: undefined,
  };
  return { parameters, samples };
}

const AUDIO_CODEC_STRINGS: Readonly<Record<AudioCodec, string>> = {
  aac: 'mp4a.40.2',
  opus: 'opus',
  flac: 'flac',
  mp2: 'mp4a.40.33',
  mp3: 'mp4a.6B',
};

export function encodeAudio(directory: string, codec: AudioCodec, seconds = 2): Encoded<AudioParameters> {
  const sampleRate = codec === 'flac' ? 8000 : 48_000;
  const encoder = codec === 'opus' ? 'libopus' : codec === 'mp3' ? 'libmp3lame' : codec;
  const format = codec === 'aac' ? 'fltp' : codec === 'mp3' ? 's16p' : 's16';
  // prettier-ignore
  const { bytes, packets } = encoded(directory, ['-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=${sampleRate}:duration=${seconds}`, '-ac', '1',
    '-sample_fmt', format, '-c:a', encoder, '-strict', '-2']);
  let dts = 0;
  const usual = (packets[1]?.dts ?? 0) - (packets[0]?.dts ?? 0);
  const samples = packets.map((packet) => {
    const sample = { bytes: bytes.subarray(packet.pos, packet.pos + packet.size), size: packet.size, dts, sync: true };
    dts += usual;
    return { ...sample, duration: usual, compositionOffset: 0 };
  });
  const parameters: AudioParameters = {
    kind: 'audio',
    codec,
    sampleRate,
    channels: 1,
    config: audioConfig(bytes, codec),
    codecString: AUDIO_CODEC_STRINGS[codec],
  };
  return { parameters, samples };
}

interface ProbedPacket {
  readonly pts: number;
  readonly dts: number;
  readonly size: number;
  readonly pos: number;
  readonly duration: number;
  readonly flags: string;
}

/** Packets of stream number `stream` of a file, in file order. */
export function probePackets(file: string, stream = 0): ProbedPacket[] {
  const fields = ['pts', 'dts', 'duration', 'size', 'pos', 'flags'];
  const args = ['-v', 'error', '-select_streams', `${stream}`, '-show_entries', `packet=${fields.join(',')}`];
  const parsed = JSON.parse(execFileSync('ffprobe', [...args, '-of', 'json', file], { encoding: 'utf8' })) as {
    packets?: Record<string, string>[];
  };
  return (parsed.packets ?? []).map((packet) => ({
    pts: Number(packet['pts']),
    dts: Number(packet['dts']),
    duration: Number(packet['duration']),
    size: Number(packet['size']),
    pos: Number(packet['pos']),
    flags: packet['flags'] ?? '',
  }));
}

interface EncodedFile {
  readonly bytes: Buffer;
  readonly packets: readonly ProbedPacket[];
}

/** What ffmpeg makes of these arguments; `directory` is for its work. */
function encoded(directory: string, args: readonly string[]): EncodedFile {
  const root = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kube-nvr', 'encoded');
  const file = join(root, createHash('sha256').update(JSON.stringify(args)).digest('hex').slice(0, 24));
  if (!existsSync(`${file}.json`)) {
    mkdirSync(root, { recursive: true });
    const unique = `${process.pid}-${process.hrtime.bigint()}`;
    const made = join(directory, `encoded-${unique}.mp4`);
    execFileSync('ffmpeg', ['-v', 'error', '-y', ...args, made], { stdio: ['ignore', 'ignore', 'inherit'] });
    copyFileSync(made, `${file}.${unique}`);
    // The list last, because it says that both are there. Of two processes that make the same, the last one counts.
    renameSync(`${file}.${unique}`, `${file}.mp4`);
    writeFileSync(`${file}.${unique}`, JSON.stringify(probePackets(made)));
    renameSync(`${file}.${unique}`, `${file}.json`);
  }
  return {
    bytes: readFileSync(`${file}.mp4`),
    packets: JSON.parse(readFileSync(`${file}.json`, 'utf8')) as ProbedPacket[],
  };
}

/** The contents of the first box of a type, found by its name. */
function contentsOf(file: Buffer, type: string): Buffer {
  const at = file.indexOf(type, 0, 'latin1');
  return file.subarray(at + 4, at - 4 + file.readUInt32BE(at - 4));
}

type Sets = Pick<NalParameters, 'vps' | 'sps' | 'pps'>;

function avcSets(file: Buffer): Sets {
  const avcC = contentsOf(file, 'avcC');
  let at = 6;
  const take = (count: number): Buffer[] =>
    Array.from({ length: count }, () => {
      const nal = avcC.subarray(at + 2, at + 2 + avcC.readUInt16BE(at));
      at += 2 + nal.length;
      return Buffer.from(nal);
    });
  const sps = take(avcC.readUInt8(5) & 0x1f);
  const pps = take(avcC.readUInt8(at++));
  return { vps: [], sps, pps };
}

function hevcSets(file: Buffer): Sets {
  const hvcC = contentsOf(file, 'hvcC');
  const sets: Record<number, Buffer[]> = {};
  let at = 23;
  for (let arrays = hvcC.readUInt8(22); arrays > 0; arrays--) {
    const type = hvcC.readUInt8(at) & 0x3f;
    const count = hvcC.readUInt16BE(at + 1);
    at += 3;
    sets[type] = Array.from({ length: count }, () => {
      const nal = hvcC.subarray(at + 2, at + 2 + hvcC.readUInt16BE(at));
      at += 2 + nal.length;
      return Buffer.from(nal);
    });
  }
  return { vps: sets[32] ?? [], sps: sets[33] ?? [], pps: sets[34] ?? [] };
}

function audioConfig(file: Buffer, codec: AudioCodec): Buffer {
  if (codec === 'opus') return Buffer.from(contentsOf(file, 'dOps'));
  if (codec === 'flac') return Buffer.from(contentsOf(file, 'dfLa').subarray(8, 8 + 34));
  if (codec === 'mp2' || codec === 'mp3') return Buffer.alloc(0);
  return Buffer.from('1188', 'hex'); // AudioSpecificConfig: AAC-LC, 48 kHz, one channel
}
