// A camera without RTSP for tests of live streams: sends samples to a hub in real time.

import type { AudioParameters, NalParameters } from '../../recorder/codec/access-unit.ts';
import { SlabPool, SlabWriter } from '../../recorder/codec/slab.ts';
import type { SampleSink } from '../../recorder/contract/sink.ts';
import { nalType } from '../support/packetize.ts';
import type { VideoMedia } from '../camera/media.ts';

const TICK_MS = 5;

/** The frames of one track in decoding order, repeated. */
interface Frame {
  readonly bytes: Buffer;
  /** Ticks since the start of the media. */
  readonly dts: number;
  readonly compositionOffset: number;
  readonly sync: boolean;
}

export interface FeedTrack<Parameters> {
  readonly parameters: Parameters;
  readonly frames: readonly Frame[];
  /** Ticks after which the media starts over. */
  readonly lengthTicks: number;
  readonly usualDuration: number;
}

/** Pictures of `media`, whose numbers `videoState` reads from the screen. */
export function feedVideo(media: VideoMedia): FeedTrack<NalParameters> {
  const sets = media.frames[0]?.nals ?? [];
  const sps = sets.filter((nal) => nalType(nal, 'h264') === 7);
  const ticks = 90_000 / media.framesPerSecond;
  return {
    parameters: {
      kind: 'video',
      codec: 'h264',
      width: media.width,
      height: media.height,
      vps: [],
      sps,
      pps: sets.filter((nal) => nalType(nal, 'h264') === 8),
      codecString: `avc1.${(sps[0] as Buffer).toString('hex', 1, 4)}`,
      reorderDepth: undefined,
    },
    frames: media.frames.map((frame) => ({
      bytes: Buffer.concat(frame.nals.flatMap((nal) => [lengthOf(nal), nal])),
      dts: frame.dts90k,
      compositionOffset: frame.pts90k - frame.dts90k,
      sync: frame.key,
    })),
    lengthTicks: media.frames.length * ticks,
    usualDuration: ticks,
  };
}

function lengthOf(nal: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(nal.length);
  return length;
}

/** Plays one track; frames selected by `drop` are not sent. */
class TrackFeed {
  readonly #track: FeedTrack<NalParameters | AudioParameters>;
  readonly #timescale: number;
  #next = 0;
  drop: (frame: Frame, seconds: number) => boolean = () => false;

  constructor(track: FeedTrack<NalParameters | AudioParameters>) {
    this.#track = track;
    this.#timescale = track.parameters.kind === 'video' ? 90_000 : track.parameters.sampleRate;
  }

  /** Sends what is due `seconds` after the start. */
  run(seconds: number, sink: SampleSink, writer: SlabWriter): void {
    const { frames, lengthTicks, parameters, usualDuration } = this.#track;
    for (;;) {
      const frame = frames[this.#next % frames.length] as Frame;
      const dts = frame.dts + Math.floor(this.#next / frames.length) * lengthTicks;
      if (dts / this.#timescale > seconds) return;
      this.#next++;
      if (this.drop(frame, dts / this.#timescale)) continue;
      writer.append(frame.bytes, 0, frame.bytes.length);
      const data = writer.finish();
      const { compositionOffset, sync } = frame;
      sink.sample({
        kind: parameters.kind,
        dts,
        compositionOffset,
        usualDuration,
        sync,
        data,
        wallMs: 0,
        lostPackets: 0,
      });
      data.slab.release();
    }
  }
}

export class LiveFeed {
  readonly #sink: SampleSink;
  readonly #writer = new SlabWriter(new SlabPool());
  readonly #video: TrackFeed;
  readonly #audio: TrackFeed | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #startMs = performance.now();

  /** Starts a run and sends it in real time until `stop`. */
  constructor(sink: SampleSink, video: FeedTrack<NalParameters>, audio?: FeedTrack<AudioParameters>) {
    this.#sink = sink;
    this.#video = new TrackFeed(video);
    this.#audio = audio && new TrackFeed(audio);
    sink.begin({ runId: '0000000000000000', lead: video.parameters, audio: audio?.parameters });
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  get seconds(): number {
    return (performance.now() - this.#startMs) / 1000;
  }

  /** Selects the frames that are lost, by their time in seconds since the start. */
  dropVideo(drop: (frame: { sync: boolean }, seconds: number) => boolean): void {
    this.#video.drop = drop;
  }

  dropAudio(drop: (seconds: number) => boolean): void {
    if (this.#audio) this.#audio.drop = (_frame, seconds) => drop(seconds);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#sink.end('camera-lost');
    this.#writer.close();
  }

  #tick(): void {
    const { seconds } = this;
    this.#video.run(seconds, this.#sink, this.#writer);
    this.#audio?.run(seconds, this.#sink, this.#writer);
  }
}
