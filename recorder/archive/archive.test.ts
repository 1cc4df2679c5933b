import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { encodeAudio, encodeVideo, type EncodedSample } from '../../test/support/encoded-samples.ts';
import { decodingErrors, probe, topLevelBoxes } from '../../test/support/probe.ts';
import { SlabPool, SlabWriter } from '../codec/slab.ts';
import { Archive } from './archive.ts';
import { dayStartMs, formatPath, parsePath, type SegmentName } from './disk/names.ts';
import type { CameraArchive } from './segments/camera-archive.ts';
import {
  AUDIO,
  TestCamera,
  TestFileSystem,
  TestLog,
  VIDEO,
  bench,
  fileSize,
  gate,
  readSegments,
  runOf,
  segmentPaths,
  systemError,
  temporaryDirectory,
  type Bench,
} from './test-support.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);

/** Sends encoded samples in the order of their times, without waiting. */
function send(
  recording: CameraArchive,
  kind: 'video' | 'audio',
  samples: readonly EncodedSample[],
  rate: number,
): void {
  const writer = new SlabWriter(new SlabPool());
  for (const { bytes, dts, compositionOffset, duration, sync } of samples) {
    writer.append(bytes, 0, bytes.length);
    const data = writer.finish();
    const wallMs = NOON_MS + ((dts + compositionOffset) * 1000) / rate;
    recording.sample({
      kind,
      dts,
      compositionOffset,
      usualDuration: duration,
      sync,
      data,
      wallMs,
      lostPackets: 0,
    });
    data.slab.release();
  }
}

for (const format of ['fmp4', 'mp4'] as const) {
  test(`${format}: files with reordered pictures and audio decode without complaint, and together hold all of both`, async (t) => {
    const root = temporaryDirectory(t);
    const media = temporaryDirectory(t);
    const video = encodeVideo(media, {
      codec: 'h264',
      encoderParameters: 'bframes=3:keyint=25:scenecut=0',
      frames: 150,
    });
    const audio = encodeAudio(media, 'aac', 6);
    const archive = new Archive({ root, clock: new VirtualClock(), log: silentLog, syncIntervalMs: 5_000 });
    await archive.recover();
    const options = { cameraId: 'gate', name: 'Gate', format, segmentDurationMs: 2_000 };
    const recording = archive.sinkFor(options, { needKeyFrame() {} });
    recording.begin(runOf({ lead: video.parameters, audio: audio.parameters }));
    for (let second = 0; second <= 6; second++) {
      const within = ({ dts }: EncodedSample, rate: number): boolean => Math.floor(dts / rate) === second;
      send(
        recording,
        'video',
        video.samples.filter((s) => within(s, 90_000)),
        90_000,
      );
      send(
        recording,
        'audio',
        audio.samples.filter((s) => within(s, 48_000)),
        48_000,
      );
    }
    recording.end('stopped');
    // Not `archive.close`: in a hurry a progressive file would stay a hybrid one.
    while (recording.status().segmentsClosed < 3) await new Promise((resolve) => setImmediate(resolve));
    await archive.close();
    const counts = { video: 0, audio: 0 };
    for (const path of segmentPaths(root)) {
      const file = join(root, path);
      assert.equal(await decodingErrors(file), '');
      const boxes = await topLevelBoxes(file);
      assert.deepEqual(boxes, format === 'mp4' ? ['ftyp', 'moov', 'mdat'] : ['ftyp', 'mdat', 'moov']);
      const { streams, durationSeconds } = await probe(file);
      assert.ok(Math.abs(durationSeconds - 2) < 0.1, `${durationSeconds} s`);
      for (const stream of streams) counts[stream.codec_type] += Number(stream.nb_read_packets);
    }
    assert.deepEqual(counts, { video: 150, audio: audio.samples.length });
  });
}

test('the recording in progress is reported from its first fragment to its end, with what is written', async (t) => {
  const root = temporaryDirectory(t);
  const { camera, archive, fs, recording } = await bench({ root, segmentDurationMs: 60_000 });
  assert.equal(await archive.current('gate'), undefined);
  camera.begin();
  camera.video();
  assert.equal(await archive.current('gate'), undefined, 'nothing is written yet');
  await camera.play(2, fs);
  const current = await archive.current('gate');
  assert.equal(current?.path, '2026/01/01/Front-Gate_gate_20260101_120000000.mp4');
  assert.equal(current?.startMs, NOON_MS);
  assert.ok(current && current.sizeBytes > recording.status().bytesWritten, 'with the header of the file');
  assert.equal(current.sizeBytes, fileSize(root, current.path));
  assert.deepEqual(
    (await archive.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + 1 })).segments.map(({ isOpen }) => isOpen),
    [true],
  );
  camera.end('camera-lost');
  assert.equal(await archive.current('gate'), undefined);
  await recording.close();
  const { segments } = await archive.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + 1 });
  assert.deepEqual(
    segments.map(({ isOpen, path }) => [isOpen, path]),
    [[false, current?.path]],
  );
  assert.equal(await archive.current('nobody'), undefined);
});

