// Files of an archive and a target that behaves, and one that misbehaves: a copy counts when its digest was confirmed, and what is
// missing is copied, whatever happened before.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { until } from '../../test/support/until.ts';
import { HOUR_MS } from '../../base/units.ts';
import { formatPath } from '../archive/disk/names.ts';
import type { Copies } from './copies.ts';
import { accountOf, copied, FakeS3, START_MS, type Copied, type Fault } from './test-support.ts';

async function stage(t: TestContext): Promise<Copied & { readonly s3: FakeS3 }> {
  const s3 = await FakeS3.start(t);
  return { ...(await copied(t, s3)), s3 };
}

const done = (copies: Copies, files: number) => until('so many copies', () => copies.copiers[0]?.copiedFiles === files);
const problemOf = (copies: Copies): string => copies.copiers[0]?.problem?.message ?? '';
const isFile = (key: string): boolean => key.endsWith('.mp4');

test('each closed file is copied under its own path, byte for byte, the newest first', async (t) => {
  const { root, paths, s3, copy } = await stage(t);
  assert.ok(paths.length >= 3);
  const copies = await copy();
  await done(copies, paths.length);
  assert.deepEqual(
    s3.files,
    paths.map((path) => `site/${path}`),
  );
  for (const path of paths) assert.deepEqual(s3.objects.get(`site/${path}`), readFileSync(join(root, path)));
  const puts = s3.requests.filter((line) => /^PUT .*mp4$/.test(line));
  assert.deepEqual(
    puts,
    paths.toReversed().map((path) => `PUT site/${path}`),
  );
  assert.deepEqual(copies.warnings(), []);
});

test('what is there is not copied again, and what is missing there is', async (t) => {
  const { paths, s3, copy } = await stage(t);
  const first = await copy();
  await done(first, paths.length);
  await first.close();
  s3.objects.delete(s3.files[1] as string);
  s3.objects.delete(s3.marks[0] as string);
  const before = s3.requests.length;
  await done(await copy(), 2);
  const puts = s3.requests.slice(before).filter((line) => /^PUT .*mp4$/.test(line));
  assert.deepEqual(
    puts,
    [1, 0].map((i) => `PUT site/${paths[i]}`),
  );
});

for (const [fault, problem] of [
  ['other-bytes', /it stored other bytes/],
  ['no-digest', /does not tell the SHA-256/],
  ['busy', /503 \(SlowDown\)/],
  ['half', /cannot be reached/],
  ['full', /507 \(XMinioStorageFull\)/],
] satisfies [Fault, RegExp][]) {
  test(`a target that answers files with ${fault} has no copy, and gets all when it is well`, async (t) => {
    const { paths, s3, copy } = await stage(t);
    s3.fault = (_, key) => (isFile(key) ? fault : undefined);
    const copies = await copy();
    const [copier] = copies.copiers;
    await until('the state that the test waits for', () => problem.test(problemOf(copies)));
    assert.deepEqual([s3.marks, copier?.copiedFiles], [[], 0]);
    assert.equal(copies.warnings()[0]?.code, 'copies-failing');
    assert.equal(copier?.waitingFiles, paths.length);
    s3.fault = () => undefined;
    if (fault === 'other-bytes' || fault === 'no-digest') {
      // Such files are tried again later; a restart tries at once.
      await copies.close();
      await done(await copy(), paths.length);
    } else await done(copies, paths.length);
    assert.equal(s3.marks.length, paths.length);
  });
}

test('a target whose clock is 20 minutes off is copied to', async (t) => {
  const { paths, s3, copy } = await stage(t);
  s3.aheadMs = 20 * 60_000;
  await done(await copy(), paths.length);
});

test('credentials that are revoked are named, and copying goes on when they are valid again', async (t) => {
  const { paths, s3, copy } = await stage(t);
  const { secret } = s3;
  s3.secret = 'another';
  const copies = await copy();
  await until('the state that the test waits for', () => /SignatureDoesNotMatch/.test(problemOf(copies)));
  s3.secret = secret;
  await done(copies, paths.length);
  assert.equal(problemOf(copies), '');
});

