import { test } from 'node:test';
import assert from 'node:assert/strict';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { ApiError, type KubeObject } from './api.ts';
import { Informer, type InformerObserver } from './informer.ts';
import { CAMERA } from './resources.ts';
import { MemoryApi, settle } from './test-support.ts';

const camera = (name: string, spec: object = {}): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'Camera',
  metadata: { namespace: 'home', name },
  spec: { source: 'rtsp://10.0.0.9/1', ...spec },
});

const ref = (name: string) => ({ namespace: 'home', name });

class Setup {
  readonly api = new MemoryApi();
  readonly clock = new VirtualClock();
  readonly changes: string[] = [];
  readonly told: string[] = [];
  readonly informer: Informer<Camera>;

  constructor() {
    const observer: InformerObserver = {
      event: (type) => this.told.push(`event ${type}`),
      failed: () => this.told.push('failed'),
      relisted: () => this.told.push('listed'),
      missed: (count) => this.told.push(`missed ${count}`),
      counted: () => {},
    };
    this.informer = new Informer({
      api: this.api,
      resource: CAMERA,
      parse: parseCamera,
      clock: this.clock,
      log: silentLog,
      observer,
      random: () => 0.5,
    });
    this.informer.onChange((change) => this.changes.push(`${change.kind} ${change.key}`));
  }

  async start(): Promise<void> {
    this.informer.start();
    await settle();
  }

  /** Advances the clock in steps, so that all parties can react in between. */
  async pass(ms: number, stepMs = 1_000): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      this.clock.advance(Math.min(stepMs, ms - passedMs));
      await settle();
    }
  }

  names(): string[] {
    return this.informer
      .list()
      .map(({ metadata }) => metadata.name)
      .sort();
  }
}

test('existing objects and changes are reported once, and kept', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, camera('a'));
  assert.equal(s.informer.isSynced, false);
  await s.start();
  assert.equal(s.informer.isSynced, true);
  await s.api.create(CAMERA, camera('b'));
  await s.api.mergePatch(CAMERA, ref('a'), { spec: { ptz: true } });
  await s.api.delete(CAMERA, ref('b'));
  await settle();
  assert.deepEqual(s.changes, ['added home/a', 'added home/b', 'changed home/a', 'deleted home/b']);
  assert.equal(s.informer.get('home/a')?.spec.ptz, true);
  assert.deepEqual(s.names(), ['a']);
  await s.informer.close();
});

test('a list of several pages is taken as a whole: if its second page is refused, nothing of the first one is reported', async () => {
  const s = new Setup();
  for (const name of ['a', 'b', 'c', 'd', 'e']) await s.api.create(CAMERA, camera(name));
  let refusals = 1;
  s.api.before = (verb) => {
    if (verb === 'page' && refusals-- > 0) throw new ApiError(410, 'Expired', 'the list is too old to go on with');
  };
  await s.start();
  assert.equal(refusals, 0);
  assert.deepEqual([s.changes, s.informer.isSynced], [[], false]);
  await s.pass(2_000);
  assert.deepEqual(s.names(), ['a', 'b', 'c', 'd', 'e']);
  assert.deepEqual([s.api.count('list'), s.changes.length, s.informer.isSynced], [2, 5, true]);
  await s.informer.close();
});

test('an object from the cache cannot be changed', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, camera('a'));
  await s.start();
  const cached = s.informer.get('home/a') as { spec: { source: string; record: { format: string } } };
  assert.throws(() => (cached.spec.source = 'rtsp://elsewhere/'), TypeError);
  assert.throws(() => (cached.spec.record.format = 'mp4'), TypeError);
  await s.informer.close();
});

test('managedFields, which nothing reads, are not kept', async () => {
  const s = new Setup();
  const { metadata, ...rest } = camera('a');
  await s.api.create(CAMERA, {
    ...rest,
    metadata: { ...metadata, managedFields: [{ manager: 'x' }] } as typeof metadata,
  });
  await s.start();
  assert.equal(s.informer.get('home/a')?.metadata.name, 'a');
  assert.ok(!('managedFields' in s.informer.get('home/a')!.metadata));
  await s.informer.close();
});

