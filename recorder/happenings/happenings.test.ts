import assert from 'node:assert/strict';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { DAY_MS } from '../../base/units.ts';
import { nodeFileSystem, type FileSystem } from '../archive/disk/file-system.ts';
import { temporaryDirectory, TestFileSystem } from '../archive/test-support.ts';
import { MAX_EVENTS } from './day-log.ts';
import { HappeningError, type Happening } from './happening.ts';
import { Happenings } from './happenings.ts';

const NOON_MS = Date.UTC(2026, 0, 10, 12);
const FILE = '.kube-nvr/events/gate/2026-01-10.jsonl';

const event = (id: string, changes: Partial<Happening> = {}): Happening => ({
  camera_id: 'gate',
  id,
  source: 'frigate',
  type: 'person',
  start_ms: NOON_MS,
  end_ms: null,
  reported_by: 'frigate',
  received_ms: NOON_MS,
  ...changes,
});

interface Changes {
  readonly fs?: FileSystem;
  readonly keptFromMs?: number;
  readonly checkDisk?: () => Promise<void>;
}

/** A process on `root`. */
function open(root: string, { fs = nodeFileSystem, keptFromMs = -Infinity, checkDisk = async () => {} }: Changes = {}) {
  const clock = new VirtualClock(NOON_MS);
  const told: string[] = [];
  const happenings = new Happenings({
    root,
    fs,
    clock,
    log: silentLog,
    checkDisk,
    keptFromMs: () => keptFromMs,
    told: ({ id }) => void told.push(id),
  });
  const ids = async (changes: Partial<Parameters<Happenings['find']>[0]> = {}): Promise<string[]> => {
    const all = { cameraIds: ['gate'], fromMs: 0, toMs: NOON_MS + DAY_MS, wants: () => true, limit: 20_000 };
    return (await happenings.find({ ...all, ...changes })).map(({ id }) => id);
  };
  return { happenings, clock, told, ids };
}

async function rejection(of: Promise<unknown>): Promise<string> {
  const err: unknown = await of.catch((reason: unknown) => reason);
  assert.ok(err instanceof HappeningError, String(err));
  return err.code;
}

const fileOf = (t: TestContext) => {
  const root = temporaryDirectory(t);
  return { root, path: `${root}/${FILE}` };
};

test('what was added is there for the next process, newest first, and only where it was asked for', async (t) => {
  const { root } = fileOf(t);
  const added = await open(root).happenings.add([
    event('yesterday', { start_ms: NOON_MS - DAY_MS }),
    event('noon', { data: { score: 0.5 } }),
    event('later', { start_ms: NOON_MS + 1, type: 'car' }),
    event('other', { camera_id: 'yard' }),
  ]);
  assert.equal(added.length, 4);
  const { ids, happenings } = open(root);
  assert.deepEqual(await ids(), ['later', 'noon', 'yesterday']);
  assert.deepEqual(await ids({ limit: 2 }), ['later', 'noon']);
  assert.deepEqual(await ids({ fromMs: NOON_MS }), ['later', 'noon']);
  assert.deepEqual(await ids({ toMs: NOON_MS }), ['yesterday']);
  assert.deepEqual(await ids({ wants: ({ type }) => type === 'car' }), ['later']);
  assert.deepEqual(await ids({ cameraIds: ['gate', 'yard', 'none', '../x'] }), ['later', 'noon', 'other', 'yesterday']);
  const [, noon] = await happenings.find({
    cameraIds: ['gate'],
    fromMs: 0,
    toMs: Infinity,
    wants: () => true,
    limit: 2,
  });
  assert.deepEqual(noon, event('noon', { data: { score: 0.5 } }));
});

test('an event that comes again is kept once, also in one request, at the same moment and after a restart', async (t) => {
  const { root, path } = fileOf(t);
  const first = open(root);
  const requests = [[event('a'), event('a')], [event('b')], [event('a'), event('b'), event('c')]];
  const added = await Promise.all(requests.map((events) => first.happenings.add(events)));
  assert.deepEqual(
    added.map((events) => events.map(({ id }) => id)),
    [['a'], ['b'], ['c']],
  );
  assert.deepEqual(first.told, ['a', 'b', 'c']);
  const second = open(root);
  assert.deepEqual(await second.happenings.add([event('a', { source: 'door' }), event('b')]), [
    event('a', { source: 'door' }),
  ]);
  assert.equal(readFileSync(path, 'utf8').split('\n').length, 5);
});