test('a bucket that is missing is named', async (t) => {
  const { copy } = await stage(t);
  const copies = await copy({ bucket: 'elsewhere' });
  await until('the state that the test waits for', () => /NoSuchBucket/.test(problemOf(copies)));
  assert.deepEqual(
    copies.states().map(({ name, problem }) => [name, problem?.code]),
    [['offsite', 'no-bucket']],
  );
});

test('rules may change while footage is copied: a camera that a new rule names gets its copies', async (t) => {
  const { paths, s3, copy } = await stage(t);
  const rule: { cameras?: readonly string[] } = { cameras: ['yard'] };
  const copies = await copy({}, rule);
  await until('the prefix is taken', () => s3.requests.some((line) => line.startsWith('PUT ')));
  assert.equal(s3.files.length, 0);
  delete rule.cameras;
  copies.changed();
  await done(copies, paths.length);
});

test('a target that answers with something else than a list is named, and gets all when it is well', async (t) => {
  const { paths, s3, copy } = await stage(t);
  s3.fault = (_, key) => (key === '' ? 'no-list' : undefined);
  const copies = await copy();
  await until('the state that the test waits for', () => /its answer is not a list of S3/.test(problemOf(copies)));
  s3.fault = () => undefined;
  await done(copies, paths.length);
});

test('a prefix with the copies of another archive is refused, and nothing is changed there', async (t) => {
  const { paths, s3, told, copy } = await stage(t);
  await done(await copy(), paths.length);
  const before = s3.requests.length;
  told.owner = () => 'another archive';
  const other = await copy();
  await until('the state that the test waits for', () =>
    /holds copies of the archive this archive, not of another archive/.test(problemOf(other)),
  );
  assert.ok(s3.requests.slice(before).every((line) => line.startsWith('GET')));
});

test('no byte is sent while footage waits for the disk', async (t) => {
  const { paths, s3, told, copy } = await stage(t);
  let looks = 0;
  told.isBehind = () => ++looks > 0 && looks < 20;
  s3.before = async (method, key) => assert.ok(!(method === 'PUT' && isFile(key)) || looks >= 20);
  await done(await copy(), paths.length);
});

test('files that are written, too young, or of no rule are not copied', async (t) => {
  const { paths, s3, told, copy } = await stage(t);
  told.openPaths = () => new Set(paths.slice(-1));
  const copies = await copy({}, { afterMs: Date.now() - START_MS - 15_000 });
  await done(copies, 2);
  assert.deepEqual(s3.files, [`site/${paths[0]}`, `site/${paths[1]}`]);
  await until('a file is too young', () => copies.copiers[0]?.waitingFiles === paths.length - 3);
  assert.equal(copies.copiers[0]?.lagMs(), 0);
});

test('of an archive with more files than are remembered, older days are compared when half of them are done', async (t) => {
  const { s3, told, copy } = await stage(t);
  const filesOfDay = 10_001;
  // Nothing is under these names any more: each is looked at, and left.
  const dayOf = (startMs: number) => ({
    cameraId: 'gate',
    startMs,
    sizeOf: () => undefined,
    segments: () =>
      Array.from({ length: filesOfDay }, (_, n) => ({ name: 'gate', cameraId: 'gate', startMs: startMs + n * 1_000 })),
  });
  const dayMs = Date.UTC(2026, 0, 2);
  told.days = () => [2, 1, 0].map((days) => dayOf(dayMs - days * 24 * HOUR_MS));
  const { promise: isOpen, resolve } = Promise.withResolvers<Copies>();
  const waiting: number[] = [];
  s3.before = async (method, key) => {
    if (method === 'GET' && key === '') waiting.push((await isOpen).copiers[0]?.waitingFiles ?? NaN);
  };
  const copies = await copy();
  resolve(copies);
  await until('the oldest day is compared', () => waiting.length >= 8);
  // One of accounts, two lists for each day, and one of the cameras, of which old copies are removed.
  assert.deepEqual(waiting.slice(0, 6), [0, 0, 0, filesOfDay, filesOfDay, 2 * filesOfDay]);
  assert.ok(waiting.slice(6).every((files) => files < filesOfDay));
  await until('all were looked at', () => copies.copiers[0]?.waitingFiles === 0);
});

