// kill -9 at random moments, at work and while the recorder completes its files because it was told to stop: every file
// opens, nothing but the last second is missing, nothing unknown is left.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCamera } from '../camera/camera.ts';
import type { Camera } from '../camera/camera.ts';
import { decodeFiles } from '../camera/frame-numbers.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import type { CameraFrame } from '../camera/tracks.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { seeded } from '../support/random.ts';
import { workspace } from '../support/workspace.ts';

/** When things happen; of the seed that is printed. */
const random = seeded();

const FRAMES_A_SECOND = 25;
/** A stop takes longer than this. */
const CLOSING_MS = 50;
/**
 * A second of pictures waits for its fragment, one more for its duration; some are on their way from the camera, and
 * the fragment before may still be on its way to the disk of a busy machine.
 */
const MAX_MISSING = FRAMES_A_SECOND + 1 + 9;

/** What a camera has sent to a playing session, in decoding order, from its first key frame on. */
class Sent {
  frames: CameraFrame[] = [];
  readonly camera: Camera;

  constructor(camera: Camera) {
    this.camera = camera;
    camera.options.onFrame = (frame) => {
      const wanted = frame.number >= 0 && camera.playing.length > 0 && (frame.key || this.frames.length > 0);
      if (wanted) this.frames.push(frame);
      return frame;
    };
  }
}

/** The numbers of the first `count` frames, in the order in which they are shown. */
function shown(frames: readonly CameraFrame[], count: number): number[] {
  return frames
    .slice(0, count)
    .toSorted((a, b) => a.timestamp - b.timestamp)
    .map((frame) => frame.number);
}

async function recordings(root: string): Promise<string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('.kube-nvr'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** Records with 4 cameras, ends the recorder and looks at what is left, again and again. */
async function killed(
  t: TestContext,
  rounds: number,
  end: (recorder: RecorderProcess) => Promise<void>,
): Promise<void> {
  const directory = workspace(t);
  const tracks = [
    [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))],
    [videoTrack(await videoMedia('h265'))],
    [videoTrack(await videoMedia('h264-bframes')), audioTrack(await audioMedia('pcma'))],
    [videoTrack(await videoMedia('h264'))],
  ];
  const cameras: Sent[] = [];
  for (const own of tracks) {
    const camera = await startCamera({ tracks: own, pace: 'realtime' });
    t.after(() => camera.close());
    cameras.push(new Sent(camera));
  }
  const config = {
    // Short segments: kills meet files in every state, also while one is completed and the next one made.
    archive: { segmentDuration: '2s', syncInterval: '1s' },
    cameras: cameras.map(({ camera }, i) => ({
      id: `cam${i}`,
      source: camera.url,
      transport: 'tcp',
      // Files of the other format are written a second time when they are closed.
      record: { format: i === 3 ? 'mp4' : 'fmp4' },
    })),
  };
  const seen = new Set<string>();
  let worst = 0;
  for (let round = 0; round < rounds; round++) {
    for (const sent of cameras) sent.frames = [];
    const recorder = await RecorderProcess.start({ directory, config });
    const recordPath = recorder.recordPath;
    await checkRecovered(recordPath, seen);
    await until('all cameras play', () => cameras.every((sent) => sent.camera.playing.length > 0));
    // Lasts: the cameras are recorded, for a time that differs from run to run.
    await sleep(1_000 + random() * 4_000);
    // A recorder that waits for the processor has more than a queue to write: the kill comes when it has caught up.
    const { sentBefore, written } = await until('the recorder keeps up', async () => {
      const sentBefore = cameras.map((sent) => sent.frames.length);
      const written = await writtenFrames(recorder, cameras.length);
      return sentBefore.every((count, i) => count - written[i]! <= MAX_MISSING) && { sentBefore, written };
    });
    await end(recorder);
    const sentFrames = cameras.map((sent) => sent.frames);

    // A start without cameras recovers and adds nothing.
    const repair = await RecorderProcess.start({ directory, config: { ...config, cameras: [] } });
    assert.equal((await repair.stop()).code, 0);
    const fresh = (await recordings(recordPath)).filter((file) => !seen.has(file));
    for (const [i, sent] of sentFrames.entries()) {
      const files = fresh.filter((file) => file.includes(`_cam${i}_`));
      const { numbers, complaints } = await decodeFiles(files);
      assert.equal(complaints, '');
      const recorded = numbers.flat();
      // Of what was sent when it was asked; a test that had to wait for the processor sends much at once afterwards.
      const missing = Math.max(0, sentBefore[i]! - recorded.length);
      const before = written[i]!;
      assert.ok(recorded.length >= before, `round ${round}, camera ${i}: ${recorded.length} of ${before} written`);
      worst = Math.max(worst, missing);
      assert.deepEqual(recorded, shown(sent, recorded.length), `round ${round}, camera ${i}: pictures in order`);
    }
    for (const file of fresh) seen.add(file);
  }
  t.diagnostic(`${rounds} kills, ${seen.size} files, at most ${worst} pictures missing`);
}

/** What the recorder has handed to the disk, by camera. */
async function writtenFrames(recorder: RecorderProcess, cameras: number): Promise<number[]> {
  const text = await (await fetch(recorder.metricsUrl)).text();
  return Array.from({ length: cameras }, (_, i) =>
    Number(new RegExp(`^kube_nvr_camera_written_frames_total\\{camera="cam${i}"\\} (\\d+)$`, 'm').exec(text)?.[1]),
  );
}

async function kill(recorder: RecorderProcess): Promise<void> {
  recorder.child.signal('SIGKILL');
  await recorder.child.exit();
}

const KILLS = LONG ? 200 : 6;
test(`kill -9 at ${KILLS} random moments with 4 cameras`, (t) => killed(t, KILLS, kill));

const CLOSING_KILLS = LONG ? 50 : 3;
test(`kill -9 at ${CLOSING_KILLS} random moments of closing the files of 4 cameras`, async (t) => {
  let during = 0;
  await killed(t, CLOSING_KILLS, async (recorder) => {
    recorder.child.signal('SIGTERM');
    await sleep(random() * CLOSING_MS);
    if (!recorder.child.ended) during++;
    await kill(recorder);
  });
  assert.ok(during > 0, 'it was never hit');
  t.diagnostic(`${during} of ${CLOSING_KILLS} hit it while it was at it`);
});

/** Nothing that was whole before has gone or changed its name, and no file of another kind is left. */
async function checkRecovered(root: string, seen: ReadonlySet<string>): Promise<void> {
  const files = await recordings(root);
  for (const file of files) assert.match(file, /\d{4}\/\d\d\/\d\d\/cam\d_cam\d_\d{8}_\d{9}\.mp4$/);
  const there = new Set(files);
  for (const file of seen) assert.ok(there.has(file), `${file} has gone`);
}
