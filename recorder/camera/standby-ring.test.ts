import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import type { TrackParameters } from '../mp4/sample.ts';
import { TICKS_PER_MS } from '../mp4/sample.ts';
import { SlabPool, SlabWriter } from '../codec/slab.ts';
import type { EndReason, Run, SampleSink } from '../contract/sink.ts';
import { StandbyRing } from './standby-ring.ts';

const FRAME_MS = 40;
const HOLD_MS = 30_000;

const runOf = (runId: string): Run => ({
  runId,
  lead: { kind: 'video' } as unknown as TrackParameters,
  audio: undefined,
});

/** Writes down what it gets: the numbers of pictures, and `begin`, `change` and the reasons of ends. */
class Tape implements SampleSink {
  readonly entries: (number | string)[] = [];
  readonly wallMs = new Map<number, number>();

  begin({ runId }: Run): void {
    this.entries.push(`begin ${runId}`);
  }

  change({ runId }: Run): void {
    this.entries.push(`change ${runId}`);
  }

  sample({ kind, data, wallMs }: Parameters<SampleSink['sample']>[0]): void {
    if (kind === 'audio') return;
    const number = data.slab.buffer.readUInt32BE(data.offset);
    this.entries.push(number);
    this.wallMs.set(number, wallMs);
  }

  end(reason: EndReason): void {
    this.entries.push(`end ${reason}`);
  }

  get numbers(): number[] {
    return this.entries.filter((entry) => typeof entry === 'number');
  }
}

/** A camera of 25 numbered pictures a second, whose ring is kept by `clock`. */
function stage({ group = 25, pictureBytes = 100, memory = new MemoryBudget(Infinity) } = {}) {
  const clock = new VirtualClock();
  const pool = new SlabPool();
  const writer = new SlabWriter(pool);
  const rings: StandbyRing[] = [];
  const account = memory.open('standby', { maxBytes: Infinity, shed: () => rings[0]?.shed() });
  const ring = new StandbyRing({ clock, memory: account, holdMs: () => HOLD_MS });
  rings.push(ring);
  const recording = new Tape();
  const live = new Tape();
  let [number, dts] = [0, 0];
  return {
    clock,
    ring,
    recording,
    live,
    account,
    get sent(): number {
      return number;
    },
    begin(runId: string): void {
      ring.begin(runOf(runId));
      dts = 0;
    },
    /** Pictures that arrive as they are made; the first one of a group can be decoded alone. */
    picture(sync = number % group === 0): void {
      const bytes = Buffer.alloc(pictureBytes);
      bytes.writeUInt32BE(number);
      writer.append(bytes, 0, bytes.length);
      const data = writer.finish();
      const ticks = FRAME_MS * TICKS_PER_MS;
      const times = { dts, compositionOffset: 0, usualDuration: ticks, wallMs: clock.wallMs() };
      ring.sample({ kind: 'video', sync, data, lostPackets: 0, ...times });
      data.slab.release();
      number++;
      dts += ticks;
      clock.advance(FRAME_MS);
    },
    pictures(count: number): void {
      for (let i = 0; i < count; i++) this.picture();
    },
    promote(agoMs: number, hasSpace: () => boolean = () => true): void {
      ring.promote({ fromMs: clock.wallMs() - agoMs, recording, live, hasSpace });
    },
  };
}

const upTo = (from: number, end: number): number[] => Array.from({ length: end - from }, (_, i) => from + i);

test('a standby holds whole groups of pictures that begin at least thirty seconds ago, and no more', () => {
  const camera = stage({ group: 50 });
  camera.begin('a');
  camera.pictures(25 * 100);
  assert.ok(camera.ring.heldMs >= HOLD_MS && camera.ring.heldMs <= HOLD_MS + 2_000 + FRAME_MS);
  camera.promote(60_000);
  camera.clock.advance(1_000);
  assert.equal(camera.recording.numbers[0], 25 * 100 - 33 * 25 + 25);
});

test('what is held is written from the key frame before the wanted time on, and then what arrives', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(25 * 40 + 10);
  camera.promote(17_000);
  camera.pictures(100);
  camera.clock.advance(1_000);
  camera.pictures(100);
  const first = camera.recording.numbers[0] ?? -1;
  assert.deepEqual(camera.recording.entries, ['begin a', ...upTo(first, camera.sent)]);
  assert.equal(first % 25, 0);
  const wantedMs = 1_010 * FRAME_MS - 17_000;
  assert.ok(first * FRAME_MS <= wantedMs && (first + 25) * FRAME_MS > wantedMs);
});

test('pictures keep the times at which they were captured, however late they are written', () => {
  const camera = stage();
  const beginMs = camera.clock.wallMs();
  camera.begin('a');
  camera.pictures(1_000);
  camera.promote(20_000, () => false);
  camera.clock.advance(5_000);
  camera.ring.flush();
  for (const [number, wallMs] of camera.recording.wallMs) assert.equal(wallMs, beginMs + number * FRAME_MS);
});

