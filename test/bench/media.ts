// Makes the media of the bench's cameras: ffmpeg encodes it once, and it is packetized here (RFC 6184, RFC 3640) into one file
// that the sender replays. The file also serves to check afterwards whether recorded pictures are complete.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/** Sixteen seconds contain whole numbers of pictures (40 ms), groups of pictures (1 or 2 s) and AAC frames (64/3 ms). */
const SECONDS = 16;
export const FRAMES_PER_SECOND = 25;
const SAMPLE_RATE = 48_000;
const AUDIO_FRAMES = (SECONDS * SAMPLE_RATE) / 1024;
/** Payload bytes of the largest packet: including headers it fits into an Ethernet frame. */
const MAX_PAYLOAD = 1400;
/** Part of the cached file's name: increase it when the encoding or the format changes. */
const VERSION = 1;

interface MediaKind {
  /** Part of the cached file's name. */
  readonly name: string;
  /** ffmpeg's input: what the pictures show. */
  readonly picture: string;
  readonly kilobitsPerSecond: number;
  /** Pictures between key frames. */
  readonly gopFrames: number;
  readonly hasAudio: boolean;
}

/** Moving pictures with enough noise to use 4 Mbit/s, and audio. */
const FULL_HD: MediaKind = {
  name: 'media',
  picture: `testsrc2=size=1920x1080:rate=${FRAMES_PER_SECOND},noise=alls=12:allf=t`,
  kilobitsPerSecond: 4_000,
  gopFrames: 50,
  hasAudio: true,
};

/** The usual number of pictures with as few bytes as possible: for hundreds of cameras on one machine. */
export const tinyPictures = (keyFrameSeconds: number): MediaKind => ({
  name: `tiny-${keyFrameSeconds}s`,
  picture: `testsrc2=size=160x90:rate=${FRAMES_PER_SECOND}`,
  kilobitsPerSecond: 60,
  gopFrames: keyFrameSeconds * FRAMES_PER_SECOND,
  hasAudio: false,
});

export interface Media {
  /** The file for the sender. */
  readonly path: string;
  /** CRC-32 of each picture's slices, in order; the sender repeats them endlessly. */
  readonly pictures: readonly number[];
  /** CRC-32 of each AAC frame. */
  readonly audio: readonly number[];
  readonly bytesPerSecond: number;
  readonly packetsPerSecond: number;
}

const encode = (options: readonly string[], what: string): Buffer => {
  const words = ['-nostdin -v error', ...options, '-'].join(' ').split(' ');
  const run = spawnSync('ffmpeg', words, { maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(`ffmpeg could not encode ${what}: ${run.stderr.toString()}`);
  return run.stdout;
};

/** One slice and no B pictures, as in cameras. */
function encodeVideo({ picture, kilobitsPerSecond: rate, gopFrames }: MediaKind): Buffer {
  return encode(
    [
      `-f lavfi -i ${picture} -t ${SECONDS}`,
      '-pix_fmt yuv420p -c:v libx264 -preset superfast -profile:v main -bf 0',
      `-g ${gopFrames} -keyint_min ${gopFrames} -sc_threshold 0 -b:v ${rate}k -maxrate ${rate}k -bufsize ${rate / 2}k`,
      '-x264-params slices=1:sliced-threads=0:repeat-headers=1:aud=0 -f h264',
    ],
    'video',
  );
}

const encodeAudio = (): Buffer =>
  encode(
    [
      `-f lavfi -i sine=frequency=440:sample_rate=${SAMPLE_RATE}`,
      `-f lavfi -i anoisesrc=amplitude=0.1:sample_rate=${SAMPLE_RATE}:seed=1`,
      `-filter_complex amix=inputs=2 -ac 1 -t ${SECONDS + 1} -c:a aac -b:a 64k -f adts`,
    ],
    'audio',
  );

/** The NAL units of an Annex B stream, without start codes. */
function splitAnnexB(stream: Buffer): Buffer[] {
  const code = Buffer.from([0, 0, 1]);
  const nals: Buffer[] = [];
  for (let start = stream.indexOf(code); start >= 0;) {
    const next = stream.indexOf(code, start + 3);
    let end = next < 0 ? stream.length : next;
    while (end > start + 3 && stream[end - 1] === 0) end--;
    nals.push(stream.subarray(start + 3, end));
    start = next;
  }
  return nals;
}

/** The raw AAC frames of an ADTS stream (ISO/IEC 14496-3 §1.A.3.2). */
function splitAdts(stream: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at + 7 <= stream.length;) {
    const size = (stream.readUInt32BE(at + 2) >> 5) & 0x1fff;
    const header = ((stream[at + 1] as number) & 1) === 1 ? 7 : 9;
    frames.push(stream.subarray(at + header, at + size));
    at += size;
  }
  return frames;
}

interface Picture {
  key: boolean;
  parameterSets: Buffer[];
  slices: Buffer[];
}

function groupPictures(nals: readonly Buffer[]): Picture[] {
  const pictures: Picture[] = [];
  let parameterSets: Buffer[] = [];
  for (const nal of nals) {
    const type = (nal[0] as number) & 0x1f;
    if (type === 7 || type === 8) parameterSets.push(nal);
    if (type !== 1 && type !== 5) continue;
    pictures.push({ key: type === 5, parameterSets, slices: [nal] });
    parameterSets = [];
  }
  return pictures;
}

/** Makes RTP payloads of a NAL unit: one, or several FU-A fragments (RFC 6184 §5.8). */
function packetize(nal: Buffer): Buffer[] {
  if (nal.length <= MAX_PAYLOAD) return [nal];
  const header = nal[0] as number;
  const payloads: Buffer[] = [];
  for (let at = 1; at < nal.length; at += MAX_PAYLOAD - 2) {
    const end = Math.min(nal.length, at + MAX_PAYLOAD - 2);
    const flags = (at === 1 ? 0x80 : 0) | (end === nal.length ? 0x40 : 0);
    payloads.push(Buffer.concat([Buffer.from([(header & 0xe0) | 28, flags | (header & 0x1f)]), nal.subarray(at, end)]));
  }
  return payloads;
}

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};

