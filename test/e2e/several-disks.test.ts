// Two real file systems under a real recorder; the kernel takes one of them away while cameras are recorded to it.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCamera } from '../camera/camera.ts';
import { decodeFiles } from '../camera/frame-numbers.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { Mount } from '../support/mount.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const IDS = ['cam0', 'cam1', 'cam2', 'cam3'];
/** The numbers in the pictures begin again after these. */
const NUMBERS = 250;

const filesOf = (root: string, id: string): string[] =>
  (readdirSync(root, { recursive: true }) as string[])
    .filter((path) => /^\d{4}\//.test(path) && path.includes(`_${id}_`))
    .sort();

/**
 * Not so where the disk went away between the header of a file and its first fragment: the recorder can't remove such
 * a file from a disk that is read-only.
 */
const hasPictures = (path: string): boolean => readFileSync(path).includes('moof');

test('a disk that becomes read-only under its cameras: they go on on the other disk, and no picture is missing', async (t) => {
  const mib = 1024 * 1024;
  const [first, second] = [Mount.make(t, 'ext4', 128 * mib), Mount.make(t, 'ext4', 128 * mib)];
  if (!first || !second) return;
  const cameras = await Promise.all(
    IDS.map(async (id) => {
      const camera = await startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' });
      t.after(() => camera.close());
      return { id, source: camera.url, transport: 'tcp' };
    }),
  );
  const archive = { segmentDuration: '4s', syncInterval: '2s', disks: [{ path: second.path }] };
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: { record_path: first.path, archive, cameras },
  });
  t.after(() => recorder[Symbol.asyncDispose]());
  await recorder.untilRecording(...IDS);
  await until('a file of each camera', () =>
    IDS.every((id) => [first, second].some(({ path }) => filesOf(path, id).length > 0)),
  );
  const onSecond = IDS.filter((id) => filesOf(second.path, id).length > 0);
  assert.equal(onSecond.length, 2, 'half of the cameras');
  await until('files on the second disk', () => onSecond.every((id) => filesOf(second.path, id).length > 1));
  second.abort();
  await until('files on the first disk', () => onSecond.every((id) => filesOf(first.path, id).length > 1));
  const answer = (await (await fetch(`${recorder.url}/api/health/ready`)).json()) as {
    readonly status: string;
    readonly warnings: readonly { readonly code: string; readonly detail: string }[];
  };
  assert.equal(answer.status, 'ready');
  const warning = answer.warnings.find(({ code }) => code === 'disk-failing');
  assert.ok(warning?.detail.includes(second.path), JSON.stringify(answer.warnings));
  const load = (await recorder.get('/api/metrics')) as {
    readonly disks: readonly { readonly path: string; readonly state: string; readonly problem?: string }[];
  };
  assert.deepEqual(
    load.disks.map(({ path, state, problem }) => [path, state, problem === undefined]),
    [
      [first.path, 'in-use', true],
      [second.path, 'failing', false],
    ],
  );
  const metrics = await (await fetch(recorder.metricsUrl)).text();
  assert.match(metrics, /kube_nvr_archive_disk_failing\{disk="[^"]*"\} 1\n/);
  await recorder.stop();
  for (const id of IDS) {
    const paths = [second, first]
      .flatMap(({ path }) => filesOf(path, id).map((file) => join(path, file)))
      .filter(hasPictures);
    const { numbers } = await decodeFiles(paths);
    let before: number | undefined;
    for (const [i, inFile] of numbers.entries()) {
      for (const [j, number] of inFile.entries()) {
        const ahead = before === undefined ? 1 : (number - before + NUMBERS) % NUMBERS;
        // Where a file continues one of the other disk, it begins at a key frame, and may repeat what that has.
        const isRepeated = j === 0 && ahead > NUMBERS / 2;
        assert.ok(ahead === 1 || ahead === 0 || isRepeated, `${paths[i] ?? ''}: ${number} follows ${before}`);
        before = number;
      }
    }
  }
});
