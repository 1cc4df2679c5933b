// Footage that only a target has: it is listed, played and exported as it was from the disk.

import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { until } from '../../test/support/until.ts';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { FootageOfNodes } from '../footage/accounts.ts';
import type { Holder } from '../footage/holder.ts';
import { openFootage } from '../footage/open.ts';
import { accountOf, copied, FakeS3, START_MS } from './test-support.ts';

const BY = { name: 'guard', credential: undefined };
const WHOLE = { fromMs: START_MS, toMs: START_MS + 40_000 };

async function stage(t: TestContext) {
  const s3 = await FakeS3.start(t);
  const made = await copied(t, s3);
  const copies = await made.copy();
  await until('all files are copied', () => copies.copiers[0]?.copiedFiles === made.paths.length);
  const { root, archive } = made;
  const collector = openFootage({ recordPath: root, archive, copies, clock: systemClock, log: silentLog });
  const bytes = made.paths.map((path) => readFileSync(join(root, path)));
  /** What retention removes. */
  const lose = (...numbers: readonly number[]): void => {
    for (const i of numbers) rmSync(join(root, made.paths[i] as string));
  };
  return { ...made, s3, copies, collector, bytes, lose };
}

test('a file that only a target has takes its place among those of the disk, with the same parts and bytes', async (t) => {
  const { collector, paths, bytes, lose } = await stage(t);
  const before = await collector.collect('gate', WHOLE, BY);
  lose(1);
  const after = await collector.collect('gate', WHOLE, BY);
  assert.deepEqual(after.elsewhere, []);
  assert.deepEqual(
    after.footage.map(({ path, nodeId }) => [path, nodeId]),
    paths.map((path, i) => [path, i === 1 ? 'target:offsite' : '']),
  );
  assert.deepEqual(
    after.footage.map(({ parts: { meta, ...parts }, sizeBytes }) => ({ ...parts, sizeBytes, at: meta.wallStartMs })),
    before.footage.map(({ parts: { meta, ...parts }, sizeBytes }) => ({ ...parts, sizeBytes, at: meta.wallStartMs })),
  );
  const file = after.footage[1];
  assert.ok(file);
  let read: Buffer | undefined;
  assert.ok(await collector.use(file, BY, async (opened) => void (read = await opened.read(0, file.sizeBytes))));
  assert.deepEqual(read, bytes[1]);
});

test('a target is not asked for time that the disk has', async (t) => {
  const { collector, archive, s3 } = await stage(t);
  const { segments } = await archive.list('gate', WHOLE);
  const before = s3.requests.length;
  await collector.collect('gate', { fromMs: START_MS, toMs: segments[2]?.startMs ?? 0 }, BY);
  assert.equal(s3.requests.length, before);
});

test('a target lists segments, days and times of what it has', async (t) => {
  const { copies, archive, paths } = await stage(t);
  const [holder] = copies.holders;
  assert.ok(holder);
  const { segments } = await archive.list('gate', WHOLE);
  const listed = await holder.segments('gate', `from=${START_MS / 1000}&to=${WHOLE.toMs / 1000}`, BY);
  assert.equal(listed.kind, 'answer');
  assert.deepEqual(
    listed.value.archive.map(({ filename, start_ms, end_ms, size, sequence }) => [
      filename,
      start_ms,
      end_ms,
      size,
      sequence,
    ]),
    segments.map(({ path, startMs, endMs = 0, sizeBytes, sequence }) => [
      path,
      startMs,
      Math.round(endMs),
      sizeBytes,
      sequence,
    ]),
  );
  assert.equal(listed.value.archive.length, paths.length);
  assert.deepEqual(listed.value.days, ['2026-01-01']);
  const asked = { cameraIds: ['gate', 'yard'], interval: WHOLE, resolutionMs: 0, preview: false };
  const times = await holder.times(asked, BY);
  assert.equal(times.kind, 'answer');
  assert.deepEqual(
    times.value.map(({ spans }) => spans.length),
    [1, 0],
  );
});

test('the copies of another archive are not listed', async (t) => {
  const { copy, told, s3 } = await stage(t);
  told.owner = () => 'another archive';
  const copies = await copy();
  await until('the prefix is refused', () => copies.copiers[0]?.problem !== undefined);
  const before = s3.requests.length;
  assert.deepEqual(copies.holders, []);
  assert.equal(s3.requests.length, before);
});

