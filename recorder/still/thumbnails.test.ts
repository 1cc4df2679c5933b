import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock, VirtualClock, type Clock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { decodeFrameNumbers } from '../../test/camera/frame-numbers.ts';
import { numberedVideo, recordedPart, type NumberedVideo } from '../../test/support/joined-file.ts';
import { meta, RecordedFile } from '../../test/support/recorded-file.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { SegmentWriter } from '../mp4/segment.ts';
import { StillError } from '../snapshots/error.ts';
import { JpegMaker } from './jpeg-maker.ts';
import { Thumbnails } from './thumbnails.ts';

interface Options {
  readonly ffmpegPath?: string;
  readonly live?: () => Buffer | undefined;
  readonly clock?: Clock;
}

function thumbnails(t: TestContext, files: readonly string[], options: Options = {}): Thumbnails {
  const { ffmpegPath = 'ffmpeg', clock = systemClock, live = () => undefined } = options;
  const maker = new JpegMaker({ ffmpegPath, clock, log: silentLog });
  const source = { live: async () => live(), files: async (count: number) => files.slice(0, count) };
  const find = (id: string) => (id === 'unknown' ? undefined : source);
  t.after(() => maker.close());
  return new Thumbnails({ find, maker, clock });
}

function write(directory: string, name: string, bytes: Buffer): string {
  const file = join(directory, name);
  writeFileSync(file, bytes);
  return file;
}

const codeOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'an image',
    (err: unknown) => {
      assert.ok(err instanceof StillError, String(err));
      return err.code;
    },
  );

/** Reads the number shown in a picture, and its size. */
async function look(directory: string, body: Buffer): Promise<{ number: number | undefined; size: string }> {
  const file = write(directory, 'thumbnail.jpg', body);
  const entries = ['-show_entries', 'stream=codec_name,width,height', '-of', 'csv=p=0'];
  const size = execFileSync('ffprobe', ['-v', 'error', ...entries, file], { encoding: 'utf8' }).trim();
  return { number: (await decodeFrameNumbers(file))[0], size };
}

const VIDEOS: readonly { name: string; video: NumberedVideo; number: number; size: string }[] = [
  { name: 'H.264', video: { firstNumber: 100, frames: 90 }, number: 175, size: 'mjpeg,160,96' },
  {
    name: 'H.265 with B-frames, larger than a tile',
    video: { codec: 'h265', frames: 13, size: '800x144', encoder: 'bframes=3:keyint=8:min-keyint=8:scenecut=0' },
    number: 8,
    size: 'mjpeg,640,114',
  },
];

for (const { name, video, number, size } of VIDEOS) {
  test(`the thumbnail is the last key frame of the newest file: ${name}`, async (t) => {
    const directory = workspace(t);
    const file = write(directory, 'a.mp4', recordedPart(numberedVideo(directory, video)));
    const { type, body } = await thumbnails(t, [file]).get('gate');
    assert.equal(type, 'image/jpeg');
    assert.deepEqual(await look(directory, body), { number, size });
  });
}

test('of a file that is being written the last whole key frame is shown', async (t) => {
  const directory = workspace(t);
  const video = numberedVideo(directory, { frames: 100 });
  const open = new RecordedFile([video.parameters], new SegmentWriter([video.parameters], meta));
  open.appendAll(video, undefined);
  const file = write(directory, 'open.mp4', open.bytes);
  const { body } = await thumbnails(t, [file]).get('gate');
  assert.equal((await look(directory, body)).number, 75);
  // Truncated within its last fragment, as it was on the disk a moment earlier.
  const cut = write(directory, 'cut.mp4', open.bytes.subarray(0, open.bytes.length - 100));
  const earlier = await look(directory, (await thumbnails(t, [cut]).get('gate')).body);
  assert.ok(earlier.number === 50 || earlier.number === 75, `${earlier.number}`);
});

test('files without a picture, damaged ones and those that are gone are passed over', async (t) => {
  const directory = workspace(t);
  const good = recordedPart(numberedVideo(directory, { frames: 30 }));
  const files = [
    join(directory, 'gone.mp4'),
    write(directory, 'empty.mp4', Buffer.alloc(0)),
    write(directory, 'begun.mp4', good.subarray(0, 2000)),
    write(directory, 'noise.mp4', Buffer.alloc(10_000, 0x5a)),
    write(directory, 'good.mp4', good),
  ];
  const { body } = await thumbnails(t, files).get('gate');
  assert.equal((await look(directory, body)).number, 25);
});

test('a picture that arrived is shown before those in files', async (t) => {
  const directory = workspace(t);
  const old = write(directory, 'old.mp4', recordedPart(numberedVideo(directory, { frames: 30 })));
  const live = recordedPart(numberedVideo(directory, { firstNumber: 500, frames: 1 }));
  const { body } = await thumbnails(t, [old], { live: () => live }).get('gate');
  assert.equal((await look(directory, body)).number, 500);
});

