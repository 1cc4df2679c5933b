// A host whose clock is set back and forth, and calendars with odd days: over HTTP the list stays in order and whole,
// days are the viewer's, and no two recordings share a name.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import fc from '../support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { as, build } from '../../recorder/api/test-support.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { runOf, TestCamera } from '../../recorder/archive/test-support.ts';
import { readSampleIndex } from '../../recorder/mp4/sample-index.ts';
import { CrashDisk } from '../support/crash-disk.ts';
import { readFrom } from '../support/recorded-file.ts';
import { LONG } from '../support/variant.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const ROOT = '/recordings';

/** What a node lives through, in order. */
type Event =
  | { readonly kind: 'record' | 'pause'; readonly seconds: number }
  | { readonly kind: 'step'; readonly ms: number }
  /** The clock is set back to the millisecond at which it began. */
  | { readonly kind: 'again' };

/** A segment as its file tells. */
interface Footage {
  readonly path: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly pictures: number;
}

/** A camera with a picture every half second, and its archive, in memory. */
class Node {
  readonly clock: VirtualClock;
  readonly disk: CrashDisk;
  readonly archive: Archive;
  sent = 0;
  readonly #startMs: number;
  readonly #tick: () => void;
  readonly #camera: TestCamera;
  #runs = 0;
  #recording = false;

  private constructor(startMs: number) {
    this.#startMs = startMs;
    const clock = (this.clock = new VirtualClock(startMs));
    this.disk = new CrashDisk({ wallMs: () => clock.wallMs() });
    this.archive = new Archive({ root: ROOT, fs: this.disk, clock, log: silentLog, syncIntervalMs: 5_000 });
    const recording = this.archive.sinkFor(
      { cameraId: 'gate', name: 'Gate', format: 'fmp4', segmentDurationMs: 10_000 },
      { needKeyFrame() {} },
    );
    this.#tick = () => recording.tick();
    this.#camera = new TestCamera(clock, recording, this.#tick);
    this.#camera.framesPerSecond = 2;
    this.#camera.keyFrameInterval = 2;
    this.#camera.bytesPerFrame = 20;
  }

  static async start(startMs: number): Promise<Node> {
    const node = new Node(startMs);
    await node.archive.recover();
    return node;
  }

