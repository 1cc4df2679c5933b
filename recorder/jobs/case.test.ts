// Cases from an archive on a real disk: taken apart by programs of others, their pictures decoded and dated by the manifest.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { caseStage, numberAt } from '../../test/support/case-stage.ts';
import { WALL_START_MS } from '../../test/support/joined-file.ts';
import { workspace } from '../../test/support/workspace.ts';
import { caseReport } from './case-report.ts';
import { exportWindow } from './export.ts';
import { signManifest, type ManifestFile } from './manifest.ts';
import { verifyResult } from './verify.ts';

const run = promisify(execFile);
const iso = (ms: number): string => new Date(WALL_START_MS + ms).toISOString();

/** What an archive holds, as Python reads it, which checks every checksum. */
function unpack(archive: string, into: string): string[] {
  const script =
    'import sys, zipfile, json; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; z.extractall(sys.argv[2]); print(json.dumps(z.namelist()))';
  return JSON.parse(execFileSync('python3', ['-c', script, archive, into]).toString()) as string[];
}

/** Seconds of the movie at which each picture is shown, as ffprobe sees it. */
async function timesOf(file: string): Promise<number[]> {
  const args = ['-v', 'error', '-select_streams', 'v:0', '-show_entries', 'frame=pts_time', '-of', 'csv=p=0', file];
  const { stdout } = await run('ffprobe', args, { maxBuffer: 1 << 24 });
  return stdout.split('\n').flatMap((line) => (/^-?\d/.test(line) ? [Number.parseFloat(line)] : []));
}

/** The wall time of a time of the movie, by the manifest alone; milliseconds from `WALL_START_MS`. */
function wallAt({ footage }: ManifestFile, seconds: number): number {
  const stretch = footage.findLast(({ movie_from_seconds }) => seconds >= movie_from_seconds - 0.0005);
  assert.ok(stretch, `${seconds} s is in no footage`);
  return Date.parse(stretch.from) - WALL_START_MS + (seconds - stretch.movie_from_seconds) * 1000;
}

test('a case has the movies of each camera, and its manifest gives each picture the time at which it was recorded', async (t) => {
  const { make, key } = await caseStage(t);
  const { path, written, manifest } = await make();
  const apart = workspace(t);
  assert.deepEqual(unpack(path, apart), [
    'gate_20260105T100002Z.mp4',
    'yard_20260105T100002Z_1_h264.mp4',
    'yard_20260105T100008Z_2_h265.mp4',
    'manifest.json',
    'manifest.json.sig',
  ]);
  assert.equal(written.outcome.sizeBytes, statSync(path).size);
  assert.deepEqual(readdirSync(dirname(path)), ['case.zip']);
  const { cameras, ...about } = manifest;
  assert.deepEqual(about, {
    format: 'kube-nvr-manifest-1',
    kind: 'case',
    name: 'The gate, again',
    from: iso(2_000),
    to: iso(12_000),
    made_at: iso(3_600_000),
    software: 'kube-nvr 1.2.3',
    node: 'rack-1',
    key: { algorithm: 'Ed25519', fingerprint: key.fingerprint, public_key: key.publicKey },
  });
  const cause = 'camera-unreachable';
  assert.deepEqual(
    cameras.map(({ camera_id, gaps, files }) => [
      camera_id,
      gaps,
      files.map(({ duration_seconds }) => duration_seconds),
    ]),
    [
      ['gate', [{ from: iso(4_000), to: iso(10_000), cause }], [4]],
      ['yard', [{ from: iso(2_000), to: iso(4_000), cause }], [4, 4]],
      ['porch', [{ from: iso(2_000), to: iso(12_000), cause }], []],
    ],
  );
  assert.deepEqual(
    cameras.map(({ reason_code }) => reason_code),
    [undefined, undefined, 'no-footage'],
  );
  let pictures = 0;
  for (const file of cameras.flatMap(({ files }) => files)) {
    const bytes = readFileSync(join(apart, file.name));
    assert.deepEqual([bytes.length, createHash('sha256').update(bytes).digest('hex')], [file.size_bytes, file.sha256]);
    const { numbers, complaints } = await decodePictures(join(apart, file.name));
    const times = await timesOf(join(apart, file.name));
    assert.equal(complaints, '');
    assert.equal(times.length, numbers.length);
    for (const [i, seconds] of times.entries()) {
      const [wallMs, number] = [wallAt(file, seconds), numbers[i] as number];
      assert.ok(Math.abs(wallMs - number * 40) <= 1, `${file.name}: picture ${number} at ${wallMs} ms`);
      pictures++;
    }
  }
  assert.equal(pictures, 300);
});