test('an event without an end may come again with it: it is one event then, and it ends once', async (t) => {
  const { root, path } = fileOf(t);
  const { happenings, ids, told } = open(root);
  const ended = event('a', { end_ms: NOON_MS + 5 });
  await happenings.add([event('a'), event('b', { end_ms: NOON_MS + 1 })]);
  assert.deepEqual(await happenings.add([ended]), [ended]);
  assert.deepEqual(await happenings.add([event('a'), event('a', { end_ms: NOON_MS + 9 })]), []);
  assert.deepEqual(told, ['a', 'b', 'a']);
  const next = open(root);
  assert.deepEqual(await next.happenings.add([event('a', { end_ms: NOON_MS + 9 }), event('b')]), []);
  assert.deepEqual(await ids(), ['a', 'b']);
  const [a] = await next.happenings.find({
    cameraIds: ['gate'],
    fromMs: 0,
    toMs: Infinity,
    wants: () => true,
    limit: 1,
  });
  assert.deepEqual(a, ended);
  assert.equal(readFileSync(path, 'utf8').trimEnd().split('\n').length, 3);
});

test('the end of an event has space on a day that is full', async (t) => {
  const { root } = fileOf(t);
  const { happenings } = open(root);
  await happenings.add(Array.from({ length: MAX_EVENTS }, (_, i) => event(String(i))));
  assert.equal((await happenings.add([event('0', { end_ms: NOON_MS + 1 })])).length, 1);
});

test('a day that is being written stays open, however many others are opened meanwhile: nothing is lost', async (t) => {
  const { root } = fileOf(t);
  const fs = new TestFileSystem(root);
  const held = Promise.withResolvers<void>();
  fs.before = ({ name, path }) => (name === 'write' && path.includes('/gate/') ? held.promise : undefined);
  const { happenings, ids } = open(root, { fs });
  const first = happenings.add([event('a')]);
  const cameras = Array.from({ length: 50 }, (_, i) => `cam-${i}`);
  const others = (id: string) => Promise.all(cameras.map((camera_id) => happenings.add([event(id, { camera_id })])));
  await others('1');
  const second = happenings.add([event('b')]);
  await others('2');
  held.resolve();
  await Promise.all([first, second]);
  assert.equal((await ids({ cameraIds: [...cameras, 'gate'] })).length, 102);
});

test('the newest of several cameras are found, whichever camera is named first', async (t) => {
  const { root } = fileOf(t);
  const { happenings, ids } = open(root);
  await happenings.add([event('old'), event('new', { camera_id: 'yard', start_ms: NOON_MS + 1 })]);
  for (const cameraIds of [
    ['gate', 'yard'],
    ['yard', 'gate'],
  ]) {
    assert.deepEqual(await ids({ cameraIds, limit: 1 }), ['new']);
  }
});

test('a line that a crash left incomplete is no event, and what follows it is one', async (t) => {
  const { root, path } = fileOf(t);
  await open(root).happenings.add([event('a')]);
  appendFileSync(path, JSON.stringify(event('torn')).slice(0, -5));
  const { happenings, ids } = open(root);
  assert.deepEqual(await ids(), ['a']);
  assert.equal((await happenings.add([event('b'), event('torn')])).length, 2);
  assert.deepEqual(await ids(), ['a', 'b', 'torn']);
});

test('whenever the process is killed, what was accepted is there once, and can be repeated', async (t) => {
  let finished = false;
  for (let count = 0; !finished; count++) {
    for (const tornBytes of [0, 1, 200]) {
      const root = temporaryDirectory(t);
      const fs = new TestFileSystem(root);
      mkdirSync(`${root}/.kube-nvr`);
      fs.killAfter(count, tornBytes);
      const { happenings } = open(root, { fs });
      const accepted: string[] = [];
      for (const id of ['a', 'b', 'c']) {
        const known = await happenings.add([event(id)]).catch(() => undefined);
        if (known) accepted.push(id);
      }
      finished = accepted.length === 3;
      const next = open(root);
      const found = await next.ids();
      for (const id of accepted) assert.ok(found.includes(id), `${id} is lost after ${count} operations`);
      await next.happenings.add(['a', 'b', 'c'].map((id) => event(id)));
      assert.deepEqual(await next.ids(), ['a', 'b', 'c'], `after ${count} operations`);
    }
  }
});