/** Plays picture by picture, and looks behind each, and before whatever the disk is asked. */
async function playWatched(b: Bench, seconds: number, look: () => void): Promise<void> {
  let failure: unknown;
  b.fs.before = () => {
    try {
      look();
    } catch (err) {
      // Thrown here, it would be a failure of the disk.
      failure ??= err;
    }
  };
  for (let pictures = 0; pictures < seconds * 25; pictures++) {
    await b.camera.play(1 / 25, b.fs);
    look();
    if (failure) throw failure;
  }
  b.fs.before = () => {};
}

for (const sound of [undefined, AUDIO]) {
  test(`fmp4${sound ? ' with sound' : ''}: over a hundred changes of the file, recordings have one in progress with pictures in it`, async (t) => {
    const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 1_000 });
    const { archive, camera, fs, recording, root } = b;
    camera.begin(runOf({ audio: sound }));
    await camera.play(1.5, fs);
    const seen = new Set<string>();
    let looks = 0;
    const check = (): void => {
      const current = recording.current();
      assert.ok(current && !current.isHidden, 'there is one');
      const entries = archive.inProgress('gate').filter(({ isHidden }) => !isHidden);
      assert.deepEqual(entries.at(-1)?.path ?? '', current.path, 'the newest that is listed as open');
      assert.equal(recording.status().currentFile, current.path);
      assert.equal(recording.status().state, 'writing');
      seen.add(current.path);
      looks++;
    };
    await playWatched(b, 102, check);
    assert.ok(seen.size > 100, `${seen.size} files`);
    assert.ok(looks > 4_000, `${looks} looks`);
    const current = recording.current();
    assert.ok(current);
    assert.equal(current.sizeBytes, fileSize(root, current.path));
    camera.end();
    assert.equal(recording.current(), undefined);
    await archive.close();
  });
}

for (const format of ['fmp4', 'mp4'] as const) {
  test(`${format}: each list has an open segment that begins where the ones before end, also while the next is begun`, async (t) => {
    const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 1_000, format });
    const { archive, camera, fs, clock } = b;
    camera.begin();
    await camera.play(1.5, fs);
    for (let pictures = 0; pictures < 300; pictures++) {
      await camera.play(1 / 25, fs);
      const { segments } = await archive.list('gate', { fromMs: NOON_MS, toMs: clock.wallMs() + 1 });
      const open = segments.filter(({ isOpen }) => isOpen);
      assert.ok(open.length >= 1, `of ${segments.length} none is open`);
      assert.ok(segments.at(-1)?.isOpen, 'the newest is');
      assert.deepEqual(
        segments.map(({ sequence }) => sequence),
        segments.map((_, i) => i),
        'none is missing, none is listed twice',
      );
    }
    camera.end();
    await archive.close();
  });
}

test('segments that end before their first pictures reach the disk are in progress all the same', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 1_000 });
  const { archive, camera, fs, recording, clock } = b;
  fs.before = ({ name }) =>
    name === 'write' ? new Promise<void>((resolve) => void clock.after(1_500, resolve)) : undefined;
  camera.begin();
  await camera.play(10, fs);
  for (let pictures = 0; pictures < 20 * 25; pictures++) {
    await camera.play(1 / 25, fs);
    assert.ok(recording.current(), 'there is one');
  }
  camera.end('camera-lost');
  assert.equal(recording.current(), undefined);
  await camera.wait(6_000, fs);
  assert.equal(recording.current(), undefined, 'late writes do not bring it back');
  fs.before = () => {};
  const closed = archive.close();
  await camera.wait(3_000, fs);
  await closed;
});