test('with the names of the site, files, metadata, manifest and report say site, camera and local time in any script', async (t) => {
  const { make, key } = await caseStage(t);
  const local = {
    site: 'Corner shop',
    timeZone: 'Europe/Berlin',
    nameOf: (id: string) => (id === 'gate' ? '前门 1/2' : id),
  };
  const of = { cameras: [], name: 'Theft <b>', number: '2026-17', reason: 'The police asked', notes: 'A white van' };
  const about = { of, by: 'anna', local, version: '1.2.3', node: 'rack-1', madeMs: WALL_START_MS };
  const { path } = await make(
    {},
    {
      local,
      sign: (written) => signManifest({ ...about, kind: 'case' }, written, key),
      report: (written) => caseReport(written, { ...about, fingerprint: key.fingerprint }),
    },
  );
  const apart = workspace(t);
  const names = unpack(path, apart);
  assert.deepEqual(names, [
    'Corner shop - 前门 1-2 (gate) - 2026-01-05 11.00.02 CET.mp4',
    'Corner shop - yard - 2026-01-05 11.00.02 CET - 1 - h264.mp4',
    'Corner shop - yard - 2026-01-05 11.00.08 CET - 2 - h265.mp4',
    'report.html',
    'manifest.json',
    'manifest.json.sig',
  ]);
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', join(apart, names[0] ?? '')]);
  const { tags } = (JSON.parse(stdout) as { format: { tags: Record<string, string> } }).format;
  assert.equal(tags['title'], 'Corner shop, 前门 1/2 (gate), 2026-01-05 11:00:02 CET to 2026-01-05 11:00:12 CET');
  const manifest = JSON.parse(readFileSync(join(apart, 'manifest.json'), 'utf8')) as Record<string, unknown>;
  const { number, case_reason, notes, by, site, time_zone, local_from } = manifest;
  assert.deepEqual(
    [number, case_reason, notes, by, site, time_zone, local_from],
    ['2026-17', 'The police asked', 'A white van', 'anna', 'Corner shop', 'Europe/Berlin', '2026-01-05 11:00:02 CET'],
  );
  const report = readFileSync(join(apart, 'report.html'), 'utf8');
  for (const text of [
    '<h1>Theft &lt;b&gt;</h1>',
    '<h2>前门 1/2 (gate)</h2>',
    'The police asked',
    'A white van',
    'for anna',
    '6 s are missing',
    'no connection to the camera',
    '2026-01-05 11:00:04 CET to 2026-01-05 11:00:10 CET',
    key.fingerprint,
  ])
    assert.ok(report.includes(text), text);
  const checked = await verifyResult({ path });
  assert.deepEqual(checked.wrong, []);
  assert.ok(checked.right.some((line) => line.startsWith('report.html: ')));
  const bytes = readFileSync(path);
  bytes[bytes.indexOf('white van')] = 0x41;
  writeFileSync(path, bytes);
  assert.match((await verifyResult({ path })).wrong.join(), /report\.html: SHA-256/);
});

test('job, manifest and movies of a case say the same of gaps, to the millisecond', async (t) => {
  const { make } = await caseStage(t);
  const { path, written, manifest } = await make();
  const apart = workspace(t);
  unpack(path, apart);
  for (const [i, { gaps, files }] of manifest.cameras.entries()) {
    const inJob = written.outcome.cameras?.[i]?.gaps.map((gap) => ({
      from: new Date(gap.fromMs).toISOString(),
      to: new Date(gap.toMs).toISOString(),
      cause: gap.cause,
    }));
    assert.deepEqual(inJob, gaps);
    const inMovies = [];
    for (const { name } of files) {
      const { stdout } = await run('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', join(apart, name)]);
      const { tags } = (JSON.parse(stdout) as { format: { tags: Record<string, string> } }).format;
      inMovies.push(...(JSON.parse(tags['description'] ?? '{}') as { gaps: unknown[] }).gaps);
    }
    if (files.length > 0) assert.deepEqual(inMovies, gaps);
  }
});

test('each movie of a case can be had alone, where the job says it lies', async (t) => {
  const { make } = await caseStage(t);
  const { path, written, manifest } = await make();
  const bytes = readFileSync(path);
  const files = manifest.cameras.flatMap(({ camera_id, files }) => files.map((file) => ({ camera_id, ...file })));
  const { parts = [] } = written.outcome;
  assert.deepEqual(
    parts.map(({ cameraId, name, offset, sizeBytes }) => {
      const sha256 = createHash('sha256')
        .update(bytes.subarray(offset, offset + sizeBytes))
        .digest('hex');
      return [cameraId, name, sha256];
    }),
    files.map(({ camera_id, name, sha256 }) => [camera_id, name, sha256]),
  );
});

test('a case of cameras that all have no footage fails and says so; one that fails leaves nothing', async (t) => {
  const { make, directory } = await caseStage(t);
  await assert.rejects(make({ cameraIds: ['porch', 'cellar'] }), {
    code: 'no-footage',
    message: 'this node has no footage of any of the cameras from 2026-01-05T10:00:02.000Z to 2026-01-05T10:00:12.000Z',
  });
  await assert.rejects(make({}, { spareBytes: async () => 10_000 }), { code: 'disk-full' });
  assert.deepEqual(readdirSync(join(directory, 'jobs')), []);
});

