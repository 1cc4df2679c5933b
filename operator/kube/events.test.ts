import { test } from 'node:test';
import assert from 'node:assert/strict';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION } from '../../crds/names.ts';
import { ApiError } from './api.ts';
import { EventRecorder, type EventText, type Regarding } from './events.ts';
import { EVENT } from './resources.ts';
import { MemoryApi, settle } from './test-support.ts';

const CAMERA: Regarding = {
  apiVersion: API_VERSION,
  kind: 'Camera',
  metadata: { namespace: 'home', name: 'gate', uid: 'u1', resourceVersion: '5' },
};

const MOVED: EventText = { type: 'Warning', reason: 'NodeUnavailable', action: 'Assign', note: 'moved from a to b' };

function setup() {
  const api = new MemoryApi();
  const clock = new VirtualClock(Date.UTC(2026, 0, 1, 12));
  const events = new EventRecorder({ api, clock, log: silentLog, instance: 'operator-0' });
  const written = async (): Promise<Record<string, unknown>[]> =>
    (await api.list(EVENT, { namespace: 'home' })).items as unknown as Record<string, unknown>[];
  return { api, clock, events, written };
}

test('an event says what, why, about what, and by whom', async () => {
  const { events, written } = setup();
  events.record(CAMERA, MOVED);
  await settle();
  const [event] = await written();
  const { metadata: _, ...rest } = event!;
  assert.deepEqual(rest, {
    ...MOVED,
    eventTime: '2026-01-01T12:00:00.000000Z',
    reportingController: 'kube-nvr-operator',
    reportingInstance: 'operator-0',
    regarding: {
      apiVersion: API_VERSION,
      kind: 'Camera',
      name: 'gate',
      namespace: 'home',
      uid: 'u1',
      resourceVersion: '5',
    },
  });
});

test('what repeats within minutes is one event that counts, written now and then', async () => {
  const { api, clock, events, written } = setup();
  for (let i = 0; i < 60; i++) {
    events.record(CAMERA, MOVED);
    clock.advance(1_000);
    await settle();
  }
  await events.close();
  const all = await written();
  assert.equal(all.length, 1);
  assert.deepEqual(all[0]!['series'], { count: 60, lastObservedTime: '2026-01-01T12:00:59.000000Z' });
  assert.ok(api.calls.length <= 6, `${api.calls.length} calls`);
});

test('another node, another camera or another time is another event', async () => {
  const { clock, events, written } = setup();
  events.record(CAMERA, MOVED);
  events.record(CAMERA, { ...MOVED, note: 'moved from b to c' });
  events.record({ ...CAMERA, metadata: { ...CAMERA.metadata, name: 'yard', uid: 'u2' } }, MOVED);
  clock.advance(6 * 60_000 + 1);
  events.record(CAMERA, MOVED);
  await settle();
  assert.equal((await written()).length, 4);
});

test('one object that flaps cannot flood: 20 different events, then one a minute', async () => {
  const { clock, events, written } = setup();
  const flap = (i: number): void => events.record(CAMERA, { ...MOVED, note: `flap ${i}` });
  for (let i = 0; i < 100; i++) flap(i);
  await settle();
  assert.equal((await written()).length, 20);
  clock.advance(60_000);
  flap(100);
  flap(101);
  await settle();
  assert.equal((await written()).length, 21);
});

test('a write that fails is tried again, and its error never reaches the caller', async () => {
  const { api, clock, events, written } = setup();
  let failures = 1;
  api.before = (verb) => {
    if (verb === 'create' && failures-- > 0)
      throw new ApiError(429, 'TooManyRequests', 'busy', { retryAfterMs: 5_000 });
  };
  events.record(CAMERA, MOVED);
  await settle();
  clock.advance(5_000);
  await settle();
  assert.equal((await written()).length, 1);

  api.before = () => {
    throw new ApiError(403, 'Forbidden', 'the namespace is being deleted');
  };
  events.record(CAMERA, { ...MOVED, note: 'other' });
  await settle();
  api.before = () => {};
  assert.equal((await written()).length, 1);
});

for (const [what, before] of [
  ['fails', () => Promise.reject(new ApiError(0, 'UNREACHABLE', 'cut off'))],
  ['does not answer', () => new Promise<void>(() => {})],
] as const) {
  test(`an API server that ${what} holds up the end for a second, however much is pending`, async () => {
    const { api, clock, events } = setup();
    api.before = before;
    for (const note of ['one', 'two', 'three']) events.record(CAMERA, { ...MOVED, note });
    await settle();
    const closed = events.close();
    clock.advance(1_000);
    await closed;
  });
}

test('a note is cut to what the API server takes', async () => {
  const { events, written } = setup();
  events.record(CAMERA, { ...MOVED, note: 'x'.repeat(5_000) });
  await settle();
  assert.equal((await written())[0]!['note'], 'x'.repeat(1024));
});
