// Test helpers for live streams: runs, samples and viewers.

import type { AudioParameters, NalParameters } from '../codec/access-unit.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { type Slab, SlabPool, SlabWriter } from '../codec/slab.ts';
import type { LiveFeed } from '../contract/live-feed.ts';
import type { EndReason, Run, SampleSink } from '../contract/sink.ts';
import type { Sample } from '../mp4/sample.ts';
import { parseFragment } from '../mp4/read-fragment.ts';
import { LiveHub, type LiveStats } from './hub.ts';
import type { LiveLimits } from './limits.ts';
import { SourceLimits } from './source-limits.ts';
import { LiveSource } from './source.ts';
import type { Viewer, ViewerOptions, ViewerSocket } from './viewer.ts';

export const VIDEO: NalParameters = {
  kind: 'video',
  codec: 'h264',
  width: 640,
  height: 360,
  vps: [],
  sps: [Buffer.from('6764001facd9405005bb011000000300100000030320f1831960', 'hex')],
  pps: [Buffer.from('68ebe3cb22c0', 'hex')],
  codecString: 'avc1.64001f',
  reorderDepth: 0,
};

export const AUDIO: AudioParameters = {
  kind: 'audio',
  codec: 'aac',
  sampleRate: 48_000,
  channels: 1,
  config: Buffer.from('1188', 'hex'),
  codecString: 'mp4a.40.2',
};

export const run = (changes: Partial<Run> = {}): Run => ({
  runId: '0123456789abcdef',
  lead: VIDEO,
  audio: undefined,
  ...changes,
});

/** A camera at 25 frames a second. */
export const FRAME_TICKS = 3_600;

/** Makes samples and remembers their slabs, so that a test can check whether all were released. */
export class SampleMaker {
  readonly pool = new SlabPool();
  readonly slabs = new Set<Slab>();
  readonly #writer = new SlabWriter(this.pool);

  make(changes: Partial<Sample> = {}, bytes: Buffer | number = 10): Sample {
    const content = typeof bytes === 'number' ? Buffer.alloc(bytes, 7) : bytes;
    this.#writer.append(content, 0, content.length);
    const data = this.#writer.finish();
    this.slabs.add(data.slab);
    return {
      kind: 'video',
      dts: 0,
      compositionOffset: 0,
      usualDuration: FRAME_TICKS,
      sync: true,
      data,
      wallMs: 0,
      lostPackets: 0,
      ...changes,
    };
  }

  close(): void {
    this.#writer.close();
  }
}

/** The viewers of what `feed` sends, without a border between. */
export function hubOf(feed: LiveFeed, limits: LiveLimits, clock: Clock): LiveHub {
  const watch = (): void => feed.watch((news) => hub.hear(news));
  const hub = new LiveHub({ limits, watch, unwatch: () => feed.unwatch(), clock });
  return hub;
}

/** A live stream with its viewers: both sides of it. */
export class LiveStream implements SampleSink {
  readonly #source: LiveSource;
  readonly #hub: LiveHub;

  constructor(options: {
    readonly cameraId: string;
    readonly limits: LiveLimits;
    readonly sources?: SourceLimits;
    readonly clock: Clock;
    readonly log: Log;
  }) {
    this.#source = new LiveSource({ ...options, limits: options.sources ?? new SourceLimits() });
    this.#hub = hubOf(this.#source, options.limits, options.clock);
  }

  get stats(): LiveStats {
    return this.#hub.stats;
  }

  get cachedBytes(): number {
    return this.#source.cachedBytes;
  }

  add(socket: ViewerSocket, options?: ViewerOptions): Viewer | undefined {
    return this.#hub.add(socket, options);
  }

  remove(viewer: Viewer): void {
    this.#hub.remove(viewer);
  }

  begin(run: Run): void {
    this.#source.begin(run);
  }

  change(run: Run): void {
    this.#source.change(run);
  }

  sample(sample: Sample): void {
    this.#source.sample(sample);
  }

  end(reason: EndReason): void {
    this.#source.end(reason);
  }

  keyFrame(): Buffer | undefined {
    return this.#source.keyFrame();
  }

  close(): void {
    this.#source.close();
  }
}

/** The content of one message. */
interface Seen {
  readonly kind: 'init' | 'video' | 'audio';
  readonly decodeTime: number;
  readonly compositionOffset: number;
  readonly duration: number;
  readonly sync: boolean;
  readonly payload: Buffer;
}

export function parseMessage(message: Buffer): Seen {
  if (message.toString('latin1', 4, 8) === 'ftyp') {
    return { kind: 'init', decodeTime: 0, compositionOffset: 0, duration: 0, sync: false, payload: message };
  }
  const moofSize = message.readUInt32BE(0);
  const track = parseFragment(message.subarray(0, moofSize)).tracks[0];
  const sample = track?.samples[0];
  if (!track || !sample) throw new Error('a message without sample');
  return {
    kind: track.trackId === 1 ? 'video' : 'audio',
    decodeTime: track.baseDecodeTime,
    compositionOffset: sample.compositionOffset,
    duration: sample.duration,
    sync: sample.sync,
    payload: message.subarray(moofSize + 8),
  };
}

/** A viewer whose connection takes what the test lets it take. */
export class FakeSocket implements ViewerSocket {
  readonly messages: Buffer[] = [];
  closed: { code: number; reason: string } | undefined;
  /** True: nothing is sent. */
  stalled = false;
  bufferedBytes = 0;
  isCopying = false;
  isTerminated = false;
  readonly #waiting: (() => void)[] = [];

  send(message: Buffer, sent: () => void): void {
    this.messages.push(message);
    if (!this.stalled) return sent();
    this.bufferedBytes += message.length;
    this.#waiting.push(sent);
    return undefined;
  }

  /** Sends everything that waits, and lets what follows through. */
  drain(): void {
    this.stalled = false;
    this.bufferedBytes = 0;
    for (const sent of this.#waiting.splice(0)) sent();
  }

  close(code: number, reason: string): void {
    this.closed = { code, reason };
  }

  terminate(): void {
    this.isTerminated = true;
  }

  closeCode(): number | undefined {
    return this.closed?.code;
  }

  get seen(): Seen[] {
    return this.messages.map(parseMessage);
  }

  /** Message kinds in order, key frames in capitals: `init VIDEO video audio`. */
  get outline(): string {
    return this.seen.map(({ kind, sync }) => (kind === 'video' && sync ? 'VIDEO' : kind)).join(' ');
  }
}
