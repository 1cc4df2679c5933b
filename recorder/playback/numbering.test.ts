import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { Footage } from '../footage/footage.ts';
import { Numbering, type ListedFile } from './numbering.ts';

const START_MS = Date.UTC(2026, 0, 1);

interface TestFile {
  readonly sequence: number;
  parts: number;
  complete: boolean;
}

const footageOf = ({ sequence, parts, complete }: TestFile): Footage => ({
  path: `file-${sequence}`,
  nodeId: '',
  isOpen: !complete,
  sizeBytes: 0,
  parts: {
    meta: { sequence, wallStartMs: START_MS + sequence * 300_000 } as FileParts['meta'],
    headers: [],
    unit: 'fragments',
    starts: Array.from({ length: parts + 1 }, (_, i) => i),
    times: Array.from({ length: parts + 1 }, (_, i) => i),
    shownFrom: 0,
    lead: [],
    complete,
  },
});

/** Each part of a list by its number, with its file's discontinuity. */
function partsOf(listed: readonly ListedFile[]): Map<number, string> {
  const parts = new Map<number, string>();
  let next = listed[0]?.number;
  for (const { path, number, discontinuity, parts: own } of listed) {
    assert.equal(number, next, 'numbers follow one another');
    for (let i = 0; i < own.starts.length - 1; i++) parts.set(number + i, `${path}#${i} of ${discontinuity}`);
    next = number + own.starts.length - 1;
  }
  return parts;
}

type Event =
  | { readonly kind: 'grow' | 'close' | 'shrink' }
  | { readonly kind: 'remove'; readonly at: number }
  | { readonly kind: 'wait'; readonly minutes: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<Event>({ kind: 'grow' }, { kind: 'close' }, { kind: 'shrink' }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wait' as const), minutes: fc.integer({ min: 1, max: 9 }) }) },
);

test('whatever is recorded and removed, a number never means another part, and none is taken from the middle', () => {
  const property = fc.property(
    fc.integer({ min: 1, max: 30 }),
    fc.array(event, { maxLength: 60 }),
    (before, events) => {
      const clock = new VirtualClock(START_MS);
      const numbering = new Numbering(clock);
      let files: TestFile[] = [];
      let sequence = 0;
      const begin = (): void => void files.push({ sequence: sequence++, parts: 1, complete: false });
      for (let i = 0; i < before; i++) {
        begin();
        (files.at(-1) as TestFile).complete = i < before - 1;
      }
      const meant = new Map<number, string>();
      let last = new Map<number, string>();
      for (const step of [{ kind: 'grow' } as const, ...events]) {
        const newest = files.at(-1);
        switch (step.kind) {
          case 'grow':
            if (newest) newest.parts++;
            break;
          case 'close':
            if (newest) newest.complete = true;
            begin();
            break;
          case 'shrink':
            files = files.slice(1);
            break;
          case 'remove':
            files = files.filter((file, i) => i !== step.at || !file.complete);
            break;
          case 'wait':
            clock.advance(step.minutes * 60_000);
        }
        if (files.length === 0) begin();
        const { listed } = numbering.number('gate', files.map(footageOf), true);
        const parts = partsOf(listed);
        for (const [number, part] of parts) {
          assert.equal(meant.get(number) ?? part, part);
          meant.set(number, part);
        }
        const there = new Set(files.map((file) => `file-${file.sequence}`));
        for (const { path, gone } of listed) assert.equal(gone, !there.has(path), path);
        for (const path of there) assert.ok(listed.some((item) => item.path === path));
        assert.equal(listed[0]?.gone, false, 'what is gone at the front is not listed');
        // Nothing that was listed behind the first part of now is missing.
        const [first = Infinity] = parts.keys();
        for (const number of last.keys()) if (number >= first) assert.ok(parts.has(number), `${number} is missing`);
        last = parts;
      }
    },
  );
  fc.assert(property, { numRuns: 500 });
});

test('a process that knows nothing of numbers given before gives the same ones to the same parts, or none of them', () => {
  const clock = new VirtualClock(START_MS);
  const files = Array.from({ length: 288 }, (_, sequence) => footageOf({ sequence, parts: 50, complete: true }));
  const { listed: known } = new Numbering(clock).number('gate', files, true);
  assert.deepEqual(new Numbering(clock).number('gate', files, true).listed, known);
  const last = Math.max(...partsOf(known).keys());
  for (const first of [1, 2, 100, 287]) {
    const [now] = new Numbering(clock).number('gate', files.slice(first), true).listed;
    assert.ok((now?.number ?? 0) > last);
  }
});

test('files that were recorded before what is listed are not put in front of it or between', () => {
  const numbering = new Numbering(new VirtualClock(START_MS));
  const file = (sequence: number, complete = true): Footage => footageOf({ sequence, parts: 3, complete });
  const first = numbering.number('gate', [file(5), file(6)], true).listed;
  const then = numbering.number('gate', [file(2), file(5), file(6), file(4), file(7)], true).listed;
  assert.deepEqual(
    then.map(({ path }) => path),
    ['file-5', 'file-6', 'file-7'],
  );
  assert.equal(then[0]?.number, first[0]?.number);
  // Who asks for the first time gets all of it, in the order of the clock.
  assert.equal(numbering.number('other', [file(2), file(5), file(6), file(4), file(7)], true).listed.length, 5);
});

test('what follows a file that is still being completed waits for its last parts', () => {
  const numbering = new Numbering(new VirtualClock(START_MS));
  const files = [
    { sequence: 0, parts: 3, complete: false },
    { sequence: 1, parts: 2, complete: false },
  ];
  assert.equal(numbering.number('gate', files.map(footageOf), true).listed.length, 1);
  Object.assign(files[0] as TestFile, { parts: 4, complete: true });
  const [a, b] = numbering.number('gate', files.map(footageOf), true).listed;
  assert.equal(b?.number, (a?.number ?? NaN) + 4);
});

test('a playlist that nobody asks for is forgotten after ten minutes', () => {
  const clock = new VirtualClock(START_MS);
  const numbering = new Numbering(clock);
  const files = [0, 1, 2].map((sequence) => footageOf({ sequence, parts: 3, complete: true }));
  const without = files.filter((_, i) => i !== 1);
  const ask = (footage: readonly Footage[]): number => numbering.number('gate', footage, true).listed.length;
  ask(files);
  clock.advance(9 * 60_000);
  assert.equal(ask(without), 3, 'a gap is listed to those who know what was there');
  clock.advance(11 * 60_000);
  assert.equal(ask(without), 2);
});

test('the target duration of a playlist that players follow never changes (RFC 8216 §6.2.1), also where a later part is longer', () => {
  const clock = new VirtualClock(START_MS);
  const numbering = new Numbering(clock);
  const ofParts = (...seconds: readonly number[]): Footage => {
    const file = footageOf({ sequence: 0, parts: seconds.length, complete: false });
    const ends = seconds.map((_, i) => seconds.slice(0, i + 1).reduce((sum, one) => sum + one * VIDEO_TIMESCALE, 0));
    return { ...file, parts: { ...file.parts, times: [0, ...ends] } };
  };
  const first = numbering.number('gate', [ofParts(5)], true).targetSeconds;
  clock.advance(60_000);
  assert.equal(numbering.number('gate', [ofParts(5, 50)], true).targetSeconds, first);
  assert.ok(numbering.number('other', [ofParts(5, 50)], true).targetSeconds > first, 'who begins now is told');
});