test('viewers see the next key frame at once, while what is held still waits for the disk', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(1_010);
  camera.promote(20_000, () => false);
  camera.pictures(40);
  assert.deepEqual(camera.recording.entries, []);
  assert.deepEqual(camera.live.entries, ['begin a', ...upTo(1_025, 1_050)]);
});

test('a run that ended while it was held ends in the recording, and the next one begins', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(100);
  camera.ring.end('camera-lost');
  camera.clock.advance(3_000);
  camera.begin('b');
  camera.pictures(50);
  camera.ring.change(runOf('b'));
  camera.pictures(25);
  camera.promote(60_000);
  camera.clock.advance(1_000);
  const { entries } = camera.recording;
  assert.deepEqual(entries, [
    'begin a',
    ...upTo(0, 100),
    'end camera-lost',
    'begin b',
    ...upTo(100, 150),
    'change b',
    ...upTo(150, 175),
  ]);
  assert.equal(camera.account.usedBytes, 0);
});

test('a camera that is stopped while it is taken over loses nothing of what was held', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(200);
  camera.promote(60_000, () => false);
  camera.ring.end('stopped');
  camera.ring.flush();
  assert.deepEqual(camera.recording.entries, ['begin a', ...upTo(0, 200), 'end stopped']);
});

test('a copy is written while the camera is held on, and ends when it has enough', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(100);
  camera.ring.end('clock');
  camera.begin('b');
  camera.pictures(60);
  const copied = new Tape();
  const copy = camera.ring.copy();
  copy.promote({ fromMs: -Infinity, recording: copied, hasSpace: () => true, onlyWhole: true });
  camera.pictures(43);
  camera.clock.advance(1_000);
  camera.ring.leave(copy);
  copy.flush();
  camera.pictures(47);
  assert.deepEqual(copied.entries, [
    'begin a',
    ...upTo(0, 100),
    'end clock',
    'begin b',
    ...upTo(100, 200),
    'end stopped',
  ]);
  camera.promote(60_000);
  camera.clock.advance(1_000);
  assert.deepEqual(camera.recording.numbers, upTo(200, 250), 'what the copy has got is not written again');
});

test('copies one after the other, then the camera: no picture is missing or doubled, wherever they end', () => {
  const counts = fc.array(fc.integer({ min: 0, max: 70 }), { minLength: 1, maxLength: 6 });
  const property = fc.property(counts, fc.integer({ min: 1, max: 30 }), fc.boolean(), (rounds, group, hasSpace) => {
    const camera = stage({ group });
    const tapes: Tape[] = [];
    camera.begin('a');
    camera.pictures(1);
    for (const count of rounds) {
      const tape = new Tape();
      const copy = camera.ring.copy();
      copy.promote({ fromMs: -Infinity, recording: tape, hasSpace: () => hasSpace, onlyWhole: true });
      camera.pictures(count);
      const ends = ['not', 'before', 'after', 'not'][count % 4];
      if (ends === 'before') camera.ring.end('camera-lost');
      camera.ring.leave(copy);
      copy.flush();
      if (ends === 'after') camera.ring.end('camera-lost');
      if (ends !== 'not') {
        camera.begin(`run-${tapes.length}`);
        camera.picture(true);
      }
      tapes.push(tape);
    }
    camera.promote(60_000, () => hasSpace);
    camera.pictures(10);
    camera.ring.flush();
    assert.deepEqual(
      [...tapes, camera.recording].flatMap(({ numbers }) => numbers),
      upTo(0, camera.sent),
    );
    for (const { entries } of tapes) {
      const open = entries.filter((entry) => String(entry).startsWith('begin')).length;
      assert.equal(entries.filter((entry) => String(entry).startsWith('end')).length, open, 'each run ends');
    }
    camera.ring.close();
    assert.equal(camera.account.usedBytes, 0);
  });
  fc.assert(property);
});

test('after a copy, what is written follows by pictures, whatever the times of its file', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(110);
  const { ring, recording, clock } = camera;
  const tape = new Tape();
  const first = ring.copy();
  first.promote({ fromMs: -Infinity, recording: tape, hasSpace: () => true, onlyWhole: true });
  ring.leave(first);
  first.flush();
  const second = ring.copy();
  // A file may end later than its last picture: pictures arrived late.
  const notBeforeMs = clock.wallMs() + 2_000;
  second.promote({ fromMs: -Infinity, recording: tape, hasSpace: () => true, onlyWhole: true, notBeforeMs });
  camera.pictures(40);
  ring.leave(second);
  second.flush();
  ring.promote({ fromMs: -Infinity, recording, hasSpace: () => true, notBeforeMs });
  camera.pictures(10);
  ring.flush();
  assert.deepEqual([...tape.numbers, ...recording.numbers], upTo(0, 160));
});

