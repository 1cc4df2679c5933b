// What an object store promises, on etcd in memory; `test/cluster/store.test.ts` has what a real etcd adds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../base/clock.ts';
import { EtcdError, type EtcdClient } from '../base/etcd/client.ts';
import { ApiError } from '../base/kubernetes/api-error.ts';
import type { Answer } from '../base/kubernetes/client.ts';
import { StoreConnection } from './connection.ts';
import { jsonIn, type Json } from './json.ts';
import { STORED_KINDS, type StoredKind } from './kinds.ts';
import { objectKey } from './names.ts';
import { ObjectStore } from './objects.ts';
import type { Selector } from './selectors.ts';
import { BELL, DOOR, FakeEtcd, PIN, TestSeal } from './test-support.ts';

const CLIENT = { manager: 'test', subresource: undefined, isTried: false } as const;
const STATUS = { ...CLIENT, subresource: 'status' } as const;

const named = (name: string, kind: StoredKind = DOOR) => ({ kind, namespace: 'default', name });
const door = (name: string, spec: Json = {}, metadata: Json = {}): Json => ({
  metadata: { name, ...metadata },
  spec,
});
/** To apply, an object says what it is. */
const applied = (name: string, spec: Json): Json => ({
  apiVersion: 'test.example/v1',
  kind: 'Door',
  ...door(name, spec),
});
const metadataOf = (object: Json): Json => jsonIn(object['metadata']);
const versionOf = (object: Json): string => metadataOf(object)['resourceVersion'] as string;
const nameOf = (object: Json): unknown => metadataOf(object)['name'];
const hasReason = (reason: string) => (err: unknown) => err instanceof ApiError && err.reason === reason;

function stage() {
  const etcd = new FakeEtcd();
  const seal = new TestSeal();
  const clock = new VirtualClock();
  const store = new ObjectStore({ etcd, seal, kinds: [DOOR, BELL, PIN], clock });
  const create = (body: Json, kind: StoredKind = DOOR) => store.create({ kind, namespace: 'default' }, body, CLIENT);
  return { etcd, seal, clock, store, create };
}

test('an object is what was created: with a uid, a time, a generation and defaults, and without unknown fields', async () => {
  const { store, create } = stage();
  await create(door('front', { colour: 'red', unknown: 1 }, { labels: { floor: '1' }, uid: 'mine', unknown: 2 }));
  const { apiVersion, kind, metadata, spec } = await store.get(named('front'));
  assert.deepEqual([apiVersion, kind, spec], ['test.example/v1', 'Door', { colour: 'red', handle: 'round' }]);
  const { uid, resourceVersion, managedFields: _, ...rest } = jsonIn(metadata);
  assert.match(String(uid), /^[0-9a-f-]{36}$/);
  assert.match(String(resourceVersion), /^\d+$/);
  assert.deepEqual(rest, {
    name: 'front',
    namespace: 'default',
    labels: { floor: '1' },
    creationTimestamp: '2026-01-01T12:00:00Z',
    generation: 1,
  });
});

test('a name is given once', async () => {
  const { create } = stage();
  await create(door('front'));
  await assert.rejects(create(door('front', { colour: 'red' })), hasReason('AlreadyExists'));
});

test('a generation counts changes of the spec, and neither those of labels nor those of the status', async () => {
  const { store, create } = stage();
  await create(door('front', { height: 1 }));
  const generation = async (): Promise<unknown> => metadataOf(await store.get(named('front')))['generation'];
  await store.patch(named('front'), { metadata: { labels: { floor: '1' } } }, CLIENT);
  await store.patch(named('front'), { status: { isOpen: true } }, STATUS);
  assert.equal(await generation(), 1);
  await store.patch(named('front'), { spec: { height: 2 } }, CLIENT);
  assert.equal(await generation(), 2);
});

test('a write of the status changes nothing else, and any other write does not change the status', async () => {
  const { store, create } = stage();
  await create(door('front', { height: 1 }));
  await store.patch(named('front'), { spec: { height: 2 }, status: { isOpen: true } }, STATUS);
  await store.patch(named('front'), { spec: { height: 3 }, status: { isOpen: false } }, CLIENT);
  const { spec, status } = await store.get(named('front'));
  assert.deepEqual([jsonIn(spec)['height'], status], [3, { isOpen: true }]);
});