test('after a write that failed half-way the event is not kept, and repeating it keeps it once', async (t) => {
  const { root } = fileOf(t);
  const fs = new TestFileSystem(root);
  let fails = true;
  fs.before = ({ name }) => {
    if (!fails || name !== 'syncData') return;
    fails = false;
    throw Object.assign(new Error('EIO'), { code: 'EIO' });
  };
  const { happenings, ids, told } = open(root, { fs });
  assert.equal(await rejection(happenings.add([event('a')])), 'not-kept');
  assert.deepEqual(told, []);
  fs.operations.length = 0;
  await happenings.add([event('a')]);
  assert.deepEqual(await ids(), ['a']);
  assert.ok(
    fs.operations.some(({ name }) => name === 'syncData'),
    'what a failed write left is synced before it counts',
  );
});

test('a day takes ten thousand events of a camera; those that it has may come again', async (t) => {
  const { root } = fileOf(t);
  const { happenings, ids } = open(root);
  await happenings.add(Array.from({ length: MAX_EVENTS }, (_, i) => event(String(i))));
  assert.equal(await rejection(happenings.add([event('one more'), event('0')])), 'too-many');
  assert.deepEqual(await happenings.add([event('0')]), []);
  await happenings.add([event('other', { camera_id: 'yard' }), event('next', { start_ms: NOON_MS + DAY_MS })]);
  assert.equal((await ids()).length, MAX_EVENTS);
  assert.equal((await ids({ toMs: Infinity, limit: 1 }))[0], 'next');
});

test('a disk that hangs is told within five seconds, and a thousand requests at most wait for it', async (t) => {
  const { root } = fileOf(t);
  const { happenings, clock } = open(root, { checkDisk: () => new Promise(() => {}) });
  const waiting = Array.from({ length: 1_000 }, (_, i) => rejection(happenings.add([event(String(i))])));
  assert.equal(await rejection(happenings.add([event('x')])), 'not-kept');
  clock.advance(5_000);
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['not-kept']));
});

test('on a disk that is not that of the archive nothing is written', async (t) => {
  const { root } = fileOf(t);
  const { happenings, clock } = open(root, { checkDisk: () => Promise.reject(new Error('another disk')) });
  assert.equal(await rejection(happenings.add([event('a')])), 'not-kept');
  clock.advance(0);
  assert.ok(!existsSync(`${root}/.kube-nvr`));
});

test('events go with the footage of their time, those of the last day stay, and nothing goes while that is not known', async (t) => {
  const { root } = fileOf(t);
  const day = (days: number): Happening => event(`${days}`, { start_ms: NOON_MS - days * DAY_MS });
  await open(root).happenings.add([0, 1, 2, 3].map(day));
  const sweep = async (keptFromMs: number): Promise<string[]> => {
    const { happenings, ids } = open(root, { keptFromMs });
    happenings.tick();
    await happenings.settled();
    return ids();
  };
  assert.deepEqual(await sweep(-Infinity), ['0', '1', '2', '3']);
  assert.deepEqual(await sweep(NOON_MS - 2 * DAY_MS), ['0', '1', '2']);
  assert.deepEqual(await sweep(Infinity), ['0', '1']);
  const { happenings, clock } = open(root, { keptFromMs: Infinity });
  clock.advance(10 * DAY_MS);
  happenings.tick();
  await happenings.settled();
  assert.deepEqual(readdirSync(`${root}/.kube-nvr/events`), []);
});

test('what a person noted stays when the footage and the events of its day are removed, until a person removes it', async (t) => {
  const { root, path } = fileOf(t);
  const noted = event('note', { source: 'person', end_ms: NOON_MS });
  const { happenings, clock } = open(root, { keptFromMs: NOON_MS + 10 * DAY_MS });
  await happenings.add([event('motion'), noted]);
  clock.advance(20 * DAY_MS);
  happenings.tick();
  await happenings.settled();
  assert.equal(existsSync(path), false);
  const next = open(root);
  assert.deepEqual(await next.ids(), ['note']);
  assert.equal((await next.happenings.add([{ ...noted, removed_by: 'anna' }])).length, 1);
  assert.deepEqual(await next.ids(), []);
  assert.deepEqual(await next.happenings.add([{ ...noted, removed_by: 'bert' }, noted]), [], 'it is removed once');
  const last = open(root);
  assert.deepEqual(await last.ids(), []);
  assert.deepEqual(await last.happenings.add([noted]), [], 'a report that comes again does not bring it back');
});