test('footage that retention takes away while a case is written becomes a gap', async (t) => {
  const { make, root } = await caseStage(t);
  const first = readdirSync(root, { recursive: true, encoding: 'utf8' }).find((name) => /gate.*100000000/.test(name));
  let asked = 0;
  const spareBytes = async (): Promise<number> => {
    // What it takes is counted, nothing is copied yet.
    if (asked++ === 0) rmSync(join(root, first ?? ''));
    return Infinity;
  };
  const { path, manifest } = await make({ cameraIds: ['gate', 'yard'] }, { spareBytes });
  assert.deepEqual(
    manifest.cameras[0]?.gaps.map(({ from, to }) => [from, to]),
    [[iso(2_000), iso(10_000)]],
  );
  const apart = workspace(t);
  unpack(path, apart);
  const [file] = manifest.cameras[0]?.files ?? [];
  const { numbers } = await decodePictures(join(apart, file?.name ?? ''));
  assert.deepEqual([numbers[0], numbers.length], [numberAt(10_000), 50]);
});

/** Commands of docs/exports.md, run as they stand there, and what they print. */
function documented(name: string, cwd: string): { status: number | null; output: string } {
  const page = readFileSync(join(import.meta.dirname, '../../docs/exports.md'), 'utf8');
  const commands = new RegExp(`<!-- check: ${name} -->\\s+\`\`\`sh\\n(.*?)\`\`\``, 's').exec(page)?.[1];
  assert.ok(commands);
  // Machines of tests may not have it.
  const unzip = 'unzip() { python3 -m zipfile -e "$2" "$4"; }';
  const { status, stdout, stderr } = spawnSync('bash', ['-eo', 'pipefail', '-c', `${unzip}\n${commands}`], { cwd });
  return { status, output: `${stdout.toString()}${stderr.toString()}` };
}

test('the commands of the documentation check a case, and find a changed movie and a changed manifest', async (t) => {
  const { make, key } = await caseStage(t);
  const { path, manifest } = await make();
  const cwd = workspace(t);
  writeFileSync(join(cwd, 'node.pem'), key.publicKey);
  const bytes = readFileSync(path);
  const check = (change?: (bytes: Buffer) => number) => {
    const changed = Buffer.from(bytes);
    const at = change?.(changed);
    if (at !== undefined) changed[at] = (changed[at] as number) ^ 1;
    rmSync(join(cwd, 'case'), { recursive: true, force: true });
    // Python looks at checksums, too: what somebody changed on purpose has right ones.
    repack(changed, join(cwd, 'case.zip'));
    return documented('case', cwd);
  };
  const { status, output } = check();
  assert.equal(status, 0, output);
  assert.match(output, new RegExp(`^${manifest.key.fingerprint}  -$`, 'm'));
  assert.match(output, /^Signature Verified Successfully$/m);
  for (const { name } of manifest.cameras.flatMap(({ files }) => files)) assert.ok(output.includes(`${name}: OK`));
  const movie = check((bytes) => bytes.indexOf('mdat') + 500);
  assert.deepEqual([movie.status !== 0, /gate_.*: FAILED/.test(movie.output)], [true, true], movie.output);
  const text = check((bytes) => bytes.lastIndexOf('"rack-1"') + 6);
  assert.deepEqual([text.status !== 0, /Signature Verification Failure/.test(text.output)], [true, true], text.output);
});

/** The same files in an archive with right checksums. */
function repack(archive: Buffer, path: string): void {
  writeFileSync(`${path}.old`, archive);
  const script = [
    'import sys, zipfile',
    'zipfile.ZipExtFile._update_crc = lambda *_: None',
    'old, new = zipfile.ZipFile(sys.argv[1]), zipfile.ZipFile(sys.argv[2], "w")',
    'for i in old.infolist(): new.writestr(i.filename, old.read(i))',
    'new.close()',
  ];
  execFileSync('python3', ['-c', script.join('\n'), `${path}.old`, path]);
}

test('the commands of the documentation check a movie', async (t) => {
  const { deps, key } = await caseStage(t);
  const cwd = workspace(t);
  const path = join(cwd, 'gate.mp4');
  const window = { fromMs: WALL_START_MS, toMs: WALL_START_MS + 2_000 };
  const written = await exportWindow({ cameraId: 'gate', ...window }, path, deps, new AbortController().signal);
  const about = { kind: 'export', madeMs: WALL_START_MS, version: '1', node: 'rack-1' } as const;
  const { text, signature } = signManifest(about, written, key);
  for (const [name, what] of [
    ['node.pem', key.publicKey],
    ['gate.mp4.manifest.json', text],
    ['gate.mp4.manifest.json.sig', signature],
  ] as const) {
    writeFileSync(join(cwd, name), what);
  }
  const right = documented('movie', cwd);
  assert.deepEqual([right.status, /Verified Successfully\n +"sha256": /.test(right.output)], [0, true], right.output);
  const bytes = readFileSync(path);
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
  writeFileSync(path, bytes);
  const wrong = documented('movie', cwd);
  assert.deepEqual([wrong.status, wrong.output.includes('sha256')], [1, false], wrong.output);
});
