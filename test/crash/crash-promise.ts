// The guarantees of docs/design/crash-safety.md, after a power cut and a restart, as assertions.

import assert from 'node:assert/strict';
import { parsePath } from '../../recorder/archive/disk/names.ts';
import { filenameOf, parseLine, type RowChange } from '../../recorder/database/row.ts';
import { readSampleIndex, type TrackIndex } from '../../recorder/mp4/sample-index.ts';
import type { CrashDisk } from '../support/crash-disk.ts';
import {
  AFTERWARDS_MS,
  CAMERAS,
  RECORD_PATH,
  SYNC_INTERVAL_MS,
  type History,
  type RecoveredNode,
} from '../support/crash-node.ts';
import { readFrom } from '../support/recorded-file.ts';

/** The longest duration of a fragment. */
const FRAGMENT_MS = 1_000;
/** The causes of gaps are saved with each sign of life: every five seconds, checked four times a second. */
const LEDGER_MS = 5_000 + 500;
/** A shorter time between two recordings is not a gap, and this much of a gap may be footage. */
const TOLERANCE_MS = 100;

/** Asserts the guarantees for a node that was restarted after its disk lost power after the first `moment` changes. */
export async function assertPromise(history: History, moment: number, node: RecoveredNode): Promise<void> {
  const { disk, archive, report } = node;
  assert.deepEqual(archive.warnings(), [], 'something somebody should look at');
  assert.deepEqual(report.failed, [], 'files that could not be looked at');
  const foreign = [...report.repairs].filter(([, { kind }]) => kind === 'foreign').map(([path]) => path);
  assert.deepEqual(foreign, [], 'files that were not understood');
  const files = segmentFiles(disk);
  await assertPictures(history, moment, files);
  const removed = removedFiles(history, moment);
  for (const { value, moment: told } of history.closed) {
    if (told > moment || removed.has(value.path)) continue;
    assert.equal(files.get(value.path)?.length, value.sizeBytes, `${value.path} was told to be closed`);
  }
  await assertListed(node, files);
  assertNothingLeft(disk);
  assertProtections(history, moment, node);
  assertRows(history, moment, node);
  for (const { cameraId } of CAMERAS) assertGaps(history, moment, node, cameraId, files);
}

/** Asserts that another start changes nothing. */
export function assertSame(before: CrashDisk, after: CrashDisk): void {
  // The gap ledger records every start.
  const lasting = (disk: CrashDisk): string[] => disk.paths().filter((path) => !path.includes('/.kube-nvr/gaps/'));
  assert.deepEqual(lasting(after), lasting(before), 'a second start leaves all files');
  for (const path of lasting(before)) assert.ok(after.bytesOf(path).equals(before.bytesOf(path)), path);
}

/** Segments by path; no other files exist outside the recorder's own directory. */
function segmentFiles(disk: CrashDisk): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const path of disk.paths()) {
    const relative = path.slice(RECORD_PATH.length + 1);
    if (!path.startsWith(`${RECORD_PATH}/`) || relative.startsWith('.kube-nvr/')) continue;
    assert.ok(parsePath(relative), `a file of another kind: ${path}`);
    files.set(relative, disk.bytesOf(path));
  }
  return files;
}

/** Segments that the recorder itself had removed before. */
function removedFiles({ disk }: History, moment: number): Set<string> {
  const removed = new Set<string>();
  for (const change of disk.log.slice(0, moment)) {
    if (change.kind !== 'unlink') continue;
    const relative = change.path.slice(RECORD_PATH.length + 1);
    if (parsePath(relative)) removed.add(relative);
  }
  return removed;
}

/**
 * Every file is complete and contains what the camera sent. No picture exists twice, and none is missing except those of the last
 * moments and those removed by retention.
 */
async function assertPictures(history: History, moment: number, files: ReadonlyMap<string, Buffer>): Promise<void> {
  const found = new Map(CAMERAS.map(({ cameraId }) => [cameraId as string, new Set<string>()]));
  for (const [path, bytes] of files) {
    const { cameraId, keys } = await readChecked(path, bytes);
    const all = found.get(cameraId) as Set<string>;
    for (const key of keys) {
      assert.ok(!all.has(key), `${path}: picture ${key} is there twice`);
      all.add(key);
    }
  }
  const { changedAtMs, endMs, sent, kept } = history;
  const safeMs = (changedAtMs[moment] ?? endMs) - SYNC_INTERVAL_MS - FRAGMENT_MS;
  const removed = removedFiles(history, moment);
  for (const [cameraId, pictures] of sent) {
    const all = found.get(cameraId) as Set<string>;
    const known = new Set(pictures.map(({ key }) => key));
    for (const key of all) assert.ok(known.has(key), `${cameraId}: nobody has sent picture ${key}`);
    const segmentOf = segmentFinder(history, cameraId);
    const windows = kept.filter((one) => one.cameraId === cameraId && one.since <= moment && moment < one.until);
    const isSafe = hasFailedSyncs(history) ? safeDespiteFailures(history, moment, cameraId) : () => true;
    const missing = pictures.filter((picture) => {
      const { key, atMs, wallMs } = picture;
      if (atMs >= safeMs || all.has(key) || !isSafe(picture)) return false;
      const isKept = windows.some(({ fromMs, toMs }) => wallMs >= fromMs && wallMs < toMs);
      return isKept || !removed.has(segmentOf(wallMs));
    });
    assert.deepEqual(missing, [], `${cameraId}: pictures of before ${safeMs} ms`);
  }
}

