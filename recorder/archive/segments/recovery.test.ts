import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { readMeta } from '../../mp4/reader.ts';
import { Archive } from '../archive.ts';
import {
  AUDIO,
  TestCamera,
  TestFileSystem,
  bench,
  readSegments,
  runOf,
  segmentPaths,
  temporaryDirectory,
  type Bench,
} from '../test-support.ts';
import type { RecoveryReport } from './recovery.ts';

async function recoverAt(root: string, fs = new TestFileSystem(root)): Promise<RecoveryReport> {
  const archive = new Archive({ root, fs, clock: new VirtualClock(), log: silentLog, syncIntervalMs: 5_000 });
  return archive.recover();
}

const outcomes = ({ repairs }: RecoveryReport): string[] => [...repairs.values()].map(({ kind }) => kind);
const markers = (root: string): string[] => readdirSync(join(root, '.kube-nvr/open'));

/** Five seconds in segments of two, as far as the disk lets it. */
async function record(b: Bench): Promise<void> {
  b.camera.begin(runOf({ audio: AUDIO }));
  await b.camera.play(5, b.fs);
  b.camera.end();
  await b.archive.close();
}

/** Pictures in fragments that were wholly written, as the status counted them. */
async function assertRecovered(root: string, framesWritten: number): Promise<void> {
  const segments = await readSegments(root);
  const frames = segments.flatMap(({ video }) => video.dts);
  assert.ok(frames.length >= framesWritten, `${frames.length} pictures of ${framesWritten} that were written`);
  assert.deepEqual(
    frames,
    frames.map((_, i) => 900_000 + i * 3600),
    'without a hole',
  );
}

for (const format of ['fmp4', 'mp4'] as const) {
  test(`killed at every step of recording ${format}, with writes torn in between, every file is whole after recovery`, async (t) => {
    const outer = temporaryDirectory(t);
    const states = new Set<string>();
    let steps = 0;
    let writes: boolean[] = [];
    for (let torn = 0; torn < 3; torn++) {
      for (let step = 0; ; step++) {
        if (torn > 0 && writes[step] === false) continue;
        const root = join(outer, `${torn}-${step}`);
        const b = await bench({ root, format, segmentDurationMs: 2_000 });
        const begun = b.fs.operations.length;
        b.fs.killAfter(step, [0, 1, 3_000][torn]);
        await record(b);
        steps++;
        const { framesWritten } = b.recording.status();
        outcomes(await recoverAt(root)).forEach((kind) => states.add(kind));
        await assertRecovered(root, framesWritten);
        assert.ok(markers(root).length <= 1, 'the newest marker stays, no other');
        assert.deepEqual(readdirSync(join(root, '.kube-nvr/rewrite')), []);
        const before = await readSegments(root);
        assert.ok(outcomes(await recoverAt(root)).every((kind) => kind === 'finalized' || kind === 'missing'));
        assert.deepEqual(await readSegments(root), before, 'a second recovery changes nothing');
        rmSync(root, { recursive: true });
        if (b.fs.killed) continue;
        writes = b.fs.operations.slice(begun).map(({ name }) => name === 'write');
        break;
      }
    }
    assert.ok(steps > 80, `${steps} steps`);
    assert.deepEqual([...states].sort(), ['finalized', 'missing', 'recovered', 'removed']);
  });
}

test('recovery that is killed at every step of its own is completed by the next one', async (t) => {
  const outer = temporaryDirectory(t);
  const crashed = join(outer, 'crashed');
  const b = await bench({ root: crashed, segmentDurationMs: 60_000 });
  b.camera.begin(runOf({ audio: AUDIO }));
  await b.camera.play(3, b.fs);
  const { framesWritten } = b.recording.status();
  assert.ok(framesWritten > 50);
  writeFileSync(join(crashed, '.kube-nvr/rewrite/left-over.mp4'), 'half');
  for (let torn = 0; torn < 3; torn++) {
    for (let step = 0; ; step++) {
      const root = join(outer, `${torn}-${step}`);
      cpSync(crashed, root, { recursive: true });
      const fs = new TestFileSystem(root);
      fs.killAfter(step, [0, 1, 20][torn]);
      await recoverAt(root, fs).catch(() => {});
      await recoverAt(root);
      await assertRecovered(root, framesWritten);
      rmSync(root, { recursive: true });
      if (!fs.killed) break;
    }
  }
});

