// For this room's tests: a camera that a virtual clock drives, and a file system that can be stalled, broken and killed.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
import type { EndReason, Run, SampleSink } from '../contract/sink.ts';
import type { AudioParameters, NalParameters } from '../codec/access-unit.ts';
import { Slab, SlabPool, SlabWriter } from '../codec/slab.ts';
import type { RecordedMeta } from '../mp4/meta.ts';
import type { Sample } from '../mp4/sample.ts';
import { readSampleIndex, type TrackIndex } from '../mp4/sample-index.ts';
import { Archive } from './archive.ts';
import { noObserver, type SegmentObserver } from './catalogue/observer.ts';
import { nodeFileSystem, type FileFacts, type FileSystem, type OpenFile, type Space } from './disk/file-system.ts';
import type { CameraArchive } from './segments/camera-archive.ts';

/** A directory that is gone after the test. */
export function temporaryDirectory(t: { after(callback: () => void): void }): string {
  const directory = mkdtempSync(join(tmpdir(), 'archive-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export const VIDEO: NalParameters = {
  kind: 'video',
  codec: 'h264',
  width: 160,
  height: 96,
  vps: [],
  sps: [Buffer.from('6742c00ad90283f42000000300200000061e284f', 'hex')],
  pps: [Buffer.from('68cb83cb20', 'hex')],
  codecString: 'avc1.42c00a',
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

export const runOf = (changes: Partial<Run> = {}): Run => ({
  runId: '00000000000000aa',
  lead: VIDEO,
  audio: undefined,
  ...changes,
});

const START_DTS = 900_000;
const HUGE_BYTES = 64 * 1024 * 1024;

interface VideoOptions {
  readonly sync: boolean;
  readonly ticks: number;
  readonly bytes: number;
  readonly lostPackets: number;
  readonly wallMs: number;
  readonly compositionOffset: number;
}

/** Sends samples that carry their own time, at a steady pace or one by one. */
export class TestCamera {
  readonly clock: VirtualClock;
  readonly pool = new SlabPool();
  readonly sink: SampleSink;
  readonly #writers = { video: new SlabWriter(this.pool), audio: new SlabWriter(this.pool) };
  readonly #tick: () => void;
  #huge: Slab | undefined;
  framesPerSecond = 25;
  /** Pictures from one key frame to the next. */
  keyFrameInterval = 25;
  bytesPerFrame = 200;
  #sinceKey = 0;
  videoDts = START_DTS;
  audioDts = 0;
  #audio: AudioParameters | undefined;
  /** Wall clock of the camera's run minus its media time. */
  #wallOffsetMs = 0;

  constructor(clock: VirtualClock, sink: SampleSink, tick: () => void) {
    this.clock = clock;
    this.sink = sink;
    this.#tick = tick;
  }

  begin(run: Run = runOf()): void {
    this.videoDts = START_DTS;
    this.audioDts = Math.round((START_DTS * (run.audio?.sampleRate ?? 0)) / 90_000);
    this.#audio = run.audio;
    this.#sinceKey = 0;
    this.#wallOffsetMs = this.clock.wallMs() - START_DTS / 90;
    this.sink.begin(run);
  }

  end(reason: EndReason = 'stopped'): void {
    this.sink.end(reason);
  }

  /** The next sample is a key frame. */
  keyFrameNext(): void {
    this.#sinceKey = 0;
  }

  /** One picture that takes `ticks`, without moving the clock. */
  video(options: Partial<VideoOptions> = {}): void {
    const ticks = options.ticks ?? 90_000 / this.framesPerSecond;
    const sync = options.sync ?? this.#sinceKey === 0;
    this.#sinceKey = (sync ? 1 : this.#sinceKey + 1) % this.keyFrameInterval;
    this.#send({
      kind: 'video',
      dts: this.videoDts,
      compositionOffset: options.compositionOffset ?? 0,
      usualDuration: 90_000 / this.framesPerSecond,
      sync,
      data: this.#data('video', this.videoDts, options.bytes ?? this.bytesPerFrame),
      wallMs: options.wallMs ?? this.#wallOffsetMs + this.videoDts / 90,
      lostPackets: options.lostPackets ?? 0,
    });
    this.videoDts += ticks;
  }

  /** One huge picture; all of them share their memory. */
  hugeVideo(sync: boolean): void {
    this.#huge ??= new Slab(Buffer.alloc(HUGE_BYTES), undefined);
    const data = { slab: this.#huge, offset: 0, size: HUGE_BYTES };
    const { videoDts: dts } = this;
    const wallMs = this.#wallOffsetMs + dts / 90;
    const ticks = 90_000 / this.framesPerSecond;
    const sample = { dts, compositionOffset: 0, usualDuration: ticks, sync, data, wallMs, lostPackets: 0 };
    this.sink.sample({ kind: 'video', ...sample });
    this.videoDts += ticks;
    this.clock.advance(ticks / 90);
  }

  /** One audio frame, without moving the clock. */
  audio(ticks = 1024): void {
    const rate = this.#audio?.sampleRate ?? 1;
    this.#send({
      kind: 'audio',
      dts: this.audioDts,
      compositionOffset: 0,
      usualDuration: ticks,
      sync: true,
      data: this.#data('audio', this.audioDts, 60),
      wallMs: this.#wallOffsetMs + (this.audioDts * 1000) / rate,
      lostPackets: 0,
    });
    this.audioDts += ticks;
  }

  /** Sends for `seconds` as a camera does, the clock going along; with `fs`, the disk works meanwhile. */
  async play(seconds: number, fs?: Pick<TestFileSystem, 'idle'>): Promise<void> {
    const end = this.videoDts + Math.round(seconds * 90_000);
    while (this.videoDts < end) {
      const before = this.videoDts;
      this.video();
      if (this.#audio) {
        const until = (this.videoDts * this.#audio.sampleRate) / 90_000;
        while (this.audioDts < until) this.audio();
      }
      this.clock.advance((this.videoDts - before) / 90);
      this.#tick();
      if (fs && this.#sinceKey % 25 === 0) await fs.idle();
    }
    await fs?.idle();
  }

  /** Lets time pass without samples. */
  async wait(ms: number, fs: Pick<TestFileSystem, 'idle'>): Promise<void> {
    for (let left = ms; left > 0; left -= 250) {
      this.clock.advance(Math.min(250, left));
      this.#tick();
      await fs.idle();
    }
  }

  #send(sample: Sample): void {
    this.sink.sample(sample);
    sample.data.slab.release();
  }

  #data(kind: 'video' | 'audio', dts: number, bytes: number): Sample['data'] {
    const writer = this.#writers[kind];
    const unit = Buffer.alloc(Math.max(11, bytes), 0x55);
    unit.writeUInt32BE(unit.length - 4, 0);
    unit.writeUInt8(0x65, 4);
    unit.writeUIntBE(dts, 5, 6);
    writer.append(unit, 0, unit.length);
    return writer.finish();
  }
}