test('no writer changes uid, time of creation, generation or name', async () => {
  const { store, create } = stage();
  const before = metadataOf(await create(door('front')));
  const given = { name: 'other', creationTimestamp: '2020-01-01T00:00:00Z', generation: 9, namespace: 'other' };
  await store.patch(named('front'), { metadata: given }, CLIENT);
  const after = metadataOf(await store.get(named('front')));
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp', 'generation']) {
    assert.equal(after[field], before[field], field);
  }
  await assert.rejects(store.patch(named('front'), { metadata: { uid: 'u' } }, CLIENT), hasReason('Invalid'));
});

test('a write that names a version changes that one or nothing', async () => {
  const { store, create } = stage();
  const first = await create(door('front', { height: 1 }));
  const second = await store.replace(named('front'), { ...first, spec: { height: 2 } }, CLIENT);
  await assert.rejects(store.replace(named('front'), { ...first, spec: { height: 3 } }, CLIENT), hasReason('Conflict'));
  const patch = { metadata: { resourceVersion: versionOf(first) }, spec: { height: 4 } };
  await assert.rejects(store.patch(named('front'), patch, CLIENT), hasReason('Conflict'));
  await assert.rejects(store.replace(named('front'), door('front'), CLIENT), hasReason('Invalid'));
  assert.deepEqual(await store.get(named('front')), second);
});

test('a replace of an object that was deleted and created again changes nothing', async () => {
  const { store, create } = stage();
  const first = await create(door('front'));
  await store.delete(named('front'), {}, CLIENT);
  const second = await create(door('front'));
  const given = { ...first, metadata: { ...metadataOf(first), resourceVersion: versionOf(second) } };
  await assert.rejects(store.replace(named('front'), given, CLIENT), hasReason('Conflict'));
});

test('a write that names no version is tried again when another one came in between', async () => {
  const { etcd, store, create } = stage();
  await create(door('front'));
  etcd.meanwhile.push(() => store.patch(named('front'), { spec: { height: 2 } }, CLIENT));
  await store.patch(named('front'), { spec: { colour: 'red' } }, CLIENT);
  assert.deepEqual((await store.get(named('front')))['spec'], { handle: 'round', height: 2, colour: 'red' });
});

test('a write whose version is gone when it arrives is refused', async () => {
  const { etcd, store, create } = stage();
  const first = await create(door('front'));
  etcd.meanwhile.push(() => store.patch(named('front'), { spec: { height: 2 } }, CLIENT));
  await assert.rejects(store.replace(named('front'), { ...first, spec: { height: 3 } }, CLIENT), hasReason('Conflict'));
});

test('of two that create one name at once, one is told that it is there already', async () => {
  const { etcd, store, create } = stage();
  etcd.meanwhile.push(() => create(door('front', { height: 1 })));
  await assert.rejects(create(door('front', { height: 2 })), hasReason('AlreadyExists'));
  assert.equal(jsonIn((await store.get(named('front')))['spec'])['height'], 1);
});

test('a change without an effect is no new version', async () => {
  const { store, create } = stage();
  const first = await create(door('front', { height: 1 }));
  const second = await store.patch(named('front'), { spec: { height: 1 } }, CLIENT);
  assert.equal(versionOf(second), versionOf(first));
});

test('what is tried is checked, answered and not written', async () => {
  const { etcd, store, create } = stage();
  const first = await create(door('front', { height: 1 }));
  const tried = { ...CLIENT, isTried: true } as const;
  const { keys } = etcd;
  const patched = await store.patch(named('front'), { spec: { height: 2 } }, tried);
  assert.equal(jsonIn(patched['spec'])['height'], 2);
  await store.create({ kind: DOOR, namespace: 'default' }, door('back'), tried);
  await store.apply(named('side'), applied('side', {}), { ...tried, force: false });
  await store.delete(named('front'), {}, tried);
  await assert.rejects(store.patch(named('front'), { spec: { height: 301 } }, tried), hasReason('Invalid'));
  assert.deepEqual(await store.get(named('front')), first);
  assert.deepEqual(etcd.keys, keys);
});

test('apply creates an object, changes its own fields, and needs force for those of others', async () => {
  const { store } = stage();
  const apply = (manager: string, spec: Json, force = false) =>
    store.apply(named('front'), applied('front', spec), { ...CLIENT, manager, force });
  await apply('anna', { height: 1, colour: 'red' });
  await assert.rejects(apply('bert', { height: 2 }), hasReason('Conflict'));
  await apply('bert', { height: 2 }, true);
  await apply('anna', {});
  assert.deepEqual((await store.get(named('front')))['spec'], { handle: 'round', height: 2 });
});

