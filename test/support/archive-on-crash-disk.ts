// An archive on a disk that remembers, with cameras that send what can be told from anything else: for tests that ask
// what a power cut leaves of it.

import assert from 'node:assert/strict';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { parsePath } from '../../recorder/archive/names.ts';
import type { ClosedSegment, SegmentObserver } from '../../recorder/archive/observer.ts';
import type { RecoveryReport } from '../../recorder/archive/recovery.ts';
import { AUDIO, runOf, TestCamera } from '../../recorder/archive/test-support.ts';
import type { Run, SampleSink } from '../../recorder/camera/sink.ts';
import { readSampleIndex, type TrackIndex } from '../../recorder/mp4/sample-index.ts';
import { CrashDisk, type DiskImage } from './crash-disk.ts';
import { random } from './crash-states.ts';
import { readFrom } from './recorded-file.ts';

export const RECORD_PATH = '/recordings';
export const SYNC_INTERVAL_MS = 2_000;
/** A fragment holds at most this much. */
const FRAGMENT_MS = 1_000;
const SEGMENT_DURATION_MS = 4_000;

/** A picture that a camera has sent: its run and time in it, and when it was sent. */
interface SentPicture {
  readonly key: string;
  readonly atMs: number;
}

/** A recording on a disk, with all that is known about it besides the disk. */
export interface History {
  readonly disk: CrashDisk;
  /** When the `i`th change was made to the disk, by the clock that never steps. */
  readonly changedAtMs: readonly number[];
  readonly endMs: number;
  readonly sent: ReadonlyMap<string, readonly SentPicture[]>;
  /** What the observer was told, and how many changes the disk had seen then. */
  readonly closed: readonly { readonly segment: ClosedSegment; readonly moment: number }[];
}

const CAMERAS = [
  { cameraId: 'gate', format: 'fmp4', audio: true },
  { cameraId: 'yard', format: 'mp4', audio: false },
] as const;

const TICK_MS = 40;
/** The recorder lets the archive look at its clock about four times a second. */
const TICKS_A_CALL = 6;

/** Two cameras across the turn of a year, with a pause in between, and an orderly end. */
export async function recordHistory(seed: number): Promise<History> {
  const clock = new VirtualClock(Date.UTC(2026, 11, 31, 23, 59, 54, 10));
  const chance = random(seed);
  const wallMs = (): number => clock.wallMs();
  const disk = new CrashDisk({ wallMs, delay: () => Math.floor(chance() * 4) });
  const closed: { segment: ClosedSegment; moment: number }[] = [];
  const observer: SegmentObserver = {
    closed: (segment) => void closed.push({ segment, moment: disk.log.length }),
    removed() {},
  };
  const archive = archiveOn(disk, clock, observer);
  const changedAtMs: number[] = [];
  const note = async (): Promise<void> => {
    await disk.idle();
    while (changedAtMs.length < disk.log.length) changedAtMs.push(clock.monotonicMs());
  };
  await archive.recover();
  await note();
  const sent = new Map<string, SentPicture[]>();
  const cameras = CAMERAS.map(({ cameraId, format, audio }) => {
    const recording = archive.sinkFor(
      { cameraId, name: 'Front Gate', format, segmentDurationMs: SEGMENT_DURATION_MS },
      { needKeyFrame() {} },
    );
    const pictures: SentPicture[] = [];
    sent.set(cameraId, pictures);
    const camera = new TestCamera(clock, listening(recording.sink, pictures, clock), () => {});
    camera.bytesPerFrame = 700;
    return { camera, audio, recording };
  });
  const tick = async (): Promise<void> => {
    if (++ticks % TICKS_A_CALL === 0) for (const { recording } of cameras) recording.tick();
    await note();
  };
  let ticks = 0;
  // One clock for all: the first camera moves it.
  const play = async (seconds: number): Promise<void> => {
    for (let ms = 0; ms < seconds * 1000; ms += TICK_MS) {
      for (const { camera, audio } of cameras.slice(1)) sendTick(camera, audio);
      await (cameras[0] as { camera: TestCamera }).camera.play(TICK_MS / 1000);
      await tick();
    }
  };
  for (const { camera, audio } of cameras) camera.begin(runOf({ audio: audio ? AUDIO : undefined }));
  await play(9.4);
  for (const { camera } of cameras) camera.end('camera-lost');
  for (let i = 0; i < 40; i++) {
    clock.advance(TICK_MS);
    await tick();
  }
  for (const { camera, audio } of cameras) {
    camera.begin(runOf({ runId: '00000000000000bb', audio: audio ? AUDIO : undefined }));
  }
  await play(5.2);
  await archive.close();
  await note();
  return { disk, changedAtMs, endMs: clock.monotonicMs(), sent, closed };
}

