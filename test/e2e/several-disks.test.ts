// Two real file systems under a real recorder; the kernel takes one of them away while cameras are recorded to it.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
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

/** Records four cameras to two file systems; undefined, and the test is skipped, where these can't be made. */
async function recorderOnTwo(t: TestContext) {
  const mib = 1024 * 1024;
  const [first, second] = [Mount.make(t, 'ext4', 128 * mib), Mount.make(t, 'ext4', 128 * mib)];
  if (!first || !second) return undefined;
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
  return { first, second, recorder };
}

test('a disk that becomes read-only under its cameras: they go on on the other disk, and no picture is missing', async (t) => {
  const made = await recorderOnTwo(t);
  if (!made) return;
  const { first, second, recorder } = made;
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

interface Listed {
  readonly archive: readonly { readonly filename: string; readonly start_ms: number; readonly is_open: boolean }[];
}

const namesOf = async (recorder: RecorderProcess): Promise<string[]> => {
  const lists = await Promise.all(IDS.map(async (id) => (await recorder.get(`/api/archive/${id}/segments`)) as Listed));
  return lists.flatMap(({ archive }) => archive.filter(({ is_open }) => !is_open).map(({ filename }) => filename));
};

test('started without its first disk, a recorder records to the other with the state that it had, and lists everything when the first is back', async (t) => {
  const made = await recorderOnTwo(t);
  if (!made) return;
  const { first, second } = made;
  let { recorder } = made;
  await recorder.untilRecording(...IDS);
  const nowS = Date.now() / 1_000;
  const answer = await recorder.fetch(`/api/archive/cam0/protect?from=${nowS - 5}&to=${nowS}`, { method: 'POST' });
  assert.equal(answer.status, 201);
  const copy = join(second.path, '.kube-nvr/protections.json');
  await until('the second disk has the state', () => existsSync(copy) && readFileSync(copy, 'utf8').includes('cam0'));
  await until('files on both disks', () =>
    IDS.every((id) => [first, second].some(({ path }) => filesOf(path, id).length > 1)),
  );
  await recorder.stop();
  const onFirst = IDS.flatMap((id) => filesOf(first.path, id).filter((path) => hasPictures(join(first.path, path))));
  assert.ok(onFirst.length > 0);

  first.detach();
  recorder = await recorder.restart();
  await recorder.untilRecording(...IDS);
  await until('files of all cameras on the second disk', () => IDS.every((id) => filesOf(second.path, id).length > 1));
  assert.deepEqual(readdirSync(first.path), [], 'nothing is written where the first disk was');
  const kept = (await recorder.get('/api/archive/cam0/protections')) as { readonly protections: readonly unknown[] };
  assert.equal(kept.protections.length, 1);
  const listed = await namesOf(recorder);
  assert.ok(!onFirst.some((path) => listed.includes(path)));

  first.attach();
  await until('the first disk is listed again', async () => {
    const names = new Set(await namesOf(recorder));
    return onFirst.every((path) => names.has(path));
  });
  await recorder.stop();
});
