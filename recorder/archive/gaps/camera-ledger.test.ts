import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import type { GapCause, LedgerState } from '../../contract/gap-cause.ts';
import { CameraLedger } from './camera-ledger.ts';
import type { GapReport } from '../../contract/gap-report.ts';
import { formatRecord, parseJournal, type LedgerRecord } from './record.ts';

const S = 1_000;
const T0 = Date.UTC(2026, 0, 1, 12);

const at = (second: number, state: LedgerState, more: { until?: number; because?: GapCause } = {}): LedgerRecord => ({
  kind: 'state',
  state,
  atMs: T0 + second * S,
  ...(more.until === undefined ? {} : { untilMs: T0 + more.until * S }),
  ...(more.because === undefined ? {} : { because: more.because }),
});
const recorded = (from: number, to: number): LedgerRecord => ({
  kind: 'recorded',
  fromMs: T0 + from * S,
  toMs: T0 + to * S,
});
const missed = (from: number, to: number, cause: GapCause): LedgerRecord =>
  ({ ...recorded(from, to), kind: 'missed', cause }) as LedgerRecord;

function ledger(...records: LedgerRecord[]): CameraLedger {
  const made = new CameraLedger();
  for (const record of records) made.apply(record);
  return made;
}

const report = (made: CameraLedger, from: number, to: number, now: number): GapReport =>
  made.report(T0 + from * S, T0 + to * S, T0 + now * S);

/** Gaps as `[from, to, cause]` in seconds; `…` behind one that is still open. */
const gaps = (made: CameraLedger, from: number, to: number, now: number): [number, number, string][] =>
  report(made, from, to, now).gaps.map((gap) => [
    (gap.fromMs - T0) / S,
    (gap.toMs - T0) / S,
    gap.isOpen ? `${gap.cause}…` : gap.cause,
  ]);

test('a key frame that is missing because packets were lost is a part of that gap', () => {
  const lost = [at(0, 'recording'), recorded(0, 10), missed(10, 25, 'packets-lost'), at(25, 'no-key-frame')];
  const made = ledger(...lost, at(26, 'recording'), recorded(27, 40));
  assert.deepEqual(gaps(made, 0, 40, 40), [[10, 27, 'packets-lost']]);
  const apart = ledger(
    at(0, 'recording'),
    recorded(0, 10),
    at(10, 'no-key-frame'),
    at(12, 'recording'),
    recorded(12, 20),
  );
  assert.deepEqual(gaps(apart, 0, 20, 20), [[10, 12, 'no-key-frame']]);
});

test('a camera that should not be recorded has no gaps, and none before it was added or after it was removed', () => {
  assert.deepEqual(gaps(new CameraLedger(), 0, 100, 100), []);
  const made = ledger(at(10, 'camera-unreachable'), at(20, 'absent'));
  assert.deepEqual(gaps(made, 0, 100, 100), [[10, 20, 'camera-unreachable']]);
});

test('what is noticed late explains the time since the last footage', () => {
  const made = ledger(at(0, 'recording'), recorded(0, 30), at(40, 'stream-silent'));
  assert.deepEqual(gaps(made, 0, 100, 60), [[30, 60, 'stream-silent…']]);
});

test('a reason that is over explains the time until footage begins', () => {
  const made = ledger(at(0, 'refused-login'), at(20, 'recording'), recorded(21, 50));
  assert.deepEqual(gaps(made, 0, 50, 50), [[0, 21, 'refused-login']]);
});

test('each cause has its own piece, and footage always wins over what a journal says', () => {
  const made = ledger(
    at(0, 'recording'),
    recorded(0, 10),
    at(12, 'camera-unreachable'),
    at(30, 'refused-login'),
    at(40, 'recording'),
    recorded(38, 60),
  );
  assert.deepEqual(gaps(made, 0, 60, 60), [
    [10, 30, 'camera-unreachable'],
    [30, 38, 'refused-login'],
  ]);
  const { wantedMs, recordedMs } = report(made, 0, 60, 60);
  assert.deepEqual([wantedMs, recordedMs], [60 * S, 32 * S]);
});