function sendTick(camera: TestCamera, audio: boolean): void {
  camera.video();
  if (audio) throw new Error('the camera that moves the clock is the one with audio');
}

/** Passes on what a camera sends, and notes its pictures. */
function listening(sink: SampleSink, pictures: SentPicture[], clock: VirtualClock): SampleSink {
  let runId = '';
  return {
    begin(run: Run) {
      runId = run.runId;
      sink.begin(run);
    },
    sample(sample) {
      if (sample.kind === 'video') pictures.push({ key: `${runId} ${sample.dts}`, atMs: clock.monotonicMs() });
      sink.sample(sample);
    },
    end: (reason) => sink.end(reason),
  } as SampleSink;
}

function archiveOn(disk: CrashDisk, clock: VirtualClock, observer?: SegmentObserver): Archive {
  return new Archive({
    root: RECORD_PATH,
    fs: disk,
    clock,
    log: silentLog,
    syncIntervalMs: SYNC_INTERVAL_MS,
    ...(observer && { observer }),
  });
}

const AFTERWARDS_MS = Date.UTC(2027, 0, 2);

/** What a start makes of a disk. */
export async function recoverDisk(image: DiskImage): Promise<{
  readonly disk: CrashDisk;
  readonly archive: Archive;
  readonly report: RecoveryReport;
}> {
  const clock = new VirtualClock(AFTERWARDS_MS);
  const disk = new CrashDisk({ image, wallMs: () => clock.wallMs() });
  const archive = archiveOn(disk, clock);
  return { disk, archive, report: await archive.recover() };
}

/**
 * Asserts what a recorder promises of a disk that lost its power after the first `moment` changes, and was recovered:
 * every file is finished and says the truth, no picture is missing but those of the last moments, and nothing is there
 * that no camera has sent.
 */
export async function assertPromise(
  { changedAtMs, endMs, sent, closed }: History,
  moment: number,
  { disk, archive, report }: Awaited<ReturnType<typeof recoverDisk>>,
): Promise<void> {
  assert.deepEqual(report.failed, [], 'files that could not be looked at');
  const foreign = [...report.repairs].filter(([, { kind }]) => kind === 'foreign').map(([path]) => path);
  assert.deepEqual(foreign, [], 'files that were not understood');
  const found = new Map<string, Set<string>>();
  const files = new Map<string, Buffer>();
  for (const path of disk.paths()) {
    const relative = path.slice(RECORD_PATH.length + 1);
    if (relative.startsWith('.kube-nvr/')) continue;
    assert.ok(path.startsWith(`${RECORD_PATH}/`) && parsePath(relative), `a file of another kind: ${path}`);
    const bytes = disk.bytesOf(path);
    files.set(relative, bytes);
    const { cameraId, keys } = await readChecked(relative, bytes);
    const all = found.get(cameraId) ?? new Set();
    found.set(cameraId, all);
    for (const key of keys) {
      assert.ok(!all.has(key), `${relative}: picture ${key} is there twice`);
      all.add(key);
    }
  }
  const cutMs = changedAtMs[moment] ?? endMs;
  for (const [cameraId, pictures] of sent) {
    const all = found.get(cameraId) ?? new Set();
    const missing = pictures.filter(({ key, atMs }) => atMs < cutMs - SYNC_INTERVAL_MS - FRAGMENT_MS && !all.has(key));
    assert.deepEqual(missing, [], `${cameraId}: pictures from before the last ${SYNC_INTERVAL_MS + FRAGMENT_MS} ms`);
    const known = new Set(pictures.map(({ key }) => key));
    for (const key of all) assert.ok(known.has(key), `${cameraId}: nobody has sent picture ${key}`);
  }
  for (const { segment, moment: told } of closed) {
    if (told > moment) continue;
    assert.equal(files.get(segment.path)?.length, segment.sizeBytes, `${segment.path} was told to be closed`);
  }
  await assertListed(archive, report, files);
  for (const { cameraId } of CAMERAS) {
    const left = disk.paths().filter((path) => path.includes('/.kube-nvr/open/') && path.includes(`_${cameraId}_`));
    assert.ok(left.length <= 1, `${cameraId}: markers ${left.join()}`);
  }
  assert.deepEqual(
    disk.paths().filter((path) => path.includes('/.kube-nvr/rewrite/')),
    [],
    'rewritten files',
  );
}