test('a file cut at any byte of its last fragments is recovered with every whole one', async (t) => {
  const outer = temporaryDirectory(t);
  const crashed = join(outer, 'crashed');
  const b = await bench({ root: crashed, segmentDurationMs: 60_000 });
  b.camera.bytesPerFrame = 20;
  b.camera.begin();
  await b.camera.play(3, b.fs);
  const [path = ''] = segmentPaths(crashed);
  const size = statSync(join(crashed, path)).size;
  let most = 0;
  for (let left = size + (7 - (size % 7)); left >= 0; left -= 7) {
    const cut = Math.max(0, size - left);
    const root = join(outer, 'cut');
    cpSync(crashed, root, { recursive: true });
    truncateSync(join(root, path), cut);
    await recoverAt(root);
    const [segment] = await readSegments(root);
    const frames = segment?.video.dts.length ?? 0;
    assert.ok(frames >= most, 'more bytes never hold fewer pictures');
    most = frames;
    if (frames === 0) assert.equal(existsSync(join(root, path)), false, 'a file without a picture is removed');
    rmSync(root, { recursive: true });
  }
  assert.equal(most, 66, 'three whole fragments');
});

test('a process killed with SIGKILL leaves files that recovery completes', async (t) => {
  const root = temporaryDirectory(t);
  const script = `
    import { bench } from ${JSON.stringify(new URL('../test-support.ts', import.meta.url).href)};
    const b = await bench({ root: ${JSON.stringify(root)}, segmentDurationMs: 2000 });
    b.camera.begin();
    await b.camera.play(5.2, b.fs);
    process.kill(process.pid, 'SIGKILL');`;
  const { signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  assert.equal(signal, 'SIGKILL', stderr);
  const report = await recoverAt(root);
  assert.ok(outcomes(report).includes('recovered'));
  await assertRecovered(root, 122);
});

test('an open file is found among the newest without its marker, and closed files of the archive are not read', async (t) => {
  const root = temporaryDirectory(t);
  const b = await bench({ root, segmentDurationMs: 2_000 });
  b.camera.begin();
  await b.camera.play(13, b.fs);
  await b.fs.idle();
  rmSync(join(root, '.kube-nvr'), { recursive: true });
  const fs = new TestFileSystem(root);
  const report = await recoverAt(root, fs);
  assert.deepEqual(outcomes(report), ['recovered']);
  assert.equal(segmentPaths(root).length, 7);
  const opened = new Set(fs.operations.filter(({ name }) => name === 'open').map(({ path }) => path));
  assert.equal(opened.size, 4, 'the open one and three before it');
  assert.equal(report.histories.get('gate')?.nextSequence, 7);
});

test('the sequence continues after a restart, also when the wall clock was stepped back before', async (t) => {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock();
  const first = await bench({ root, clock, segmentDurationMs: 2_000 });
  first.camera.begin();
  await first.camera.play(8, first.fs);
  first.camera.end('clock');
  clock.stepWall(-3_600_000);
  first.camera.begin(runOf({ runId: '00000000000000bb' }));
  await first.camera.play(8, first.fs);
  first.camera.end();
  await first.archive.close();
  assert.equal(markers(root).length, 1);

  clock.advance(20_000);
  const second = await bench({ root, clock, segmentDurationMs: 2_000 });
  second.camera.begin(runOf({ runId: '00000000000000cc' }));
  await second.camera.play(1, second.fs);
  second.camera.end();
  await second.archive.close();
  const sequences = (await readSegments(root)).map(({ meta }) => meta.sequence);
  assert.deepEqual(
    [...sequences].sort((a, b) => a - b),
    [0, 1, 2, 3, 4, 5, 6, 7, 8],
  );
  const last = (await readSegments(root)).find(({ meta }) => meta.runId === '00000000000000cc');
  assert.equal(last?.meta.sequence, 8);
  assert.ok(Math.abs((last?.meta.gapBeforeMs ?? 0) - 20_000) <= 1, 'the time the recorder was down is a gap');
});

test('numbers of files are not used again after the newest file is gone', async (t) => {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock();
  await record(await bench({ root, clock, segmentDurationMs: 2_000 }));
  assert.equal(segmentPaths(root).length, 3);
  for (const path of segmentPaths(root)) rmSync(join(root, path));
  clock.advance(1_000);
  await record(await bench({ root, clock, segmentDurationMs: 2_000 }));
  assert.deepEqual(
    (await readSegments(root)).map(({ meta }) => meta.sequence),
    [3, 4, 5],
  );
});

test('after a restart, live footage continues behind the newest live footage, not behind what filled a gap before it', async (t) => {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock();
  const first = await bench({ root, clock, segmentDurationMs: 60_000 });
  first.camera.begin();
  await first.camera.play(3, first.fs);
  first.camera.end('camera-lost');
  const gapFromMs = clock.wallMs();
  clock.advance(30_000);
  first.camera.begin(runOf({ runId: '00000000000000bb' }));
  await first.camera.play(3, first.fs);
  first.camera.end('camera-lost');
  await first.fs.idle();
  // The gap is filled from the memory of the camera: this file has a later number than the live one behind it.
  const edge = { seam: 'bytes', epoch: undefined } as const;
  const filling = { cameraId: 'gate', name: 'Front Gate', format: 'fmp4', segmentDurationMs: 60_000, edge } as const;
  const filler = first.archive.fillerFor(filling, gapFromMs);
  const memory = new TestCamera(clock, filler, () => filler.tick());
  memory.begin(runOf({ runId: '00000000000000cc' }));
  for (let i = 0; i < 75; i++) memory.video({ wallMs: gapFromMs + i * 40 });
  memory.end();
  await filler.close();
  const liveEndMs = first.recording.endMs as number;
  await first.archive.close();

  const report = await recoverAt(root);
  assert.equal(report.histories.get('gate')?.wallEndMs, liveEndMs);
  assert.equal(report.histories.get('gate')?.nextSequence, 3);
});

test('two runs that begin in the same millisecond lie in two files', async (t) => {
  const root = temporaryDirectory(t);
  const { camera, archive, fs } = await bench({ root });
  for (let i = 0; i < 3; i++) {
    camera.begin();
    camera.video({ wallMs: Date.UTC(2026, 0, 1, 23, 59, 59, 999) });
    camera.end('clock');
    await fs.idle();
  }
  await archive.close();
  assert.deepEqual(segmentPaths(root), [
    '2026/01/01/Front-Gate_gate_20260101_235959999.mp4',
    '2026/01/02/Front-Gate_gate_20260102_000000000.mp4',
    '2026/01/02/Front-Gate_gate_20260102_000000001.mp4',
  ]);
});

test('files of others are left as they are, however they are named', async (t) => {
  const root = temporaryDirectory(t);
  mkdirSync(join(root, '2025/12/31'), { recursive: true });
  const foreign = {
    '2025/12/31/Gate_gate_20251231_100000000.mp4': 'not an mp4 at all, but somebody wants it',
    '2025/12/31/Gate_gate_20251231_110000000.mp4': '',
    '2025/12/31/notes.txt': 'notes',
    README: 'readme',
  };
  for (const [path, text] of Object.entries(foreign)) writeFileSync(join(root, path), text);
  await recoverAt(root);
  for (const [path, text] of Object.entries(foreign)) assert.equal(readFileSync(join(root, path), 'utf8'), text);
});

test('the length of a file without its contents, as a power cut leaves it, is no recording and is removed', async (t) => {
  const root = temporaryDirectory(t);
  const b = await bench({ root, segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(2, b.fs);
  const [path = ''] = segmentPaths(root);
  writeFileSync(join(root, path), Buffer.alloc(100_000));
  assert.deepEqual(outcomes(await recoverAt(root)), ['removed']);
  assert.deepEqual(segmentPaths(root), []);
});

test('what recovery did is counted', async (t) => {
  const root = temporaryDirectory(t);
  const b = await bench({ root, segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(2, b.fs);
  const registry = new Registry();
  const archive = new Archive({ root, clock: b.clock, log: silentLog, syncIntervalMs: 5_000, registry });
  await archive.recover();
  assert.match(await registry.metrics(), /kube_nvr_archive_recovered_files_total\{outcome="recovered"\} 1/);
});

test('a recovered file says how long it is', async (t) => {
  const root = temporaryDirectory(t);
  const b = await bench({ root, segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(2, b.fs);
  await recoverAt(root);
  const [path = ''] = segmentPaths(root);
  const bytes = readFileSync(join(root, path));
  const state = await readMeta(async (offset, length) => bytes.subarray(offset, offset + length), bytes.length);
  assert.ok(state.kind === 'finalized');
  assert.equal(state.meta.mediaDurationMs, 44 * 40);
  assert.equal(state.meta.wallDurationMs, 44 * 40);
});
