import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { paceOf } from '../../mp4/meta.ts';
import { readMeta } from '../../mp4/reader.ts';
import { parsePath } from '../disk/names.ts';
import {
  AUDIO,
  VIDEO,
  bench,
  readSegments,
  runOf,
  segmentPaths,
  temporaryDirectory,
  type ReadSegment,
} from '../test-support.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);

/** Every border between two files is one instant, in media time, in wall time, and for both tracks. */
function assertJoined(segments: readonly ReadSegment[]): void {
  segments.forEach((segment, i) => {
    const before = segments[i - 1];
    if (!before) return;
    assert.equal(before.video.endDts, segment.video.dts[0], `video of ${segment.path} begins where the last one ends`);
    if (before.audio && segment.audio)
      assert.equal(
        before.audio.endDts,
        segment.audio.dts[0],
        `audio of ${segment.path} begins where the last one ends`,
      );
    const wallEndMs = before.meta.wallStartMs + before.meta.wallDurationMs;
    assert.ok(Math.abs(wallEndMs - segment.meta.wallStartMs) < 1e-5, 'wall times join');
    assert.equal(segment.meta.sequence, before.meta.sequence + 1);
    assert.equal(segment.meta.gapBeforeMs, 0);
  });
}

test('a segment ends at the first key frame after its duration, exactly where the next begins', async (t) => {
  const { camera, archive, root, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 10_000 });
  camera.keyFrameInterval = 75; // 3 s: the first key frame after 10 s is at 12 s
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(30, fs);
  camera.end();
  await archive.close();
  const segments = await readSegments(root);
  assert.deepEqual(
    segments.map(({ path }) => path),
    [
      '2026/01/01/Front-Gate_gate_20260101_120000000.mp4',
      '2026/01/01/Front-Gate_gate_20260101_120012000.mp4',
      '2026/01/01/Front-Gate_gate_20260101_120024000.mp4',
    ],
  );
  assert.deepEqual(
    segments.map(({ video }) => video.dts.length),
    [300, 300, 150],
  );
  assertJoined(segments);
});

test('whatever samples arrive, in whatever order of the tracks, consecutive segments join to the tick', async (t) => {
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ kind: fc.constant('video' as const), ticks: fc.integer({ min: 1, max: 9000 }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('key' as const), ticks: fc.integer({ min: 1, max: 9000 }) }),
    },
    { weight: 14, arbitrary: fc.record({ kind: fc.constant('audio' as const), ticks: fc.constant(1024) }) },
  );
  // Audio runs up to a second ahead of the video or behind it, as cameras send it.
  const property = fc.asyncProperty(fc.array(step, { minLength: 50, maxLength: 400 }), async (steps) => {
    const { camera, archive, root, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 500 });
    camera.begin(runOf({ audio: AUDIO }));
    camera.video({ sync: true, ticks: 3600 });
    const sent = { video: [900_000], audio: [] as number[] };
    for (const { kind, ticks } of steps) {
      const aheadMs = camera.audioDts / 48 - camera.videoDts / 90;
      if (kind === 'audio' && aheadMs > 900) continue;
      if (kind === 'audio') {
        sent.audio.push(camera.audioDts);
        camera.audio(ticks);
      } else {
        while (camera.audioDts / 48 - camera.videoDts / 90 < -900) {
          sent.audio.push(camera.audioDts);
          camera.audio();
        }
        sent.video.push(camera.videoDts);
        camera.video({ sync: kind === 'key', ticks });
        camera.clock.advance(ticks / 90);
      }
    }
    camera.end();
    await fs.idle();
    await archive.close();
    const segments = await readSegments(root);
    assertJoined(segments);
    assert.deepEqual(
      segments.flatMap(({ video }) => video.dts),
      sent.video,
    );
    assert.deepEqual(
      segments.flatMap(({ audio }) => audio?.dts ?? []),
      sent.audio,
    );
    for (const segment of segments.slice(0, -1)) {
      // Each audio frame lies in the file in which it begins.
      const lastAudio = segment.audio?.dts.at(-1) ?? 0;
      assert.ok(lastAudio / 48 < segment.video.endDts / 90);
    }
  });
  await fc.assert(property, { numRuns: 25, interruptAfterTimeLimit: 20_000 });
});