  async live(event: Event): Promise<void> {
    switch (event.kind) {
      case 'record':
        if (!this.#recording) this.#camera.begin(runOf({ runId: (++this.#runs).toString(16).padStart(16, '0') }));
        this.#recording = true;
        for (let s = 0; s < event.seconds; s++) await this.#camera.play(1, this.disk);
        this.sent += event.seconds * 2;
        return;
      case 'pause':
        this.#end();
        this.clock.advance(event.seconds * 1000);
        this.#tick();
        return this.disk.idle();
      case 'step':
        this.#end();
        return this.clock.stepWall(event.ms);
      case 'again':
        this.#end();
        return this.clock.stepWall(this.#startMs - this.clock.wallMs());
    }
  }

  async close(): Promise<void> {
    this.#end();
    await this.archive.close();
  }

  /** What lies on the disk, by the files alone. */
  async footage(): Promise<Footage[]> {
    const paths = this.disk.paths().filter((path) => !path.includes('/.kube-nvr/'));
    return Promise.all(
      paths.map(async (path) => {
        const { meta, tracks } = await readSampleIndex(...readFrom(this.disk.bytesOf(path)));
        const { wallStartMs: startMs, wallDurationMs } = meta;
        const pictures = tracks[0]?.dts.length ?? 0;
        return { path: path.slice(ROOT.length + 1), startMs, endMs: startMs + wallDurationMs, pictures };
      }),
    );
  }

  #end(): void {
    if (this.#recording) this.#camera.end('clock');
    this.#recording = false;
  }
}

interface Answer {
  readonly archive: readonly { readonly timestamp: string; readonly filename: string; readonly is_open: boolean }[];
  readonly days: readonly string[];
}

type Ask = (node: Node, fromMs: number, toMs: number, offset?: number) => Promise<Answer>;

/** Asks nodes over HTTP, as a viewer. */
async function viewer(t: TestContext): Promise<Ask> {
  let asked: Node | undefined;
  const node = (): Node => asked as Node;
  const { app } = await build(t, {
    segments: { list: (cameraId, query) => node().archive.list(cameraId, query) },
  });
  return async (of, fromMs, toMs, offset) => {
    asked = of;
    const days = offset === undefined ? '' : `&tz_offset_minutes=${offset}`;
    const url = `/api/archive/gate/segments?from=${fromMs / 1000}&to=${toMs / 1000}${days}`;
    const response = await app.inject({ url, headers: as('viewer') });
    assert.equal(response.statusCode, 200, response.body);
    return response.json<Answer>();
  };
}

function daysOf(footage: readonly Footage[], offset: number): string[] {
  const days = new Set<string>();
  for (const { startMs, endMs } of footage) {
    const first = Math.floor((startMs + offset * 60_000) / DAY_MS);
    const last = Math.floor((endMs - 1 + offset * 60_000) / DAY_MS);
    for (let day = first; day <= last; day++) days.add(new Date(day * DAY_MS).toISOString().slice(0, 10));
  }
  return [...days].sort();
}

/** Asserts what every list must be, whatever the clock did; returns it. */
async function assertList(ask: Ask, node: Node, fromMs: number, toMs: number, offset: number): Promise<void> {
  const footage = await node.footage();
  const { archive, days } = await ask(node, fromMs, toMs, offset);
  const times = archive.map(({ timestamp }) => Date.parse(timestamp));
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    'in order',
  );
  const expected = footage.filter(({ startMs, endMs }) => startMs < toMs && endMs > fromMs);
  assert.deepEqual(archive.map(({ filename }) => filename).sort(), expected.map(({ path }) => path).sort());
  assert.deepEqual(days, daysOf(footage, offset), `days by offset ${offset}`);
}

const INTERESTING_STARTS = [
  '2026-01-01T12:00:00Z',
  '2026-12-31T23:59:40Z', // the year ends
  '2028-02-28T23:59:30Z', // a leap day begins
  '2028-02-29T23:59:45Z', // and ends
  '2026-03-29T00:59:50Z', // summer time begins in Europe
  '2026-10-25T00:59:50Z', // and ends
].map((text) => Date.parse(text));

const steps = fc.oneof(
  fc.constantFrom(HOUR_MS, -HOUR_MS, 1_000, -1_000, -60_000, 1, -1),
  fc.integer({ min: -2 * HOUR_MS, max: 2 * HOUR_MS }),
);
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('record' as const), seconds: fc.integer({ min: 1, max: 45 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('pause' as const), seconds: fc.integer({ min: 1, max: 60 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('step' as const), ms: steps }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'again' as const }) },
);

test('whatever the clock does, lists are whole and in order, days are the viewer’s, and names are taken once', async (t) => {
  const ask = await viewer(t);
  const property = fc.asyncProperty(
    fc.constantFrom(...INTERESTING_STARTS),
    fc.array(event, { minLength: 1, maxLength: 7 }),
    fc.array(fc.integer({ min: -840, max: 840 }), { minLength: 1, maxLength: 4 }),
    fc.array(fc.tuple(fc.integer({ min: -300, max: 300 }), fc.integer({ min: 1, max: 90_000 })), { maxLength: 4 }),
    async (startMs, events, offsets, windows) => {
      const node = await Node.start(startMs);
      for (const event of events) await node.live(event);
      await node.close();
      const footage = await node.footage();
      const pictures = footage.reduce((sum, one) => sum + one.pictures, 0);
      assert.equal(pictures, node.sent, 'each picture is in one file');
      const middleMs = Math.floor(startMs / 1000) * 1000;
      for (const offset of [...offsets, 840, -840]) {
        await assertList(ask, node, middleMs - 12 * HOUR_MS, middleMs + 12 * HOUR_MS, offset);
      }
      for (const [before, seconds] of windows) {
        const fromMs = middleMs + before * 1000;
        await assertList(ask, node, fromMs, fromMs + seconds * 1000, 0);
      }
    },
  );
  await fc.assert(property, { numRuns: LONG ? 10_000 : 300 });
});

