import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { isCovered, TimelineStore } from './timeline-store.ts';

const MINUTE = 60_000;
const NOW_MS = Date.parse('2026-01-01T12:00:00Z');

/** What the requests of a page look at. */
Object.assign(globalThis, { window: { location: { origin: 'http://nvr.example' } }, document: { hidden: true } });

/** A store whose recorder the test plays, and whose timers go when the test says so. */
function stage(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW_MS });
  const asked: URL[] = [];
  let answer: () => Promise<Response> = async () => Response.json({ cameras: [] });
  t.mock.method(globalThis, 'fetch', async (address: string | URL) => {
    asked.push(new URL(String(address)));
    return answer();
  });
  const cameras = [{ camera_id: 'gate', kept_from_ms: null, spans: [], gaps: [], protections: [], elsewhere: [] }];
  const answers = (): void => void (answer = async () => Response.json({ cameras }));
  const refuses = (): void =>
    void (answer = async () => Response.json({ code: 'busy', detail: 'the disk hangs' }, { status: 503 }));
  answers();
  const store = new TimelineStore();
  t.after(() => store.stop());
  const want = (fromMs: number, toMs: number, resolutionMs = 100) =>
    store.want({ cameras: ['gate'], range: { fromMs: NOW_MS + fromMs, toMs: NOW_MS + toMs }, resolutionMs });
  const pass = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms);
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  };
  return { store, asked, want, pass, answers, refuses };
}

test('what is looked at is asked for once, with as much on both sides', async (t) => {
  const { store, asked, want, pass } = stage(t);
  want(-60 * MINUTE, -50 * MINUTE);
  await pass(0);
  assert.equal(asked.length, 1);
  const query = asked[0]!.searchParams;
  assert.deepEqual(query.getAll('camera'), ['gate']);
  assert.deepEqual(
    [Number(query.get('from')) * 1000 - NOW_MS, Number(query.get('to')) * 1000 - NOW_MS],
    [-65 * MINUTE, -45 * MINUTE],
  );
  assert.equal(store.of('gate')?.cameraId, 'gate');
  want(-62 * MINUTE, -52 * MINUTE);
  await pass(1_000);
  assert.equal(asked.length, 1, 'it is known already');
});

test('what is not known yet is asked for: another time, another camera, a finer resolution', async (t) => {
  const { store, asked, want, pass } = stage(t);
  want(-60 * MINUTE, -50 * MINUTE);
  await pass(0);
  want(-80 * MINUTE, -70 * MINUTE);
  await pass(200);
  assert.equal(asked.length, 2);
  want(-80 * MINUTE, -70 * MINUTE, 10);
  await pass(200);
  assert.equal(asked.length, 3);
  store.refresh();
  await pass(200);
  assert.equal(asked.length, 4);
});

test('an answer is whole for what it covers of the past: all cameras, from the first moment to the last', async (t) => {
  const { store, want, pass } = stage(t);
  want(-60 * MINUTE, -50 * MINUTE);
  await pass(0);
  const isWhole = (from: number, to: number, cameras = ['gate'], nowMs = NOW_MS): boolean =>
    isCovered(store.loaded.peek(), { cameras, range: { fromMs: NOW_MS + from, toMs: NOW_MS + to } }, nowMs);
  assert.ok(isWhole(-65 * MINUTE, -45 * MINUTE));
  assert.ok(!isWhole(-66 * MINUTE, -50 * MINUTE));
  assert.ok(!isWhole(-60 * MINUTE, -44 * MINUTE));
  assert.ok(!isWhole(-60 * MINUTE, -50 * MINUTE, ['gate', 'yard']));
  assert.ok(isWhole(-60 * MINUTE, 60 * MINUTE, ['gate'], NOW_MS - 45 * MINUTE), 'nothing is missing of the future');
  assert.ok(!isCovered(undefined, { cameras: [], range: { fromMs: 0, toMs: 1 } }, NOW_MS));
});

test('the present is asked for again after five seconds, and the past is not', async (t) => {
  const { asked, want, pass } = stage(t);
  want(-10 * MINUTE, MINUTE);
  await pass(0);
  want(-10 * MINUTE, MINUTE);
  await pass(4_900);
  want(-10 * MINUTE, MINUTE);
  await pass(200);
  assert.equal(asked.length, 1);
  want(-10 * MINUTE, MINUTE);
  await pass(200);
  assert.equal(asked.length, 2);
  want(-10 * MINUTE, -5 * MINUTE);
  await pass(60_000);
  want(-10 * MINUTE, -5 * MINUTE);
  await pass(200);
  assert.equal(asked.length, 2);
});

test('a failure is said, and tried again after three seconds until there is an answer', async (t) => {
  const { store, asked, want, pass, refuses, answers } = stage(t);
  refuses();
  want(-60 * MINUTE, -50 * MINUTE);
  await pass(0);
  assert.match(store.problem.value ?? '', /The disk hangs/);
  await pass(2_900);
  assert.equal(asked.length, 1);
  await pass(100);
  assert.equal(asked.length, 2);
  answers();
  await pass(3_000);
  assert.equal(asked.length, 3);
  assert.equal(store.problem.value, undefined);
  assert.ok(store.of('gate'));
  await pass(10_000);
  assert.equal(asked.length, 3);
});
