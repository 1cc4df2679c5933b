// Recordings with numbered pictures, made quickly by the recorder's own archive: a virtual clock advances with what a camera
// sends. The pictures are those of `camera/media.ts`, repeated.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import type { CameraArchive } from '../../recorder/archive/segments/camera-archive.ts';
import { TestFileSystem } from '../../recorder/archive/test-support.ts';
import type { EndReason, Run } from '../../recorder/contract/sink.ts';
import type { AudioParameters, VideoParameters } from '../../recorder/codec/access-unit.ts';
import { SlabPool, SlabWriter } from '../../recorder/codec/slab.ts';
import type { Sample } from '../../recorder/mp4/sample.ts';
import type { AudioMedia, VideoFrame, VideoMedia } from '../camera/media.ts';
import { nalType } from './packetize.ts';

const TICKS_PER_MS = 90;
const STEP_FRAMES = 25;

interface FootageOptions {
  readonly startMs?: number;
  /** Directory for the files; default: one that is removed after the test. */
  readonly root?: string;
}

interface FootageCameraOptions {
  readonly cameraId?: string;
  readonly name?: string;
  readonly video: VideoMedia;
  readonly audio?: AudioMedia;
  readonly format?: 'fmp4' | 'mp4';
  readonly segmentDurationMs?: number;
}

/** An archive with its own clock. */
export class Footage {
  readonly root: string;
  readonly clock: VirtualClock;
  readonly fs: TestFileSystem;
  readonly archive: Archive;

  private constructor(root: string, startMs: number) {
    this.root = root;
    this.clock = new VirtualClock(startMs);
    this.fs = new TestFileSystem(root);
    this.archive = new Archive({ root, clock: this.clock, log: silentLog, fs: this.fs, syncIntervalMs: 5_000 });
  }

  static async open(t: Pick<TestContext, 'after'>, options: FootageOptions = {}): Promise<Footage> {
    const root = options.root ?? mkdtempSync(join(tmpdir(), 'kube-nvr-footage-'));
    const footage = new Footage(root, options.startMs ?? Date.UTC(2026, 0, 1, 12));
    await footage.archive.recover();
    t.after(async () => {
      await footage.archive.close();
      if (options.root === undefined) rmSync(root, { recursive: true, force: true });
    });
    return footage;
  }

  camera(options: FootageCameraOptions): FootageCamera {
    return new FootageCamera(this, options);
  }
}

export class FootageCamera {
  readonly recording: CameraArchive;
  readonly video: VideoMedia;
  readonly #footage: Footage;
  readonly #audio: AudioMedia | undefined;
  readonly #pool = new SlabPool();
  readonly #writers = { video: new SlabWriter(this.#pool), audio: new SlabWriter(this.#pool) };
  readonly #reorderTicks: number;
  #sentFrames = 0;
  #sentAudio = 0;
  #runs = 0;
  #startMs = 0;

  constructor(footage: Footage, options: FootageCameraOptions) {
    const { cameraId = 'gate', name = 'Gate', format = 'fmp4', segmentDurationMs = 60_000 } = options;
    this.#footage = footage;
    this.video = options.video;
    this.#audio = options.audio;
    // Decoding times are relative to the first one; display is later by the encoder's reordering delay.
    this.#reorderTicks = Math.max(0, ...this.video.frames.map(({ pts90k, dts90k }) => dts90k - pts90k));
    this.recording = footage.archive.sinkFor(
      { cameraId, name, format, segmentDurationMs },
      { needKeyFrame: () => undefined },
    );
  }