test('a camera that closed the connection and cannot be reached was unreachable from the start', () => {
  const made = ledger(at(0, 'recording'), recorded(0, 10), at(10, 'connection-lost'), at(12, 'camera-unreachable'));
  assert.deepEqual(gaps(made, 0, 30, 30), [[10, 30, 'camera-unreachable…']]);
  const back = ledger(
    at(0, 'recording'),
    recorded(0, 10),
    at(10, 'connection-lost'),
    recorded(12, 20),
    at(13, 'recording'),
  );
  assert.deepEqual(gaps(back, 0, 20, 20), [[10, 12, 'connection-lost']]);
});

test('after kill -9 the time from the last written fragment to the start is process-down', () => {
  const made = ledger(
    at(0, 'recording'),
    recorded(0, 57),
    at(90, 'starting', { until: 55, because: 'process-down' }),
    at(92, 'recording'),
    recorded(91, 100),
  );
  assert.deepEqual(gaps(made, 0, 100, 100), [
    [57, 90, 'process-down'],
    [90, 91, 'starting'],
  ]);
});

test('a camera that was unreachable when the process died stays so as long as the process lived', () => {
  const made = ledger(
    at(0, 'camera-unreachable'),
    at(90, 'starting', { until: 55, because: 'node-down' }),
    at(92, 'camera-unreachable'),
  );
  assert.deepEqual(gaps(made, 0, 100, 100), [
    [0, 55, 'camera-unreachable'],
    [55, 90, 'node-down'],
    [90, 100, 'camera-unreachable…'],
  ]);
});

test('of a camera whose node was lost, the new node misses the time since that was seen last, up to its own footage', () => {
  const taken = [missed(4, 20, 'moved'), at(20, 'starting'), at(21, 'recording')];
  assert.deepEqual(gaps(ledger(...taken, recorded(22, 40)), 0, 40, 40), [[4, 22, 'moved']]);
  assert.deepEqual(gaps(ledger(...taken), 0, 25, 25), [[4, 21, 'moved']], 'the rest may still be written');
  const unreachable = ledger(...taken.slice(0, 2), at(23, 'camera-unreachable'));
  assert.deepEqual(gaps(unreachable, 0, 40, 40), [
    [4, 20, 'moved'],
    [20, 40, 'camera-unreachable…'],
  ]);
});

test('a node that was lost answers up to where the next one does, whatever it did since', () => {
  const made = ledger(
    at(0, 'recording'),
    recorded(0, 57),
    at(90, 'starting', { until: 55, because: 'process-down' }),
    recorded(91, 93),
    at(55, 'absent'),
  );
  assert.deepEqual(gaps(made, 0, 100, 100), []);
  const { wantedMs, recordedMs } = report(made, 0, 100, 100);
  assert.deepEqual([wantedMs, recordedMs], [55 * S, 55 * S]);
  made.apply(at(200, 'starting'));
  made.apply(at(201, 'recording'));
  made.apply(recorded(201, 220));
  assert.deepEqual(gaps(made, 0, 220, 220), [[200, 201, 'starting']], 'it came back');
});

test('packets that were lost while all else was well are a gap of their own', () => {
  const made = ledger(at(0, 'recording'), recorded(0, 10), missed(10, 13, 'packets-lost'), recorded(13, 20));
  assert.deepEqual(gaps(made, 0, 20, 20), [[10, 13, 'packets-lost']]);
});

test('a stop by a user lasts over a restart: nothing was lost by that', () => {
  const made = ledger(
    at(0, 'recording'),
    recorded(0, 10),
    at(10, 'stopped'),
    at(50, 'stopped'),
    at(60, 'starting'),
    recorded(60, 70),
  );
  assert.deepEqual(gaps(made, 0, 70, 70), [[10, 60, 'stopped']]);
});

test('the newest seconds are neither footage nor gap while they may still be written', () => {
  const made = ledger(at(0, 'recording'), recorded(0, 58));
  const { knownUntilMs, wantedMs, recordedMs } = report(made, 0, 100, 60);
  assert.deepEqual(gaps(made, 0, 100, 60), []);
  assert.deepEqual([knownUntilMs, wantedMs, recordedMs], [T0 + 58 * S, 58 * S, 58 * S]);
  assert.deepEqual(gaps(made, 0, 100, 80), [[58, 80, 'unknown…']]);
});

