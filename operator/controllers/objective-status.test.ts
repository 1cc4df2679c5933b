import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import type { ReportedObjective } from '../../crds/recorder-node.ts';
import { parseRecordingObjective, type RecordingObjective } from '../../crds/recording-objective.ts';
import { statusOfObjective } from './objective-status.ts';

const NOW_MS = Date.parse('2026-11-01T12:00:00Z');
const MINUTE_MS = 60_000;
const objective = (status?: object): RecordingObjective =>
  parseRecordingObjective({
    apiVersion: API_VERSION,
    kind: 'RecordingObjective',
    metadata: { name: 'insurance', namespace: 'video', generation: 3 },
    spec: { targetPercent: 99.9 },
    ...(status && { status }),
  });
const REPORT: ReportedObjective = {
  name: 'insurance',
  measuredTime: '2026-11-01T11:58:00Z',
  cameras: 2,
  achievedPercent: 99.95,
  missingSeconds: 2_592,
  budgetSeconds: 5_184,
  budgetLeftSeconds: 2_592,
  worstCameras: [{ camera: 'gate', missingSeconds: 2_592 }],
};
const { name: _name, ...NUMBERS } = REPORT;
const of = (more: Partial<Parameters<typeof statusOfObjective>[0]>) =>
  statusOfObjective({
    objective: objective(),
    hasPool: true,
    refused: new Map(),
    report: REPORT,
    nowMs: NOW_MS,
    ...more,
  });
const conditionsOf = (more: Parameters<typeof of>[0]) =>
  (of(more).status['conditions'] as Record<string, string>[]).map(({ type, status, reason }) => [type, status, reason]);

test('the status has what the leader measured, and whether the objective is met', () => {
  const { conditions: _conditions, ...numbers } = of({}).status;
  assert.deepEqual(numbers, { observedGeneration: 3, ...NUMBERS });
  assert.deepEqual(conditionsOf({}), [
    ['Met', 'True', 'Met'],
    ['Ready', 'True', 'Measured'],
  ]);
});

test('an objective that is not met says by how much, and is ready nevertheless', () => {
  const report = { ...REPORT, achievedPercent: 99.8, missingSeconds: 10_368, budgetLeftSeconds: -5_184 };
  const { status, transitions } = of({ report });
  const [met] = status['conditions'] as Record<string, string>[];
  assert.deepEqual([met?.['reason'], met?.['message']], ['NotMet', '5184 s more are missing than 99.9 % allow']);
  assert.deepEqual(conditionsOf({ report })[1], ['Ready', 'True', 'Measured']);
  assert.deepEqual(
    transitions.map(({ to }) => to.type),
    ['Met', 'Ready'],
  );
});

test('cameras that should not be recorded leave nothing to judge', () => {
  const { achievedPercent: _achieved, ...nothing } = { ...REPORT, missingSeconds: 0, budgetLeftSeconds: 0 };
  assert.deepEqual(conditionsOf({ report: nothing })[0], ['Met', 'Unknown', 'NothingToRecord']);
});

test('what the last leader measured stays for a quarter of an hour, and is then of unknown value, with its numbers', () => {
  const before = objective(of({}).status);
  const later = (minutes: number) => ({
    objective: before,
    report: undefined,
    nowMs: NOW_MS + (minutes - 2) * MINUTE_MS,
  });
  assert.equal(of(later(14)).isChanged, false);
  assert.deepEqual(conditionsOf(later(14))[1], ['Ready', 'True', 'Measured']);
  const stale = of(later(15));
  assert.deepEqual(conditionsOf(later(15)), [
    ['Met', 'Unknown', 'NotMeasured'],
    ['Ready', 'Unknown', 'NotMeasured'],
  ]);
  assert.equal(stale.status['budgetLeftSeconds'], 2_592);
});

test('an objective that is not measured says why', () => {
  assert.deepEqual(conditionsOf({ report: undefined })[1], ['Ready', 'Unknown', 'NotMeasured']);
  assert.deepEqual(conditionsOf({ hasPool: false, report: undefined })[1], ['Ready', 'False', 'NoPool']);
  const refused = new Map([['insurance', { reason: 'TooMany' as const, message: 'delete others' }]]);
  assert.deepEqual(conditionsOf({ refused, report: undefined }), [
    ['Met', 'Unknown', 'NotMeasured'],
    ['Ready', 'False', 'TooMany'],
  ]);
});

test('a status that is as it was is not written again, and each measurement is', () => {
  const before = objective(of({}).status);
  assert.equal(of({ objective: before }).isChanged, false);
  assert.equal(of({ objective: before, report: { ...REPORT, measuredTime: '2026-11-01T11:59:00Z' } }).isChanged, true);
});
