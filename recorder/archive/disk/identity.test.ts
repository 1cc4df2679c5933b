import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../base/log.ts';
import { RetentionBench } from '../retention/test-support.ts';
import { readSegments, segmentPaths, temporaryDirectory, TestFileSystem, TestLog } from '../test-support.ts';
import { takeDirectory } from './directory-lock.ts';
import { WrongDiskError } from './faults.ts';
import { nodeFileSystem } from './file-system.ts';
import { ArchiveIdentity } from './identity.ts';

interface Place {
  readonly root: string;
  readonly workDir: string;
}

function place(t: { after(callback: () => void): void }): Place {
  const outer = temporaryDirectory(t);
  return { root: join(outer, 'disk'), workDir: join(outer, 'work') };
}

const identityOf = ({ root, workDir }: Place, log = silentLog): ArchiveIdentity =>
  new ArchiveIdentity({ root, workDir, fs: new TestFileSystem(root), log });
const markerOf = ({ root }: Place): string => join(root, '.kube-nvr/archive.json');
const isWrong =
  (code: WrongDiskError['code']) =>
  (err: unknown): boolean =>
    err instanceof WrongDiskError && err.code === code;
const archiveOf = (p: Place): unknown => (JSON.parse(readFileSync(markerOf(p), 'utf8')) as { id: unknown }).id;

async function newArchive(p: Place): Promise<void> {
  const b = await RetentionBench.start({ ...p, ids: [] });
  await b.archive.close();
}

test('a first start makes an archive with an id that the node remembers', async (t) => {
  const p = place(t);
  await newArchive(p);
  const known = JSON.parse(readFileSync(join(p.workDir, 'archive-id'), 'utf8')) as Record<string, string>;
  assert.equal(known[p.root], archiveOf(p));
  assert.equal(await identityOf(p).look(), 'ours');
});

test('a node that has lost its own state takes the archive as it finds it', async (t) => {
  const p = place(t);
  await newArchive(p);
  const id = archiveOf(p);
  rmSync(p.workDir, { recursive: true });
  assert.equal(await identityOf(p).look(), 'ours');
  assert.equal(archiveOf(p), id);
  assert.ok(existsSync(join(p.workDir, 'archive-id')));
});

test('a directory without the marker that it had is missing its disk, and the marker is not made again', async (t) => {
  const p = place(t);
  await newArchive(p);
  rmSync(p.root, { recursive: true });
  mkdirSync(p.root);
  const identity = identityOf(p);
  await assert.rejects(identity.look(), isWrong('archive-missing'));
  await assert.rejects(identity.check(), isWrong('archive-missing'));
  assert.deepEqual(readdirSync(p.root), []);
  rmSync(p.root, { recursive: true });
  await assert.rejects(identity.look(), isWrong('archive-missing'));
});

test('the disk of another node is foreign, and so is a marker that cannot be read', async (t) => {
  const p = place(t);
  await newArchive(p);
  const other = place(t);
  await newArchive(other);
  const text = readFileSync(markerOf(other), 'utf8');
  writeFileSync(markerOf(p), text);
  await assert.rejects(identityOf(p).look(), isWrong('archive-foreign'));
  writeFileSync(markerOf(p), text.slice(0, 20));
  await assert.rejects(identityOf(p).look(), isWrong('archive-foreign'));
});

test('a marker that is replaced in its place is noticed by the next check', async (t) => {
  const p = place(t);
  await newArchive(p);
  const other = place(t);
  await newArchive(other);
  const identity = identityOf(p);
  await identity.look();
  await identity.check();
  writeFileSync(markerOf(p), readFileSync(markerOf(other)));
  // Files that are written within one tick of the clock of a file system have the same time.
  utimesSync(markerOf(p), 1_773_000_000, 1_773_000_000);
  await assert.rejects(identity.check(), isWrong('archive-foreign'));
});

test('another record path in the configuration is another archive', async (t) => {
  const p = place(t);
  await newArchive(p);
  const moved = { ...p, root: `${p.root}2` };
  await newArchive(moved);
  assert.notEqual(archiveOf(moved), archiveOf(p));
  assert.equal(await identityOf(p).look(), 'ours');
});

test('the owner says that a disk is right: its id is taken, or it is given one', async (t) => {
  const p = place(t);
  await newArchive(p);
  const other = place(t);
  await newArchive(other);
  writeFileSync(markerOf(p), readFileSync(markerOf(other)));
  const identity = identityOf(p);
  assert.equal(await identity.adopt(), archiveOf(other));
  assert.equal(await identity.look(), 'ours');
  rmSync(markerOf(p));
  await assert.rejects(identity.look(), isWrong('archive-missing'));
  assert.equal(await identity.adopt(), archiveOf(p));
  assert.notEqual(archiveOf(p), archiveOf(other));
  assert.equal(await identityOf(p).look(), 'ours');
});