test('while pictures are written, however late they come, what follows the last one is not known; then it is', () => {
  const made = ledger(at(0, 'recording'));
  // A link that is slower than the camera: the picture of second 30 comes at 50.
  made.wrote(T0, T0 + 30 * S, T0 + 50 * S);
  assert.deepEqual(gaps(made, 0, 100, 60), []);
  assert.equal(report(made, 0, 100, 60).knownUntilMs, T0 + 30 * S);
  // Told again, it is no news.
  made.wrote(T0, T0 + 30 * S, T0 + 64 * S);
  assert.deepEqual(gaps(made, 0, 100, 65), [[30, 65, 'unknown…']]);
  made.apply(at(66, 'stream-silent'));
  assert.deepEqual(gaps(made, 0, 100, 70), [[30, 70, 'stream-silent…']]);
});

test('a failure that is noticed when footage has begun again explains the hole before it; another one does not', () => {
  const short = [at(0, 'recording'), recorded(0, 10), recorded(11, 30)];
  assert.deepEqual(gaps(ledger(...short, at(12, 'disk-full'), at(13, 'recording')), 0, 30, 30), [
    [10, 11, 'disk-full'],
  ]);
  for (const later of [at(17, 'disk-full'), at(12, 'stopped'), at(12, 'clock-step')]) {
    assert.deepEqual(gaps(ledger(...short, later, at(18, 'recording')), 0, 30, 30), [[10, 11, 'unknown']]);
  }
});

test('less than a tenth of a second between two files is no gap', () => {
  const made = ledger(at(0, 'recording'), recorded(0, 10), recorded(10.099, 20), recorded(20.1, 30));
  assert.deepEqual(gaps(made, 0, 30, 30), [[20, 20.1, 'unknown']]);
});

test('a clock that is set forward skips time; set back, the later word counts, and footage of both times', () => {
  const forward = ledger(
    at(0, 'recording'),
    recorded(0, 10),
    at(3610, 'recording', { until: 10, because: 'clock-step' }),
    recorded(3611, 3620),
  );
  assert.deepEqual(gaps(forward, 0, 3620, 3620), [[10, 3611, 'clock-step']]);
  const back = ledger(
    at(100, 'recording'),
    recorded(100, 150),
    at(150, 'camera-unreachable'),
    at(140, 'camera-unreachable', { until: 160, because: 'clock-step' }),
    at(155, 'recording'),
    recorded(155, 200),
  );
  assert.deepEqual(gaps(back, 0, 200, 200), [[150, 155, 'camera-unreachable']]);
});

test('a clock that is set back and forward again skips only what it has never shown', () => {
  const made = ledger(
    at(0, 'refused-login'),
    at(50, 'camera-unreachable'),
    at(20, 'camera-unreachable', { until: 100, because: 'clock-step' }),
    at(130, 'camera-unreachable', { until: 30, because: 'clock-step' }),
    at(140, 'stopped'),
  );
  assert.deepEqual(gaps(made, 0, 150, 150), [
    [0, 20, 'refused-login'],
    [20, 30, 'camera-unreachable'],
    [30, 50, 'refused-login'],
    [50, 100, 'camera-unreachable'],
    [100, 130, 'clock-step'],
    [130, 140, 'camera-unreachable'],
    [140, 150, 'stopped…'],
  ]);
});

test('a machine without a clock of its own that starts in 1970 was down until its clock is set', () => {
  const year1970 = -T0 / S + 60;
  const made = ledger(
    at(0, 'recording'),
    recorded(0, 10),
    at(year1970, 'starting', { until: 9, because: 'node-down' }),
    at(600, 'starting', { until: year1970 + 30, because: 'clock-step' }),
    at(601, 'recording'),
    recorded(601, 700),
  );
  assert.deepEqual(gaps(made, 0, 700, 700), [
    [10, 600, 'node-down'],
    [600, 601, 'starting'],
  ]);
});

// A random history, told twice: second by second as it was, and as the recorder would have written it down.

type Phase =
  | { readonly kind: 'recording'; readonly seconds: number; readonly starting: number; readonly sliver: number }
  | { readonly kind: 'failing'; readonly seconds: number; readonly cause: GapCause; readonly lag: number }
  | { readonly kind: 'loss'; readonly seconds: number }
  | {
      readonly kind: 'down';
      readonly seconds: number;
      readonly cause: 'process-down' | 'node-down';
      readonly lag: number;
      /** Meanwhile another node took the camera over. */
      readonly lost: boolean;
    }
  /** The node that had the camera was lost so many seconds before. */
  | { readonly kind: 'takeOver'; readonly seconds: number; readonly starting: number }
  | { readonly kind: 'stopped' | 'removed'; readonly seconds: number }
  | { readonly kind: 'skip'; readonly seconds: number };

