import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import { ArchiveError } from '../../archive/disk/faults.ts';
import type { Gap } from '../../contract/gap-report.ts';
import { noGaps, as, build, type ApiChanges } from '../test-support.ts';

const FROM = 1_767_268_800;
const FROM_MS = FROM * 1000;

interface Made {
  readonly footage?: readonly [fromSeconds: number, toSeconds: number][];
  readonly gaps?: readonly [fromSeconds: number, toSeconds: number][];
}

const at = ([from, to]: readonly [number, number]) => ({ fromMs: FROM_MS + from * 1000, toMs: FROM_MS + to * 1000 });

async function stage(t: TestContext, made: Readonly<Record<string, Made>>, changes: ApiChanges = {}) {
  const { app } = await build(t, {
    times: {
      refresh: async () => {},
      of: async (cameraId, fromMs, toMs) => ({
        keptFromMs: made[cameraId] && FROM_MS,
        footage: (made[cameraId]?.footage ?? []).map(at),
        report: {
          ...(await noGaps.ofThisNode(cameraId, fromMs, toMs)),
          gaps: (made[cameraId]?.gaps ?? []).map((gap): Gap => ({
            ...at(gap),
            cause: 'camera-unreachable',
            isOpen: false,
            isProvisional: false,
          })),
        },
      }),
    },
    ...changes,
  });
  return (query: string) => app.inject({ url: `/api/archive/timeline?${query}`, headers: as('viewer') });
}

const seconds = (list: readonly { start_ms: number; end_ms: number }[]): [number, number][] =>
  list.map(({ start_ms, end_ms }) => [(start_ms - FROM_MS) / 1000, (end_ms - FROM_MS) / 1000]);

test('what was filled from the memory of a camera is said with its seam, and what was not with the reason in words', async (t) => {
  const { app } = await build(t, {
    times: {
      refresh: async () => {},
      of: async (cameraId, fromMs, toMs) => ({
        keptFromMs: FROM_MS,
        footage: [at([0, 40])],
        report: {
          ...(await noGaps.ofThisNode(cameraId, fromMs, toMs)),
          gaps: [
            {
              ...at([40, 60]),
              cause: 'connection-lost',
              isOpen: false,
              isProvisional: false,
              notFilled: { ...at([40, 60]), atMs: FROM_MS + 70_000, reason: 'card-failed' },
            },
          ],
          filled: [{ ...at([10, 20]), cause: 'node-down', atMs: FROM_MS + 65_000, seam: 'bytes' }],
        },
      }),
    },
  });
  const url = `/api/archive/timeline?camera=gate&from=${FROM}&to=${FROM + 60}`;
  const [gate] = (await app.inject({ url, headers: as('viewer') })).json().cameras;
  assert.deepEqual(gate.gaps[0].not_filled, {
    reason: 'card-failed',
    means: 'the camera says that its memory is missing or broken',
    is_tried_again: true,
    at_ms: FROM_MS + 70_000,
  });
  assert.deepEqual(gate.filled, [
    {
      start_ms: FROM_MS + 10_000,
      end_ms: FROM_MS + 20_000,
      cause: 'node-down',
      from: 'edge',
      at_ms: FROM_MS + 65_000,
      seam: 'bytes',
    },
  ]);
});

test('footage and gaps of each camera are reported, in the order in which they were asked for', async (t) => {
  const ask = await stage(t, {
    gate: {
      footage: [
        [-5, 20],
        [30, 100],
      ],
      gaps: [[20, 30]],
    },
    yard: { gaps: [[0, 60]] },
  });
  const answer = await ask(`camera=yard&camera=gate&camera=nobody&from=${FROM}&to=${FROM + 60}`);
  assert.equal(answer.statusCode, 200, answer.body);
  const { from_ms, to_ms, cameras } = answer.json();
  assert.deepEqual([from_ms, to_ms], [FROM_MS, FROM_MS + 60_000]);
  assert.deepEqual(
    cameras.map(({ camera_id, kept_from_ms }: Record<string, unknown>) => [camera_id, kept_from_ms]),
    [
      ['yard', FROM_MS],
      ['gate', FROM_MS],
      ['nobody', null],
    ],
  );
  const [yard, gate, nobody] = cameras;
  assert.deepEqual([seconds(yard.spans), seconds(yard.gaps)], [[], [[0, 60]]]);
  // Cut to the interval.
  assert.deepEqual(seconds(gate.spans), [
    [0, 20],
    [30, 60],
  ]);
  assert.deepEqual(gate.gaps, [
    { start_ms: FROM_MS + 20_000, end_ms: FROM_MS + 30_000, cause: 'camera-unreachable', is_open: false },
  ]);
  assert.deepEqual([nobody.spans, nobody.gaps], [[], []]);
});