interface Operation {
  readonly name: keyof FileSystem | keyof OpenFile;
  /** Relative to the root of the test. */
  readonly path: string;
}

/** Tests do not pull plugs: what syncs do cannot be seen, and they take most of the time. */
const nothing = async (): Promise<void> => {};

/** The real file system, but for syncs, behind a hook that may throw or wait. Counts what is under way. */
export class TestFileSystem implements FileSystem {
  readonly #root: string;
  /** Called before each operation; what it throws is the operation's failure. */
  before: (operation: Operation) => void | Promise<void> = () => {};
  /** Writes seem to succeed and leave nothing: for files that are too large for a test. */
  swallows = false;
  readonly operations: Operation[] = [];
  #busy = 0;
  #waiting = 0;
  #killed = false;
  #tearAt: number | undefined;

  constructor(root: string) {
    this.#root = root;
  }

  /**
   * From the `count`th operation on nothing reaches the disk any more, as after `kill -9`. A write that is hit still
   * brings `tornBytes` of what it had.
   */
  killAfter(count: number, tornBytes = 0): void {
    let left = count;
    this.before = ({ name }) => {
      if (left-- > 0) return;
      const torn = !this.#killed && name === 'write' && tornBytes > 0;
      this.#killed = true;
      this.#tearAt = tornBytes;
      if (!torn) throw systemError('KILLED');
    };
  }