/** An ffmpeg that logs its start and end. */
function watched(directory: string): { path: string; marks: () => string[] } {
  const path = join(directory, 'ffmpeg-watched');
  const log = join(directory, 'runs');
  writeFileSync(path, `#!/bin/sh\necho begin >> '${log}'\nffmpeg "$@"\ncode=$?\necho end >> '${log}'\nexit $code\n`);
  chmodSync(path, 0o755);
  return { path, marks: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []) };
}

test('one picture for all who ask, kept for 10 seconds; at most two are made at once', async (t) => {
  const directory = workspace(t);
  const file = write(directory, 'a.mp4', recordedPart(numberedVideo(directory, { frames: 2 })));
  const clock = new VirtualClock();
  const { path, marks } = watched(directory);
  const made = thumbnails(t, [file], { ffmpegPath: path, clock });
  const same = await Promise.all(Array.from({ length: 20 }, () => made.get('gate')));
  assert.equal(new Set(same.map(({ etag }) => etag)).size, 1);
  assert.deepEqual(marks(), ['begin', 'end']);
  clock.advance(9_999);
  await made.get('gate');
  assert.equal(marks().length, 2);
  clock.advance(1);
  await made.get('gate');
  assert.equal(marks().length, 4);

  await Promise.all(Array.from({ length: 8 }, (_, i) => made.get(`other-${i}`)));
  let running = 0;
  let most = 0;
  for (const mark of marks().slice(4)) most = Math.max(most, (running += mark === 'begin' ? 1 : -1));
  assert.equal(marks().length, 4 + 16);
  assert.equal(most, 2);
});

test('a fresh picture is at most a second old, and serves all who ask meanwhile', async (t) => {
  const directory = workspace(t);
  const pictures = [1, 2].map((firstNumber) => recordedPart(numberedVideo(directory, { firstNumber, frames: 1 })));
  let newest = pictures[0];
  const clock = new VirtualClock();
  const { path, marks } = watched(directory);
  const made = thumbnails(t, [], { ffmpegPath: path, clock, live: () => newest });
  const numberOf = async (isFresh: boolean): Promise<number | undefined> =>
    (await look(directory, (await made.get('gate', isFresh)).body)).number;
  assert.deepEqual([await numberOf(false), (await made.get('gate', true)).remainingMs], [1, 1_000]);
  newest = pictures[1];
  clock.advance(999);
  assert.deepEqual([await numberOf(true), await numberOf(false)], [1, 1]);
  clock.advance(1);
  assert.equal(await numberOf(false), 1, 'good enough for ten seconds');
  await Promise.all(Array.from({ length: 5 }, () => made.get('gate', true)));
  assert.deepEqual([await numberOf(true), await numberOf(false)], [2, 2]);
  assert.equal(marks().length, 4, 'two pictures were made');
});

test('without ffmpeg, without footage and for an unknown camera there is no picture, and the reason is given', async (t) => {
  const directory = workspace(t);
  const file = write(directory, 'a.mp4', recordedPart(numberedVideo(directory, { frames: 2 })));
  const missing = { ffmpegPath: '/nowhere/ffmpeg' };
  assert.equal(await codeOf(thumbnails(t, [file], missing).get('gate')), 'ffmpeg-missing');
  assert.equal(await codeOf(thumbnails(t, [], missing).get('gate')), 'nothing-recorded');
  assert.equal(await codeOf(thumbnails(t, []).get('unknown')), 'unknown-camera');
});

test('a picture that ffmpeg cannot decode is a failure, and so is a program that is not ffmpeg', async (t) => {
  const directory = workspace(t);
  const live = (): Buffer => Buffer.from('no movie at all');
  assert.equal(await codeOf(thumbnails(t, [], { live }).get('gate')), 'thumbnail-failed');
  assert.equal(await codeOf(thumbnails(t, [], { live, ffmpegPath: '/bin/true' }).get('gate')), 'thumbnail-failed');
  assert.equal(await codeOf(thumbnails(t, [], { live, ffmpegPath: directory }).get('gate')), 'thumbnail-failed');
});

test('an ffmpeg that hangs is ended after 10 seconds', async (t) => {
  const directory = workspace(t);
  const path = join(directory, 'hangs');
  const begun = join(directory, 'begun');
  writeFileSync(path, `#!/bin/sh\necho $$ > '${begun}'\nexec sleep 600\n`);
  chmodSync(path, 0o755);
  const clock = new VirtualClock();
  const answer = codeOf(thumbnails(t, [], { live: () => Buffer.from('x'), ffmpegPath: path, clock }).get('gate'));
  const pid = await until('it has begun', () => existsSync(begun) && Number(readFileSync(begun, 'utf8')));
  clock.advance(10_000);
  assert.equal(await answer, 'thumbnail-failed');
  await until(
    'it is gone',
    () => !existsSync(`/proc/${pid}/stat`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')),
  );
});