test('an error ends no informer: it continues where it was, with growing delays while nothing arrives', async () => {
  const s = new Setup();
  await s.start();
  const fail = (): void => {
    throw new ApiError(500, 'InternalError', 'no');
  };
  s.api.before = (verb) => (verb === 'watch' ? fail() : undefined);
  s.api.endWatches(new ApiError(0, 'UNREACHABLE', 'reset'));
  await s.pass(60_000, 250);
  const tries = s.api.count('watch') - 1;
  assert.ok(tries >= 5 && tries <= 12, `${tries} tries in a minute`);
  s.api.before = () => {};
  await s.pass(40_000);
  await s.api.create(CAMERA, camera('a'));
  await settle();
  assert.deepEqual(s.names(), ['a']);
  await s.informer.close();
});

test('a connection alone does not count as success: a watch that is accepted and fails is tried more and more slowly', async () => {
  const s = new Setup();
  await s.start();
  for (let i = 0; i < 600; i++) {
    s.api.endWatches(new ApiError(0, 'UNREACHABLE', 'reset'));
    await s.pass(100, 100);
  }
  const tries = s.api.count('watch');
  assert.ok(tries <= 12, `${tries} tries in a minute`);
  await s.informer.close();
});

test('a watch that ends in silence at once is a failure as well: it does not spin', async () => {
  const s = new Setup();
  await s.start();
  for (let i = 0; i < 600; i++) {
    s.api.endWatches();
    await s.pass(100, 100);
  }
  assert.ok(s.api.count('watch') <= 25, `${s.api.count('watch')} tries in a minute`);
  await s.informer.close();
});

test('a watch that the server ends after its time continues at once, without a list', async () => {
  const s = new Setup();
  await s.start();
  await s.pass(35_000);
  s.api.endWatches();
  await settle();
  assert.equal(s.api.watches, 1);
  assert.equal(s.api.count('list'), 1);
  assert.ok(!s.told.includes('failed'));
  await s.informer.close();
});

test('an event resets the back-off', async () => {
  const s = new Setup();
  await s.start();
  for (let i = 0; i < 4; i++) {
    s.api.endWatches(new ApiError(0, 'UNREACHABLE', 'reset'));
    await s.pass(30_000, 500);
  }
  s.api.bookmark();
  await settle();
  s.api.endWatches(new ApiError(0, 'UNREACHABLE', 'reset'));
  await settle();
  assert.equal(s.api.watches, 0);
  await s.pass(300, 50);
  assert.equal(s.api.watches, 1);
  await s.informer.close();
});

test('a place that is too old to continue from (410) is replaced by a list', async () => {
  const s = new Setup();
  await s.start();
  s.api.drop = () => true;
  await s.api.create(CAMERA, camera('a'));
  s.api.drop = () => false;
  s.api.endWatches(new ApiError(410, 'Expired', 'too old resource version'));
  await s.pass(1_000, 250);
  assert.deepEqual(s.names(), ['a']);
  assert.equal(s.api.count('list'), 2);
  await s.informer.close();
});

test('a server that asks us to wait is not asked before', async () => {
  const s = new Setup();
  s.api.before = () => {
    throw new ApiError(429, 'TooManyRequests', 'slow down', { retryAfterMs: 20_000 });
  };
  await s.start();
  await s.pass(19_500, 500);
  assert.equal(s.api.calls.length, 1);
  await s.pass(500);
  assert.equal(s.api.calls.length, 2);
  await s.informer.close();
});

