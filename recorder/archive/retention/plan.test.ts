import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import type { Space } from '../disk/file-system.ts';
import {
  effectiveMaxSize,
  isOverQuota,
  planRemoval,
  type CameraFootage,
  type RetentionLimits,
  type RetentionRule,
} from './plan.ts';
import { bytesOf, headroomFor } from '../disk/space.ts';

/** A segment of the model. */
interface Segment {
  readonly startMs: number;
  readonly endMs: number;
  readonly bytes: number;
  /** `kept`: protected; `held`: somebody reads it or writes it. */
  readonly state: 'free' | 'kept' | 'held';
}

interface Model {
  readonly nowMs: number;
  readonly node: RetentionLimits;
  readonly cameras: { id: string; limits: RetentionLimits | undefined; segments: Segment[] }[];
  readonly space: Space;
  readonly headroomBytes: number;
}

const amount = fc.oneof(
  fc.record({ kind: fc.constant('bytes' as const), bytes: fc.integer({ min: 0, max: 3_000 }) }),
  fc.record({ kind: fc.constant('percent' as const), percent: fc.integer({ min: 0, max: 90 }) }),
);
const limits = fc.record({
  maxAgeMs: fc.option(fc.integer({ min: 1, max: 12_000 }), { nil: undefined }),
  maxSizeBytes: fc.option(fc.integer({ min: 0, max: 3_000 }), { nil: undefined }),
  minFree: fc.option(amount, { nil: undefined }),
});
const segments = fc.array(
  fc.record({
    gapMs: fc.integer({ min: 0, max: 300 }),
    durationMs: fc.integer({ min: 1, max: 900 }),
    bytes: fc.integer({ min: 1, max: 300 }),
    state: fc.constantFrom('free' as const, 'free' as const, 'free' as const, 'kept' as const, 'held' as const),
  }),
  { maxLength: 12 },
);
const model: fc.Arbitrary<Model> = fc
  .record({
    node: limits,
    cameras: fc.array(fc.record({ limits: fc.option(limits, { nil: undefined }), segments }), { maxLength: 4 }),
    freeBytes: fc.integer({ min: 0, max: 4_000 }),
    headroomBytes: fc.integer({ min: 0, max: 500 }),
  })
  .map(({ node, cameras, freeBytes, headroomBytes }) => ({
    nowMs: 12_000,
    node,
    headroomBytes,
    space: { freeBytes, totalBytes: 10_000 },
    cameras: cameras.map(({ limits: own, segments: made }, i) => {
      let atMs = 0;
      const placed = made.map(({ gapMs, durationMs, ...rest }) => {
        const startMs = atMs + gapMs;
        atMs = startMs + durationMs;
        return { startMs, endMs: atMs, ...rest };
      });
      return { id: `cam${i}`, limits: own, segments: placed };
    }),
  }));

const sum = (list: readonly Segment[]): number => list.reduce((total, { bytes }) => total + bytes, 0);
const kept = (list: readonly Segment[]): Segment[] => list.filter(({ state }) => state === 'kept');
const oldestFree = (list: readonly Segment[]): Segment | undefined => list.find(({ state }) => state === 'free');

const footage = ({ cameras }: Model): CameraFootage[] =>
  cameras.map(({ id, limits: own, segments: list }) => ({
    cameraId: id,
    bytes: sum(list),
    protectedBytes: sum(kept(list)),
    limits: own,
    oldest: oldestFree(list),
  }));

interface Step {
  readonly before: Model;
  readonly cameraId: string;
  readonly rule: RetentionRule;
  readonly scope: 'node' | 'camera';
  readonly removed: Segment;
}

const plan = (m: Model, agePaused = false) =>
  planRemoval({
    nowMs: m.nowMs,
    agePaused,
    limits: m.node,
    cameras: footage(m),
    space: m.space,
    headroomBytes: m.headroomBytes,
  });

/** Removes what is planned until nothing is. */
function run(first: Model): { steps: Step[]; last: Model } {
  const steps: Step[] = [];
  let m = first;
  for (;;) {
    const next = plan(m);
    if (!next) return { steps, last: m };
    const camera = m.cameras.find(({ id }) => id === next.cameraId);
    const removed = oldestFree(camera?.segments ?? []);
    assert.ok(camera && removed, 'only what may go is planned');
    steps.push({ before: m, ...next, removed });
    m = {
      ...m,
      space: { ...m.space, freeBytes: m.space.freeBytes + removed.bytes },
      cameras: m.cameras.map((one) =>
        one === camera ? { ...one, segments: one.segments.filter((segment) => segment !== removed) } : one,
      ),
    };
  }
}

test('when nothing more is planned every limit is kept, or nothing is left that may go', () => {
  fc.assert(
    fc.property(model, (first) => {
      const { last } = run(first);
      const all = last.cameras.flatMap(({ segments: list }) => list);
      const { node, space, nowMs } = last;
      for (const { limits: own, segments: list } of last.cameras) {
        const oldest = oldestFree(list);
        if (!oldest) continue;
        const maxAgeMs = Math.min(own?.maxAgeMs ?? Infinity, node.maxAgeMs ?? Infinity);
        assert.ok(nowMs - oldest.endMs <= maxAgeMs, 'age');
        if (own) assert.ok(sum(list) <= (effectiveMaxSize(sum(kept(list)), own) ?? Infinity), 'size of the camera');
        if (own?.minFree) assert.ok(space.freeBytes >= bytesOf(own.minFree, space), 'space for the camera');
        assert.ok(sum(all) <= (effectiveMaxSize(sum(kept(all)), node) ?? Infinity), 'size of the node');
        if (node.minFree) assert.ok(space.freeBytes >= bytesOf(node.minFree, space), 'space for the node');
        assert.ok(space.freeBytes >= last.headroomBytes, 'headroom');
      }
    }),
  );
});

