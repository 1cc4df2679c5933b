// From cameras, of which one is away for a while, through a recorder process to a case: what job, manifest, movie and the
// account of the time say of its gap is the same, and the program says that all of it is as it was made.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startCamera } from '../camera/camera.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { startMsOf } from '../support/file-start.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const run = promisify(execFile);
const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;
/** A machine that is busy with other things as well. */
const PATIENCE_MS = 90_000;

interface Gap {
  readonly start: string;
  readonly end: string;
  readonly cause?: string;
}

interface JobAnswer {
  readonly state: string;
  readonly reason?: string;
  readonly size_bytes?: number;
  readonly cameras?: readonly { readonly camera_id: string; readonly gaps: readonly Gap[]; reason_code?: string }[];
}

interface ManifestAnswer {
  readonly cameras: readonly {
    readonly camera_id: string;
    readonly files: readonly { readonly name: string }[];
    readonly gaps: readonly { readonly from: string; readonly to: string; readonly cause?: string }[];
  }[];
}

test(
  'a case of cameras, one of which was away: job, manifest, movie and gaps say the same, and verify agrees',
  { skip },
  async (t) => {
    let gate = await startCamera({ pace: 'realtime' });
    t.after(() => gate.close());
    const yard = await startCamera({ pace: 'realtime' });
    t.after(() => yard.close());
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        archive: { segmentDuration: '2s' },
        cameras: [
          { id: 'gate', source: gate.url, transport: 'tcp' },
          { id: 'yard', source: yard.url, transport: 'tcp' },
          { id: 'porch', source: 'rtsp://127.0.0.1:1/', enabled: false },
        ],
      },
    });
    await recorder.untilRecording('gate', 'yard');
    const filesOf = async (camera: string): Promise<string[]> =>
      (await recorder.files()).filter((file) => file.includes(`_${camera}_`));
    const files = (camera: string, count: number): Promise<unknown> =>
      until(`${count} files of ${camera}`, async () => (await filesOf(camera)).length >= count, PATIENCE_MS);
    await Promise.all([files('gate', 2), files('yard', 2)]);
    const { port } = gate;
    await gate.close();
    const gapsOf = async (from: number, to: number): Promise<readonly Gap[]> => {
      const query = `from=${from / 1000}&to=${to / 1000}`;
      return ((await recorder.get(`/api/archive/gate/gaps?${query}`)) as { gaps: readonly Gap[] }).gaps;
    };
    const startedMs = Date.now() - 60_000;
    await until(
      'the camera is missed',
      async () => (await gapsOf(startedMs, Date.now() + 60_000)).some(({ cause }) => cause === 'camera-unreachable'),
      PATIENCE_MS,
    );
    gate = await startCamera({ pace: 'realtime', port });
    const before = (await filesOf('gate')).length;
    await recorder.untilRecording('gate');
    await files('gate', before + 3);
    const of = await filesOf('gate');
    // It begins within the first file, and ends where a later one does.
    const [fromMs, toMs] = [startMsOf(of[0] ?? '') + 500, startMsOf(of.at(-1) ?? '')];
    const answer = await fetch(`${recorder.url}/api/cases`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cameras: ['gate', 'yard', 'porch'], from: fromMs / 1000, to: toMs / 1000, name: 'Away' }),
    });
    assert.equal(answer.status, 202, await answer.clone().text());
    const { job_id: id, status_url: status } = (await answer.json()) as { job_id: string; status_url: string };
    const job = await until(
      'the case is made',
      async () => {
        const job = (await recorder.get(status)) as JobAnswer;
        return (job.state === 'done' || job.state === 'failed') && job;
      },
      PATIENCE_MS,
    );
    assert.equal(job.state, 'done', job.reason);
    const directory = workspace(t);
    const archive = join(directory, 'case.zip');
    writeFileSync(archive, Buffer.from(await (await fetch(`${recorder.url}${status}/download`)).arrayBuffer()));
    execFileSync('python3', ['-m', 'zipfile', '-e', archive, directory]);
    const text = readFileSync(join(directory, 'manifest.json'), 'utf8');
    assert.equal(await (await fetch(`${recorder.url}${status}/manifest`)).text(), text, id);

    const manifest = JSON.parse(text) as ManifestAnswer;
    const [told, , porch] = job.cameras ?? [];
    const inManifest = manifest.cameras[0]?.gaps;
    const ms = (time: string): number => Date.parse(time);
    const inJob = told?.gaps.map(({ start, end, cause }) => ({ fromMs: ms(start), toMs: ms(end), cause })) ?? [];
    assert.equal(inJob.length, 1, JSON.stringify(told));
    assert.equal(inJob[0]?.cause, 'camera-unreachable');
    assert.deepEqual(
      inManifest?.map(({ from, to, cause }) => ({ fromMs: ms(from), toMs: ms(to), cause })),
      inJob,
    );
    const movie = join(directory, manifest.cameras[0]?.files[0]?.name ?? '');
    const { stdout } = await run('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', movie]);
    const { tags } = (JSON.parse(stdout) as { format: { tags: Record<string, string> } }).format;
    assert.deepEqual((JSON.parse(tags['description'] ?? '{}') as { gaps: unknown }).gaps, inManifest);
    // The account has a line for each cause of what is one stretch.
    const account = (await gapsOf(fromMs, toMs)).map(({ start, end }) => ({ fromMs: ms(start), toMs: ms(end) }));
    assert.deepEqual(
      [account[0]?.fromMs, account.at(-1)?.toMs],
      [inJob[0]?.fromMs, inJob[0]?.toMs],
      `${JSON.stringify(await gapsOf(fromMs, toMs))} and ${JSON.stringify(told)}`,
    );
    for (const [i, { fromMs }] of account.entries()) if (i > 0) assert.equal(fromMs, account[i - 1]?.toMs);
    // Nothing is known of why a camera that nobody wanted has no footage, but it is there.
    assert.deepEqual([porch?.camera_id, porch?.reason_code, porch?.gaps.length], ['porch', 'no-footage', 1]);
    for (const { name } of manifest.cameras.flatMap(({ files }) => files)) {
      assert.equal((await decodePictures(join(directory, name))).complaints, '');
    }

    const { keys } = (await recorder.get('/api/keys')) as { keys: { fingerprint: string }[] };
    const verify = ['--import', import.meta.resolve('../support/preload.ts'), MAIN, 'verify', archive];
    const checked = spawnSync(process.execPath, [...verify, '--fingerprint', keys[0]?.fingerprint ?? ''], {
      encoding: 'utf8',
    });
    assert.equal(checked.status, 0, `${checked.stdout}${checked.stderr}${text}`);
    assert.match(checked.stdout, /^ok     that is the expected key$/m);
    assert.match(checked.stdout, /\nas it was made\n$/);
    const bytes = readFileSync(archive);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
    writeFileSync(archive, bytes);
    await assert.rejects(run(process.execPath, verify), { code: 1 });
  },
);