const sdpOf = (sps: Buffer, pps: Buffer, hasAudio: boolean): string =>
  [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    's=bench',
    't=0 0',
    'a=control:*',
    'm=video 0 RTP/AVP 96',
    'c=IN IP4 0.0.0.0',
    'a=rtpmap:96 H264/90000',
    `a=fmtp:96 packetization-mode=1;profile-level-id=${sps.toString('hex', 1, 4)};` +
      `sprop-parameter-sets=${sps.toString('base64')},${pps.toString('base64')}`,
    'a=control:trackID=0',
    ...(hasAudio ? AUDIO_SDP : []),
    '',
  ].join('\r\n');

const AUDIO_SDP = [
  'm=audio 0 RTP/AVP 97',
  'c=IN IP4 0.0.0.0',
  `a=rtpmap:97 MPEG4-GENERIC/${SAMPLE_RATE}/1`,
  // AudioSpecificConfig: AAC-LC, 48 kHz, one channel.
  'a=fmtp:97 streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config=1188',
  'a=control:trackID=1',
];

/** `audio`: an ADTS stream; undefined for a camera without audio. */
function build(video: Buffer, audio: Buffer | undefined): { file: Buffer; sums: Omit<Media, 'path'> } {
  const pictures = groupPictures(splitAnnexB(video));
  const frames = audio ? splitAdts(audio).slice(1, 1 + AUDIO_FRAMES) : [];
  if (pictures.length !== SECONDS * FRAMES_PER_SECOND || (audio && frames.length !== AUDIO_FRAMES)) {
    throw new Error(`ffmpeg made ${pictures.length} pictures and ${frames.length} audio frames`);
  }
  const [sps, pps] = (pictures[0] as Picture).parameterSets as [Buffer, Buffer];
  const sdp = Buffer.from(sdpOf(sps, pps, audio !== undefined));
  const parts = [Buffer.from('KNB1'), u32(sdp.length), sdp, u32(pictures.length), u32(frames.length), u32(SAMPLE_RATE)];
  let bytes = 0;
  let packets = 0;
  for (const picture of pictures) {
    const before = picture.parameterSets.flatMap((nal) => packetize(nal));
    const payloads = [...before, ...picture.slices.flatMap((nal) => packetize(nal))];
    parts.push(u32(picture.key ? 1 : 0), u32(before.length), u32(payloads.length));
    for (const [i, payload] of payloads.entries()) {
      const marker = i === payloads.length - 1 ? 0x8000_0000 : 0;
      parts.push(u32(payload.length | marker), payload);
      bytes += payload.length + 16;
    }
    packets += payloads.length + 1;
  }
  for (const frame of frames) {
    // RFC 3640 §3.2.1: 16 bits of AU-headers-length, then one header with 13 bits of size and 3 bits of index.
    const headers = Buffer.from([0, 16, frame.length >> 5, (frame.length << 3) & 0xff]);
    parts.push(u32(frame.length + 4), headers, frame);
    bytes += frame.length + 20;
    packets++;
  }
  return {
    file: Buffer.concat(parts),
    sums: {
      pictures: pictures.map((picture) => crc32(Buffer.concat(picture.slices))),
      audio: frames.map((frame) => crc32(frame)),
      bytesPerSecond: bytes / SECONDS,
      packetsPerSecond: packets / SECONDS,
    },
  };
}

/** The cameras' media, made on the first run and kept in `cacheDirectory`. */
export function prepareMedia(cacheDirectory: string, kind: MediaKind = FULL_HD): Media {
  const path = join(cacheDirectory, `${kind.name}-${VERSION}.bin`);
  const sumsPath = join(cacheDirectory, `${kind.name}-${VERSION}.json`);
  if (!existsSync(path) || !existsSync(sumsPath)) {
    mkdirSync(cacheDirectory, { recursive: true });
    const { file, sums } = build(encodeVideo(kind), kind.hasAudio ? encodeAudio() : undefined);
    writeFileSync(`${path}.new`, file);
    renameSync(`${path}.new`, path);
    writeFileSync(sumsPath, JSON.stringify(sums));
  }
  return { path, ...(JSON.parse(readFileSync(sumsPath, 'utf8')) as Omit<Media, 'path'>) };
}
