import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { stringify } from 'yaml';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import { codeOf } from '../../crds/reasons.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { parseRecordingObjective, type RecordingObjective } from '../../crds/recording-objective.ts';
import { loadConfig } from '../../recorder/config/load.ts';
import { GAP_CAUSES } from '../../recorder/contract/gap-cause.ts';
import { schemaOf } from '../../crds/custom-resource-definition.ts';
import { KINDS } from '../../crds/kinds.ts';
import { workspace } from '../../test/support/workspace.ts';
import { objectivesOf } from './objectives.ts';
import { configMapOf, settingsOf } from './recorder.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a schema, accessed by path
type Any = any;

const pool: RecorderPool = parseRecorderPool({
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { name: 'north', namespace: 'video', uid: 'u' },
  spec: { archive: { hostPath: '/mnt/archive' } },
});
const camera = (name: string, labels: Record<string, string> = {}): Camera =>
  parseCamera({
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: { name, namespace: 'video', labels },
    spec: { source: 'rtsp://10.0.0.5/', poolRef: { name: 'north' } },
  });
const objective = (name: string, spec: object = {}): RecordingObjective =>
  parseRecordingObjective({
    apiVersion: API_VERSION,
    kind: 'RecordingObjective',
    metadata: { name, namespace: 'video' },
    spec: { poolRef: { name: 'north' }, targetPercent: 99.9, ...spec },
  });
const DOCKS = [camera('dock-2', { area: 'docks', floor: '1' }), camera('dock-1', { area: 'docks' }), camera('gate')];
const CAUSES: readonly string[] = (schemaOf(KINDS.find(({ kind }) => kind === 'RecordingObjective')!) as Any).properties
  .spec.properties.excused.items.enum;

/** What a recorder makes of it. */
async function loaded(t: TestContext, objectives: readonly object[]) {
  const file = join(workspace(t), 'config.yaml');
  writeFileSync(file, stringify({ objectives }));
  return (await loadConfig(file)).objectives;
}

test('recorders get the objectives of their pool: cameras by name, by label, or all', async (t) => {
  const { settings, refused } = objectivesOf(pool, DOCKS, [
    objective('all'),
    objective('named', { cameras: ['gate', 'dock-*'], targetPercent: 99.99949, windowSeconds: 86_400 }),
    objective('labelled', { cameraSelector: { area: 'docks' }, excused: ['NodeDown', 'CameraUnreachable'] }),
    objective('elsewhere', { poolRef: { name: 'south' } }),
  ]);
  assert.deepEqual([...refused], []);
  const window = { windowMs: 30 * 86_400_000, excused: ['stopped', 'unlicensed'] };
  assert.deepEqual(await loaded(t, settings), [
    { name: 'all', target: 99.9, ...window },
    { name: 'named', cameras: ['gate', 'dock-*'], target: 99.999, ...window, windowMs: 86_400_000 },
    {
      name: 'labelled',
      cameras: ['dock-1', 'dock-2'],
      target: 99.9,
      ...window,
      excused: ['node-down', 'camera-unreachable'],
    },
  ]);
});

test('an objective may excuse every cause of gaps that recorders know, and no other', async (t) => {
  assert.deepEqual(CAUSES.map(codeOf), GAP_CAUSES);
  const { settings } = objectivesOf(pool, [], [objective('all', { excused: CAUSES })]);
  assert.deepEqual((await loaded(t, settings))[0]?.excused, GAP_CAUSES);
});

test('what recorders would refuse as a whole is left out and said: labels of no camera, too many objectives', async (t) => {
  const many = Array.from({ length: 21 }, (_, i) => objective(`o-${i}`));
  const { settings, refused } = objectivesOf(pool, DOCKS, [
    objective('nobody', { cameraSelector: { area: 'roof' } }),
    ...many,
  ]);
  assert.deepEqual(
    [...refused].map(([name, { reason }]) => [name, reason]),
    [
      ['nobody', 'NoCameras'],
      ['o-20', 'TooMany'],
    ],
  );
  assert.equal((await loaded(t, settings)).length, 20);
});

test('selectors that would select more names than a ConfigMap holds are refused, and names with * are not', () => {
  const cameras = Array.from({ length: 3_000 }, (_, i) => camera(`c-${i}`, { area: 'all' }));
  const of = (name: string) => objective(name, { cameraSelector: { area: 'all' } });
  const { settings, refused } = objectivesOf(pool, cameras, [of('a'), of('b'), objective('c', { cameras: ['c-*'] })]);
  assert.deepEqual([settings.length, refused.get('b')?.reason], [2, 'TooMany']);
});

test('a change of an objective restarts no recorder', () => {
  const { settings: objectives } = objectivesOf(pool, DOCKS, [objective('all')]);
  assert.deepEqual(settingsOf({ ...pool, objectives }), settingsOf(pool));
  assert.match(String((configMapOf({ ...pool, objectives }, []) as Any).data['config.yaml']), /name: all\n/);
});
