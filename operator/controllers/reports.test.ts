import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { parseRecorderNode, believedReports } from '../../crds/recorder-node.ts';
import type { Caches } from '../observe/caches.ts';
import { RECORDER_NODE } from '../kube/resources.ts';
import { MemoryApi } from '../kube/test-support.ts';
import { ReportJudge } from './reports.ts';

const KEY = 'video/node-2';

/** A judge whose cache has the Camera `gate` with the given epoch, and a RecorderNode whose reports a test chooses. */
async function court(epoch: number) {
  const api = new MemoryApi();
  const clock = new VirtualClock();
  const cameras = new Map<string, Camera>();
  const knows = (now: number): void => {
    const assignment = { node: 'node-1', epoch: now, reason: 'Scheduled', time: '2026-11-22T10:00:00Z' };
    const metadata = { namespace: 'video', name: 'gate' };
    const spec = { source: 'rtsp://10.0.0.9/1' };
    cameras.set(
      'video/gate',
      parseCamera({ apiVersion: API_VERSION, kind: 'Camera', metadata, spec, status: { assignment } }),
    );
  };
  knows(epoch);
  await api.create(RECORDER_NODE, {
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: { namespace: 'video', name: 'node-2' },
    spec: { nodeName: 'node-2', poolRef: { name: 'default' } },
  });
  const judge = new ReportJudge({ api, caches: { cameras } as unknown as Pick<Caches, 'cameras'>, clock });
  const node = async () => parseRecorderNode(await api.get(RECORDER_NODE, { namespace: 'video', name: 'node-2' }));
  const look = async (...reports: readonly [string, number][]) => {
    const cameras = reports.map(([name, epoch]) => ({ name, epoch, state: 'Recording' }));
    await api.mergePatch(RECORDER_NODE, { namespace: 'video', name: 'node-2' }, { status: { cameras } });
    const outcome = await judge.judge(KEY, await node());
    const now = await node();
    return { refused: now.spec.refusedReports ?? [], believed: believedReports(now).map(({ name }) => name), outcome };
  };
  return { clock, knows, look, api };
}

test('a report under an epoch that the Camera never had does not count; the true ones of the same node do', async () => {
  const { clock, look } = await court(3);
  const first = await look(['gate', 2 ** 53 - 1], ['nobody', 1]);
  assert.deepEqual(first.refused, [], 'the copy of the Cameras may be a moment old');
  assert.ok(first.outcome?.recheckMs, 'it is looked at again');
  clock.advance(2_000);
  const second = await look(['gate', 2 ** 53 - 1], ['nobody', 1]);
  assert.deepEqual([second.refused, second.believed], [['gate', 'nobody'], []]);
  assert.deepEqual((await look(['gate', 3])).believed, ['gate'], 'of the epoch that it has: it counts at once');
});

test('a report that is ahead of a copy that lags is believed', async () => {
  const { clock, knows, look } = await court(3);
  await look(['gate', 4]);
  clock.advance(1_000);
  knows(4);
  clock.advance(1_000);
  assert.deepEqual(await look(['gate', 4]), { refused: [], believed: ['gate'], outcome: undefined });
});

test('a node that reports wrongly for a second, correctly, and wrongly again is not believed for long', async () => {
  const { clock, look } = await court(3);
  for (let i = 0; i < 4; i++) {
    await look(['gate', 9]);
    clock.advance(500);
    await look(['gate', 3]);
    clock.advance(100);
  }
  assert.deepEqual((await look(['gate', 9])).refused, ['gate']);
});

test('a node that keeps reporting wrongly costs one write', async () => {
  const { clock, look, api } = await court(3);
  await look(['gate', 9]);
  clock.advance(2_000);
  await look(['gate', 9]);
  const writes = (): number => api.calls.filter((call) => call.startsWith('mergePatch')).length;
  const before = writes();
  for (let epoch = 10; epoch < 20; epoch++) {
    clock.advance(500);
    assert.deepEqual((await look(['gate', epoch])).refused, ['gate']);
  }
  assert.equal(writes() - before, 10, 'only the reports themselves');
});
