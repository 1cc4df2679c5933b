// The disk access of a recorder on a disk that logs it: an archive with retention, protected footage and the row queue, and
// cameras whose samples can be identified. For tests of what is left after a power cut.

import { VirtualClock } from '../../base/clock.ts';
import { errorCode } from '../../base/error.ts';
import { silentLog } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { GapLedger } from '../../recorder/archive/gaps/ledger.ts';
import { allOf, type SegmentObserver } from '../../recorder/archive/catalogue/observer.ts';
import type { ClosedSegment } from '../../recorder/archive/catalogue/segment.ts';
import type { RecoveryReport } from '../../recorder/archive/segments/recovery.ts';
import type { RetentionLimits } from '../../recorder/archive/retention/plan.ts';
import { AUDIO, runOf, TestCamera } from '../../recorder/archive/test-support.ts';
import { FanOut } from '../../recorder/camera/fan-out.ts';
import { newCounters } from '../../recorder/contract/camera-status.ts';
import type { Run, SampleSink } from '../../recorder/contract/sink.ts';
import { RowQueue } from '../../recorder/database/row-queue.ts';
import { filenameOf, rowOf, type RowChange } from '../../recorder/database/row.ts';
import { CrashDisk, type DiskImage } from './crash-disk.ts';
import { random } from './random.ts';

export const RECORD_PATH = '/recordings';
const WORK_DIR = '/state';
export const SYNC_INTERVAL_MS = 2_000;
const SEGMENT_DURATION_MS = 4_000;
const FRAME_MS = 40;
/** The recorder calls the archive's tick about four times a second. */
const FRAMES_A_TICK = 6;

/** The clock of the one with audio is stepped together with it. */
export const CAMERAS = [
  { cameraId: 'gate', format: 'fmp4', audio: true },
  { cameraId: 'yard', format: 'mp4', audio: false },
] as const;

/** A picture that a camera has sent: its run and time in it, and when it was sent. */
interface SentPicture {
  readonly key: string;
  readonly wallMs: number;
  readonly atMs: number;
}

/** A value that holds from the `moment`th change of the disk on. */
interface Since<T> {
  readonly moment: number;
  readonly value: T;
}

/** A recording on a disk, with everything that is known about it besides the disk. */
export interface History {
  readonly disk: CrashDisk;
  /** When the `i`th change of the disk was made, on the monotonic clock. */
  readonly changedAtMs: readonly number[];
  readonly endMs: number;
  readonly sent: ReadonlyMap<string, readonly SentPicture[]>;
  /** Segments that were reported to the observer as closed. */
  readonly closed: readonly Since<ClosedSegment>[];
  /** Changes pushed to the row queue, and since when they were known to be in it. */
  readonly queued: readonly Since<RowChange>[];
  /** File names of changes that the database has applied, and since when the queue knew that. */
  readonly applied: readonly Since<string>[];
  /** Requests to keep footage, and how long they were valid. */
  /** Wall time minus monotonic time. */
  readonly wallOffsetMs: number;
  /** Wall time since when cameras were to be recorded, and the period in which they could not be reached. */
  readonly startMs: number;
  readonly outage: { readonly fromMs: number; readonly toMs: number };
  readonly kept: readonly { readonly cameraId: string; fromMs: number; toMs: number; since: number; until: number }[];
}

interface HistoryOptions {
  readonly seed: number;
  readonly limits?: RetentionLimits;
  /** The share of syncs of files that fail. */
  readonly failingSyncs?: number;
}