test('a state that cannot be kept stops nothing, and a damaged one does not make a new archive', async (t) => {
  const p = place(t);
  writeFileSync(p.workDir, 'a file, where the state should be');
  const log = new TestLog();
  mkdirSync(join(p.root, '.kube-nvr'), { recursive: true });
  const identity = identityOf(p, log);
  assert.equal(await identity.look(), 'new');
  await identity.create();
  assert.equal(await identity.look(), 'ours');
  assert.ok(log.lines.some(({ message }) => message === 'the id of the archive cannot be stored'));

  rmSync(p.workDir);
  mkdirSync(p.workDir);
  writeFileSync(join(p.workDir, 'archive-id'), 'torn');
  rmSync(markerOf(p));
  await assert.rejects(identityOf(p).look(), isWrong('archive-missing'));
});

test('looking again costs two questions and no reading', async (t) => {
  const p = place(t);
  await newArchive(p);
  const fs = new TestFileSystem(p.root);
  const identity = new ArchiveIdentity({ ...p, fs, log: silentLog });
  await identity.check();
  fs.operations.length = 0;
  await identity.check();
  assert.deepEqual(
    fs.operations.map(({ name }) => name),
    ['facts', 'facts'],
  );
});

test('killed at every step of a first start, the next start has an archive and knows it', async (t) => {
  for (let step = 0; ; step++) {
    const p = place(t);
    const b = await killedAfter(p, step);
    await newArchive(p);
    assert.equal(await identityOf(p).look(), 'ours');
    await newArchive(p);
    if (!b) break;
    assert.ok(step < 200);
  }
});

/** A first start that is killed; false when it came to its end. */
async function killedAfter(p: Place, step: number): Promise<boolean> {
  const fs = new TestFileSystem(p.root);
  fs.killAfter(step);
  const identity = new ArchiveIdentity({ ...p, fs, log: silentLog });
  mkdirSync(join(p.root, '.kube-nvr'), { recursive: true });
  await identity.look().catch(() => {});
  await identity.create().catch(() => {});
  return fs.killed;
}

test('a disk that is taken away while recording: no byte goes beneath it, ready and cameras say why, and it continues when it is back', async (t) => {
  const p = place(t);
  const away = `${p.root}-away`;
  const b = await RetentionBench.start({ ...p, node: { maxSizeBytes: 60_000 } });
  b.begin();
  await b.play(10);
  const before = segmentPaths(p.root);
  const removed = b.removed.length;
  // As umount -l leaves it: the open file lives on, the directory beneath is another one, and empty.
  renameSync(p.root, away);
  mkdirSync(p.root);
  await b.play(10);
  assert.deepEqual(readdirSync(p.root), []);
  assert.equal(await b.archive.checkWritable(), false);
  assert.equal(b.all[0]?.recording.status().reason?.code, 'archive-missing');
  assert.equal(b.archive.warnings()[0]?.code, 'archive-missing');
  assert.match((await b.metric('archive_wrong_disk')).join(), /cause="archive-missing"\} 1/);
  await assert.rejects(b.archive.list('gate', { fromMs: 0, toMs: b.clock.wallMs() }), /archive-missing/);
  await b.wait(120_000);
  assert.equal(b.removed.length, removed, 'nothing is taken for removed');
  rmSync(p.root, { recursive: true });
  renameSync(away, p.root);
  await b.play(20);
  assert.equal(await b.archive.checkWritable(), true);
  assert.equal(b.all[0]?.recording.status().state, 'writing');
  assert.deepEqual(b.archive.warnings(), []);
  await b.stop();
  assert.ok(before.length > 2);
  const messages = b.log.lines.filter(({ message }) => message.includes('disk of the archive'));
  assert.equal(messages.length, 2, 'one line when it goes, one when it comes');
  assert.ok((await readSegments(p.root)).length > 2, 'every file is whole');
});

test('a start without the disk records nothing, and when the disk comes repairs it before anything new begins', async (t) => {
  const p = place(t);
  const away = `${p.root}-away`;
  const first = await RetentionBench.start({ ...p });
  first.begin();
  await first.play(9);
  // Killed: the newest file is open. Then the machine starts without the disk.
  renameSync(p.root, away);
  mkdirSync(p.root);
  const b = await RetentionBench.start({ ...p, clock: first.clock });
  b.begin();
  await b.play(5);
  assert.deepEqual(readdirSync(p.root), []);
  assert.equal(b.all[0]?.recording.status().reason?.code, 'archive-missing');
  assert.equal(await b.archive.checkWritable(), false);
  rmSync(p.root, { recursive: true });
  renameSync(away, p.root);
  await b.play(40);
  assert.equal(b.all[0]?.recording.status().state, 'writing');
  await b.stop();
  const segments = await readSegments(p.root);
  assert.deepEqual(
    segments.map(({ meta }) => meta.sequence),
    segments.map((_, i) => i),
    'the sequence goes on',
  );
});