test('a target that has none of our copies takes no blame for gaps: a foreign prefix, or no bucket', async (t) => {
  const { copy, told, s3 } = await stage(t);
  const gap = {
    fromMs: START_MS,
    toMs: START_MS + 5_000,
    cause: 'starting',
    isOpen: false,
    isProvisional: false,
  } as const;
  const causes = async ({ holders }: { readonly holders: readonly Holder[] }) => {
    const report = { gaps: [gap], recorded: [], degraded: [], filled: [], wantedMs: 0, recordedMs: 0 };
    const all = new FootageOfNodes({
      nodeId: 'rack-1',
      gaps: { report: async (_id, fromMs, toMs) => ({ ...report, fromMs, toMs, knownUntilMs: toMs }) },
      collector: { others: async () => holders, own: { archive: { list: async () => ({ segments: [], days: [] }) } } },
    });
    return (await all.report('gate', WHOLE.fromMs, WHOLE.toMs, BY)).gaps.map(({ cause }) => cause);
  };
  told.owner = () => 'another archive';
  const foreign = await copy();
  assert.deepEqual(await causes(foreign), ['on-node-away'], 'it is not known yet');
  await until('the prefix is refused', () => foreign.copiers[0]?.problem !== undefined);
  assert.deepEqual(await causes(foreign), ['starting']);
  delete told.owner;
  const nowhere = await copy({ bucket: 'elsewhere' });
  await until('the bucket is missing', () => nowhere.copiers[0]?.problem?.code === 'no-bucket');
  assert.deepEqual(await causes(nowhere), ['starting']);
  s3.bucket = 'elsewhere';
  await until('the bucket is there', () => nowhere.holders.length === 1);
});

test('a target that does not answer is away, and is not asked again at once', async (t) => {
  const { collector, copies, s3, lose } = await stage(t);
  await copies.close();
  lose(0);
  const [holder] = copies.holders;
  const before = s3.requests.length;
  const { footage, elsewhere } = await collector.collect('gate', WHOLE, BY);
  assert.equal(footage.length, 3);
  assert.ok(elsewhere.some(({ nodeId, isOnline }) => nodeId === 'target:offsite' && !isOnline));
  assert.equal((await holder?.files('gate', WHOLE, BY))?.kind, 'away');
  assert.equal(s3.requests.length, before);
});

test('gaps of a node that is gone come from its account at the target, and a node that is away is not named for them', async (t) => {
  const { copy, told, s3, archive, paths, root } = await stage(t);
  const { segments } = await archive.list('gate', WHOLE);
  const [endMs, lostMs] = [Math.round(segments.at(-1)?.endMs ?? 0), START_MS + 60_000];
  const lines = [
    { at: START_MS, state: 'recording' },
    { at: endMs, state: 'camera-unreachable' },
    { at: lostMs, state: 'recording' },
  ];
  const journal = join(root, 'gate.jsonl');
  writeFileSync(journal, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  utimesSync(journal, lostMs / 1000, lostMs / 1000);
  told.account = accountOf('rack-1', 'archive-1', { 'gaps/gate.jsonl': journal });
  const before = await copy();
  await until('the account is at the target', () => s3.accounts.length === 1);
  await before.close();
  assert.deepEqual(s3.accounts, [
    `site/.kube-nvr/accounts/rack-1/archive-1/gaps/gate.jsonl/${lostMs}_${statSync(journal).size}`,
  ]);

  // Another node, with an empty disk; the one that recorded is known to the cluster, and does not answer.
  told.account = accountOf('rack-2', 'archive-2', {});
  const copies = await copy();
  const gone: Holder = {
    nodeId: 'rack-1',
    oldestMs: START_MS,
    newestMs: lostMs,
    isOnline: false,
    files: async () => ({ kind: 'away' }),
    segments: async () => ({ kind: 'away' }),
    times: async () => ({ kind: 'away' }),
    stream: () => assert.fail('nothing is read'),
    sizeOf: () => assert.fail('nothing is read'),
  };
  const report = { gaps: [], recorded: [], degraded: [], filled: [], wantedMs: 0, recordedMs: 0 };
  const all = new FootageOfNodes({
    nodeId: 'rack-2',
    gaps: { report: async (_id, fromMs, toMs) => ({ ...report, fromMs, toMs, knownUntilMs: toMs }) },
    collector: {
      others: async () => [gone, ...copies.holders],
      own: { archive: { list: async () => ({ segments: [], days: [] }) } },
    },
  });
  await until(
    'the prefix is known to be ours',
    async () => (await all.report('gate', START_MS, lostMs, BY)).gaps.length > 0,
  );
  const { gaps, elsewhere, wantedMs } = await all.report('gate', START_MS, lostMs, BY);
  assert.deepEqual(
    gaps.map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]),
    [[endMs, lostMs, 'camera-unreachable']],
  );
  assert.equal(wantedMs, lostMs - endMs);
  assert.deepEqual(
    elsewhere.map(({ fromMs, toMs, nodeId, isOnline }) => [fromMs, toMs, nodeId, isOnline]),
    [[START_MS, endMs, 'target:offsite', true]],
  );
  const after = await all.ofAllNodes('gate', START_MS, lostMs, BY);
  assert.deepEqual(
    after.gaps.map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]),
    [[endMs, lostMs, 'camera-unreachable']],
  );
  assert.ok(paths.length > 0);
});