test('a deletion that names a uid or a version deletes that object or nothing', async () => {
  const { store, create } = stage();
  const first = await create(door('front'));
  const second = await store.patch(named('front'), { spec: { height: 2 } }, CLIENT);
  const remove = (conditions: Parameters<ObjectStore['delete']>[1]) => store.delete(named('front'), conditions, CLIENT);
  await assert.rejects(remove({ resourceVersion: versionOf(first) }), hasReason('Conflict'));
  await assert.rejects(remove({ uid: 'another' }), hasReason('Conflict'));
  await remove({ uid: metadataOf(first)['uid'] as string, resourceVersion: versionOf(second) });
  await assert.rejects(store.get(named('front')), hasReason('NotFound'));
});

test('an object with finalizers is marked, and goes with the last of them', async () => {
  const { etcd, store, create } = stage();
  await create(door('front', {}, { finalizers: ['a', 'b'] }));
  await store.delete(named('front'), {}, CLIENT);
  const marked = await store.get(named('front'));
  assert.equal(metadataOf(marked)['deletionTimestamp'], '2026-01-01T12:00:00Z');
  assert.deepEqual(await store.delete(named('front'), {}, CLIENT), marked, 'a second time changes nothing');
  await store.patch(named('front'), { metadata: { finalizers: ['b'] } }, CLIENT);
  assert.equal(etcd.keys.length, 1);
  await store.patch(named('front'), { metadata: { finalizers: [] } }, CLIENT);
  assert.deepEqual(etcd.keys, []);
});

test('what an object owns is deleted with it, however deep and however much', async () => {
  const { etcd, store, create } = stage();
  const ownedBy = (owner: Json): Json => ({ ownerReferences: [{ uid: metadataOf(owner)['uid'] }] });
  const front = await create(door('front'));
  const bell = await create(door('bell', {}, ownedBy(front)), BELL);
  for (let i = 0; i < 150; i++) await create(door(`deep-${i}`, {}, ownedBy(bell)), BELL);
  const back = await create(door('back'));
  await create(door('other', {}, ownedBy(back)), BELL);
  await store.delete(named('front'), {}, CLIENT);
  assert.deepEqual(new Set(etcd.keys.map((key) => key.split('/').at(-1))), new Set(['back', 'other']));
});

test('an object that changes while what it owns is deleted stays, and is deleted by the next attempt', async () => {
  const { etcd, store, create } = stage();
  await create(door('front'));
  etcd.meanwhile.push(() => store.patch(named('front'), { spec: { height: 2 } }, CLIENT));
  await store.delete(named('front'), {}, CLIENT);
  assert.deepEqual(etcd.keys, []);
});

test('a patch or an object to apply that is no object is refused, and so is a kind that has no managers', async () => {
  const { etcd, store, create } = stage();
  await create(door('front'));
  const before = etcd.keys;
  const apply = (body: unknown, kind: StoredKind) =>
    store.apply(named('front', kind), body, { ...CLIENT, force: false });
  for (const body of [null, [], 'text', 7]) {
    await assert.rejects(store.patch(named('front'), body, CLIENT), hasReason('BadRequest'));
    await assert.rejects(apply(body, DOOR), hasReason('BadRequest'));
  }
  const plain = { ...DOOR, isManaged: false };
  await assert.rejects(apply(applied('front', {}), plain), hasReason('UnsupportedMediaType'));
  await create(door('plain'), plain);
  assert.equal(metadataOf(await store.get(named('plain')))['managedFields'], undefined);
  assert.deepEqual(etcd.keys.length, before.length + 1);
});