const seconds = fc.integer({ min: 1, max: 40 });
const few = fc.integer({ min: 0, max: 6 });
const failures = [
  'camera-unreachable',
  'refused-login',
  'stream-silent',
  'camera-error',
  'disk-full',
  'disk-slow',
  'disk-error',
] as const;
const phase: fc.Arbitrary<Phase> = fc.oneof(
  fc.record({
    kind: fc.constant('recording' as const),
    seconds,
    starting: fc.integer({ min: 1, max: 6 }),
    sliver: few,
  }),
  fc.record({ kind: fc.constant('failing' as const), seconds, cause: fc.constantFrom(...failures), lag: few }),
  fc.record({ kind: fc.constant('loss' as const), seconds }),
  fc.record({
    kind: fc.constant('down' as const),
    seconds,
    cause: fc.constantFrom('process-down', 'node-down'),
    lag: few,
    lost: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('takeOver' as const), seconds, starting: few }),
  fc.record({ kind: fc.constantFrom('stopped' as const, 'removed' as const), seconds }),
  fc.record({ kind: fc.constant('skip' as const), seconds }),
);

type Truth = 'recorded' | GapCause | undefined;

interface History {
  readonly records: LedgerRecord[];
  /** For each second: what became of it; undefined: nobody wanted it. */
  readonly truth: Truth[];
}

function tell(phases: readonly Phase[]): History {
  const records: LedgerRecord[] = [];
  const truth: Truth[] = [];
  const filmed = new Set<number>();
  let state = 'absent' as LedgerState;
  let footage = false;
  const enter = (next: LedgerState, more: { until?: number; because?: GapCause } = {}): void => {
    records.push(at(truth.length, next, more));
    state = next;
    footage = false;
  };
  const pass = (count: number, what: Truth): void => {
    for (let i = 0; i < count; i++) {
      if (what === 'recorded') filmed.add(truth.length);
      truth.push(what);
    }
  };
  /** What the present hole is called so far, from its last second on. */
  const rename = (from: GapCause, to: GapCause): void => {
    for (let i = truth.length - 1; truth[i] === from; i--) truth[i] = to;
  };
  const trailing = (): number => truth.length - 1 - truth.findLastIndex((what) => what !== 'recorded');
  for (const step of phases) {
    const wanted = state !== 'absent' && state !== 'stopped';
    switch (step.kind) {
      case 'recording': {
        if (!wanted) {
          enter('starting');
          pass(step.starting, 'starting');
        }
        const hole = footage ? 'recorded' : (truth.at(-1) ?? 'starting');
        if (state !== 'recording') enter('recording');
        if (hole !== 'recorded') pass(step.sliver, hole);
        records.push(recorded(truth.length, truth.length + step.seconds));
        pass(step.seconds, 'recorded');
        footage = true;
        break;
      }
      case 'failing': {
        if (!wanted) enter('starting');
        const camera = !step.cause.startsWith('disk');
        if (footage) pass(step.lag, step.cause);
        else if (state === 'starting' && camera) rename('starting', step.cause);
        enter(step.cause);
        pass(step.seconds, step.cause);
        break;
      }
      case 'loss':
        if (!footage) break;
        records.push(missed(truth.length, truth.length + step.seconds, 'packets-lost'));
        pass(step.seconds, 'packets-lost');
        records.push(recorded(truth.length, truth.length + 1));
        pass(1, 'recorded');
        break;
      case 'down': {
        const until = truth.length;
        if (!wanted) {
          pass(step.seconds, state === 'stopped' ? 'stopped' : undefined);
          break;
        }
        // The last sign of life is older than the last footage.
        const lag = footage ? Math.min(step.lag, trailing()) : 0;
        pass(step.seconds, step.cause);
        enter('starting', { until: until - lag, because: step.cause });
        pass(1, 'starting');
        if (!step.lost) break;
        records.push({ kind: 'state', state: 'absent', atMs: T0 + (until - lag) * S });
        truth.fill(undefined, until - lag);
        state = 'absent';
        break;
      }
      case 'takeOver': {
        if (state !== 'absent') break;
        const idle = truth.length - 1 - truth.findLastIndex((what) => what !== undefined);
        const from = truth.length - Math.min(step.seconds, idle);
        if (from < truth.length) {
          records.push(missed(from, truth.length, 'moved'));
          for (let i = from; i < truth.length; i++) truth[i] = filmed.has(i) ? 'recorded' : 'moved';
        }
        const isVacant = truth.at(-1) === 'moved';
        enter('starting');
        pass(step.starting, isVacant ? 'moved' : 'starting');
        enter('recording');
        records.push(recorded(truth.length, truth.length + 1));
        pass(1, 'recorded');
        footage = true;
        break;
      }
      case 'stopped':
        enter('stopped');
        pass(step.seconds, 'stopped');
        break;
      case 'removed':
        if (state !== 'absent') enter('absent');
        pass(step.seconds, undefined);
        break;
      case 'skip': {
        if (state === 'absent') break;
        const until = truth.length;
        const because = state === 'stopped' ? 'stopped' : 'clock-step';
        pass(step.seconds, because);
        enter(state, { until, because });
        if (wanted) {
          records.push(recorded(truth.length, truth.length + 1));
          pass(1, 'recorded');
          footage = state === 'recording';
        }
        break;
      }
    }
  }
  return { records, truth };
}