  /** Starts a run; its first picture has the number of the video's first one. */
  begin(): void {
    this.#sentFrames = 0;
    this.#sentAudio = 0;
    this.#startMs = this.#footage.clock.wallMs();
    const run: Run = {
      runId: (++this.#runs).toString(16).padStart(16, '0'),
      lead: videoParameters(this.video),
      audio: this.#audio && audioParameters(this.#audio),
    };
    this.recording.begin(run);
  }

  end(reason: EndReason = 'stopped'): void {
    this.recording.end(reason);
  }

  /** Sends for `seconds`, advancing the clock and letting the disk work. */
  async play(seconds: number): Promise<void> {
    const { clock, fs } = this.#footage;
    const end = this.#sentFrames + Math.round(seconds * this.video.framesPerSecond);
    while (this.#sentFrames < end) {
      this.#sendFrame();
      clock.advance(1000 / this.video.framesPerSecond);
      this.recording.tick();
      if (this.#sentFrames % STEP_FRAMES === 0) await fs.idle();
    }
    await fs.idle();
  }

  #sendFrame(): void {
    const { frames, framesPerSecond } = this.video;
    const frameTicks = 90_000 / framesPerSecond;
    const loop = Math.floor(this.#sentFrames / frames.length);
    const frame = frames[this.#sentFrames % frames.length] as VideoFrame;
    const dts = loop * frames.length * frameTicks + frame.dts90k;
    const compositionOffset = frame.pts90k - frame.dts90k + this.#reorderTicks;
    this.#sentFrames++;
    this.#send('video', {
      kind: 'video',
      dts,
      compositionOffset,
      usualDuration: frameTicks,
      sync: frame.key,
      bytes: lengthPrefixed(frame.nals),
      wallMs: this.#startMs + (dts + compositionOffset - this.#reorderTicks) / TICKS_PER_MS,
    });
    const audio = this.#audio;
    if (!audio) return;
    const perLoop = audio.frames.length * audio.samplesPerFrame;
    while ((this.#sentAudio * audio.samplesPerFrame) / audio.sampleRate < dts / 90_000 + 1 / framesPerSecond) {
      const data = (audio.frames[this.#sentAudio % audio.frames.length] as { data: Buffer }).data;
      const time = this.#sentAudio * audio.samplesPerFrame;
      this.#sentAudio++;
      this.#send('audio', {
        kind: 'audio',
        dts: time,
        compositionOffset: 0,
        usualDuration: Math.min(audio.samplesPerFrame, perLoop),
        sync: true,
        bytes: data,
        wallMs: this.#startMs + (time / audio.sampleRate) * 1000,
      });
    }
  }

  #send(kind: 'video' | 'audio', sample: Omit<Sample, 'data' | 'lostPackets'> & { readonly bytes: Buffer }): void {
    const { bytes, ...rest } = sample;
    const writer = this.#writers[kind];
    writer.append(bytes, 0, bytes.length);
    const data = writer.finish();
    this.recording.sample({ ...rest, data, lostPackets: 0 });
    data.slab.release();
  }
}

/** An access unit as it is stored. */
export function lengthPrefixed(nals: readonly Buffer[]): Buffer {
  return Buffer.concat(
    nals.flatMap((nal) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(nal.length);
      return [length, nal];
    }),
  );
}

function videoParameters({ codec, width, height, frames }: VideoMedia): VideoParameters {
  if (codec !== 'h264' && codec !== 'h265') throw new Error('footage has H.264 or H.265');
  const nals = (frames[0] as VideoFrame).nals;
  const of = (type: number): Buffer[] => nals.filter((nal) => nalType(nal, codec) === type);
  const sets = codec === 'h264' ? { vps: [], sps: of(7), pps: of(8) } : { vps: of(32), sps: of(33), pps: of(34) };
  const codecString = codec === 'h264' ? `avc1.${(sets.sps[0] as Buffer).toString('hex', 1, 4)}` : 'hvc1.1.6.L60.90';
  return { kind: 'video', codec, width, height, ...sets, codecString, reorderDepth: undefined };
}

function audioParameters({ codec, sampleRate, channels }: AudioMedia): AudioParameters {
  if (codec !== 'aac' || sampleRate !== 16_000) throw new Error('footage has AAC of 16 kHz, or no audio');
  // AudioSpecificConfig: AAC-LC, 16 kHz, one channel.
  return { kind: 'audio', codec, sampleRate, channels, config: Buffer.from('1408', 'hex'), codecString: 'mp4a.40.2' };
}