test('what a node has recorded itself is not written again', () => {
  const camera = stage();
  const beginMs = camera.clock.wallMs();
  camera.begin('a');
  camera.pictures(250);
  const { ring, recording } = camera;
  ring.promote({ fromMs: -Infinity, recording, hasSpace: () => true, notBeforeMs: beginMs + 4_100 });
  camera.clock.advance(1_000);
  assert.deepEqual(recording.numbers, upTo(100, 250));
});

test('without space for thirty seconds, the oldest pictures go, and the rest begins at a key frame', () => {
  const memory = new MemoryBudget(1024 * 1024);
  const camera = stage({ pictureBytes: 10_000, memory });
  camera.begin('a');
  camera.pictures(25 * 20);
  assert.ok(camera.account.usedBytes <= memory.limitBytes);
  assert.ok(camera.ring.dropsForSpace > 0);
  assert.ok(camera.ring.heldMs < 6_000 && camera.ring.heldMs > 1_000);
  camera.promote(60_000);
  camera.clock.advance(1_000);
  const first = camera.recording.numbers[0] ?? -1;
  assert.equal(first % 25, 0);
  assert.deepEqual(camera.recording.numbers, upTo(first, 500));
});

test('a group of pictures that is larger than the memory is not held, and the next one is', () => {
  const memory = new MemoryBudget(600 * 1024);
  const camera = stage({ group: 100, pictureBytes: 10_000, memory });
  camera.begin('a');
  camera.pictures(100);
  camera.picture(true);
  camera.promote(60_000);
  camera.clock.advance(100);
  assert.deepEqual(camera.recording.numbers, [100]);
});

test('a camera that sends nothing any more occupies no memory for longer than pictures are held', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(100);
  camera.ring.end('camera-lost');
  camera.clock.advance(HOLD_MS + 5_000);
  for (let i = 0; i < 5; i++) camera.ring.tick();
  assert.deepEqual([camera.ring.bytes, camera.account.usedBytes, camera.ring.heldMs], [0, 0, 0]);
});

test('ring, then live: no picture is missing or doubled, whatever the groups, the runs and the disk', () => {
  const world = fc.record({
    group: fc.integer({ min: 1, max: 120 }),
    before: fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 4 }),
    after: fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.boolean(), fc.boolean()), { maxLength: 30 }),
    agoMs: fc.integer({ min: 0, max: 40_000 }),
  });
  fc.assert(
    fc.property(world, ({ group, before, after, agoMs }) => {
      const camera = stage({ group });
      let run = 0;
      const begin = (): void => {
        camera.begin(`r${run++}`);
        // A run begins with a key frame.
        while (camera.sent % group !== 0) camera.picture(true);
      };
      for (const count of before) {
        begin();
        camera.pictures(count);
        camera.ring.end('clock');
      }
      begin();
      camera.pictures(10);
      let hasSpace = false;
      camera.promote(agoMs, () => hasSpace);
      for (const [count, space, ends] of after) {
        hasSpace = space;
        camera.pictures(count);
        if (ends) {
          camera.ring.end('clock');
          begin();
        }
      }
      camera.ring.flush();
      const { numbers } = camera.recording;
      assert.deepEqual(numbers, upTo(numbers[0] ?? camera.sent, camera.sent));
      assert.equal(camera.account.usedBytes, 0);
      assert.deepEqual(camera.live.numbers, upTo(camera.live.numbers[0] ?? camera.sent, camera.sent));
    }),
    { numRuns: 300 },
  );
});

test('what is dropped for lack of memory while it is written is a gap, after which a key frame is written', () => {
  const camera = stage({ group: 100 });
  camera.begin('a');
  camera.pictures(300);
  let steps = 1;
  camera.promote(60_000, () => steps-- > 0);
  const last = camera.recording.numbers.at(-1) ?? -1;
  assert.ok(last > 0 && last < 99, `a part of the first group is written, up to ${last}`);
  camera.ring.shed();
  steps = Infinity;
  camera.clock.advance(1_000);
  assert.deepEqual(camera.recording.entries, [
    'begin a',
    ...upTo(0, last + 1),
    'end gap',
    'begin a',
    ...upTo(100, 300),
  ]);
});

test('a camera whose only pictures were dropped for lack of memory is held again from a key frame on', () => {
  const camera = stage();
  camera.begin('a');
  camera.pictures(10);
  camera.ring.shed();
  camera.pictures(10);
  assert.equal(camera.ring.sinceMs, undefined);
  camera.pictures(30);
  camera.promote(60_000);
  camera.clock.advance(1_000);
  assert.deepEqual(camera.recording.numbers, upTo(25, 50));
});
