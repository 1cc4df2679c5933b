import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import type { NamedTimes, SegmentName } from '../disk/names.ts';
import { CameraDay } from './camera-day.ts';
import { Usage } from './usage.ts';

const T0 = Date.UTC(2026, 0, 1);
const at = (timeMs: number, name = 'X'): SegmentName => ({ name, cameraId: 'a', startMs: T0 + timeMs });
const named = (timesMs: readonly number[], name = 'X'): NamedTimes => ({ name, cameraId: 'a', timesMs });

function stage(): { usage: Usage; day: CameraDay; restart: (files: readonly number[]) => void } {
  const made = { usage: new Usage(), day: undefined as unknown as CameraDay };
  const restart = (files: readonly number[]): void => {
    made.usage = new Usage();
    made.day = new CameraDay('a', T0, made.usage);
    made.day.replace([named(files)]);
  };
  made.day = new CameraDay('a', T0, made.usage);
  return Object.assign(made, { restart });
}

const close = (day: CameraDay, timeMs: number, sizeBytes: number): void => {
  day.add(at(timeMs));
  day.setDetails(at(timeMs), { sizeBytes, mtimeMs: T0 + timeMs, sequence: 0, endMs: T0 + timeMs + 5 });
};

const action = fc.record({
  kind: fc.constantFrom(
    'close',
    'close',
    'open',
    'remove',
    'restart',
    'look',
    'read',
    'strange',
    'rm',
    'vanish',
    'measure',
  ),
  slot: fc.nat(6),
  bytes: fc.nat(1_000),
});

test('whatever is closed, removed, read or found, sums are those of the files once all are measured', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 80, size: 'max' }), (actions) => {
      const s = stage();
      /** Sizes by time; undefined while a file is being written. */
      const files = new Map<number, number | undefined>();
      const closed = (): number[] => [...files].filter(([, bytes]) => bytes !== undefined).map(([time]) => time);
      const sum = (): number => [...files.values()].reduce<number>((total, bytes) => total + (bytes ?? 0), 0);
      const measure = (): void => {
        for (const segment of s.day.unmeasured()) {
          const size = files.get(segment.startMs - T0);
          if (size !== undefined) s.day.measured(segment, size);
        }
        s.day.allMeasured();
      };
      let isSure = true;
      for (const { kind, slot, bytes } of actions) {
        const known = files.get(slot);
        if (kind === 'close' && known === undefined) {
          files.set(slot, bytes);
          close(s.day, slot, bytes);
        } else if (kind === 'open' && !files.has(slot)) {
          files.set(slot, undefined);
          s.day.add(at(slot));
        } else if (kind === 'remove' && known !== undefined) {
          files.delete(slot);
          s.day.remove(at(slot), known);
        } else if (kind === 'read' && known !== undefined) {
          s.day.setDetails(at(slot), { sizeBytes: known, mtimeMs: T0, sequence: 0 });
        } else if (kind === 'look') {
          s.day.replace([named([...files.keys()])]);
        } else if (kind === 'strange' && !files.has(slot)) {
          files.set(slot, bytes);
          s.day.replace([named([...files.keys()])]);
          isSure = false;
        } else if (kind === 'rm' && known !== undefined) {
          files.delete(slot);
          s.day.replace([named([...files.keys()])]);
          // Of some rows only the sum was known: now nobody knows it.
          isSure &&= s.day.isMeasured;
        } else if (kind === 'vanish' && known !== undefined) {
          files.delete(slot);
          s.day.remove(at(slot));
          isSure &&= s.day.isMeasured;
        } else if (kind === 'measure') {
          measure();
          isSure = true;
        } else if (kind === 'restart' && isSure) {
          for (const [time, size] of files) if (size === undefined) files.delete(time);
          const { total } = s.day;
          s.restart([...files.keys()]);
          s.day.restore(total);
        }
        if (isSure) assert.equal(s.day.bytes, sum());
        else assert.ok(!s.day.isMeasured);
        assert.equal(s.usage.bytesOf('a'), s.day.bytes);
        assert.equal(s.usage.unmeasured, s.day.isMeasured ? undefined : s.day);
        assert.equal(s.day.count, files.size);
      }
      measure();
      assert.deepEqual(s.day.total, { count: closed().length, bytes: sum() });
      s.day.end();
      assert.deepEqual([...s.usage.cameras()], []);
    }),
  );
});

test('a day that differs from what was saved is measured, and counts for no more than it holds until then', () => {
  const s = stage();
  s.restart([0, 1, 2, 3, 4]);
  // Five of ten were removed by another program.
  s.day.restore({ count: 10, bytes: 1_000 });
  assert.deepEqual([s.day.bytes, s.day.isMeasured], [500, false]);
  s.restart([0, 1]);
  // One was added.
  s.day.restore({ count: 1, bytes: 50 });
  assert.deepEqual([s.day.bytes, s.day.isMeasured], [50, false]);
  for (const segment of s.day.unmeasured()) s.day.measured(segment, 40);
  s.day.allMeasured();
  assert.deepEqual([s.day.bytes, s.day.isMeasured], [80, true]);
});

test('a segment that is being written counts for nothing, and does not make the day uncertain', () => {
  const s = stage();
  s.restart([0, 1]);
  s.day.restore({ count: 2, bytes: 100 });
  s.day.add(at(2));
  assert.deepEqual([s.day.bytes, s.day.isMeasured, s.day.total.count], [100, true, 2]);
  close(s.day, 2, 7);
  assert.deepEqual([s.day.sizeOf(at(1)), s.day.sizeOf(at(2)), s.day.sizeOf(at(3))], [undefined, 7, undefined]);
  assert.deepEqual([s.day.bytes, s.day.total.count], [107, 3]);
});

test('a day that has ended takes no note of a measurement that was under way', () => {
  const s = stage();
  close(s.day, 0, 5);
  const next = new CameraDay('a', T0 + 86_400_000, s.usage);
  next.add({ name: 'X', cameraId: 'a', startMs: T0 + 86_400_000 });
  s.day.end();
  s.day.measured(at(0), 5);
  assert.equal(s.usage.bytesOf('a'), 0);
});

test('rows are by start, and by name where a camera was renamed within a millisecond', () => {
  const { day } = stage();
  day.replace([named([30, 10], 'New'), named([10, 20], 'Old')]);
  day.add(at(10, 'Mid'));
  day.add(at(15));
  const shown = day.segments().map(({ name, startMs }) => `${startMs - T0} ${name}`);
  assert.deepEqual(shown, ['10 Mid', '10 New', '10 Old', '15 X', '20 Old', '30 New'].toSorted());
  assert.deepEqual([day.lastBefore(T0 + 10), day.lastBefore(T0 + 11), day.lastBefore(T0 + 99)], [-1, 2, 5]);
});

test('what files say stays with their rows when others come and go, and is forgotten with a change', () => {
  const { day } = stage();
  close(day, 10, 5);
  const details = day.details(at(10));
  assert.deepEqual(details, { sizeBytes: 5, mtimeMs: T0 + 10, sequence: 0, endMs: T0 + 15 });
  day.add(at(5));
  day.replace([named([3, 10, 20])]);
  day.remove(at(3));
  assert.deepEqual(day.details(at(10)), details);
  assert.equal(day.details(at(20)), undefined);
  day.forget(at(10));
  assert.equal(day.details(at(10)), undefined);
});