test('where the camera continues with a new run, the last file is in progress until the next has pictures; where it is lost, it is not', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  const { archive, camera, fs, recording } = b;
  camera.begin();
  await camera.play(3, fs);
  for (const [i, reason] of (['gap', 'clock', 'parameters', 'stalled'] as const).entries()) {
    const before = recording.current()?.path;
    camera.end(reason);
    await fs.idle();
    assert.equal(recording.current()?.path, before, reason);
    camera.begin(runOf({ runId: `00000000000000b${i}` }));
    await playWatched(b, 3, () => assert.ok(recording.current(), reason));
    assert.notEqual(recording.current()?.path, before);
  }
  for (const reason of ['camera-lost', 'no-key-frame', 'stopped'] as const) {
    camera.end(reason);
    assert.equal(recording.current(), undefined, reason);
    camera.begin(runOf({ runId: `00000000000000${reason.length + 16}` }));
    await camera.play(3, fs);
    assert.ok(recording.current());
  }
  // Packets were lost, and no key frame follows.
  camera.end('gap');
  await camera.wait(9_000, fs);
  assert.ok(recording.current());
  await camera.wait(1_500, fs);
  assert.equal(recording.current(), undefined);
  assert.deepEqual(archive.inProgress('gate'), []);
  await archive.close();
});

test('a file that is on the disk before anybody was told is not listed, nor is one without pictures', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 2_000 });
  const { archive, camera, fs, clock, root } = b;
  camera.begin();
  await camera.play(2, fs);
  for (const held of ['syncDirectory', 'write'] as const) {
    const stall = gate();
    fs.before = ({ name, path }) => (name === held && path.startsWith('2026') ? stall.passed : undefined);
    await camera.play(2.2, fs);
    const { segments } = await archive.list('gate', { fromMs: NOON_MS, toMs: clock.wallMs() + 1 });
    const files = segmentPaths(root);
    assert.ok(files.length > segments.length, `${files.length} files, ${segments.length} listed`);
    assert.deepEqual(
      segments.map(({ path, isOpen }) => [path, isOpen]),
      files.slice(0, segments.length).map((path, i) => [path, i === segments.length - 1]),
      held,
    );
    fs.before = () => {};
    stall.open();
    await camera.play(1, fs);
  }
  camera.end();
  await archive.close();
});

test('a disk that takes no further file ends the recording in progress', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 2_000 });
  const { archive, camera, fs, recording } = b;
  camera.begin();
  await camera.play(1.5, fs);
  fs.before = ({ name }) => {
    if (name === 'create') throw systemError('ENOSPC');
  };
  await camera.play(3, fs);
  assert.equal(recording.status().state, 'failed');
  assert.equal(recording.current(), undefined);
  assert.deepEqual(archive.inProgress('gate'), []);
  fs.before = () => {};
  await archive.close();
});

test('the mtime of an open segment is that of its last write', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(5, b.fs);
  await b.camera.wait(2_000, b.fs);
  const written = b.recording.current()?.mtimeMs ?? 0;
  await b.camera.wait(5_000, b.fs);
  const { segments } = await b.archive.list('gate', { fromMs: NOON_MS, toMs: b.clock.wallMs() });
  assert.deepEqual(
    segments.map(({ isOpen, mtimeMs }) => [isOpen, mtimeMs]),
    [[true, written]],
  );
  assert.ok(b.clock.wallMs() - written >= 5_500, 'a camera that stands still does not make it newer');
  b.camera.end();
  await b.archive.close();
});

test('the recording in progress in the format mp4 is not reported as playable, but listed', async (t) => {
  const { camera, archive, fs } = await bench({ root: temporaryDirectory(t), format: 'mp4' });
  camera.begin();
  await camera.play(2, fs);
  assert.equal(await archive.current('gate'), undefined);
  const { segments } = await archive.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + 1 });
  assert.deepEqual(
    segments.map(({ isOpen }) => isOpen),
    [true],
  );
  camera.end();
  await archive.close();
});

test('a closed segment is listed as its file says, without reading it', async (t) => {
  const { camera, archive, fs, recording, root } = await bench({
    root: temporaryDirectory(t),
    segmentDurationMs: 2_000,
  });
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(5, fs);
  camera.end();
  await recording.close();
  const before = fs.operations.length;
  const { segments } = await archive.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + 10_000 });
  assert.deepEqual(
    segments.map(({ path, sequence, isOpen }) => [path, sequence, isOpen]),
    segmentPaths(root).map((path, i) => [path, i, false]),
  );
  assert.ok(!fs.operations.slice(before).some(({ name }) => name === 'open'));
});