test('an object that others change at every attempt is a conflict after ten attempts, whoever writes', async () => {
  const { etcd, store, create } = stage();
  await create(door('front', { height: 1 }, { finalizers: ['a'] }));
  let height = 1;
  let attempts = 0;
  const disturb = async (): Promise<void> => {
    attempts++;
    // The disturber's own write is the next transaction.
    etcd.meanwhile.unshift(async () => {});
    await store.patch(named('front'), { spec: { height: ++height } }, { ...CLIENT, manager: 'other' });
    etcd.meanwhile.push(disturb);
  };
  const works = [
    () => store.apply(named('front'), applied('front', { colour: 'red' }), { ...CLIENT, force: true }),
    () => store.patch(named('front'), { spec: { colour: 'red' } }, CLIENT),
    () => store.delete(named('front'), {}, CLIENT),
  ];
  for (const work of works) {
    attempts = 0;
    etcd.meanwhile.push(disturb);
    await assert.rejects(work(), hasReason('Conflict'));
    etcd.meanwhile.length = 0;
    assert.equal(attempts, 10);
  }
  etcd.meanwhile.push(async () => {
    etcd.meanwhile.unshift(async () => {});
    await store.patch(named('front'), { spec: { height: 7 } }, { ...CLIENT, manager: 'other' });
  });
  await store.apply(named('front'), applied('front', { colour: 'red' }), { ...CLIENT, force: true });
  assert.deepEqual((await store.get(named('front')))['spec'], { colour: 'red', height: 7, handle: 'round' });
});

test('an applied status is the status alone, and none leaves it as it is', async () => {
  const { store, create } = stage();
  await create(door('front', { height: 1 }));
  const apply = (status: Json | undefined) =>
    store.apply(
      named('front'),
      { ...applied('front', { height: 9 }), ...(status && { status }) },
      { ...STATUS, force: false },
    );
  await apply({ isOpen: true });
  const { spec, status } = await store.get(named('front'));
  assert.deepEqual([spec, status], [{ handle: 'round', height: 1 }, { isOpen: true }]);
  await apply(undefined);
  assert.deepEqual((await store.get(named('front')))['spec'], { handle: 'round', height: 1 });
});

test('what etcd says is told apart: too old, refused, away', async () => {
  const { etcd, store } = stage();
  const codes = [
    ['COMPACTED', 410, 'Expired'],
    ['REFUSED', 500, 'InternalError'],
    ['UNREACHABLE', 0, 'UNREACHABLE'],
  ] as const;
  for (const [code, status, reason] of codes) {
    etcd.range = async () => {
      throw new EtcdError(code, 'the words of etcd');
    };
    await assert.rejects(store.get(named('front')), { status, reason });
  }
  etcd.range = async () => {
    throw new RangeError('a bug of ours');
  };
  await assert.rejects(store.get(named('front')), RangeError);
});

test('a watch that cannot know what was deleted or changed says that the list must be read again', async () => {
  const { etcd, store, create } = stage();
  await create(door('front'));
  await store.patch(named('front'), { spec: { height: 2 } }, CLIENT);
  await store.delete(named('front'), {}, CLIENT);
  const { watch } = etcd;
  for (const type of ['DELETE', 'PUT'] as const) {
    etcd.watch = async function* (asked, signal) {
      for await (const { revision, events } of watch(asked, signal)) {
        const compacted = events.filter((event) => event.type === type && event.previous);
        yield { revision, events: compacted.map((event) => ({ ...event, previous: undefined })) };
      }
    };
    const options = { kind: DOOR, namespace: 'default', select: () => true, resourceVersion: '1' };
    await assert.rejects(async () => {
      for await (const _ of store.watch(options, new AbortController().signal));
    }, hasReason('Expired'));
  }
});

test('a list in pages has each object once, as it was at the first page', async () => {
  const { store, create } = stage();
  for (const name of ['a', 'b', 'c', 'd', 'e']) await create(door(name, { height: 1 }));
  const options = { kind: DOOR, namespace: 'default', select: () => true, limit: 2 } as const;
  const first = await store.list(options);
  await store.patch(named('c'), { spec: { height: 2 } }, CLIENT);
  await create(door('bb'));
  await store.delete(named('e'), {}, CLIENT);
  const second = await store.list({ ...options, place: first.next });
  const third = await store.list({ ...options, place: second.next });
  const items = [first, second, third].flatMap((page) => page.items);
  assert.deepEqual(items.map(nameOf), ['a', 'b', 'c', 'd', 'e']);
  assert.ok(items.every((item) => jsonIn(item['spec'])['height'] === 1));
  assert.equal(third.next, undefined);
  assert.equal(new Set([first, second, third].map(({ resourceVersion }) => resourceVersion)).size, 1);
});

test('a list has one kind, one namespace if it names one, and what is selected', async () => {
  const { store, create } = stage();
  await create(door('a'));
  await create(door('b'), BELL);
  await store.create({ kind: DOOR, namespace: 'other' }, door('c'), CLIENT);
  const names = async (namespace: string | undefined, select: Selector = () => true): Promise<unknown[]> =>
    (await store.list({ kind: DOOR, namespace, select, limit: 10 })).items.map(nameOf);
  assert.deepEqual(await names('default'), ['a']);
  assert.deepEqual(new Set(await names(undefined)), new Set(['a', 'c']));
  assert.deepEqual(await names(undefined, (object) => nameOf(object) === 'c'), ['c']);
});