test('what watches lose is found by the list every ten minutes, reported and counted', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, camera('stays'));
  await s.api.create(CAMERA, camera('goes'));
  await s.start();
  s.changes.length = 0;
  s.api.drop = () => true;
  await s.api.create(CAMERA, camera('comes'));
  await s.api.delete(CAMERA, ref('goes'));
  await s.api.mergePatch(CAMERA, ref('stays'), { spec: { ptz: true } });
  s.api.drop = () => false;
  // The watch continues after the events that it lost.
  await s.api.create(CAMERA, camera('later'));
  s.api.bookmark();
  await s.pass(610_000, 10_000);
  assert.deepEqual(s.changes, ['added home/later']);
  s.api.endWatches();
  await settle();
  assert.deepEqual(s.changes.slice(1).sort(), ['added home/comes', 'changed home/stays', 'deleted home/goes']);
  assert.deepEqual(
    s.told.filter((line) => line.startsWith('missed')),
    ['missed 3'],
  );
  await s.informer.close();
});

/** From now on lists are those of a server that stopped to follow at this moment. */
async function lagBehind({ api }: Setup): Promise<() => void> {
  const old = await api.list(CAMERA, {});
  const list = api.list.bind(api);
  api.list = async () => structuredClone(old);
  return () => (api.list = list);
}

test('a list that is older than the copy takes nothing back, and the watch continues', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, camera('a', { suspend: true }));
  await s.start();
  const catchUp = await lagBehind(s);
  await s.api.mergePatch(CAMERA, ref('a'), { spec: { suspend: false } });
  await s.api.create(CAMERA, camera('b'));
  await settle();
  s.changes.length = 0;
  s.informer.resync();
  await settle();
  assert.deepEqual(s.changes, []);
  assert.equal(s.informer.get('home/a')?.spec.suspend, false);
  await s.api.create(CAMERA, camera('c'));
  await settle();
  assert.deepEqual(s.changes, ['added home/c']);
  catchUp();
  s.informer.resync();
  await settle();
  assert.deepEqual(s.names(), ['a', 'b', 'c']);
  await s.informer.close();
});

test('lists that stay older than the copy are those of a server that was restored: they count after a minute', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, camera('a'));
  await s.start();
  await lagBehind(s);
  await s.api.create(CAMERA, camera('b'));
  await settle();
  s.informer.resync();
  await settle();
  await s.pass(59_000);
  s.informer.resync();
  await settle();
  assert.deepEqual(s.names(), ['a', 'b']);
  await s.pass(1_000);
  s.informer.resync();
  await settle();
  assert.deepEqual(s.names(), ['a']);
  await s.informer.close();
});

test('what changes between the last event and the list is not called missed', async () => {
  const s = new Setup();
  await s.start();
  s.api.bookmark();
  await s.pass(610_000, 10_000);
  s.api.drop = () => true;
  await s.api.create(CAMERA, camera('new'));
  s.api.drop = () => false;
  s.api.endWatches();
  await settle();
  assert.deepEqual(s.names(), ['new']);
  assert.ok(!s.told.some((line) => line.startsWith('missed')));
  await s.informer.close();
});

test('level-triggered: with every event lost, one list makes the copy the same as with none lost', async () => {
  const copies = await Promise.all(
    [false, true].map(async (isDeaf) => {
      const s = new Setup();
      await s.start();
      s.api.drop = () => isDeaf;
      for (let i = 0; i < 5; i++) await s.api.create(CAMERA, camera(`c${i}`));
      await s.api.delete(CAMERA, ref('c1'));
      await s.api.mergePatch(CAMERA, ref('c2'), { spec: { suspend: true } });
      await s.pass(610_000, 10_000);
      s.api.endWatches();
      await settle();
      const copy = s.informer.list().map(({ metadata, spec }) => ({ name: metadata.name, spec }));
      await s.informer.close();
      return copy.sort((a, b) => (a.name < b.name ? -1 : 1));
    }),
  );
  assert.equal(copies[0]?.length, 4);
  assert.deepEqual(copies[0], copies[1]);
});