/** What the ledger says of each second; throws when two gaps overlap or one lies on footage's side. */
function tale(made: CameraLedger, from: number, to: number, now: number): { said: Truth[]; report: GapReport } {
  const answer = report(made, from, to, now);
  const said: Truth[] = [];
  let lastMs = -Infinity;
  for (const gap of answer.gaps) {
    assert.ok(gap.fromMs >= lastMs && gap.fromMs < gap.toMs, 'gaps are sorted and apart');
    lastMs = gap.toMs;
    for (let ms = gap.fromMs; ms < gap.toMs; ms += S) {
      assert.equal(said[(ms - T0) / S], undefined);
      said[(ms - T0) / S] = gap.cause;
    }
  }
  return { said, report: answer };
}

test('in every history footage and gaps are the time that was to be recorded, without overlap, and the causes are right', () => {
  fc.assert(
    fc.property(fc.array(phase, { maxLength: 25 }), fc.nat(500), fc.nat(500), (phases, a, b) => {
      const { records, truth } = tell(phases);
      const now = truth.length;
      const [from, to] = a < b ? [a, b] : [b, a];
      const kept = parseJournal(records.map(formatRecord).join(''));
      assert.deepEqual(kept, records);
      const made = ledger(...kept);
      const again = ledger(...made.records());
      for (const [first, last] of [
        [0, now],
        [from, to],
      ] as const) {
        const { said, report } = tale(made, first, last, now);
        const end = Math.max(first, Math.min(last, now));
        assert.equal(report.knownUntilMs, T0 + end * S);
        const within = truth.slice(first, end);
        for (let second = first; second < end; second++) {
          const expected = truth[second] === 'recorded' ? undefined : truth[second];
          assert.equal(said[second], expected, `second ${second}`);
        }
        assert.equal(report.recordedMs, within.filter((what) => what === 'recorded').length * S);
        assert.equal(report.wantedMs, within.filter((what) => what !== undefined).length * S);
        assert.deepEqual(tale(again, first, last, now), { said, report }, 'a compacted journal says the same');
      }
    }),
    { numRuns: 2_000 },
  );
});

test('any sequence of records makes an account: gaps do not overlap, and add up with the footage', () => {
  const second = fc.integer({ min: -50, max: 200 });
  const states = ['recording', 'absent', 'stopped', 'starting', 'camera-unreachable', 'connection-lost'] as const;
  const record = fc.oneof(
    fc
      .tuple(second, fc.constantFrom(...states), fc.option(second), fc.constantFrom('process-down', 'clock-step'))
      .map(([when, state, until, because]) => at(when, state, until === null ? {} : { until, because })),
    fc.tuple(second, seconds).map(([from, length]) => missed(from, from + length, 'packets-lost')),
    fc.tuple(second, seconds).map(([from, length]) => recorded(from, from + length)),
  );
  fc.assert(
    fc.property(fc.array(record, { maxLength: 40 }), second, second, second, (records, a, b, now) => {
      const made = ledger(...records);
      const { report } = tale(made, Math.min(a, b), Math.max(a, b), now);
      const missing = report.gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
      assert.equal(report.recordedMs + missing, report.wantedMs);
      assert.ok(report.recordedMs >= 0);
      for (const gap of report.gaps) assert.ok(gap.toMs <= report.knownUntilMs);
      const footage = records.filter((one) => one.kind === 'recorded');
      for (const gap of report.gaps)
        for (const { fromMs, toMs } of footage)
          assert.ok(gap.toMs <= fromMs || gap.fromMs >= toMs, 'footage is no gap');
    }),
    { numRuns: 2_000 },
  );
});

