import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from '../../test/support/fast-check.ts';
import type { EncodedSample } from '../../test/support/encoded-samples.ts';
import { RecordedFile, complete, fakeAudio, fakeVideo, readFrom } from '../../test/support/recorded-file.ts';
import { Mp4Error } from './error.ts';
import { GrowingParts, USUAL_PART_TICKS, readParts } from './parts.ts';
import type { FileParts } from './parts.ts';
import { readFragmentAt } from './read-fragment.ts';
import { readLayout } from './reader.ts';

const SECOND = 90_000;

/** A minute of pictures with one key frame per second, and audio. */
const minute = (audioFrames = 2810): RecordedFile =>
  RecordedFile.of(fakeVideo(1500), audioFrames > 0 ? fakeAudio(audioFrames) : undefined);

const places = ({ starts, times, shownFrom, headers }: FileParts) => ({
  starts,
  times,
  shownFrom,
  tracks: headers.map(({ kind }) => kind),
});

async function partsOf(bytes: Buffer): Promise<FileParts> {
  const parts = await readParts(...readFrom(bytes));
  assert.ok(parts);
  return parts;
}

test('parts of some seconds begin with the fragment of a key frame', async () => {
  const file = minute();
  file.finish();
  const parts = await partsOf(file.bytes);
  assert.deepEqual(
    parts.times,
    Array.from({ length: 11 }, (_, i) => i * 6 * SECOND),
  );
  for (const [i, start] of parts.starts.slice(0, -1).entries()) {
    const fragment = await readFragmentAt(...readFrom(file.bytes), start);
    assert.equal(fragment?.tracks[0]?.baseDecodeTime, parts.times[i]);
    assert.equal(fragment?.tracks[0]?.samples[0]?.sync, true);
  }
  assert.equal(parts.starts.at(-1), file.fragmentEnds.at(-1));
});

test('a finished file has the parts that it had while it grew', async () => {
  for (const audioFrames of [0, 1, 1400, 2810]) {
    const file = minute(audioFrames);
    const open = await partsOf(file.bytes);
    file.finish();
    assert.deepEqual(places(await partsOf(file.bytes)), places(open));
  }
});

test('parts of a finished file are known from its index, without a look at its fragments', async () => {
  const file = minute();
  const fragments = file.fragmentEnds.at(-1) as number;
  file.finish();
  const [read, size] = readFrom(file.bytes);
  const looks: number[] = [];
  const counting: typeof read = (offset, length) => {
    looks.push(offset);
    return read(offset, length);
  };
  assert.ok(await readParts(counting, size));
  assert.deepEqual(
    looks.filter((offset) => offset > 0 && offset < fragments),
    [],
  );
});

test('fragments of audio alone belong to the part before them', async () => {
  const file = minute(2900);
  const open = await partsOf(file.bytes);
  file.finish();
  const finished = await partsOf(file.bytes);
  assert.deepEqual(places(finished), places(open));
  assert.equal(finished.starts.at(-1), file.fragmentEnds.at(-1));
});

test('a file whose index leaves a track out is read fragment by fragment', async () => {
  // Audio that ends before the first key frame is shown is hidden completely.
  const video = fakeVideo(100);
  const late = { ...video, samples: video.samples.map((sample) => ({ ...sample, compositionOffset: 7200 })) };
  const file = RecordedFile.of(late, fakeAudio(3));
  const end = file.fragmentEnds.at(-1);
  file.finish();
  const parts = await partsOf(file.bytes);
  assert.deepEqual(
    parts.headers.map(({ kind }) => kind),
    ['video', 'audio'],
  );
  assert.equal(parts.starts.at(-1), end);
  assert.equal(parts.shownFrom, 7200);
});

test('a growing file lists a part when the next one has begun, and never lists it otherwise again', async () => {
  const whole = minute();
  const layout = await readLayout(...readFrom(whole.bytes));
  assert.equal(layout.kind, 'open');
  assert.ok(layout.kind === 'open');
  const first = whole.fragmentEnds[0] as number;
  const [read] = readFrom(whole.bytes);
  const growing = await GrowingParts.read(read, layout.moov, first);
  assert.deepEqual([growing.settled.starts.length, growing.wholeBytes], [1, first]);
  let before: readonly number[] = growing.settled.starts;
  for (const [i, end] of whole.fragmentEnds.entries()) {
    // The next fragment is partly written already.
    await growing.extend(read, end + 50);
    assert.equal(growing.wholeBytes, end);
    const { starts } = growing.settled;
    assert.deepEqual(starts.slice(0, before.length), before);
    assert.equal(starts.length - 1, Math.floor(i / 6));
    before = [...starts];
  }
  assert.deepEqual(places(growing.ended()), places(await partsOf(whole.bytes)));
});

/** Fragments of one picture each; a picture is shown for `ticks`. */
function fileOf(pictures: readonly { readonly ticks: number; readonly key: boolean }[]): RecordedFile {
  const { parameters, samples } = fakeVideo(1);
  const file = new RecordedFile([parameters]);
  let dts = 0;
  for (const { ticks, key } of pictures) {
    file.append([{ ...(samples[0] as EncodedSample), dts, duration: ticks, sync: key }]);
    dts += ticks;
  }
  return file;
}