test('a handler that throws ends neither the process nor the watch, and the next handler is still told', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, camera('a'));
  const seen: string[] = [];
  s.informer.onChange(() => {
    throw new Error('a bug');
  });
  s.informer.onChange(({ key }) => seen.push(key));
  await s.start();
  await s.api.create(CAMERA, camera('b'));
  await settle();
  assert.deepEqual(seen, ['home/a', 'home/b']);
  await s.informer.close();
});

test('an object that is not understood hinders no other; it is named until it is understood or gone', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, { ...camera('odd'), spec: 5 });
  await s.api.create(CAMERA, camera('a'));
  await s.start();
  assert.deepEqual(s.names(), ['a']);
  assert.deepEqual(
    s.informer.invalid.map(({ key, message }) => ({ key, message })),
    [
      {
        key: 'home/odd',
        message: 'Camera home/odd: spec: Invalid input: expected object, received number',
      },
    ],
  );
  await s.api.mergePatch(CAMERA, ref('odd'), { spec: { source: 'rtsp://10.0.0.9/2' } });
  await settle();
  assert.deepEqual(s.names(), ['a', 'odd']);
  assert.deepEqual(s.informer.invalid, []);

  await s.api.mergePatch(CAMERA, ref('odd'), { spec: null });
  await settle();
  assert.equal(s.informer.get('home/odd')?.spec.source, 'rtsp://10.0.0.9/2', 'what was understood last stays');
  assert.equal(s.informer.invalid.length, 1);
  await s.api.delete(CAMERA, ref('odd'));
  await settle();
  assert.deepEqual(s.informer.invalid, []);
  assert.deepEqual(s.names(), ['a']);
  await s.informer.close();
});

test('an object that was deleted and made again under its name is reported as two', async () => {
  const s = new Setup();
  await s.api.create(CAMERA, camera('a'));
  await s.start();
  s.api.drop = ({ type }) => type === 'DELETED';
  await s.api.delete(CAMERA, ref('a'));
  await s.api.create(CAMERA, camera('a'));
  await settle();
  assert.deepEqual(s.changes, ['added home/a', 'deleted home/a', 'added home/a']);
  await s.informer.close();
});

test('the age of the copy grows while nothing is heard', async () => {
  const s = new Setup();
  await s.start();
  await s.pass(50_000);
  assert.equal(s.informer.ageMs, 50_000);
  s.api.bookmark();
  await settle();
  assert.equal(s.informer.ageMs, 0);
  await s.informer.close();
});

test('close ends the watch and is no failure', async () => {
  const s = new Setup();
  await s.start();
  await s.informer.close();
  assert.equal(s.api.watches, 0);
  assert.ok(!s.told.includes('failed'));
});

test('waiting for the first list ends when it is there', async () => {
  const s = new Setup();
  s.api.before = () => {
    throw new ApiError(0, 'UNREACHABLE', 'away');
  };
  await s.start();
  let isSynced = false;
  const synced = s.informer.whenSynced(new AbortController().signal).then(() => (isSynced = true));
  await s.pass(2_000);
  assert.equal(isSynced, false);
  s.api.before = () => {};
  await s.pass(30_000);
  await synced;
  assert.equal(s.informer.isSynced, true);
  await s.informer.close();
});

test('a refusal is reported once, tried again while it lasts, and over when the right is granted', async () => {
  const setup = new Setup();
  const { api, informer, told } = setup;
  await api.create(CAMERA, camera('gate'));
  let isGranted = false;
  api.before = (verb) => {
    if (verb === 'list' && !isGranted) throw new ApiError(403, 'Forbidden', 'cannot list resource "cameras"');
  };
  await setup.start();
  await setup.pass(600_000);
  assert.deepEqual([told, informer.isRefused, informer.isSynced], [['failed'], true, false]);
  assert.ok(api.count('list') > 10);
  isGranted = true;
  await setup.pass(45_000);
  assert.deepEqual([informer.isRefused, informer.isSynced, setup.changes], [false, true, ['added home/gate']]);
  await informer.close();
});
