// Checks that docs/operations/reasons.md lists every reason of the conditions, by searching the code that sets them.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { reasonOf } from '../../crds/reasons.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGE = read('docs/operations/reasons.md');
const OPERATOR = globSync('operator/{plan,controllers}/*.ts', { cwd: ROOT })
  .filter((path) => !path.endsWith('.test.ts'))
  .map(read)
  .join('\n');

const wordsOf = (text: string, pattern: RegExp): readonly string[] =>
  [...new Set(Array.from(text.matchAll(pattern), ([, word]) => word as string))].sort();

test('every type of a condition is a state, and has its rows', () => {
  const types = wordsOf(OPERATOR, /(?:type: |condition\(|TYPE = )'([A-Z][A-Za-z]+)'/g).filter(
    (type) => !['Normal', 'Warning', 'Rolling'].includes(type),
  );
  assert.deepEqual(types, [
    'Assigned',
    'CapacityAvailable',
    'CertificatesIssued',
    'CredentialsResolved',
    'FailoverSuspended',
    'NamespaceGranted',
    'NodesTaken',
    'Online',
    'QuorumAvailable',
    'Ready',
    'Recording',
    'ResourcesApplied',
    'RolloutStopped',
  ]);
  for (const type of types) assert.match(PAGE, new RegExp(`\`${type}\``));
});

test('every reason that the operator gives has its row', () => {
  const reasons = [
    ...wordsOf(OPERATOR, /state\([^,]+, '([A-Z][A-Za-z]+)'/g),
    ...wordsOf(OPERATOR, /(?:condition|is)\((?:'[A-Z][A-Za-z]+', )?'(?:True|False|Unknown)', '([A-Z][A-Za-z]+)'/g),
    ...wordsOf(OPERATOR, /type: '[A-Z][A-Za-z]+', status: '[A-Z][a-z]+', reason: '([A-Z][A-Za-z]+)'/g),
    ...wordsOf(OPERATOR, /refuse\('([A-Z][A-Za-z]+)'/g),
  ];
  assert.ok(reasons.length > 25, reasons.join(' '));
  for (const reason of reasons) assert.ok(PAGE.includes(`\`${reason}\``), reason);
});

test('every reason for which a recorder does not record has its row', () => {
  const unions = [
    /type CameraErrorCode =([^;]+);/.exec(read('recorder/camera/error.ts'))?.[1],
    /type DiskFaultCode =([^;]+);/.exec(read('recorder/archive/disk/faults.ts'))?.[1],
    /type WrongDiskCode =([^;]+);/.exec(read('recorder/archive/disk/faults.ts'))?.[1],
  ].join('');
  const codes = wordsOf(unions, /'([a-z-]+)'/g);
  assert.ok(codes.includes('disk-full') && codes.includes('archive-foreign') && codes.includes('no-key-frame'));
  for (const code of codes) assert.ok(PAGE.includes(`\`${reasonOf(code)}\``), `${code}: ${reasonOf(code)}`);
});