test('the first key frame after midnight UTC begins a new file in the directory of the new day', async (t) => {
  const clock = new VirtualClock(Date.UTC(2026, 1, 28, 23, 59, 55, 500));
  const root = temporaryDirectory(t);
  const { camera, archive, fs } = await bench({ root, clock, segmentDurationMs: 300_000 });
  camera.keyFrameInterval = 50;
  camera.begin();
  await camera.play(10, fs);
  camera.end();
  await archive.close();
  assert.deepEqual(segmentPaths(root), [
    '2026/02/28/Front-Gate_gate_20260228_235955500.mp4',
    '2026/03/01/Front-Gate_gate_20260301_000001500.mp4',
  ]);
  assertJoined(await readSegments(root));
});

test('a camera with a key frame a minute is cut at them alone', async (t) => {
  const { camera, archive, root, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 90_000 });
  camera.framesPerSecond = 5;
  camera.keyFrameInterval = 300;
  camera.begin();
  await camera.play(300, fs);
  camera.end();
  await archive.close();
  const segments = await readSegments(root);
  assert.deepEqual(
    segments.map(({ meta }) => meta.mediaDurationMs),
    [120_000, 120_000, 60_000],
  );
  assertJoined(segments);
});

test('one picture a second is on the disk when the next has come', async (t) => {
  const { camera, archive, recording, root, fs } = await bench({ root: temporaryDirectory(t) });
  camera.framesPerSecond = 1;
  camera.keyFrameInterval = 5;
  camera.begin();
  await camera.play(8, fs);
  assert.equal(recording.status().framesWritten, 7);
  camera.end();
  await archive.close();
  assert.equal((await readSegments(root))[0]?.video.dts.length, 8);
});

test('however many files were written, no more markers stay than there are open files, and one', async (t) => {
  const { camera, archive, root, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 2_000 });
  const markers = (): number => readdirSync(join(root, '.kube-nvr/open')).length;
  camera.begin();
  for (let files = 1; files < 20; files++) {
    await camera.play(2, fs);
    assert.ok(markers() <= 3, `${markers()} markers after ${files} files`);
  }
  camera.end();
  await archive.close();
  assert.equal(markers(), 1);
});

test('the marker of a complete file stays until what was told of the file is safe', async (t) => {
  let isSafe = false;
  const observer = { closed() {}, removed() {}, saved: async () => isSafe };
  const root = temporaryDirectory(t);
  const { camera, archive, fs } = await bench({ root, segmentDurationMs: 2_000, observer });
  const files = (): number => segmentPaths(root).length;
  const markers = (): number => readdirSync(join(root, '.kube-nvr/open')).length;
  camera.begin();
  await camera.play(9, fs);
  assert.equal(markers(), files());
  isSafe = true;
  await camera.play(2, fs);
  camera.end();
  await archive.close();
  assert.equal(markers(), 1);
});

test('files of a fraction of a second are counted, and more than a few in a minute are a warning', async (t) => {
  const { camera, archive, recording, fs, clock } = await bench({ root: temporaryDirectory(t) });
  const short = async (): Promise<void> => {
    camera.begin();
    await camera.play(0.48, fs);
    camera.end();
    await fs.idle();
  };
  for (let files = 0; files < 6; files++) await short();
  assert.equal(recording.status().shortSegments, 6);
  assert.deepEqual(archive.warnings(), []);
  await short();
  const [warning] = archive.warnings();
  assert.deepEqual([warning?.code, warning?.cameraId], ['files-short', 'gate']);
  clock.advance(60_000);
  assert.deepEqual(archive.warnings(), []);
  assert.equal(recording.status().segmentsClosed, 7);
  await archive.close();
});