test('a watch tells what comes into a selection, changes in it, and leaves it', async () => {
  const { store, create } = stage();
  const { resourceVersion } = await store.list({ kind: DOOR, namespace: 'default', select: () => true, limit: 1 });
  await create(door('a'));
  for (const height of [20, 30, 5, 40]) await store.patch(named('a'), { spec: { height } }, CLIENT);
  await store.delete(named('a'), {}, CLIENT);
  const told: unknown[] = [];
  const select = ({ spec }: Json): boolean => Number(jsonIn(spec)['height']) >= 10;
  const watch = { kind: DOOR, namespace: 'default', select, resourceVersion };
  for await (const event of store.watch(watch, new AbortController().signal)) {
    told.push('object' in event ? [event.type, jsonIn(event.object['spec'])['height']] : event.type);
  }
  assert.deepEqual(told, [
    ['ADDED', 20],
    ['MODIFIED', 30],
    // The last state in which it was selected.
    ['DELETED', 30],
    ['ADDED', 40],
    ['DELETED', 40],
  ]);
});

test('an object of a kind that is sealed is encrypted in etcd, for its own key', async () => {
  const { etcd, store, create } = stage();
  await create({ metadata: { name: 'vault' }, data: { pin: 'MTIzNA==' } }, PIN);
  const key = objectKey('pins', 'default', 'vault');
  assert.match(etcd.value(key), /^1 \/kube-nvr\//);
  assert.doesNotMatch(etcd.value(key), /MTIzNA/);
  assert.deepEqual((await store.get(named('vault', PIN)))['data'], { pin: 'MTIzNA==' });
});

test('everything that is sealed is sealed again, and what is written meanwhile is kept', async () => {
  const { etcd, store, create } = stage();
  const pins = ['a', 'b', 'c'];
  for (const name of pins) await create({ metadata: { name }, data: { pin: 'MQ==' } }, PIN);
  await create(door('front'));
  const before = pins.map((name) => etcd.value(objectKey('pins', 'default', name)));
  const frontBefore = etcd.value(objectKey('doors', 'default', 'front'));
  etcd.meanwhile.push(
    () => Promise.resolve(),
    () => store.patch(named('b', PIN), { data: { pin: 'Mg==' } }, CLIENT),
  );
  assert.equal(await store.reseal(), 3);
  assert.deepEqual(await Promise.all(pins.map(async (name) => (await store.get(named(name, PIN)))['data'])), [
    { pin: 'MQ==' },
    { pin: 'Mg==' },
    { pin: 'MQ==' },
  ]);
  pins.forEach((name, i) => assert.notEqual(etcd.value(objectKey('pins', 'default', name)), before[i]));
  assert.equal(etcd.value(objectKey('doors', 'default', 'front')), frontBefore, 'this one is not sealed');
});

test('a forged place of a list reads nothing of another kind or namespace', async () => {
  const etcd = new FakeEtcd();
  const connection = new StoreConnection({
    etcd: etcd as unknown as EtcdClient,
    seal: new TestSeal(),
    clock: new VirtualClock(),
  });
  const list = async (plural: string, place: object): Promise<Answer> => {
    const text = Buffer.from(JSON.stringify(place)).toString('base64url');
    const url = new URL(`${connection.url}/api/v1/namespaces/default/${plural}?limit=10&continue=${text}`);
    return connection.send(url, { method: 'GET', headers: {} });
  };
  assert.ok(STORED_KINDS.some(({ plural }) => plural === 'secrets'));
  const places = [
    { revision: '1', key: objectKey('secrets', 'other', 'a') },
    { revision: '1', key: objectKey('cameras', 'default', 'a') },
    { revision: '1', key: '/kube-nvr/' },
    { revision: '1', key: '' },
    { revision: 1, key: objectKey('secrets', 'default', 'a') },
    {},
  ];
  for (const place of places) {
    assert.equal((await list('secrets', place)).statusCode, 400, JSON.stringify(place));
  }
  const good = await list('secrets', { revision: '1', key: objectKey('secrets', 'default', 'a') });
  assert.equal(good.statusCode, 200);
});