const hasFailedSyncs = ({ disk }: History): boolean => disk.log.some(({ kind }) => kind === 'failed-sync');

/**
 * Pictures that were told to be in a closed file, or that the syncs of their file had covered before one failed. The others may be lost with what
 * that one did not write.
 */
function safeDespiteFailures(
  history: History,
  moment: number,
  cameraId: string,
): (picture: { readonly atMs: number; readonly wallMs: number }) => boolean {
  const { disk, changedAtMs, closed } = history;
  const segmentOf = segmentFinder(history, cameraId);
  const told = closed.filter((one) => one.moment <= moment && parsePath(one.value.path)?.cameraId === cameraId);
  const coveredMs = new Map<string, number>();
  const failed = new Set<string>();
  for (const change of disk.log.slice(0, moment)) {
    if (change.kind !== 'sync' && change.kind !== 'failed-sync') continue;
    const path = change.path.slice(RECORD_PATH.length + 1);
    if (change.kind === 'failed-sync') failed.add(path);
    else if (!failed.has(path)) coveredMs.set(path, changedAtMs[change.since - 1] ?? -Infinity);
  }
  return ({ atMs, wallMs }) =>
    told.some(({ value }) => wallMs >= value.startMs && wallMs < value.endMs) ||
    atMs < (coveredMs.get(segmentOf(wallMs)) ?? -Infinity) - FRAGMENT_MS - TOLERANCE_MS;
}

/** Finds the segment, by its name, into which a picture of a camera was written. */
function segmentFinder({ disk }: History, cameraId: string): (wallMs: number) => string {
  const begun: { path: string; startMs: number }[] = [];
  for (const change of disk.log) {
    if (change.kind !== 'link' || !change.isFile) continue;
    const path = change.path.slice(RECORD_PATH.length + 1);
    const segment = parsePath(path);
    if (segment?.cameraId === cameraId) begun.push({ path, startMs: segment.startMs });
  }
  return (wallMs) => begun.findLast(({ startMs }) => startMs <= wallMs)?.path ?? '';
}

/** The pictures of a complete file, after checking that each is what the camera sent, at the right time. */
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

/** See TestCamera for the content of a sample. */
function checkSamples(path: string, bytes: Buffer, { offsets, sizes, dts }: TrackIndex): number[] {
  const shift = bytes.readUIntBE((offsets[0] as number) + 5, 6) - (dts[0] as number);
  return Array.from(offsets, (offset, i) => {
    const size = sizes[i] as number;
    const time = bytes.readUIntBE(offset + 5, 6);
    assert.equal(time - shift, dts[i], `${path}: sample ${i} lies at its time`);
    assert.equal(bytes.readUInt32BE(offset), size - 4, `${path}: sample ${i} has its length`);
    const rest = bytes.subarray(offset + 11, offset + size);
    assert.ok(rest.equals(Buffer.alloc(rest.length, 0x55)), `${path}: sample ${i} is what was sent`);
    return time;
  });
}

async function assertListed({ archive, report }: RecoveredNode, files: ReadonlyMap<string, Buffer>): Promise<void> {
  for (const { cameraId } of CAMERAS) {
    const { segments } = await archive.list(cameraId, { fromMs: 0, toMs: AFTERWARDS_MS });
    const own = [...files.keys()].filter((path) => parsePath(path)?.cameraId === cameraId).sort();
    assert.deepEqual(
      segments.map(({ path, sizeBytes }) => `${path} ${sizeBytes}`),
      own.map((path) => `${path} ${files.get(path)?.length}`),
      'the list is what lies on the disk',
    );
    const sequences = segments.map(({ sequence }) => sequence);
    const ascending = [...new Set(sequences)].sort((a, b) => a - b);
    assert.deepEqual(sequences, ascending, 'sequences go up');
    const next = report.histories.get(cameraId)?.nextSequence ?? 0;
    assert.ok(next > (sequences.at(-1) ?? -1), `${cameraId} goes on with sequence ${next}`);
  }
}

