import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ageOf, objectTable } from './object-table.ts';

const NOW_MS = Date.UTC(2026, 10, 25, 12);

const camera = (name: string, node: string | undefined, condition: string) => ({
  metadata: { name, creationTimestamp: new Date(NOW_MS - 51_000).toISOString() },
  spec: { source: `rtsp://10.0.0.9/${name}`, poolRef: { name: 'default' } },
  status: {
    ...(node !== undefined && { assignment: { node, epoch: 3, reason: 'Scheduled' } }),
    conditions: [
      { type: 'Ready', status: condition, reason: condition === 'True' ? 'Recording' : 'CameraUnreachable' },
      { type: 'Recording', status: condition },
    ],
  },
});

test('cameras are printed with the columns of kubectl get cameras', () => {
  const cameras = [camera('gate', 'node-1', 'True'), camera('yard-2', undefined, 'False')];
  assert.equal(
    objectTable('cameras', cameras, false, NOW_MS),
    `NAME     NODE     RECORDING   READY   REASON              AGE
gate     node-1   True        True    Recording           51s
yard-2            False       False   CameraUnreachable   51s
`,
  );
});

test('wide tables have the columns that kubectl has with -o wide', () => {
  const [head, row] = objectTable('cameras', [camera('gate', 'node-1', 'True')], true, NOW_MS).split('\n');
  assert.match(head ?? '', /AGE +POOL +EPOCH +PREVIOUS +STANDBY +ASSIGNED +BECAUSE +SOURCE$/);
  assert.match(row ?? '', /51s +default +3 +<unknown> +Scheduled +rtsp:\/\/10\.0\.0\.9\/gate$/);
});

test('Secrets are printed with their type and age alone', () => {
  const secret = { metadata: { name: 'gate-login' }, type: 'Opaque', data: { password: null } };
  assert.equal(
    objectTable('secrets', [secret], true, NOW_MS),
    'NAME         TYPE     AGE\ngate-login   Opaque   <unknown>\n',
  );
});

test('ages are written as kubectl writes them', () => {
  const [s, m, h, d] = [1_000, 60_000, 3_600_000, 86_400_000];
  const cases: readonly (readonly [number, string])[] = [
    [0, '0s'],
    [-5 * s, '0s'],
    [119 * s, '119s'],
    [120 * s, '2m'],
    [200 * s, '3m20s'],
    [10 * m, '10m'],
    [179 * m, '179m'],
    [3 * h, '3h'],
    [7 * h + 59 * m, '7h59m'],
    [47 * h, '47h'],
    [2 * d, '2d'],
    [7 * d + 23 * h, '7d23h'],
    [400 * d, '400d'],
  ];
  for (const [ms, text] of cases) assert.equal(ageOf(ms), text);
});