/** Records two cameras across the turn of a year, with a pause in between and an orderly end. */
export async function recordHistory({ seed, limits = {}, failingSyncs = 0 }: HistoryOptions): Promise<History> {
  const clock = new VirtualClock(Date.UTC(2026, 11, 31, 23, 59, 54, 10));
  const chance = random(seed);
  const disk = new CrashDisk({
    wallMs: () => clock.wallMs(),
    delay: () => Math.floor(chance() * 4),
    fails: (what) => what === 'sync' && started && failingSyncs > 0 && chance() < failingSyncs,
  });
  let started = false;
  const { log } = disk;
  const closed: Since<ClosedSegment>[] = [];
  const pushed: RowChange[] = [];
  const queued: Since<RowChange>[] = [];
  const applied: Since<string>[] = [];
  const kept: History['kept'][number][] = [];
  const queue = queueOn(disk, clock);
  const push = (change: RowChange): void => {
    pushed.push(change);
    queue.push(change);
  };
  const rows: SegmentObserver = {
    closed(segment) {
      closed.push({ moment: log.length, value: segment });
      push({ kind: 'add', row: rowOf(segment) });
    },
    removed: (segment) => push({ kind: 'remove', filename: formatPath(segment), cameraId: segment.cameraId }),
  };
  const gaps = gapsOn(disk, clock, 'before', () => archive.checkDisk());
  const archive = archiveOn(disk, clock, limits, allOf([gaps, rows]));
  const changedAtMs: number[] = [];
  const note = async (): Promise<void> => {
    await disk.idle();
    while (changedAtMs.length < log.length) changedAtMs.push(clock.monotonicMs());
    const ofQueue = log.findLast((change) => 'since' in change && change.path.startsWith(`${WORK_DIR}/rows/`));
    if (ofQueue?.kind === 'failed-sync') return;
    for (const value of pushed.splice(0)) queued.push({ moment: log.length, value });
  };
  await gaps.load();
  await Promise.all([archive.recover(), queue.open()]);
  gaps.configure(CAMERAS.map(({ cameraId }) => ({ id: cameraId, enabled: true })));
  await note();
  started = true;
  const sent = new Map<string, SentPicture[]>();
  const cameras = CAMERAS.map(({ cameraId, format, audio }) => {
    const recording = archive.sinkFor(
      { cameraId, name: 'Front Gate', format, segmentDurationMs: SEGMENT_DURATION_MS },
      { needKeyFrame() {} },
    );
    const pictures: SentPicture[] = [];
    sent.set(cameraId, pictures);
    const sink = new FanOut([recording, gaps.sinkFor(cameraId)], silentLog);
    const camera = new TestCamera(clock, listening(sink, pictures, clock), () => {});
    camera.bytesPerFrame = 700;
    return { camera, audio, recording, counters: newCounters() };
  });
  const [first, ...others] = cameras as [(typeof cameras)[number], ...typeof cameras];
  let frames = 0;
  let lost = false;
  const tick = async (): Promise<void> => {
    if (++frames % FRAMES_A_TICK === 0) {
      for (const { recording, camera, counters } of cameras) {
        recording.tick();
        counters.videoFrames = Math.round(camera.videoDts / 3_600);
        const state = lost ? 'retrying' : 'recording';
        const reason = lost ? { code: 'unreachable', message: '' } : undefined;
        const written = recording.written();
        gaps.observe(recording.cameraId, {
          camera: { state, counters, reason },
          archive: recording.status(),
          written,
        });
      }
      gaps.tick();
      archive.tick();
    }
    await note();
  };
  const play = async (ms: number): Promise<void> => {
    for (let played = 0; played < ms; played += FRAME_MS) {
      for (const { camera } of others) camera.video();
      await first.camera.play(FRAME_MS / 1000);
      await tick();
    }
  };
  const begin = (runId: string): void => {
    for (const { camera, audio } of cameras) camera.begin(runOf({ runId, audio: audio ? AUDIO : undefined }));
  };
  const protect = async (fromMs: number, toMs: number): Promise<() => Promise<void>> => {
    const window = { cameraId: 'gate', fromMs, toMs, note: undefined, untilMs: undefined, by: undefined };
    const protection = await untilKept(() => archive.protections?.add(window, clock.wallMs()));
    const one = { ...window, since: log.length, until: Infinity };
    kept.push(one);
    return async () => {
      one.until = log.length;
      await untilKept(() => archive.protections?.remove(protection?.id ?? ''));
    };
  };
  const startMs = clock.wallMs();
  const wallOffsetMs = startMs - clock.monotonicMs();
  begin('00000000000000aa');
  await play(9_400);
  const release = await protect(startMs + 4_200, startMs + 4_400);
  await protect(startMs + 6_000, startMs + 7_000);
  for (const { camera } of cameras) camera.end('camera-lost');
  lost = true;
  const lostMs = clock.wallMs();
  for (let waited = 0; waited < (failingSyncs > 0 ? 40_000 : 8_000); waited += FRAME_MS) {
    clock.advance(FRAME_MS);
    await tick();
  }
  lost = false;
  const outage = { fromMs: lostMs, toMs: clock.wallMs() };
  begin('00000000000000bb');
  await play(2_000);
  // The database applies some; the others wait.
  const taken = queue.peek(2);
  queue.applied(taken);
  for (const { change } of taken) applied.push({ moment: log.length, value: filenameOf(change) });
  await release();
  await play(3_200);
  gaps.stopping();
  await archive.close();
  await gaps.close();
  await queue.close();
  await note();
  // Those that the last failed sync left in doubt.
  for (const value of pushed) queued.push({ moment: Infinity, value });
  return {
    disk,
    changedAtMs,
    endMs: clock.monotonicMs(),
    sent,
    closed,
    queued,
    applied,
    startMs,
    outage,
    kept,
    wallOffsetMs,
  };
}