test('what a silent camera has sent is written after a second although nothing follows', async (t) => {
  const { camera, recording, fs } = await bench({ root: temporaryDirectory(t) });
  camera.begin();
  await camera.play(0.4, fs);
  assert.equal(recording.status().framesWritten, 0);
  await camera.wait(1_250, fs);
  assert.equal(recording.status().framesWritten, 9, 'all but the picture whose duration is not known');
  camera.end('camera-lost');
  await recording.close();
  assert.equal(recording.status().framesWritten, 10);
});

test('audio that continues while video is silent is written, and belongs to the same file', async (t) => {
  const { camera, recording, root, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 300_000 });
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(2, fs);
  for (let i = 0; i < 100; i++) {
    camera.audio();
    camera.clock.advance(1024 / 48);
    recording.tick();
  }
  await fs.idle();
  const frames = recording.status().framesWritten;
  camera.videoDts += 190_000;
  camera.keyFrameNext();
  await camera.play(1, fs);
  assert.ok(recording.status().framesWritten > frames);
  camera.end();
  await recording.close();
  const [segment, ...others] = await readSegments(root);
  assert.equal(others.length, 0);
  assert.equal(segment?.audio?.dts.length, Math.ceil((camera.audioDts - 480_000) / 1024));
});

test('a camera that never sends a key frame again is cut after two minutes more, and a key frame is asked for once', async (t) => {
  const options = { root: temporaryDirectory(t), segmentDurationMs: 10_000 };
  const { camera, recording, archive, root, fs, keyFrameRequests } = await bench(options);
  camera.framesPerSecond = 5;
  camera.keyFrameInterval = 1e9;
  camera.begin();
  await camera.play(150, fs);
  assert.equal(keyFrameRequests(), 1);
  assert.deepEqual([...recording.status().framesDropped], [['no-key-frame', 99]]);
  camera.end('no-key-frame');
  camera.begin(runOf({ runId: '00000000000000bb' }));
  await camera.play(5, fs);
  camera.end();
  await archive.close();
  const [first, second, ...others] = await readSegments(root);
  assert.equal(others.length, 0);
  assert.equal(first?.meta.mediaDurationMs, 130_200);
  assert.equal(second?.meta.runId, '00000000000000bb');
  assert.ok(Math.abs((second?.meta.gapBeforeMs ?? 0) - 19_800) <= 1, 'the gap is known');
});

test('how a camera is recorded changes at the next key frame or file, without a picture lost', async (t) => {
  const { camera, archive, recording, root, fs } = await bench({
    root: temporaryDirectory(t),
    segmentDurationMs: 20_000,
  });
  camera.begin();
  await camera.play(5, fs);
  recording.configure({ format: 'fmp4', segmentDurationMs: 3_000 });
  await camera.play(6, fs);
  recording.configure({ format: 'mp4', segmentDurationMs: 20_000 });
  await camera.play(16, fs);
  assert.ok(recording.current(), 'the file that is being written is of the format that it began with');
  await camera.play(8, fs);
  assert.equal(recording.current(), undefined);
  camera.end();
  await archive.close();
  const pictures = (await readSegments(root)).map(({ video }) => video.dts.length);
  // 5 s of a file that was to be of 20, 3 s, 20 s of one that was to be of 3, and the rest.
  assert.deepEqual(
    pictures,
    [5, 3, 20, 7].map((seconds) => seconds * 25),
  );
});