function assertNothingLeft(disk: CrashDisk): void {
  const own = disk.paths().filter((path) => path.includes('/.kube-nvr/'));
  for (const { cameraId } of CAMERAS) {
    const markers = own.filter((path) => path.includes('/open/') && path.includes(`_${cameraId}_`));
    assert.ok(markers.length <= 1, `${cameraId}: markers ${markers.join()}`);
  }
  const rewritten = own.filter((path) => path.includes('/rewrite/'));
  assert.deepEqual(rewritten, [], 'half of a rewritten file');
}

/** Every request to keep footage is known, even one made just before the power cut. */
function assertProtections({ kept }: History, moment: number, { archive }: RecoveredNode): void {
  const { protections } = archive;
  assert.ok(protections?.readable, 'protected footage is known');
  const windows = protections.list().map(({ fromMs, toMs }) => `${fromMs} ${toMs}`);
  for (const { fromMs, toMs, since, until } of kept) {
    if (since <= moment && moment < until) assert.ok(windows.includes(`${fromMs} ${toMs}`), 'a window is kept');
  }
  assert.ok(windows.length <= kept.length);
}

/** Those of several files are read one file after another, as the database takes them. */
const rowsOn = (disk: CrashDisk): RowChange[] =>
  disk
    .paths()
    .filter((path) => path.endsWith('.rows'))
    .flatMap((path) => disk.bytesOf(path).toString().split('\n').slice(0, -1))
    .flatMap((line) => parseLine(line) ?? []);

/** The queue has everything that was pushed, in order, except what the database applied, and nothing else. */
function assertRows({ queued, applied }: History, moment: number, { queue, disk }: RecoveredNode): void {
  const pending = queue.pending() ?? rowsOn(disk);
  const all = queued.map(({ value }) => JSON.stringify(value));
  const places = pending.map((change) => all.indexOf(JSON.stringify(change)));
  assert.deepEqual(
    places,
    [...places].sort((a, b) => a - b),
    'rows in order',
  );
  assert.ok(!places.includes(-1), 'a row that nobody has queued');
  const taken = new Set(applied.filter((one) => one.moment <= moment).map(({ value }) => value));
  for (const [i, { value, moment: since }] of queued.entries()) {
    if (since > moment || taken.has(filenameOf(value))) continue;
    assert.ok(places.includes(i), `a row of ${filenameOf(value)} is missing`);
  }
}

/** Footage and gaps cover all of the time; no footage is reported as a gap, and known causes are still known. */
function assertGaps(
  history: History,
  moment: number,
  { gaps: ledger }: RecoveredNode,
  cameraId: string,
  files: ReadonlyMap<string, Buffer>,
): void {
  const { startMs, outage, changedAtMs, endMs, wallOffsetMs } = history;
  const cutMs = (changedAtMs[moment] ?? endMs) + wallOffsetMs;
  const { gaps, wantedMs, recordedMs, knownUntilMs } = ledger.report(cameraId, startMs, AFTERWARDS_MS, []);
  const missedMs = gaps.reduce((sum, { fromMs, toMs }) => sum + Math.min(toMs, knownUntilMs) - fromMs, 0);
  assert.equal(recordedMs + missedMs, wantedMs, `${cameraId}: footage and gaps`);
  // What a failed sync did not save is saved with the next sign of life.
  const lateMs = LEDGER_MS * (1 + failedLedgerSyncs(history, moment));
  if (cutMs < startMs + lateMs) return;
  assert.equal(wantedMs, knownUntilMs - startMs, `${cameraId} was to be recorded all the time`);
  for (const path of files.keys()) {
    const segment = parsePath(path);
    if (segment?.cameraId !== cameraId) continue;
    const atMs = segment.startMs + 2 * TOLERANCE_MS;
    const gap = gaps.find(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
    assert.equal(gap, undefined, `${path} is footage`);
  }
  const down = gaps.find(({ fromMs, toMs }) => fromMs <= cutMs + 1 && cutMs + 1 < toMs);
  assert.equal(down?.cause, 'node-down');
  assert.ok(down.fromMs > cutMs - SYNC_INTERVAL_MS - FRAGMENT_MS - lateMs, `${cameraId}: down since ${down.fromMs}`);
  const from = outage.fromMs + FRAGMENT_MS;
  const to = Math.min(outage.toMs - FRAGMENT_MS, cutMs - lateMs);
  for (let atMs = from; atMs < to; atMs += TOLERANCE_MS) {
    const gap = gaps.find(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
    assert.equal(gap?.cause, 'camera-unreachable', `${cameraId}: ${atMs - outage.fromMs} ms after it was lost`);
  }
}

/** Those that may still matter: the next sign of life follows within five seconds. */
function failedLedgerSyncs({ disk, changedAtMs, endMs }: History, moment: number): number {
  const sinceMs = (changedAtMs[moment] ?? endMs) - 2 * LEDGER_MS;
  return disk.log
    .slice(0, moment)
    .filter(
      (change, i) => change.kind === 'failed-sync' && change.path.includes('/gaps/') && (changedAtMs[i] ?? 0) > sinceMs,
    ).length;
}