test('a clock that is set back again and again to the same millisecond takes no name twice', async () => {
  const node = await Node.start(Date.parse('2026-12-31T23:59:59.999Z'));
  for (let i = 0; i < 12; i++) {
    await node.live({ kind: 'record', seconds: 2 });
    await node.live({ kind: 'again' });
  }
  await node.close();
  const footage = await node.footage();
  assert.equal(
    footage.reduce((sum, one) => sum + one.pictures, 0),
    node.sent,
  );
  const names = footage.map(({ path }) => path.slice(path.lastIndexOf('_') + 1));
  assert.equal(new Set(names).size, names.length);
  assert.ok(footage.length >= 12);
});

test('a segment over midnight is a day on both sides, for every offset there is, while it grows and afterwards', async (t) => {
  const ask = await viewer(t);
  const midnight = Date.parse('2028-02-29T00:00Z');
  for (let offset = -840; offset <= 840; offset += LONG ? 1 : 15) {
    const here = midnight - offset * 60_000;
    const node = await Node.start(here - 4_000);
    await node.live({ kind: 'record', seconds: 8 });
    const daysBy = async (offset: number): Promise<readonly string[]> =>
      (await ask(node, here - HOUR_MS, here + HOUR_MS, offset)).days;
    for (const state of ['growing', 'closed']) {
      assert.deepEqual(await daysBy(offset), ['2028-02-28', '2028-02-29'], `${state}, by offset ${offset}`);
      if (offset < 840) assert.deepEqual(await daysBy(offset + 1), ['2028-02-29'], `${state}, by offset ${offset} + 1`);
      if (offset > -840)
        assert.deepEqual(await daysBy(offset - 1), ['2028-02-28'], `${state}, by offset ${offset} - 1`);
      if (state === 'growing') await node.close();
    }
    assert.equal((await node.footage()).length, offset === 0 ? 2 : 1, 'only midnight UTC ends a file');
  }
});

test('days are right by each of the 1681 offsets, around a leap day and steps of an hour', async (t) => {
  const ask = await viewer(t);
  const node = await Node.start(Date.parse('2028-02-28T09:59:55Z'));
  // Pictures on both sides of most viewers' midnights, some of them lived twice and some never.
  for (const hours of [29, -1, 35, 1, 31, -1, 33]) {
    await node.live({ kind: 'record', seconds: 12 });
    await node.live({ kind: 'pause', seconds: 1_231 });
    await node.live({ kind: 'step', ms: hours * HOUR_MS });
  }
  await node.close();
  const footage = await node.footage();
  const answers = new Set<string>();
  for (let offset = -840; offset <= 840; offset++) {
    const { days } = await ask(node, 0, 0, offset);
    assert.deepEqual(days, daysOf(footage, offset), `days by offset ${offset}`);
    answers.add(days.join());
  }
  assert.ok(answers.size >= 5, `${answers.size} different answers`);
});

test('the days on which a viewer’s clocks change have 23 and 25 hours of footage', async (t) => {
  const ask = await viewer(t);
  // Berlin: two hours ahead of UTC in summer, one in winter.
  const days = [
    { day: '2026-03-29', fromMs: Date.parse('2026-03-28T23:00Z'), hours: 23, before: 60, after: 120 },
    { day: '2026-10-25', fromMs: Date.parse('2026-10-24T22:00Z'), hours: 25, before: 120, after: 60 },
  ];
  for (const { day, fromMs, hours, before, after } of days) {
    const node = await Node.start(fromMs - HOUR_MS / 2);
    for (let hour = -1; hour <= hours; hour++) {
      await node.live({ kind: 'record', seconds: 5 });
      await node.live({ kind: 'pause', seconds: 3_595 });
    }
    await node.close();
    const toMs = fromMs + hours * HOUR_MS;
    const { archive } = await ask(node, fromMs, toMs, after);
    assert.equal(archive.length, hours, `${day}: one recording an hour`);
    await assertList(ask, node, fromMs, toMs, before);
    await assertList(ask, node, fromMs, toMs, after);
  }
});