test('a recorder that waits for its disk begins a new archive when its node is told to forget the old one', async (t) => {
  const p = place(t);
  await newArchive(p);
  const old = archiveOf(p);
  // The disk was replaced by an empty one.
  rmSync(p.root, { recursive: true });
  mkdirSync(p.root);
  const b = await RetentionBench.start({ ...p });
  b.begin();
  await b.play(5);
  assert.deepEqual(readdirSync(p.root), []);
  rmSync(join(p.workDir, 'archive-id'));
  await b.play(5);
  assert.equal(b.all[0]?.recording.status().state, 'writing');
  assert.notEqual(archiveOf(p), old);
  await b.stop();
});

test('an archive of one node of a cluster is refused on another, until its owner says that it is right', async (t) => {
  const p = place(t);
  const on = (node: string, workDir: string): ArchiveIdentity =>
    new ArchiveIdentity({ root: p.root, workDir, node, fs: new TestFileSystem(p.root), log: silentLog });
  await newArchive(p);
  const id = archiveOf(p);
  // One that was made by a recorder alone belongs to no node yet.
  assert.equal(await on('node-1', join(p.workDir, '1')).look(), 'ours');
  await on('node-1', join(p.workDir, '1')).adopt();
  const other = on('node-2', join(p.workDir, '2'));
  await assert.rejects(other.look(), isWrong('archive-foreign'));
  assert.equal(other.id, undefined);
  assert.equal(await other.adopt(), id);
  assert.equal(await other.look(), 'ours');
  assert.equal(other.id, id);
  await assert.rejects(on('node-1', join(p.workDir, '1')).look(), isWrong('archive-foreign'));
});

/** As a recorder of a pool has it. */
const ofPool = (p: Place, pool: string, work: string, node = 'node-1'): ArchiveIdentity =>
  new ArchiveIdentity({
    root: p.root,
    workDir: join(p.workDir, work),
    node,
    pool,
    take: (directory) => takeDirectory(directory, { fs: nodeFileSystem, holder: { node, pool }, log: silentLog }),
    fs: nodeFileSystem,
    log: silentLog,
  });

test('an archive that a recorder uses is refused to another, with the name of the directory and of its user', async (t) => {
  const p = place(t);
  await newArchive(p);
  const first = ofPool(p, 'video/north', 'a');
  assert.equal(await first.look(), 'ours');
  const second = ofPool(p, 'video/north', 'b');
  await assert.rejects(second.look(), (err: WrongDiskError) => {
    assert.equal(err.code, 'archive-in-use');
    assert.ok(
      err.message.startsWith(`${p.root}/.kube-nvr is used by another recorder: pool video/north, node node-1, `),
    );
    return true;
  });
  await assert.rejects(second.check(), isWrong('archive-in-use'));
  assert.equal(await first.look(), 'ours', 'its user may look as often as it likes');
  await first.release();
  assert.equal(await second.look(), 'ours');
  await second.release();
});

test('two recorders that begin an archive in one empty directory: one of them does', async (t) => {
  const p = place(t);
  mkdirSync(join(p.root, '.kube-nvr'), { recursive: true });
  const [first, second] = [ofPool(p, 'video/north', 'a'), ofPool(p, 'video/north', 'b')];
  assert.deepEqual(await Promise.all([first.look(), second.look()]), ['new', 'new']);
  const begun = await Promise.allSettled([first.create(), second.create()]);
  const [id] = begun.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  assert.equal(begun.filter(({ status }) => status === 'rejected').length, 1);
  assert.equal(archiveOf(p), id);
  await Promise.all([first.release(), second.release()]);
  // Also one that looked before the other had begun.
  const late = ofPool(p, 'video/north', 'c');
  await assert.rejects(late.create(), isWrong('archive-foreign'));
  await late.release();
});

test('an archive without a pool becomes that of the first that takes it, and is refused to all others for good', async (t) => {
  const p = place(t);
  await newArchive(p);
  const { id, created } = JSON.parse(readFileSync(markerOf(p), 'utf8')) as Record<string, string>;
  const first = ofPool(p, 'video/north', 'a');
  assert.equal(await first.look(), 'ours');
  await first.release();
  const {
    pool,
    id: sameId,
    created: sameTime,
  } = JSON.parse(readFileSync(markerOf(p), 'utf8')) as Record<string, string>;
  assert.deepEqual([pool, sameId, sameTime], ['video/north', id, created]);
  const other = ofPool(p, 'guest/south', 'b');
  await assert.rejects(other.look(), isWrong('archive-foreign'));
  // A recorder without a cluster is refused nothing: its owner has pointed it here.
  assert.equal(await identityOf(p).look(), 'ours');
  assert.equal(await other.adopt(), id);
  assert.equal(await other.look(), 'ours');
  await other.release();
  await assert.rejects(ofPool(p, 'video/north', 'a').look(), isWrong('archive-foreign'));
});

test('a directory that cannot be locked is used anyway, and the log says so', async (t) => {
  const p = place(t);
  await newArchive(p);
  const log = new TestLog();
  const lock = await takeDirectory(p.root, {
    fs: nodeFileSystem,
    holder: { node: 'node-1' },
    log,
    lock: () => {
      throw new Error('no locks available');
    },
  });
  lock.release();
  assert.match(log.lines[0]?.message ?? '', /cannot be locked/);
});