test('a file that changed after its digest was taken is not a copy; what it became is copied', async (t) => {
  const { root, paths, s3, told, copy } = await stage(t);
  const newest = paths.at(-1) as string;
  const bytes = readFileSync(join(root, newest));
  let pieces = 0;
  told.isBehind = () => {
    // The file has one piece: it is read for the digest, and again to be sent.
    if (++pieces === 2) writeFileSync(join(root, newest), bytes.fill(1, bytes.length - 10), { flag: 'r+' });
    return false;
  };
  const copies = await copy();
  await done(copies, paths.length - 1);
  assert.match(problemOf(copies), /BadDigest/);
  assert.ok(!s3.files.includes(`site/${newest}`));
  await copies.close();
  await done(await copy(), 1);
  assert.deepEqual(s3.objects.get(`site/${newest}`), bytes);
});

test('a copier that ends at any request leaves no copy that counts and is not whole, and the next one completes it', async (t) => {
  const { root, paths, copy, config } = await stage(t);
  for (let at = 1; ; at++) {
    const s3 = await FakeS3.start(t);
    let count = 0;
    let ended: Promise<void> | undefined;
    const first = await copy({ ...config, endpoint: s3.endpoint });
    s3.before = async () => {
      if (++count === at) ended = first.close();
    };
    await until(
      'the state that the test waits for',
      () => ended !== undefined || first.copiers[0]?.copiedFiles === paths.length,
    );
    await ended;
    for (const mark of s3.marks) {
      const path = paths.find((one) => mark.includes(String(START_MS + 10_000 * paths.indexOf(one)))) ?? '';
      assert.ok(path === '' || s3.objects.get(`site/${path}`)?.equals(readFileSync(join(root, path))));
    }
    s3.before = async () => {};
    const second = await copy({ ...config, endpoint: s3.endpoint });
    await until(
      'the state that the test waits for',
      () => s3.marks.length === paths.length && s3.files.length === paths.length,
    );
    await second.close();
    if (ended === undefined) break;
    assert.ok(at < 60);
  }
});

test('a copy is removed when it is too old, unless it is protected', async (t) => {
  const { paths, s3, told, copy } = await stage(t);
  const first = await copy();
  await done(first, paths.length);
  await first.close();
  told.isProtected = (_, fromMs, toMs) => fromMs < START_MS + 15_000 && toMs > START_MS + 12_000;
  const second = await copy({}, { keepMs: HOUR_MS, afterMs: 400 * 24 * HOUR_MS });
  await until('the state that the test waits for', () => s3.files.length === 1);
  await second.close();
  assert.deepEqual(s3.files, [`site/${paths[1]}`]);
  assert.equal(s3.marks.length, 1);
});

test('a copy that is locked stays, is named, and keeps no other from being removed or copied', async (t) => {
  const { paths, s3, told, copy } = await stage(t);
  const first = await copy();
  await done(first, paths.length);
  await first.close();
  const [locked] = s3.files;
  s3.objects.delete(s3.files.at(-1) as string);
  s3.fault = (method, key) => (method === 'DELETE' && key === locked ? 'locked' : undefined);
  told.wantedMs = () => HOUR_MS;
  const second = await copy();
  await done(second, 1);
  assert.match(problemOf(second), /a copy that is too old cannot be removed: it answers 403 \(AccessDenied\)/);
  await second.close();
  assert.deepEqual(s3.files, [locked, `site/${paths.at(-1)}`]);
});