test('a complete segment that is received is listed at once, beside changes of its directory by recordings', async (t) => {
  const root = temporaryDirectory(t);
  const b = await bench({ root, segmentDurationMs: 1_000 });
  b.camera.begin();
  await b.camera.play(3, b.fs);
  b.camera.end();
  await b.recording.close();
  const [path = ''] = segmentPaths(root);
  const bytes = readFileSync(join(root, path));
  const segment = parsePath(path) as SegmentName;
  const lost = { ...segment, startMs: segment.startMs - 60_000 };
  await b.archive.list('gate', { fromMs: lost.startMs, toMs: NOON_MS + 60_000 });
  assert.equal(await b.archive.receive(lost, bytes.length, async (file) => void (await file.write([bytes], 0))), true);
  assert.ok(b.archive.catalogue.day('gate', dayStartMs(lost.startMs))?.has(lost), 'before any directory is read');
  const { segments } = await b.archive.list('gate', { fromMs: lost.startMs, toMs: NOON_MS + 60_000 });
  assert.equal(segments[0]?.path, formatPath(lost));
  await b.archive.close();
});

test('the extent of footage ends with the last picture, also of an earlier process, whose file is read once', async (t) => {
  const root = temporaryDirectory(t);
  const { camera, archive, fs, recording } = await bench({ root, segmentDurationMs: 60_000 });
  camera.begin();
  await camera.play(5, fs);
  assert.equal(archive.extents()[0]?.newestMs, NOON_MS, 'being written');
  camera.end();
  await recording.close();
  const { segments } = await archive.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + 10_000 });
  const endMs = segments.at(-1)?.endMs;
  assert.ok(endMs !== undefined && endMs > NOON_MS + 4_000);
  assert.equal(archive.extents()[0]?.newestMs, endMs);
  await archive.close();

  const next = await bench({ root });
  await next.archive.learnEnds();
  assert.equal(next.archive.extents()[0]?.newestMs, endMs);
  const before = next.fs.operations.length;
  await next.archive.learnEnds();
  assert.equal(next.fs.operations.length, before);
  await next.archive.close();
});

test('a camera that is configured again continues in the same sequence while its last file is completed', async (t) => {
  const b = await bench({ root: temporaryDirectory(t), segmentDurationMs: 60_000 });
  b.camera.begin();
  await b.camera.play(2, b.fs);
  const stall = gate();
  b.fs.before = ({ name }) => (name === 'sync' ? stall.passed : undefined);
  const closing = b.recording.close();
  const again = b.archive.sinkFor(
    { cameraId: 'gate', name: 'Renamed', format: 'fmp4', segmentDurationMs: 60_000 },
    { needKeyFrame() {} },
  );
  const camera = new TestCamera(b.clock, again, () => again.tick());
  camera.begin(runOf({ runId: '00000000000000bb' }));
  await camera.play(2, b.fs);
  const listed = await b.archive.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + 10_000 });
  assert.deepEqual(
    listed.segments.map(({ isOpen }) => isOpen),
    [true, true],
  );
  stall.open();
  await closing;
  camera.end();
  await b.archive.close();
  const segments = await readSegments(b.root);
  assert.deepEqual(
    segments.map(({ path, meta }) => [path.split('/')[3]?.split('_')[0], meta.sequence, meta.gapBeforeMs]),
    [
      ['Front-Gate', 0, 0],
      ['Renamed', 1, 0],
    ],
  );
  assert.deepEqual(readdirSync(join(b.root, '.kube-nvr/open')).length, 1);
});