  get killed(): boolean {
    return this.#killed;
  }

  /** Resolves when nothing is under way but what the hook holds up. */
  async idle(): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#busy === this.#waiting ? quiet + 1 : 0;
    }
  }

  create = async (path: string): Promise<OpenFile> =>
    this.#file(path, await this.#guard('create', path, () => nodeFileSystem.create(path)));
  open = async (path: string, mode: 'read' | 'read-write'): Promise<OpenFile> =>
    this.#file(path, await this.#guard('open', path, () => nodeFileSystem.open(path, mode)));
  makeDirectory = (path: string): Promise<void> =>
    this.#guard('makeDirectory', path, () => nodeFileSystem.makeDirectory(path));
  list = (path: string): Promise<string[]> => this.#guard('list', path, () => nodeFileSystem.list(path));
  facts = (path: string): Promise<FileFacts> => this.#guard('facts', path, () => nodeFileSystem.facts(path));
  remove = (path: string): Promise<void> => this.#guard('remove', path, () => nodeFileSystem.remove(path));
  removeDirectory = (path: string): Promise<void> =>
    this.#guard('removeDirectory', path, () => nodeFileSystem.removeDirectory(path));
  /** What tests change to fill the disk, without filling it. */
  spaceOf: (path: string) => Promise<Space> = (path) => nodeFileSystem.space(path);
  space = (path: string): Promise<Space> => this.#guard('space', path, () => this.spaceOf(path));
  rename = (from: string, to: string): Promise<void> =>
    this.#guard('rename', to, () => nodeFileSystem.rename(from, to));
  syncDirectory = (path: string): Promise<void> => this.#guard('syncDirectory', path, nothing);

  #file(path: string, file: OpenFile): OpenFile {
    const guard = <T>(name: keyof OpenFile, work: () => Promise<T>): Promise<T> => this.#guard(name, path, work);
    return {
      write: (buffers, position) =>
        guard('write', async () => {
          const bytes = this.#tearAt;
          if (this.swallows) return buffers.reduce((sum, buffer) => sum + buffer.length, 0);
          if (bytes === undefined) return file.write(buffers, position);
          await file.write([Buffer.concat(buffers).subarray(0, bytes)], position);
          throw systemError('KILLED');
        }),
      read: (position, length) => guard('read', () => file.read(position, length)),
      truncate: (size) => guard('truncate', () => file.truncate(size)),
      syncData: () => guard('syncData', nothing),
      sync: () => guard('sync', nothing),
      facts: () => guard('facts', () => file.facts()),
      close: () => guard('close', () => file.close()),
    };
  }

  async #guard<T>(name: Operation['name'], path: string, work: () => Promise<T>): Promise<T> {
    const operation = { name, path: path.slice(this.#root.length + 1) };
    this.operations.push(operation);
    this.#busy++;
    try {
      const held = this.before(operation);
      if (held) {
        this.#waiting++;
        await held.finally(() => this.#waiting--);
      }
      return await work();
    } finally {
      this.#busy--;
    }
  }
}

/** An error as node:fs throws it. */
export const systemError = (code: string): Error => Object.assign(new Error(`${code}: as the test wants`), { code });

/** Something that waits until it is opened. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}

/** A log that keeps its lines. */
export class TestLog implements Log {
  readonly lines: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  debug = (fields: Record<string, unknown>, message: string): void => this.#add('debug', fields, message);
  info = (fields: Record<string, unknown>, message: string): void => this.#add('info', fields, message);
  warn = (fields: Record<string, unknown>, message: string): void => this.#add('warn', fields, message);
  error = (fields: Record<string, unknown>, message: string): void => this.#add('error', fields, message);
  bug = (fields: Record<string, unknown>, message: string): void => this.#add('bug', fields, message);
  child = (): Log => this;
  #add(level: string, fields: Record<string, unknown>, message: string): void {
    this.lines.push({ level, message, fields });
  }
}