test('maxAge holds for copies, too', async (t) => {
  const { paths, s3, told, copy } = await stage(t);
  const first = await copy();
  await done(first, paths.length);
  await first.close();
  told.wantedMs = () => HOUR_MS;
  const second = await copy({}, { afterMs: 400 * 24 * HOUR_MS });
  await until('the state that the test waits for', () => s3.files.length === 0 && s3.marks.length === 0);
  await second.close();
});

test('a copy is locked until the end of its lock, which is never later than its maxAge', async (t) => {
  const { paths, s3, told, copy } = await stage(t);
  const ageMs = Date.now() - START_MS;
  told.wantedMs = () => ageMs + HOUR_MS;
  const objectLock = { mode: 'compliance', forMs: ageMs + 9 * HOUR_MS } as const;
  await done(await copy({ objectLock, encryption: 'AES256' }), paths.length);
  const headers = s3.headers.get(s3.files[0] as string) ?? {};
  assert.equal(headers['x-amz-object-lock-mode'], 'COMPLIANCE');
  assert.equal(headers['x-amz-server-side-encryption'], 'AES256');
  const untilMs = Date.parse(String(headers['x-amz-object-lock-retain-until-date']));
  assert.ok(untilMs > Date.now() && untilMs < START_MS + ageMs + HOUR_MS + 15_000);
});

test('a file that retention removed before it was copied is counted', async (t) => {
  const { archive, paths, s3, copy } = await stage(t);
  s3.fault = () => 'busy';
  const copies = await copy();
  const [segment] = archive.catalogue.newestFirst('gate');
  assert.ok(segment);
  s3.fault = (_, key) => (isFile(key) ? 'busy' : undefined);
  await until('the state that the test waits for', () => copies.copiers[0]?.waitingFiles === paths.length);
  copies.removed(segment);
  assert.equal(copies.copiers[0]?.missedFiles, 1);
  const later = await copy({}, { afterMs: 400 * 24 * HOUR_MS });
  later.removed(segment);
  assert.equal(later.copiers[0]?.missedFiles, 1, 'also one for which it was not time by far');
  const never = await copy({}, { targets: [] });
  never.removed(segment);
  assert.equal(never.copiers[0]?.missedFiles, 0, 'but none that was not to be copied');
});

test('the day of a file is listed at the target once, not for each file', async (t) => {
  const { paths, s3, copy } = await stage(t);
  await done(await copy(), paths.length);
  const lists = s3.requests.filter((line) => line.startsWith('GET site/.kube-nvr/copies/gate/'));
  // Pages of three entries: one is asked for while there is nothing.
  assert.equal(lists.length, 1);
});

test('ledger, protections and audit are copied as they are, and again when they have changed, instead of what was there', async (t) => {
  const { root, paths, s3, told, copy } = await stage(t);
  const fileOf = (name: string, text: string, atMs = START_MS): string => {
    writeFileSync(join(root, name), text);
    utimesSync(join(root, name), atMs / 1000, atMs / 1000);
    return join(root, name);
  };
  const files = {
    'protections.json': fileOf('protections', 'a'),
    'audit/audit.log': fileOf('audit', 'bb'),
    'gaps/gate.jsonl': fileOf('gate', 'ccc'),
    'gaps/yard.jsonl': fileOf('yard', 'dddd'),
    'gaps/hall.jsonl': join(root, 'nothing'),
  };
  told.account = accountOf('rack 1', 'archive-1', files);
  const onlyGate = { cameras: ['gate'] };
  const first = await copy({}, onlyGate);
  await done(first, paths.length);
  await first.close();
  const place = 'site/.kube-nvr/accounts/rack%201/archive-1';
  assert.deepEqual(s3.accounts, [
    `${place}/audit/audit.log/${START_MS}_2`,
    `${place}/gaps/gate.jsonl/${START_MS}_3`,
    `${place}/protections.json/${START_MS}_1`,
  ]);
  assert.deepEqual(
    s3.accounts.map((key) => s3.objects.get(key)?.toString()),
    ['bb', 'ccc', 'a'],
  );
  const before = s3.requests.length;
  fileOf('protections', 'b', START_MS + 1_000);
  const second = await copy({}, onlyGate);
  await until('the change is there', () => s3.objects.has(`${place}/protections.json/${START_MS + 1_000}_1`));
  await until('what was there is gone', () => s3.accounts.length === 3);
  await second.close();
  const puts = s3.requests.slice(before).filter((line) => line.startsWith('PUT '));
  assert.deepEqual(puts, [`PUT ${place}/protections.json/${START_MS + 1_000}_1`]);
});