test('each removal was needed: before it, the limit that it is for was exceeded', () => {
  fc.assert(
    fc.property(model, (first) => {
      for (const { before, cameraId, rule, scope, removed } of run(first).steps) {
        const camera = before.cameras.find(({ id }) => id === cameraId);
        const own = scope === 'node' ? before.node : camera?.limits;
        const list = scope === 'node' ? before.cameras.flatMap((one) => one.segments) : (camera?.segments ?? []);
        if (rule === 'max-age') assert.ok(before.nowMs - removed.endMs > (own?.maxAgeMs ?? Infinity));
        if (rule === 'max-size') assert.ok(sum(list) > (own?.maxSizeBytes ?? Infinity));
        if (rule === 'min-free') {
          assert.ok(own?.minFree && before.space.freeBytes < bytesOf(own.minFree, before.space));
        }
        if (rule === 'headroom') assert.ok(before.space.freeBytes < before.headroomBytes);
      }
    }),
  );
});

test('the oldest goes first: of its camera for a limit of the camera, of all for a limit of the node', () => {
  fc.assert(
    fc.property(model, (first) => {
      for (const { before, rule, scope, removed } of run(first).steps) {
        if (scope === 'camera' || rule === 'max-age') continue;
        const others = before.cameras.flatMap(({ segments: list }) => list.filter(({ state }) => state === 'free'));
        assert.equal(Math.min(...others.map(({ startMs }) => startMs)), removed.startMs);
      }
    }),
  );
});

test('what is protected or in use is never planned, whatever the limits', () => {
  fc.assert(
    fc.property(model, (first) => {
      const { last } = run(first);
      const untouched = (m: Model): Segment[] =>
        m.cameras.flatMap(({ segments: list }) => list.filter(({ state }) => state !== 'free'));
      assert.deepEqual(untouched(last), untouched(first));
    }),
  );
});

test('while the clock cannot be believed nothing goes for its age', () => {
  fc.assert(fc.property(model, (m) => assert.notEqual(plan(m, true)?.rule, 'max-age')));
});

const segment = (startMs: number, bytes: number, state: Segment['state'] = 'free'): Segment => ({
  startMs,
  endMs: startMs + 100,
  bytes,
  state,
});

const modelOf = (changes: Partial<Model>): Model => ({
  nowMs: 10_000,
  node: {},
  cameras: [],
  space: { freeBytes: 5_000, totalBytes: 10_000 },
  headroomBytes: 0,
  ...changes,
});

test('protected footage that is larger than maxSize leaves a tenth of it to new footage', () => {
  const list = [segment(0, 500, 'kept'), segment(100, 600, 'kept'), ...[3, 4, 5].map((i) => segment(i * 100, 60))];
  const { last } = run(modelOf({ node: { maxSizeBytes: 1_000 }, cameras: [{ id: 'a', limits: {}, segments: list }] }));
  assert.deepEqual(
    last.cameras[0]?.segments.map(({ startMs }) => startMs),
    [0, 100, 500],
  );
  assert.equal(isOverQuota(1_100, { maxSizeBytes: 1_000 }), true);
  assert.equal(isOverQuota(1_000, { maxSizeBytes: 1_000 }), false);
  assert.equal(isOverQuota(1_000, {}), false);
});

test('a limit of one camera costs no other camera anything', () => {
  const list = [segment(0, 100), segment(100, 100)];
  const { steps } = run(
    modelOf({
      cameras: [
        { id: 'a', limits: undefined, segments: list },
        { id: 'b', limits: { maxSizeBytes: 100 }, segments: [segment(500, 100), segment(600, 100)] },
      ],
    }),
  );
  assert.deepEqual(
    steps.map(({ cameraId, rule, scope, removed }) => [cameraId, rule, scope, removed.startMs]),
    [['b', 'max-size', 'camera', 500]],
  );
});

test('headroom is thirty seconds of writing, at least 64 MiB, and never more than a twentieth of the disk', () => {
  const TIB = 2 ** 40;
  assert.equal(headroomFor(0, { freeBytes: 0, totalBytes: TIB }), 64 * 2 ** 20);
  assert.equal(headroomFor(25e6, { freeBytes: 0, totalBytes: TIB }), 750e6);
  assert.equal(headroomFor(25e6, { freeBytes: 0, totalBytes: 64 * 2 ** 20 }), (64 * 2 ** 20) / 20);
});

test('a disk that does not say how full it is costs nothing', () => {
  const cameras = footage(modelOf({ cameras: [{ id: 'a', limits: undefined, segments: [segment(0, 100)] }] }));
  const input = { nowMs: 0, agePaused: false, cameras, space: undefined, headroomBytes: 1e9 };
  assert.equal(planRemoval({ ...input, limits: { minFree: { kind: 'percent', percent: 50 } } }), undefined);
});
