// Checks that the table of reasons has every reason of the conditions, by searching the code that sets them.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  CAMERA_CONDITIONS,
  NODE_CONDITIONS,
  OBJECTIVE_CONDITIONS,
  POOL_CONDITIONS,
  type ConditionTable,
} from '../../build/condition-tables.ts';
import { RECORDING_REASONS } from '../../crds/reason-table.ts';
import type { DiskFaultCode, WrongDiskCode } from '../../recorder/archive/disk/faults.ts';
import type { CameraErrorCode } from '../../recorder/camera/error.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const TABLES: readonly ConditionTable[] = [NODE_CONDITIONS, CAMERA_CONDITIONS, POOL_CONDITIONS, OBJECTIVE_CONDITIONS];
const OPERATOR = globSync('operator/{plan,controllers,rows}/*.ts', { cwd: ROOT })
  .filter((path) => !path.endsWith('.test.ts'))
  .map(read)
  .join('\n');

/** Of more than one condition: the page explains them above its tables. */
const IN_THE_TEXT = ['AsExpected', 'Pending'];

const wordsOf = (text: string, pattern: RegExp): readonly string[] =>
  [...new Set(Array.from(text.matchAll(pattern), ([, word]) => word as string))].sort();

test('every type of a condition is a state, and has its rows', () => {
  const types = wordsOf(OPERATOR, /(?:type: |condition\(|TYPE = )'([A-Z][A-Za-z]+)'/g).filter(
    (type) => !['Normal', 'Warning', 'Rolling'].includes(type),
  );
  assert.deepEqual(types, [
    'Assigned',
    'Balanced',
    'CamerasRead',
    'CapacityAvailable',
    'CertificatesIssued',
    'CredentialsResolved',
    'Drained',
    'FailoverSuspended',
    'MembersAnswer',
    'Met',
    'NamespaceGranted',
    'NodesOnline',
    'NodesSelected',
    'NodesTaken',
    'Online',
    'PlacementMet',
    'PodsPlaced',
    'QuorumAvailable',
    'Ready',
    'Reconciling',
    'Recording',
    'ResourcesApplied',
    'RolloutStopped',
    'RowsFollowed',
    'Stalled',
    'Standby',
  ]);
  for (const type of types)
    assert.ok(
      TABLES.some((table) => type in table),
      type,
    );
});

test('every reason that the operator gives has its row', () => {
  const reasons = [
    ...wordsOf(OPERATOR, /state\([^,]+, '([A-Z][A-Za-z]+)'/g),
    ...wordsOf(OPERATOR, /(?:condition|is)\((?:'[A-Z][A-Za-z]+', )?'(?:True|False|Unknown)', '([A-Z][A-Za-z]+)'/g),
    ...wordsOf(OPERATOR, /type: '[A-Z][A-Za-z]+', status: '[A-Z][a-z]+', reason: '([A-Z][A-Za-z]+)'/g),
    ...wordsOf(OPERATOR, /refuse\('([A-Z][A-Za-z]+)'/g),
  ];
  assert.ok(reasons.length > 25, reasons.join(' '));
  const listed = new Set(
    TABLES.flatMap((table) => Object.values(table)).flatMap((rows) => rows.flatMap(({ reason }) => reason)),
  );
  for (const reason of reasons) assert.ok(listed.has(reason) || IN_THE_TEXT.includes(reason), reason);
});

test('every reason for which a recorder does not record has its row', () => {
  // The compiler refuses this line while a code has no row.
  const rows: Readonly<Record<CameraErrorCode | DiskFaultCode | WrongDiskCode, unknown>> = RECORDING_REASONS;
  assert.ok('no-key-frame' in rows && 'archive-foreign' in rows);
});