test('a coarse resolution joins spans, and gaps that are close together, with their number and sum', async (t) => {
  const ask = await stage(t, {
    gate: {
      footage: [
        [0, 10],
        [11, 20],
        [40, 50],
        [51, 53],
        [55, 58],
        [59, 60],
      ],
      gaps: [
        [10, 11],
        [20, 40],
        [50, 51],
        [53, 55],
        [60, 68],
      ],
    },
  });
  const [{ spans, gaps, hidden_gaps }] = (
    await ask(`camera=gate&from=${FROM}&to=${FROM + 68}&resolution_ms=8000`)
  ).json().cameras;
  assert.deepEqual(seconds(spans), [
    [0, 10],
    [11, 20],
    [40, 50],
    [55, 60],
  ]);
  const shown = gaps.map(({ count, missing_ms }: Record<string, unknown>) => [count, missing_ms]);
  assert.deepEqual(seconds(gaps), [
    [10, 11],
    [20, 40],
    [50, 55],
    [60, 68],
  ]);
  assert.deepEqual(shown, [
    [undefined, undefined],
    [undefined, undefined],
    [2, 3_000],
    [undefined, undefined],
  ]);
  assert.equal(hidden_gaps, 0);
});

test('whatever the resolution, seconds listed are seconds missing, and spans and gaps cover the time', async (t) => {
  const stretches = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 60 });
  let made: Made = {};
  const ask = await stage(t, {
    get gate() {
      return made;
    },
  });
  await fc.assert(
    fc.asyncProperty(stretches, fc.integer({ min: 0, max: 60_000 }), async (lengths, resolution) => {
      const [footage, gaps]: [number, number][][] = [[], []];
      let now = 0;
      for (const [i, length] of lengths.entries()) {
        (i % 2 === 0 ? footage : gaps)?.push([now, now + length]);
        now += length;
      }
      made = { footage: footage as [number, number][], gaps: gaps as [number, number][] };
      const answer = await ask(`camera=gate&from=${FROM}&to=${FROM + now}&resolution_ms=${resolution}`);
      const [camera] = answer.json().cameras;
      const told = camera.gaps as { start_ms: number; end_ms: number; count?: number; missing_ms?: number }[];
      const sum = told.reduce(
        (total, { start_ms, end_ms, missing_ms }) => total + (missing_ms ?? end_ms - start_ms),
        0,
      );
      assert.equal(sum, (gaps ?? []).reduce((total, [from, to]) => total + to - from, 0) * 1_000);
      assert.equal(
        told.reduce((total, { count = 1 }) => total + count, 0),
        gaps?.length,
      );
      for (const { start_ms, end_ms, count } of told) assert.ok(!count || end_ms - start_ms <= resolution);
      const shown = [...seconds(camera.spans), ...seconds(camera.gaps)].sort(([a], [b]) => a - b);
      let reached = 0;
      for (const [from, to] of shown) {
        assert.ok(from <= reached, `nothing is told of ${reached} to ${from}`);
        reached = Math.max(reached, to);
      }
      assert.equal(reached, now);
    }),
    { numRuns: 100 },
  );
});

test('a camera with more spans than a screen can show is drawn more coarsely', async (t) => {
  const footage = Array.from({ length: 20_000 }, (_, i): [number, number] => [i * 10, i * 10 + 5]);
  const ask = await stage(t, { gate: { footage } });
  const [camera] = (await ask(`camera=gate&from=${FROM}&to=${FROM + 200_000}`)).json().cameras;
  assert.ok(camera.spans.length <= 5_000);
  assert.ok(camera.resolution_ms > 5_000);
});

test('protections and other nodes that may have footage are reported', async (t) => {
  const window = {
    id: 'p1',
    cameraId: 'gate',
    fromMs: FROM_MS + 5_000,
    toMs: FROM_MS + 9_000,
    createdMs: 0,
    note: 'the red car',
    untilMs: undefined,
    by: undefined,
  };
  const ask = await stage(
    t,
    { gate: {} },
    {
      protections: {
        windows: { list: async () => [window], add: async () => window, remove: async () => window },
        keptMs: 1,
      },
    },
  );
  const [gate] = (await ask(`camera=gate&from=${FROM}&to=${FROM + 60}`)).json().cameras;
  assert.deepEqual(gate.protections, [
    { id: 'p1', start_ms: FROM_MS + 5_000, end_ms: FROM_MS + 9_000, note: 'the red car' },
  ]);
  const [later] = (await ask(`camera=gate&from=${FROM + 9}&to=${FROM + 60}`)).json().cameras;
  assert.deepEqual(later.protections, []);
});

test('bounds of cameras and time are named, and an archive that cannot be read is an error', async (t) => {
  const ask = await stage(t, {});
  const times = `from=${FROM}&to=${FROM + 60}`;
  const refusals = [
    [times, 'camera: is missing'],
    [`${times}&${'camera=x&'.repeat(65)}`, 'camera: expected 1 to 64 cameras'],
    [`camera=x&from=${FROM}&to=${FROM}`, 'from: expected a time before to'],
    [`camera=x&from=${FROM}&to=${FROM + 32 * 86_400}`, 'to: expected at most 31 days after from'],
    [`camera=x&${times}&resolution_ms=-1`, 'resolution_ms: expected a whole number of milliseconds, at most a day'],
  ];
  for (const [query = '', detail] of refusals) {
    const answer = await ask(query);
    assert.deepEqual([answer.statusCode, answer.json().detail], [400, detail]);
  }
  const broken = await stage(
    t,
    {},
    { times: { refresh: async () => Promise.reject(new ArchiveError('gone')), of: async () => assert.fail() } },
  );
  assert.equal((await broken(`camera=x&${times}`)).json().code, 'archive-unreadable');
});