async function assertListed(
  archive: Archive,
  report: RecoveryReport,
  files: ReadonlyMap<string, Buffer>,
): Promise<void> {
  for (const { cameraId } of CAMERAS) {
    const { segments } = await archive.list(cameraId, { fromMs: 0, toMs: AFTERWARDS_MS });
    const own = [...files.keys()].filter((path) => parsePath(path)?.cameraId === cameraId).sort();
    assert.deepEqual(
      segments.map(({ path, sizeBytes }) => `${path} ${sizeBytes}`),
      own.map((path) => `${path} ${files.get(path)?.length}`),
      'the list is what lies on the disk',
    );
    const sequences = segments.map(({ sequence }) => sequence);
    assert.deepEqual(
      sequences,
      [...new Set(sequences)].sort((a, b) => a - b),
      'sequences go up',
    );
    const next = report.histories.get(cameraId)?.nextSequence ?? 0;
    assert.ok(next > (sequences.at(-1) ?? -1), `${cameraId} goes on with sequence ${next}`);
  }
}

/** The pictures of a finished file, each known to be what the camera sent and to lie at its time. */
async function readChecked(path: string, bytes: Buffer): Promise<{ cameraId: string; keys: string[] }> {
  const { meta, tracks } = await readSampleIndex(...readFrom(bytes));
  const name = parsePath(path);
  assert.equal(meta.cameraId, name?.cameraId, path);
  assert.ok(Math.abs(meta.wallStartMs - (name?.startMs ?? 0)) < 2, `${path}: begins at ${meta.wallStartMs}`);
  const stretch = meta.wallDurationMs - meta.mediaDurationMs;
  assert.ok(Math.abs(stretch) < 5, `${path}: ${meta.wallDurationMs} ms for ${meta.mediaDurationMs} ms of video`);
  let keys: string[] = [];
  for (const track of tracks) {
    const times = checkSamples(path, bytes, track);
    if (track.header.kind === 'video') keys = times.map((dts) => `${meta.runId} ${dts}`);
  }
  assert.ok(keys.length > 0, `${path} has no picture`);
  return { cameraId: meta.cameraId, keys };
}

/** See TestCamera for what a sample looks like. */
function checkSamples(path: string, bytes: Buffer, { offsets, sizes, dts }: TrackIndex): number[] {
  const shift = bytes.readUIntBE((offsets[0] as number) + 5, 6) - (dts[0] as number);
  return Array.from(offsets, (offset, i) => {
    const size = sizes[i] as number;
    const time = bytes.readUIntBE(offset + 5, 6);
    assert.equal(time - shift, dts[i], `${path}: sample ${i} lies at its time`);
    assert.equal(bytes.readUInt32BE(offset), size - 4, `${path}: sample ${i} has its length`);
    const rest = bytes.subarray(offset + 11, offset + size);
    assert.ok(
      rest.every((byte) => byte === 0x55),
      `${path}: sample ${i} is what was sent`,
    );
    return time;
  });
}