test('closing completes every file of twenty cameras, and takes no more samples', async (t) => {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock();
  const fs = new TestFileSystem(root);
  const archive = new Archive({ root, clock, fs, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  const cameras = Array.from({ length: 20 }, (_, i) => {
    const options = { cameraId: `cam-${i}`, name: 'Cam', format: 'fmp4', segmentDurationMs: 60_000 } as const;
    const recording = archive.sinkFor(options, { needKeyFrame() {} });
    const camera = new TestCamera(new VirtualClock(), recording, () => recording.tick());
    camera.begin(runOf({ audio: AUDIO }));
    return { camera, recording };
  });
  for (const { camera } of cameras) await camera.play(2);
  await archive.close();
  for (const { camera, recording } of cameras) {
    camera.video();
    assert.equal(recording.status().segmentsClosed, 1);
  }
  await archive.close();
  const segments = await readSegments(root);
  assert.equal(segments.length, 20);
  assert.ok(segments.every(({ video }) => video.dts.length === 50));
});

test('readiness: the record path is writable when a file can be made and synced there, and a change is logged', async (t) => {
  const root = join(temporaryDirectory(t), 'a/b/recordings');
  const fs = new TestFileSystem(root);
  const log = new TestLog();
  const archive = new Archive({ root: `${root}/`, clock: new VirtualClock(), fs, log, syncIntervalMs: 5_000 });
  assert.equal(await archive.checkWritable(), false, 'it does not exist');
  await archive.recover();
  assert.equal(await archive.checkWritable(), true);
  fs.before = ({ name }) => {
    if (name === 'syncData') throw systemError('EROFS');
  };
  assert.equal(await archive.checkWritable(), false);
  assert.equal(await archive.checkWritable(), false);
  fs.before = () => {};
  assert.equal(await archive.checkWritable(), true);
  rmSync(root, { recursive: true });
  assert.equal(await archive.checkWritable(), false);
  assert.deepEqual(
    log.lines.map(({ fields }) => fields['code']),
    ['disk-missing', undefined, 'disk-read-only', undefined, 'disk-missing'],
  );
});

test('a record path that is a file does not let itself be recovered, and says so', async (t) => {
  const root = join(temporaryDirectory(t), 'file');
  writeFileSync(root, '');
  const archive = new Archive({ root, clock: new VirtualClock(), log: silentLog, syncIntervalMs: 5_000 });
  await assert.rejects(archive.recover());
  assert.equal(await archive.checkWritable(), false);
});

test('failures of files and the time of syncs are counted', async (t) => {
  const root = temporaryDirectory(t);
  mkdirSync(root, { recursive: true });
  const clock = new VirtualClock();
  const fs = new TestFileSystem(root);
  const registry = new Registry();
  const archive = new Archive({ root, clock, fs, log: silentLog, syncIntervalMs: 1_000, registry });
  await archive.recover();
  const options = { cameraId: 'gate', name: 'Gate', format: 'fmp4', segmentDurationMs: 60_000 } as const;
  const recording = archive.sinkFor(options, { needKeyFrame() {} });
  const camera = new TestCamera(clock, recording, () => recording.tick());
  camera.begin();
  await camera.play(5, fs);
  fs.before = ({ name }) => {
    if (name === 'write') throw systemError('ENOSPC');
  };
  await camera.play(2, fs);
  camera.end();
  await archive.close();
  const text = await registry.metrics();
  assert.match(text, /kube_nvr_archive_file_failures_total\{cause="disk-full"\} [12]\n/);
  assert.match(text, /kube_nvr_archive_sync_seconds_count [1-9]/);
});

test('parameters that no file can hold are a reason in the state, not an end of the process', async (t) => {
  const { camera, recording, archive, fs } = await bench({ root: temporaryDirectory(t) });
  const lead = { ...VIDEO, sps: [] };
  camera.begin(runOf({ lead }));
  await camera.play(3, fs);
  assert.equal(recording.status().state, 'failed');
  assert.equal(recording.status().reason?.code, 'unsupported-parameters');
  assert.equal(recording.status().framesDropped.get('parameters'), 75);
  camera.end();
  await archive.close();
});

test('audio that no file can hold does not keep the video from being recorded', async (t) => {
  const log = new TestLog();
  const { camera, archive, fs, root } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 2_000, log });
  camera.begin(runOf({ audio: { ...AUDIO, config: Buffer.alloc(70_000) } }));
  await camera.play(5, fs);
  camera.end();
  await archive.close();
  const segments = await readSegments(root);
  assert.deepEqual(
    segments.map(({ video, audio }) => [video.dts.length, audio]),
    [
      [50, undefined],
      [50, undefined],
      [25, undefined],
    ],
  );
  assert.ok(log.lines.some(({ message }) => message.startsWith('audio that no file can hold')));
});

test('old footage that cannot be read is logged at start and a warning, and new footage is recorded', async (t) => {
  const root = temporaryDirectory(t);
  mkdirSync(join(root, '2020'));
  const log = new TestLog();
  const { camera, archive, fs } = await bench({
    root,
    log,
    before: ({ name, path }) => {
      if (name === 'list' && path === '2020') throw Object.assign(systemError('EIO'), { path: join(root, path) });
    },
  });
  assert.ok(log.lines.some(({ level }) => level === 'error'));
  const message = 'the archive on disk cannot be read: 2020 (EIO)';
  await assert.rejects(archive.list('gate', { fromMs: 0, toMs: 1 }), { message });
  assert.deepEqual(archive.warnings(), [{ code: 'archive-unreadable', message, cameraId: undefined }]);
  camera.begin();
  await camera.play(2, fs);
  camera.end();
  await archive.close();
  assert.equal((await readSegments(root)).length, 1);
});