/** A person tries again until it is answered that the disk has it. */
async function untilKept<T>(attempt: () => Promise<T> | undefined): Promise<T | undefined> {
  for (;;) {
    try {
      return await attempt();
    } catch (err) {
      if (errorCode(err) !== 'EIO') throw err;
    }
  }
}

/** Passes on what a camera sends and remembers its pictures. */
function listening(sink: SampleSink, pictures: SentPicture[], clock: VirtualClock): SampleSink {
  let runId = '';
  return {
    begin(run: Run) {
      runId = run.runId;
      sink.begin(run);
    },
    sample(sample) {
      const { kind, dts, wallMs } = sample;
      if (kind === 'video') pictures.push({ key: `${runId} ${dts}`, wallMs, atMs: clock.monotonicMs() });
      sink.sample(sample);
    },
    end: (reason) => sink.end(reason),
  } as SampleSink;
}

function archiveOn(disk: CrashDisk, clock: VirtualClock, limits: RetentionLimits, observer?: SegmentObserver): Archive {
  return new Archive({
    root: RECORD_PATH,
    workDir: WORK_DIR,
    fs: disk,
    clock,
    log: silentLog,
    syncIntervalMs: SYNC_INTERVAL_MS,
    limits: () => ({ node: limits, cameras: new Map() }),
    ...(observer && { observer }),
  });
}

const gapsOn = (disk: CrashDisk, clock: VirtualClock, bootId: string, checkDisk: () => Promise<void>): GapLedger =>
  new GapLedger({ root: RECORD_PATH, fs: disk, clock, log: silentLog, bootId, checkDisk });

const queueOn = (disk: CrashDisk, clock: VirtualClock): RowQueue =>
  new RowQueue({ directory: `${WORK_DIR}/rows`, fs: disk, clock, log: silentLog });

/** When the disk is examined: long afterwards. */
export const AFTERWARDS_MS = Date.UTC(2027, 0, 2);

/** The result of a start with a disk. */
export interface RecoveredNode {
  readonly disk: CrashDisk;
  readonly archive: Archive;
  readonly report: RecoveryReport;
  readonly queue: RowQueue;
  readonly gaps: GapLedger;
}

export async function recoverNode(image: DiskImage): Promise<RecoveredNode> {
  const clock = new VirtualClock(AFTERWARDS_MS);
  const disk = new CrashDisk({ image, wallMs: () => clock.wallMs() });
  const gaps = gapsOn(disk, clock, 'after', () => archive.checkDisk());
  const archive = archiveOn(disk, clock, {}, gaps);
  const queue = queueOn(disk, clock);
  await gaps.load();
  const [report] = await Promise.all([archive.recover(), queue.open()]);
  gaps.configure(CAMERAS.map(({ cameraId }) => ({ id: cameraId, enabled: true })));
  await disk.idle();
  return { disk, archive, report, queue, gaps };
}