test('a new archive of a node has an account of its own: that of the lost one stays', async (t) => {
  const { root, s3, told, copy } = await stage(t);
  const file = join(root, 'protections');
  writeFileSync(file, 'a');
  told.account = accountOf('rack-1', 'archive-1', { 'protections.json': file });
  const first = await copy();
  await until('it is there', () => s3.accounts.length === 1);
  await first.close();
  told.account = accountOf('rack-1', 'archive-2', { 'protections.json': file });
  await copy();
  await until('both are there', () => s3.accounts.length === 2);
});

test('what a node that is gone protects stays at the target', async (t) => {
  const { root, paths, s3, told, copy } = await stage(t);
  const protection = {
    id: 'one',
    cameraId: 'gate',
    fromMs: START_MS + 12_000,
    toMs: START_MS + 15_000,
    createdMs: START_MS,
  };
  const file = join(root, 'protections');
  writeFileSync(file, JSON.stringify({ version: 1, protections: [protection] }));
  told.account = accountOf('rack-1', 'archive-1', { 'protections.json': file });
  const first = await copy();
  await done(first, paths.length);
  await first.close();
  told.account = accountOf('rack-2', 'archive-2', {});
  told.days = () => [];
  told.wantedMs = () => 1_000;
  await copy();
  await until('all others are removed', () => s3.files.length === 1);
  assert.deepEqual(s3.files, [`site/${paths[1]}`]);
});

test('files that have one copy only are counted, also those for which it is not time yet', async (t) => {
  const { archive, paths, told, copy } = await stage(t);
  told.wantedMs = () => 90 * 24 * HOUR_MS;
  const rule = { afterMs: 200 * 365 * 24 * HOUR_MS, keepMs: undefined as number | undefined };
  const copies = await copy({}, rule);
  const lacking = (): number | undefined => copies.places(['gate']).targets[0]?.lackingFiles;
  await until('the lists are compared', () => lacking() === paths.length);
  assert.equal(copies.copiers[0]?.waitingFiles, 0);
  const [day] = archive.catalogue.days();
  const [first] = day?.segments() ?? [];
  assert.ok(first);
  copies.removed(first);
  assert.equal(lacking(), paths.length - 1);
  rule.afterMs = 0;
  copies.changed();
  await done(copies, paths.length);
  await until('what is at the target is not counted', () => lacking() === 0);
});

test('a place says how long it keeps copies, and how many cameras have none', async (t) => {
  const { told, copy } = await stage(t);
  told.wantedMs = (id) => (id === 'gate' ? 90 * 24 * HOUR_MS : undefined);
  const rule: { keepMs?: number; cameras: readonly string[] } = { cameras: ['gate', 'dock'] };
  const copies = await copy({}, rule);
  const found = (ids: readonly string[]) => {
    const { targets, uncopied } = copies.places(ids);
    return [targets[0]?.keepMs, uncopied];
  };
  assert.deepEqual(found(['gate']), [90 * 24 * HOUR_MS, 0]);
  assert.deepEqual(found(['gate', 'dock', 'yard']), [Infinity, 1]);
  rule.keepMs = 30 * 24 * HOUR_MS;
  assert.deepEqual(found(['gate', 'dock', 'yard']), [30 * 24 * HOUR_MS, 1]);
});

