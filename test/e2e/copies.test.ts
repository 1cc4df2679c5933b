// Footage of a recorder in object storage: copied while the camera is recorded, whole after every kill, and played when the disk has
// lost it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { startCamera } from '../camera/camera.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { ObjectStorage, storageMissing } from '../support/object-storage.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

interface Listed {
  readonly archive: readonly {
    readonly filename: string;
    readonly start_ms: number;
    readonly end_ms: number;
    readonly is_open: boolean;
    readonly copies?: readonly string[];
  }[];
  readonly days: readonly string[];
}

const listed = async (recorder: RecorderProcess): Promise<Listed> =>
  (await recorder.get('/api/archive/gate/segments')) as Listed;

/** Paths of the files in a directory of a bucket. */
const filesIn = (directory: string): string[] =>
  existsSync(directory)
    ? (readdirSync(directory, { recursive: true }) as string[]).filter((path) => path.endsWith('.mp4')).sort()
    : [];

async function isWarned(recorder: RecorderProcess): Promise<boolean> {
  const answer = await recorder.fetch('/api/health/ready');
  const { warnings } = (await answer.json()) as { readonly warnings: readonly { readonly code: string }[] };
  return warnings.some(({ code }) => code === 'copies-failing');
}

describe('copies in object storage', { skip: storageMissing() }, () => {
  test('killed again and again, a recorder has each closed file at its target; a lost disk is played from there', async (t) => {
    const directory = workspace(t);
    const storage = await ObjectStorage.start(t, join(directory, 'storage'));
    await using camera = await startCamera({ pace: 'realtime', tracks: [videoTrack(await videoMedia('h264'))] });
    const cameras = [{ id: 'gate', source: camera.url }];
    const targets = [storage.target()];
    const archive = { segmentDuration: '1s', targets, copies: [{ targets: ['offsite'] }] };
    let recorder = await RecorderProcess.start({ directory, config: { cameras, archive } });
    for (let kills = 0; kills < 4; kills++) {
      const before = filesIn(storage.directory()).length;
      await until('another file arrives', () => filesIn(storage.directory()).length > before);
      await recorder.child.stop('SIGKILL');
      recorder = await recorder.restart();
    }
    await storage.stop();
    await recorder.untilMoreFiles(3, 'gate');
    await until('the storage that is away is warned of', () => isWarned(recorder));
    storage.restart();
    // The last file is closed by the stop, and copied after the next start: without the camera, nothing is recorded then.
    await recorder.stop();
    recorder.rewriteConfig({ cameras: [], archive });
    recorder = await recorder.restart();
    const files = (await recorder.files()).filter((file) => file.endsWith('.mp4'));
    await until('all files are copied', async () => {
      const { archive } = await listed(recorder);
      return archive.length === files.length && archive.every(({ copies }) => copies?.includes('offsite'));
    });
    assert.deepEqual(filesIn(storage.directory()), files);
    const upToDate = [{ name: 'offsite', lacking_files: 0, lag_seconds: 0, keeps_days: null }];
    await until('the node says that the target has everything', async () =>
      isDeepStrictEqual(((await recorder.get('/api/metrics')) as { readonly targets: unknown }).targets, upToDate),
    );
    for (const file of files)
      assert.deepEqual(readFileSync(join(storage.directory(), file)), readFileSync(join(recorder.recordPath, file)));
    const whole = await listed(recorder);
    await recorder.stop();

    // The disk is lost, with what the recorder knew of it.
    renameSync(recorder.recordPath, join(directory, 'lost'));
    rmSync(join(directory, 'work', 'archive-id'), { force: true });
    recorder = await recorder.restart();
    await until('the prefix of the lost archive is refused', () => isWarned(recorder));
    const adopted = execFileSync(process.execPath, [
      MAIN,
      'archive',
      'adopt',
      'offsite',
      '--config',
      recorder.configFile,
    ]);
    assert.equal(String(adopted), 'offsite: belongs to this archive now\n');
    const found = await until('the lost footage is listed', async () => {
      const answer = await listed(recorder);
      // Files that the recorder has fetched meanwhile are listed as its own.
      return answer.archive.length === whole.archive.length && answer;
    });
    assert.deepEqual(
      found.archive.map(({ filename, start_ms, end_ms }) => [filename, start_ms, end_ms]),
      whole.archive.map(({ filename, start_ms, end_ms }) => [filename, start_ms, end_ms]),
    );
    assert.deepEqual(found.days, whole.days);
    const [first] = whole.archive;
    assert.ok(first);
    const window = `from=${first.start_ms / 1000}&to=${first.end_ms / 1000}`;
    const played = await fetch(`${recorder.playbackUrl}/window/gate.mp4?${window}`);
    assert.equal(played.status, 200);
    assert.ok((await played.arrayBuffer()).byteLength > 1000);
    await recorder.stop();
  });

  test('recorder archive check names what a target lacks, also in a bucket with object lock', async (t) => {
    const directory = workspace(t);
    const storage = await ObjectStorage.start(t, join(directory, 'storage'));
    const objectLock = { mode: 'governance', for: '1h' };
    const targets = [
      storage.target(),
      storage.target({ name: 'locked', bucket: 'locked', objectLock }),
      storage.target({ name: 'unlocked', objectLock }),
      storage.target({ name: 'elsewhere', bucket: 'elsewhere' }),
    ];
    const recorder = await RecorderProcess.start({ directory, config: { archive: { targets } } });
    await recorder.stop();
    let output = '';
    try {
      execFileSync(process.execPath, [MAIN, 'archive', 'check', '--config', recorder.configFile], { stdio: 'pipe' });
      assert.fail('two targets are wrong');
    } catch (error) {
      output = String((error as { stdout?: Buffer }).stdout);
    }
    const lines = output.trim().split('\n');
    assert.deepEqual(lines.slice(0, 2), ['offsite: ok', 'locked: ok']);
    assert.match(lines[2] ?? '', /^unlocked: .*[Ll]ock/);
    assert.match(lines[3] ?? '', /^elsewhere: .*NoSuchBucket/);
  });
});