test('a gap list cut into windows is the same list', () => {
  fc.assert(
    fc.property(fc.array(phase, { maxLength: 15 }), fc.nat(300), (phases, cut) => {
      const { records, truth } = tell(phases);
      const made = ledger(...records);
      const now = truth.length;
      const middle = Math.min(cut, now);
      const whole = tale(made, 0, now, now).said;
      const parts = [...tale(made, 0, middle, now).said];
      for (const [i, cause] of tale(made, middle, now, now).said.entries()) if (cause) parts[i] = cause;
      for (let i = 0; i < now; i++) assert.equal(parts[i], whole[i]);
    }),
  );
});

test('what is forgotten leaves the rest as it was, and what was before it is not wanted', () => {
  fc.assert(
    fc.property(fc.array(phase, { maxLength: 15 }), fc.nat(300), (phases, cut) => {
      const { records, truth } = tell(phases);
      const now = truth.length;
      const middle = Math.min(cut, now);
      const whole = ledger(...records);
      const short = ledger(...records);
      short.forgetBefore(T0 + middle * S);
      const expected = tale(whole, middle, now, now).report;
      assert.deepEqual(
        tale(short, 0, now, now).report.gaps.map(({ fromMs, toMs }) => [fromMs, toMs]),
        expected.gaps.map(({ fromMs, toMs }) => [fromMs, toMs]),
      );
      assert.equal(tale(short, 0, now, now).report.wantedMs, expected.wantedMs);
    }),
  );
});

test('spans are bounded: a camera that comes and goes for years forgets the oldest', () => {
  const made = new CameraLedger();
  for (let i = 0; i < 50_000; i++) made.apply(at(i, i % 2 === 0 ? 'recording' : 'camera-unreachable'));
  assert.ok([...made.records()].length <= 20_002);
  assert.deepEqual(gaps(made, 49_997, 49_998, 50_000), [[49_997, 49_998, 'camera-unreachable']]);
});

test('a gap of a stopped camera says who stopped it and why, each its own, also of a part of it, and after a compaction', () => {
  const stop = (second: number, detail: string): LedgerRecord => ({ kind: 'stop', atMs: T0 + second * S, detail });
  const made = ledger(
    at(0, 'recording'),
    stop(10, 'stopped by anna: repair of the mast'),
    at(10, 'stopped'),
    at(20, 'recording'),
    recorded(0, 9),
    recorded(20, 30),
    // By a changed configuration.
    stop(30, ''),
    at(30, 'stopped'),
    at(40, 'recording'),
    recorded(40, 50),
    stop(50, 'stopped by ben'),
    at(50, 'stopped'),
  );
  for (const one of [made, ledger(...made.records())]) {
    const details = (from: number, to: number) => report(one, from, to, 60).gaps.map(({ detail }) => detail);
    assert.deepEqual(details(0, 60), ['stopped by anna: repair of the mast', undefined, 'stopped by ben']);
    assert.deepEqual(details(15, 18), ['stopped by anna: repair of the mast']);
  }
  made.forgetBefore(T0 + 55 * S);
  assert.deepEqual(
    report(made, 0, 60, 60).gaps.map(({ detail }) => detail),
    ['stopped by ben'],
  );
});

test('a camera that is stopped and started all day keeps a bounded number of texts', () => {
  const made = ledger(at(0, 'recording'));
  for (let i = 1; i < 3_000; i++) made.apply({ kind: 'stop', atMs: T0 + i * S, detail: 'x'.repeat(10_000) });
  const stops = [...made.records()].filter(({ kind }) => kind === 'stop');
  assert.ok(stops.length <= 1_000 && stops.every((one) => formatRecord(one).length < 400), `${stops.length}`);
});
