// Warnings of figures that are too low: they neither flicker nor repeat what the state of a camera says.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CameraStatus } from '../contract/camera-status.ts';
import { cameraStatus } from '../api/test-support.ts';
import { todoOf } from '../api/todo.ts';
import { Shortfalls, type ShortfallsDeps } from './shortfalls.ts';

const DAY_MS = 86_400_000;

function stage(of: { keeping?: ShortfallsDeps['keeping'] } = {}) {
  let nowMs = 0;
  let statuses: readonly CameraStatus[] = [];
  const views = () => statuses.map((status) => ({ status, archive: undefined, live: undefined }));
  const shortfalls = new Shortfalls({
    clock: { monotonicMs: () => nowMs },
    cameras: { list: views },
    keeping: of.keeping,
  });
  return {
    cameras: (...changes: Partial<CameraStatus>[]) => {
      statuses = changes.map((change) => cameraStatus({ usualFrameRate: 25, ...change }));
    },
    /** Once a second; the codes after that. */
    after: (seconds: number): readonly string[] => {
      let codes: readonly string[] = [];
      for (let i = 0; i < seconds; i++) {
        nowMs += 1_000;
        codes = shortfalls
          .warnings()
          .map(({ code, cameraId }) => (cameraId === undefined ? code : `${cameraId}: ${code}`));
      }
      return codes;
    },
    messages: () => shortfalls.warnings().map(({ message }) => message),
  };
}

test('a camera with fewer pictures than usual is reported after a minute, with what to do, until it has them again', () => {
  const { cameras, after, messages } = stage();
  cameras({ frameRate: 12.4 });
  assert.deepEqual([after(55), after(10)], [[], ['gate: frame-rate-low']]);
  assert.deepEqual(messages(), ['it sends 12 pictures a second, and usually 25']);
  assert.match(todoOf('frame-rate-low') ?? '', /exposure/);
  // Between the limits nothing changes, in either direction.
  cameras({ frameRate: 21 });
  assert.deepEqual(after(300), ['gate: frame-rate-low']);
  cameras({ frameRate: 24 });
  assert.deepEqual([after(55), after(10)], [['gate: frame-rate-low'], []]);
  cameras({ frameRate: 21 });
  assert.deepEqual(after(300), []);
});

test('a rate that dips again and again for less than a minute is not reported', () => {
  const { cameras, after } = stage();
  for (let i = 0; i < 10; i++) {
    cameras({ frameRate: 5 });
    assert.deepEqual(after(50), []);
    cameras({ frameRate: 25 });
    assert.deepEqual(after(1), []);
  }
});

test('a camera without a usual rate, without pictures, or that is not recorded is not reported', () => {
  const { cameras, after } = stage();
  cameras(
    { id: 'new', frameRate: 5, usualFrameRate: undefined },
    { id: 'silent', frameRate: 0 },
    { id: 'gone', frameRate: 5, state: 'retrying' },
  );
  assert.deepEqual(after(200), []);
});

test('a camera that is removed is forgotten', () => {
  const { cameras, after } = stage();
  cameras({ frameRate: 5 });
  assert.deepEqual(after(70), ['gate: frame-rate-low']);
  cameras();
  assert.deepEqual(after(1), []);
  cameras({ frameRate: 5 });
  assert.deepEqual(after(50), []);
});

test('a disk that is too small for the days that are wanted is reported, with both', () => {
  let outlookMs: number | undefined = 3.26 * DAY_MS;
  const wanted: Readonly<Record<string, number>> = { gate: 7 * DAY_MS, yard: 14 * DAY_MS };
  const { cameras, after, messages } = stage({
    keeping: { wantedMs: (id) => wanted[id], outlookMs: () => outlookMs },
  });
  cameras({ id: 'gate', frameRate: 25 }, { id: 'yard', frameRate: 25 }, { id: 'hall', frameRate: 25 });
  assert.deepEqual([after(55), after(10)], [[], ['kept-too-short']]);
  assert.deepEqual(messages(), ['the disk has space for about 3.3 days of footage, and 14 days should be kept']);
  assert.match(todoOf('kept-too-short') ?? '', /disk/);
  outlookMs = 3 * 3_600_000;
  assert.match(messages()[0] ?? '', /space for about 3 h of footage/);
  // While it is not known, nothing is claimed.
  outlookMs = undefined;
  assert.deepEqual(after(1), []);
  outlookMs = 20 * DAY_MS;
  assert.deepEqual(after(200), []);
});

test('footage that is kept for as long as there is space is never kept too short', () => {
  const { cameras, after } = stage({ keeping: { wantedMs: () => undefined, outlookMs: () => 0 } });
  cameras({ frameRate: 25 });
  assert.deepEqual(after(200), []);
});

test('a receive buffer that is smaller than a key frame is reported with the setting while a camera sends over UDP', () => {
  const { cameras, after, messages } = stage();
  cameras({ frameRate: 25, receiveBufferBytes: 212_992 }, { frameRate: 25 });
  assert.deepEqual(after(1), ['receive-buffer-small']);
  assert.match(messages()[0] ?? '', /^1 camera sends over UDP.* only 208 KiB .* set net\.core\.rmem_max to 2097152/);
  assert.match(todoOf('receive-buffer-small') ?? '', /net\.core\.rmem_max/);
  cameras({ frameRate: 25, receiveBufferBytes: 2 * 1024 * 1024 });
  assert.deepEqual(after(1), []);
});