test('another resolution or codec begins a new file at its key frame, another picture parameter set does not', async (t) => {
  const { camera, archive, root, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 300_000 });
  const change = async (run: Parameters<typeof camera.sink.change>[0]): Promise<void> => {
    camera.keyFrameNext();
    camera.sink.change(run);
    await camera.play(1.2, fs);
  };
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(1.2, fs);
  await change(runOf({ audio: AUDIO, lead: { ...VIDEO, pps: [Buffer.from('68cb83cb21', 'hex')] } }));
  const larger = { ...VIDEO, width: 320, height: 192 };
  await change(runOf({ audio: AUDIO, lead: larger }));
  await change(runOf({ audio: AUDIO, lead: { ...larger, codecString: 'avc1.4d001f' } }));
  await change(runOf({ lead: { ...larger, codecString: 'avc1.4d001f' } }));
  camera.end();
  await archive.close();
  const segments = await readSegments(root);
  assert.deepEqual(
    segments.map(({ video, audio }) => [video.dts.length, audio !== undefined]),
    [
      [60, true],
      [30, true],
      [30, true],
      [30, false],
    ],
  );
  assertJoined(segments);
});

test('a run of another clock begins a new segment, with the time between as its gap', async (t) => {
  const { camera, archive, root, fs } = await bench({ root: temporaryDirectory(t) });
  camera.begin();
  camera.video({ lostPackets: 3 });
  await camera.play(3, fs);
  camera.end('camera-lost');
  await camera.wait(7_000, fs);
  camera.begin(runOf({ runId: '00000000000000bb' }));
  await camera.play(3, fs);
  camera.end();
  await archive.close();
  const [first, second] = await readSegments(root);
  assert.equal(first?.meta.lostPackets, 3);
  assert.equal(first?.meta.clock, 'settling');
  assert.deepEqual([first?.meta.sequence, second?.meta.sequence], [0, 1]);
  assert.ok(Math.abs((second?.meta.gapBeforeMs ?? 0) - 6_960) <= 1, `${second?.meta.gapBeforeMs}`);
  assert.deepEqual([first?.meta.runId, second?.meta.runId], ['00000000000000aa', '00000000000000bb']);
});

test('segments have the slope that the wall times of their samples show', async (t) => {
  const { camera, archive, root, clock, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 100_000 });
  camera.framesPerSecond = 1;
  camera.keyFrameInterval = 10;
  camera.begin();
  for (let i = 0; i < 300; i++) {
    // The camera's clock is 0.1 % slow against the host's in the first half, and right in the second.
    const wallMs = NOON_MS + i * 1000 + Math.min(i, 150);
    camera.video({ wallMs });
    clock.advance(1000);
    if (i % 10 === 0) await fs.idle();
  }
  camera.end();
  await archive.close();
  const segments = await readSegments(root);
  assertJoined(segments);
  assert.deepEqual(
    segments.map(({ meta }) => Math.round(meta.wallDurationMs)),
    [100_100, 100_050, 100_000],
  );
  const names = segments.map(({ path }) => parsePath(path)?.startMs);
  assert.deepEqual(
    names,
    segments.map(({ meta }) => Math.floor(meta.wallStartMs)),
  );
});

test('a segment that is being written has the slope of the one before it', async (t) => {
  const root = temporaryDirectory(t);
  const { camera, archive, recording, clock, fs } = await bench({ root, segmentDurationMs: 60_000 });
  camera.framesPerSecond = 1;
  camera.keyFrameInterval = 10;
  camera.begin();
  for (let i = 0; i < 90; i++) {
    camera.video({ wallMs: NOON_MS + i * 1010 });
    clock.advance(1010);
    if (i % 10 === 0) await fs.idle();
  }
  await fs.idle();
  const open = readFileSync(join(root, recording.status().currentFile ?? ''));
  const state = await readMeta((at, length) => Promise.resolve(open.subarray(at, at + length)), open.length);
  assert.ok(state.kind === 'open' && state.meta);
  assert.ok(Math.abs(paceOf(state.meta) - 1.01) < 1e-6, `${paceOf(state.meta)}`);
  camera.end();
  await archive.close();
});

