// The recorder's image does what the recorder does: it records, lists, exports, makes time-lapses and stills, as a user that
// is not root, on a root that nobody can write to.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCamera, type Camera } from '../camera/camera.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { imageAt } from '../support/image-at.ts';
import { probe } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { Image, imagesMissing, VERSION } from './image.ts';

/** Whoever owns the archive: somebody of whom the image knows nothing. */
const USER = 10_007;
const SLOW_MS = 180_000;

interface JobAnswer {
  readonly job_id: string;
  readonly state: string;
  readonly reason?: string;
}

suite('the image of the recorder', { skip: imagesMissing() }, () => {
  let image: Image;
  let camera: Camera;
  let recorder: RecorderProcess;
  let directory: string;

  before(async () => {
    image = new Image('recorder');
    camera = await startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' });
    directory = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
    recorder = await RecorderProcess.start({
      directory,
      config: {
        archive: { segmentDuration: '2s' },
        cameras: [{ id: 'gate', source: camera.url, transport: 'tcp' }],
      },
      // In place of node and the file of this checkout.
      through: image.through(USER, { bind: directory, instead: 'recorder' }),
    });
    await until('four files', async () => (await recorder.files()).length > 4, SLOW_MS);
  });

  after(async () => {
    await recorder?.child.stop();
    await camera?.close();
    image?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const json = async <T>(path: string, method = 'GET'): Promise<T> => {
    const answer = await fetch(`${recorder.url}${path}`, { method });
    assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
    return (await answer.json()) as T;
  };

  /** Asks for a job and waits until its file is here. */
  const jobFile = async (path: string): Promise<string> => {
    const { job_id } = await json<JobAnswer>(path, 'POST');
    const job = await until(
      `${path} ends`,
      async () => {
        const now = await json<JobAnswer>(`/api/archive/jobs/${job_id}`);
        return ['done', 'failed'].includes(now.state) && now;
      },
      SLOW_MS,
    );
    assert.equal(job.state, 'done', job.reason);
    const answer = await fetch(`${recorder.url}/api/archive/jobs/${job_id}/download`);
    const file = join(directory, `${job_id}.mp4`);
    writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
    return file;
  };

  test('`recorder --version` is the version of the package', async () => {
    const child = image.run(USER, ['recorder', '--version']);
    assert.equal((await child.exit()).code, 0, child.output);
    assert.equal(child.output, `${VERSION}\n`);
  });

  test('the root is read-only, and a directory for temporary files can be written', async () => {
    const write = (path: string): string => `require('node:fs').writeFileSync('${path}', '')`;
    const root = image.run(USER, ['node', '-e', write('/app/x')]);
    assert.equal((await root.exit()).code, 1);
    assert.match(root.output, /EROFS/);
    const tmp = image.run(USER, ['node', '-e', write('/tmp/x')]);
    assert.equal((await tmp.exit()).code, 0, tmp.output);
  });

  test('files of the archive are the user’s, and play', async () => {
    const [first] = await recorder.files();
    const file = join(recorder.recordPath, first!);
    assert.equal(statSync(file).uid, USER);
    assert.ok((await probe(file)).durationSeconds > 1);
  });

  test('the archive is listed', async () => {
    const to = Math.ceil(Date.now() / 1000);
    const { archive } = await json<{ archive: readonly unknown[] }>(
      `/api/archive/gate/segments?from=${to - 120}&to=${to}`,
    );
    assert.ok(archive.length >= 4, JSON.stringify(archive));
  });

  test('an export is made and plays', async () => {
    const to = Math.floor(Date.now() / 1000) - 3;
    const { durationSeconds } = await probe(await jobFile(`/api/archive/gate/export?from=${to - 4}&to=${to}`));
    assert.ok(durationSeconds > 2 && durationSeconds < 6, `${durationSeconds} s`);
  });

  test('a time-lapse is made by the image’s own ffmpeg: H.264, as fast as asked for', async () => {
    const to = Math.floor(Date.now() / 1000) - 3;
    const movie = await probe(await jobFile(`/api/archive/gate/timelapse?from=${to - 4}&to=${to}&speed=2`));
    assert.equal(movie.streams[0]?.codec_name, 'h264');
    assert.ok(movie.durationSeconds > 1 && movie.durationSeconds < 3, `${movie.durationSeconds} s`);
  });

  test('a still of the archive is a JPEG', async () => {
    const answer = await imageAt(`${recorder.url}/api/cameras/gate/thumbnail`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.deepEqual([bytes.subarray(0, 2).toString('hex'), bytes.subarray(-2).toString('hex')], ['ffd8', 'ffd9']);
  });

  test('the page and every file that it loads are served', async () => {
    const load = async (path: string): Promise<string> => {
      const answer = await fetch(`${recorder.url}${path}`);
      assert.equal(answer.status, 200, path);
      return answer.text();
    };
    const queue = ['/', '/reference', '/page/player.js'];
    const seen = new Set<string>(queue);
    for (const path of queue) {
      const text = await load(path);
      for (const [, found] of text.matchAll(/(?:src="|href="|from ["']|import\(["'])([^"':]+\.(?:[jt]s|css))["']/g)) {
        const next = new URL(found!, `http://x${path}`).pathname;
        if (!seen.has(next)) queue.push(next);
        seen.add(next);
      }
    }
    for (const last of ['/app/main.ts', '/console.css', '/vendor/hls.js']) {
      assert.ok(
        queue.some((path) => path.endsWith(last)),
        `${last} of ${queue.join()}`,
      );
    }
  });

  test('SIGTERM ends it within seconds, every file closed', async () => {
    const { code } = await recorder.child.stop();
    assert.equal(code, 0, recorder.child.output.slice(-2000));
    for (const file of await recorder.files()) {
      assert.ok((await probe(join(recorder.recordPath, file))).durationSeconds >= 0, file);
    }
  });
});
