// A recorded file in memory as the archive would write it, for tests of its contents.

import type { AudioParameters, NalParameters } from '../../recorder/codec/access-unit.ts';
import type { SegmentClosing, SegmentMeta } from '../../recorder/mp4/meta.ts';
import type { ReadAt } from '../../recorder/mp4/reader.ts';
import { SampleChecksum } from '../../recorder/mp4/sample-checksum.ts';
import type { TrackParameters } from '../../recorder/mp4/sample.ts';
import type { SegmentEnd } from '../../recorder/mp4/segment.ts';
import { SegmentWriter } from '../../recorder/mp4/segment.ts';
import type { Encoded, EncodedSample } from './encoded-samples.ts';

export const meta: SegmentMeta = {
  cameraId: 'gate-1',
  runId: '0123456789abcdef',
  sequence: 7,
  wallStartMs: Date.UTC(2026, 5, 1, 12) + 0.25,
  clock: 'settling',
  gapBeforeMs: 1234,
};

const FRAGMENT_MS = 1000;

export class RecordedFile {
  bytes: Buffer;
  readonly writer: SegmentWriter;
  /** The end of each fragment. */
  readonly fragmentEnds: number[] = [];
  /** The number of video samples in each fragment. */
  readonly fragmentPictures: number[] = [];

  constructor(tracks: readonly TrackParameters[], writer = new SegmentWriter(tracks, meta)) {
    this.writer = writer;
    this.bytes = writer.header();
  }

  /** Fragments of one second each, video first. */
  static of(video: Encoded<NalParameters>, audio: Encoded<AudioParameters> | undefined): RecordedFile {
    const file = new RecordedFile(audio ? [video.parameters, audio.parameters] : [video.parameters]);
    file.appendAll(video, audio);
    return file;
  }

  appendAll(
    video: Encoded<NalParameters>,
    audio: Encoded<AudioParameters> | undefined,
    fragmentMs = FRAGMENT_MS,
  ): void {
    const audioRate = audio?.parameters.sampleRate ?? 1;
    const within = (ms: number, ticks: number, rate: number): boolean =>
      (ticks * 1000) / rate >= ms && (ticks * 1000) / rate < ms + fragmentMs;
    const lastMs = Math.max(
      ((video.samples.at(-1)?.dts ?? 0) / 90_000) * 1000,
      ((audio?.samples.at(-1)?.dts ?? 0) / audioRate) * 1000,
    );
    for (let ms = 0; ms <= lastMs; ms += fragmentMs) {
      this.append(
        video.samples.filter((sample) => within(ms, sample.dts, 90_000)),
        audio?.samples.filter((sample) => within(ms, sample.dts, audioRate)),
      );
    }
  }

  append(video: readonly EncodedSample[], audio: readonly EncodedSample[] = []): void {
    const tracks = [
      { trackId: 1, baseDecodeTime: video[0]?.dts ?? 0, samples: video },
      { trackId: 2, baseDecodeTime: audio[0]?.dts ?? 0, samples: audio },
    ];
    const samples = Buffer.concat([...video, ...audio].map(({ bytes }) => bytes));
    const checksum = new SampleChecksum();
    checksum.add(samples);
    const head = this.writer.append(tracks, checksum.value);
    this.bytes = Buffer.concat([this.bytes, head, samples]);
    this.fragmentEnds.push(this.bytes.length);
    this.fragmentPictures.push(video.length);
  }

  finish(closing?: SegmentClosing): SegmentEnd {
    const end = this.writer.finish(closing);
    this.bytes = complete(this.bytes, end);
    return end;
  }

  progressive(): Buffer {
    const { header, ranges } = this.writer.progressive();
    return Buffer.concat([header, ...ranges.map(({ offset, size }) => this.bytes.subarray(offset, offset + size))]);
  }
}

/** Completes a file as the archive does. */
export function complete(bytes: Buffer, { tail, patch }: SegmentEnd): Buffer {
  const whole = Buffer.concat([bytes, tail]);
  patch.bytes.copy(whole, patch.offset);
  return whole;
}

/** The arguments of reading functions for a file in memory. */
export const readFrom = (bytes: Buffer): [ReadAt, number] => [
  async (offset, length) => bytes.subarray(offset, offset + length),
  bytes.length,
];

/** Samples that cannot be decoded, for tests of times and offsets. */
export function fakeVideo(frames: number): Encoded<NalParameters> {
  const bytes = Buffer.from('00000003658880', 'hex');
  return {
    parameters: {
      kind: 'video',
      codec: 'h264',
      width: 160,
      height: 96,
      vps: [],
      sps: [Buffer.from('6742c00ad90283f42000000300200000061e284f', 'hex')],
      pps: [Buffer.from('68cb83cb20', 'hex')],
      codecString: 'avc1.42c00a',
      reorderDepth: 0,
    },
    samples: Array.from({ length: frames }, (_, i) => ({
      bytes,
      size: bytes.length,
      dts: i * 3600,
      duration: 3600,
      compositionOffset: 0,
      sync: i % 25 === 0,
    })),
  };
}

export function fakeAudio(frames: number): Encoded<AudioParameters> {
  const bytes = Buffer.from('0102030405', 'hex');
  return {
    parameters: {
      kind: 'audio',
      codec: 'aac',
      sampleRate: 48_000,
      channels: 1,
      config: Buffer.from('1188', 'hex'),
      codecString: 'mp4a.40.2',
    },
    samples: Array.from({ length: frames }, (_, i) => ({
      bytes,
      size: bytes.length,
      dts: i * 1024,
      duration: 1024,
      compositionOffset: 0,
      sync: true,
    })),
  };
}