test('reordered pictures at a border move neither the border nor its wall time', async (t) => {
  const { camera, archive, root, fs, clock } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 2_000 });
  camera.begin();
  for (let i = 0; i < 150; i++) {
    // Open GOPs: the first key frame is shown two pictures after it is decoded, the others three.
    const compositionOffset = i === 0 ? 7200 : 10_800;
    const wallMs = NOON_MS + i * 40 + (compositionOffset - 7200) / 90;
    camera.video({ sync: i % 25 === 0, compositionOffset, wallMs });
    clock.advance(40);
    if (i % 25 === 0) await fs.idle();
  }
  camera.end();
  await archive.close();
  const segments = await readSegments(root);
  assertJoined(segments);
  assert.deepEqual(
    segments.map(({ meta }) => meta.wallStartMs),
    [NOON_MS, NOON_MS + 2_000, NOON_MS + 4_000],
  );
});

test('audio that a camera sends a second late still lands in the file in which it begins', async (t) => {
  const { camera, archive, root, fs, recording, clock } = await bench({
    root: temporaryDirectory(t),
    segmentDurationMs: 2_000,
  });
  camera.begin(runOf({ audio: AUDIO }));
  for (let i = 0; i < 200; i++) {
    camera.video();
    // Nine hundred milliseconds behind.
    while (camera.audioDts / 48 < camera.videoDts / 90 - 900) camera.audio();
    clock.advance(40);
    recording.tick();
    if (i % 20 === 0) await fs.idle();
  }
  camera.end();
  await archive.close();
  const segments = await readSegments(root);
  assert.equal(segments.length, 4);
  assertJoined(segments);
  for (const { audio, video } of segments.slice(0, 3)) {
    assert.ok(audio);
    assert.ok(audio.endDts / 48 >= video.endDts / 90, 'audio covers the whole segment');
  }
});

test('audio that stops does not keep a file open for more than a second', async (t) => {
  const { camera, recording, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 2_000 });
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(1, fs);
  for (let i = 0; i < 60; i++) {
    camera.video();
    camera.clock.advance(40);
    recording.tick();
    await fs.idle();
  }
  assert.equal(recording.status().segmentsClosed, 1);
  camera.end();
  await recording.close();
});

test('every block of memory is given back when the samples are on the disk', async (t) => {
  const { camera, archive, fs } = await bench({ root: temporaryDirectory(t), segmentDurationMs: 3_000 });
  camera.bytesPerFrame = 60_000;
  camera.begin(runOf({ audio: AUDIO }));
  const blocks = new Set<Buffer>();
  let held = 0;
  const take = camera.pool.take.bind(camera.pool);
  camera.pool.take = (bytes) => {
    const slab = take(bytes);
    blocks.add(slab.buffer);
    held++;
    return slab;
  };
  const giveBack = camera.pool.giveBack.bind(camera.pool);
  camera.pool.giveBack = (buffer) => {
    held--;
    giveBack(buffer);
  };
  await camera.play(20, fs);
  camera.end();
  await archive.close();
  assert.ok(blocks.size < 20, `${blocks.size} blocks for 30 MB`);
  assert.ok(held <= 2, `${held} blocks held: one a depacketizer at most`);
});

for (const [what, keyFrames, pictures] of [
  ['with key frames ends at the next one from 3 GiB on', true, 3 * 16],
  ['without a key frame ends at 3.5 GiB', false, 3.5 * 16],
] as const) {
  test(`a file ${what}, long before its duration`, async (t) => {
    const options = { root: temporaryDirectory(t), segmentDurationMs: 3_600_000 };
    const { camera, recording, archive, fs, keyFrameRequests } = await bench(options);
    camera.framesPerSecond = 1;
    fs.swallows = true;
    camera.begin();
    camera.hugeVideo(true);
    for (let sent = 1; recording.status().segmentsClosed === 0; sent++) {
      assert.ok(sent <= pictures + 3, `${sent} pictures`);
      camera.hugeVideo(keyFrames);
      await fs.idle();
    }
    assert.equal(keyFrameRequests(), keyFrames ? 0 : 1);
    assert.ok(Math.abs(recording.status().framesWritten - pictures) <= 1, `${recording.status().framesWritten}`);
    camera.end();
    await archive.close();
  });
}
