import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { parsePath, type SegmentName } from '../archive/disk/names.ts';
import { ArchiveFiles } from './archive-file.ts';

const PATH = '2026/01/01/Gate_gate_20260101_120000000.mp4';
const segment = parsePath(PATH) as SegmentName;

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'playback-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function put(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

async function contents(root: string): Promise<string | undefined> {
  const file = await new ArchiveFiles(root).open(segment);
  if (!file) return undefined;
  try {
    return (await file.read(0, file.sizeBytes)).toString();
  } finally {
    await file.close();
  }
}

test('a segment in its place is opened', async (t) => {
  const root = directory(t);
  put(root, PATH, 'footage');
  assert.equal(await contents(root), 'footage');
  assert.equal(await contents(`${root}/`), 'footage');
});

test('a record path that is a link is followed, also to a new place', async (t) => {
  const base = directory(t);
  put(base, `disk/${PATH}`, 'footage');
  symlinkSync(join(base, 'disk'), join(base, 'recordings'));
  const files = new ArchiveFiles(join(base, 'recordings'));
  await (await files.open(segment))?.close();
  renameSync(join(base, 'disk'), join(base, 'other'));
  rmSync(join(base, 'recordings'));
  symlinkSync(join(base, 'other'), join(base, 'recordings'));
  const file = await files.open(segment);
  assert.ok(file);
  await file.close();
});

test('a link below the record path is not followed, wherever it stands and leads', async (t) => {
  for (const linked of [PATH, '2026/01/01', '2026/01', '2026']) {
    const base = directory(t);
    put(base, `outside/${PATH}`, 'secret');
    const root = join(base, 'recordings');
    mkdirSync(dirname(join(root, linked)), { recursive: true });
    symlinkSync(join(base, 'outside', linked), join(root, linked));
    assert.equal(await contents(root), undefined, linked);
    // Not even to another place below the record path.
    rmSync(join(root, linked));
    put(root, `elsewhere/${PATH}`, 'footage');
    symlinkSync(join(root, 'elsewhere', linked), join(root, linked));
    assert.equal(await contents(root), undefined, linked);
  }
});

test('what is named as a segment but is no file is none', async (t) => {
  const nothing = directory(t);
  assert.equal(await contents(nothing), undefined);
  const folder = directory(t);
  mkdirSync(join(folder, PATH), { recursive: true });
  assert.equal(await contents(folder), undefined);
  const pipe = directory(t);
  mkdirSync(join(pipe, dirname(PATH)), { recursive: true });
  execFileSync('mkfifo', [join(pipe, PATH)]);
  assert.equal(await contents(pipe), undefined);
  const day = directory(t);
  put(day, dirname(PATH), 'a file in place of a day');
  assert.equal(await contents(day), undefined);
});