export interface Bench {
  readonly root: string;
  readonly clock: VirtualClock;
  readonly fs: TestFileSystem;
  readonly archive: Archive;
  readonly recording: CameraArchive;
  readonly camera: TestCamera;
  readonly keyFrameRequests: () => number;
  readonly memory: MemoryAccount;
}

export interface BenchOptions {
  readonly root: string;
  readonly clock?: VirtualClock;
  readonly format?: 'fmp4' | 'mp4';
  readonly segmentDurationMs?: number;
  readonly cameraId?: string;
  readonly log?: Log;
  readonly syncIntervalMs?: number;
  /** For what waits for the disk. */
  readonly memoryBytes?: number;
  /** In a cluster: the epoch under which it records. */
  readonly epoch?: number;
  /** What the disk does from the start on. */
  readonly before?: TestFileSystem['before'];
  readonly observer?: SegmentObserver;
}

/** An archive in a directory with one camera. */
export async function bench(options: BenchOptions): Promise<Bench> {
  const { root, log = silentLog, format = 'fmp4', segmentDurationMs = 10_000, cameraId = 'gate' } = options;
  const clock = options.clock ?? new VirtualClock();
  const fs = new TestFileSystem(root);
  if (options.before) fs.before = options.before;
  const memory = new MemoryBudget(Infinity).open('writing', { maxBytes: options.memoryBytes ?? Infinity });
  const { syncIntervalMs = 5_000, epoch, observer = noObserver } = options;
  const archive = new Archive({ root, clock, log, fs, memory, syncIntervalMs, observer, epochOf: () => epoch });
  await archive.recover();
  let requests = 0;
  const recording = archive.sinkFor(
    { cameraId, name: 'Front Gate', format, segmentDurationMs },
    { needKeyFrame: () => void requests++ },
  );
  const camera = new TestCamera(clock, recording, () => recording.tick());
  return { root, clock, fs, archive, recording, camera, memory, keyFrameRequests: () => requests };
}

interface ReadTrack {
  /** Run times that the samples themselves carry. */
  readonly dts: number[];
  /** Run time at which the file says that the last sample ends. */
  readonly endDts: number;
}

export interface ReadSegment {
  readonly path: string;
  readonly meta: RecordedMeta;
  readonly video: ReadTrack;
  readonly audio: ReadTrack | undefined;
}

/** Paths of all segments below `root`, in order of their names. */
export function segmentPaths(root: string): string[] {
  return (readdirSync(root, { recursive: true }) as string[]).filter((path) => /^\d{4}\/.*\.mp4$/.test(path)).sort();
}

/**
 * Reads a finished file and checks that each sample lies where its own bytes say: the distances between the times in
 * the file are those of the run.
 */
export async function readSegment(root: string, path: string): Promise<ReadSegment> {
  const bytes = readFileSync(join(root, path));
  const read = async (offset: number, length: number): Promise<Buffer> => bytes.subarray(offset, offset + length);
  const { meta, tracks } = await readSampleIndex(read, bytes.length);
  const track = (kind: 'video' | 'audio'): ReadTrack | undefined => {
    const index = tracks.find(({ header }) => header.kind === kind);
    return index && readTrack(bytes, index);
  };
  const video = track('video');
  assert.ok(video, 'a segment has video');
  return { path, meta, video, audio: track('audio') };
}

function readTrack(bytes: Buffer, { offsets, dts, endDts }: TrackIndex): ReadTrack {
  const carried = Array.from(offsets, (offset) => bytes.readUIntBE(offset + 5, 6));
  const shift = (carried[0] as number) - (dts[0] as number);
  carried.forEach((time, i) => assert.equal((dts[i] as number) + shift, time, `sample ${i} is at its time`));
  return { dts: carried, endDts: endDts + shift };
}

export async function readSegments(root: string): Promise<ReadSegment[]> {
  return Promise.all(segmentPaths(root).map((path) => readSegment(root, path)));
}

export const fileSize = (root: string, path: string): number => statSync(join(root, path)).size;