const picture = fc.record({
  ticks: fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: SECOND / 10, max: SECOND }) },
    { weight: 1, arbitrary: fc.integer({ min: SECOND, max: 14 * SECOND }) },
  ),
  key: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
});
const distance = fc.constantFrom(1, 5, 20);

test('whenever key frames come, parts begin with them, are short where they can be, and do not change', async () => {
  const property = fc.asyncProperty(fc.array(picture, { maxLength: 120 }), distance, async (more, every) => {
    const pictures = [{ ticks: SECOND, key: true }, ...more].map(({ ticks, key }, i) => ({
      ticks,
      key: key && (i === 0 || Math.floor(i / 12) % every === 0),
    }));
    const file = fileOf(pictures);
    const layout = await readLayout(...readFrom(file.bytes));
    assert.ok(layout.kind === 'open');
    const [read, size] = readFrom(file.bytes);
    const growing = await GrowingParts.read(read, layout.moov, file.fragmentEnds[0] as number);
    let before = growing.settled;
    for (const end of file.fragmentEnds) {
      await growing.extend(read, end);
      const now = growing.settled;
      assert.deepEqual(now.starts.slice(0, before.starts.length), before.starts);
      before = now;
    }
    const parts = growing.ended();
    assert.deepEqual(parts.starts.slice(0, before.starts.length), before.starts);
    assert.equal(parts.starts.at(-1), size);

    const begins = [layout.moov.offset + layout.moov.size, ...file.fragmentEnds];
    const first = parts.starts.map((start) => begins.indexOf(start));
    for (let part = 0; part < first.length - 1; part++) {
      const [from, to] = [first[part] as number, first[part + 1] as number];
      const ticks = (parts.times[part + 1] as number) - (parts.times[part] as number);
      assert.ok(to > from);
      assert.equal(pictures[from]?.key, true);
      // Longer only if there is no key frame at which to end.
      const inside = pictures.slice(from + 1, to).some(({ key }) => key);
      assert.ok(ticks <= USUAL_PART_TICKS || !inside, `${ticks / SECOND} s with a key frame between`);
    }
    file.finish();
    assert.deepEqual(places(await partsOf(file.bytes)), places(parts));
    const progressive = await partsOf(fileOf(pictures).progressive());
    assert.deepEqual(progressive.times, parts.times);
  });
  await fc.assert(property, { numRuns: 100 });
});

test('key frames at most ten seconds apart make parts of at most ten seconds', async () => {
  for (const seconds of [1, 3, 4.5, 5.5, 7, 10]) {
    const pictures = Array.from({ length: 1200 }, (_, i) => ({ ticks: SECOND / 10, key: i % (seconds * 10) === 0 }));
    const parts = await partsOf(fileOf(pictures).progressive());
    const longest = Math.max(...parts.times.slice(1).map((time, i) => time - (parts.times[i] as number)));
    assert.ok(longest <= USUAL_PART_TICKS, `every ${seconds} s: ${longest / SECOND} s`);
  }
});

test('parts of a file with its index in front are ranges of pictures', async () => {
  const file = minute();
  const parts = await partsOf(file.progressive());
  assert.equal(parts.unit, 'samples');
  assert.deepEqual(
    parts.starts,
    Array.from({ length: 11 }, (_, i) => i * 150),
  );
  assert.equal(parts.times.at(-1), 60 * SECOND);
});

test('bytes that are no recording have no parts', async () => {
  assert.equal(await readParts(...readFrom(Buffer.from('not a recording of ours, but long enough'))), undefined);
  assert.equal(await readParts(...readFrom(Buffer.alloc(5000))), undefined);
});

test('a file cut anywhere has the parts of its whole fragments', async () => {
  const file = minute();
  const cut = (file.fragmentEnds[20] as number) + 30;
  const parts = await partsOf(file.bytes.subarray(0, cut));
  assert.equal(parts.starts.at(-1), file.fragmentEnds[20]);
  assert.equal(parts.times.at(-1), 21 * SECOND);
  // The end of a completed file, seen as it was before its completion.
  const end = file.writer.finish();
  const finished = complete(file.bytes, end);
  assert.deepEqual(places(await partsOf(finished.subarray(0, cut))), places(parts));
});

test('a file with damage anywhere has parts that lie in it, or none', async () => {
  const file = RecordedFile.of(fakeVideo(400), fakeAudio(750));
  const open = file.bytes;
  const finished = complete(file.bytes, file.writer.finish());
  const progressive = file.progressive();
  const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(open, finished, progressive), damage, async (bytes, changes) => {
      const damaged = Buffer.from(bytes);
      // Most changes hit headers and indexes.
      for (const [at, value] of changes)
        damaged[at % 3 === 0 ? damaged.length - 1 - (at % 4096) : at % damaged.length] = value;
      try {
        const parts = await readParts(...readFrom(damaged));
        const { starts = [], times = [] } = parts ?? {};
        assert.equal(starts.length, times.length);
        const end = parts?.unit === 'samples' ? 400 : damaged.length;
        starts.forEach((start, i) => assert.ok(start >= 0 && start <= end && start >= (starts[i - 1] ?? 0)));
      } catch (err) {
        assert.ok(err instanceof Mp4Error, String(err));
      }
    }),
    { numRuns: 300 },
  );
});