/** A node whose archive was copied, and lost, with the account of that archive at the target. */
async function lost(t: TestContext) {
  const staged = await stage(t);
  const { root, paths, told, copy, archive } = staged;
  const journal = join(root, 'gate.jsonl');
  writeFileSync(journal, 'gaps of gate\n');
  told.account = accountOf('rack-1', 'archive-1', { 'gaps/gate.jsonl': journal });
  const before = await copy();
  await done(before, paths.length);
  await until('the account is copied', () => staged.s3.accounts.length > 0);
  await before.close();
  const files = new Map(paths.map((path) => [path, readFileSync(join(root, path))]));
  for (const path of paths) rmSync(join(root, path));
  await archive.catalogue.refresh();
  staged.s3.requests.length = 0;
  told.account = accountOf('rack-1', 'archive-2', {});
  return { ...staged, files };
}

test('a node with a new archive fetches what the lost one had, the newest first, and copies nothing of it again', async (t) => {
  const { root, archive, paths, files, s3, copy } = await lost(t);
  const copies = await copy();
  await until('all files are back', () => copies.copiers[0]?.fetchedFiles === paths.length);
  for (const [path, bytes] of files) assert.deepEqual(readFileSync(join(root, path)), bytes);
  assert.deepEqual(
    s3.requests.filter((line) => /^GET .*mp4$/.test(line)),
    paths.toReversed().map((path) => `GET site/${path}`),
  );
  assert.ok(!s3.requests.some((line) => /^PUT .*mp4$/.test(line)));
  await copies.close();
  await archive.catalogue.refresh();
  s3.requests.length = 0;
  const again = await copy();
  await until(
    'it has looked',
    () => s3.requests.filter((line) => line.startsWith('GET site/.kube-nvr/acc')).length > 1,
  );
  await again.close();
  assert.equal(again.copiers[0]?.fetchedFiles, 0);
});

test('another node fetches nothing, nor a node that lost nothing', async (t) => {
  const { paths, s3, told, copy } = await lost(t);
  told.account = accountOf('rack-2', 'archive-2', {});
  const copies = await copy();
  const lists = (): number => s3.requests.filter((line) => line === 'GET site/.kube-nvr/accounts/').length;
  await until('the accounts are looked up', () => lists() > 1);
  await copies.close();
  assert.ok(!s3.requests.some((line) => /^GET .*mp4$/.test(line)));
  assert.equal(s3.files.length, paths.length);
});

test('what is older than may be kept, what retention has removed, and what has no space is not fetched', async (t) => {
  const { paths, told, s3, copy } = await lost(t);
  told.wantedMs = () => Date.now() - START_MS - 10_000;
  let room = true;
  const received: string[] = [];
  told.receive = async (segment) => {
    if (!room) return false;
    received.push(formatPath(segment));
    copies.removed(segment);
    room = received.length < 2;
    return true;
  };
  const copies = await copy();
  await until('a file is fetched', () => received.length > 0);
  await until('the target is asked for the rest of the days', () => s3.requests.length > 3);
  await copies.close();
  assert.deepEqual(received, paths.slice(-1), 'the rest is older than one that was removed');
});

test('a copy that is damaged, or that a target sends in half, is never on the disk', async (t) => {
  const { root, paths, files, s3, copy } = await lost(t);
  const [first = '', second = ''] = paths.toReversed();
  s3.objects.set(`site/${first}`, Buffer.from(s3.objects.get(`site/${first}`) ?? []).fill(0, 100, 200));
  let halves = 0;
  s3.fault = (method, key) => (method === 'GET' && key === `site/${second}` && halves++ === 0 ? 'half' : undefined);
  const copies = await copy();
  await until('the others are back', () => copies.copiers[0]?.fetchedFiles === paths.length - 1);
  assert.equal(existsSync(join(root, first)), false);
  assert.deepEqual(readFileSync(join(root, second)), files.get(second));
});
