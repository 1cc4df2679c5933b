import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import type { Config } from '../config/schema.ts';
import { openEvents } from './events.ts';

test('after a restart, gaps and warnings that had ended are over, and those that had not go on', async (t) => {
  const config = { workDir: workspace(t), nodeName: 'rack-1', cluster: { mode: 'none' } } as unknown as Config;
  const clock = new VirtualClock();
  const open = () =>
    openEvents(config, { clock, log: silentLog, memory: new MemoryBudget(Infinity), version: '1.2.3' });
  const fromMs = clock.wallMs();
  const cause = 'camera-unreachable';
  const warning = (cameraId: string) => ({ code: 'edge-refused', message: 'no', cameraId });
  const first = await open();
  for (const cameraId of ['closed', 'open']) first.tell({ cameraId, kind: 'gap-opened', gap: { fromMs, cause } });
  first.tell({ cameraId: 'closed', kind: 'gap-closed', gap: { fromMs, toMs: fromMs + 1_000, cause } });
  first.warningsAre([warning('closed'), warning('open')]);
  first.warningsAre([warning('open')]);
  await first.close();

  const second = await open();
  t.after(() => second.close());
  assert.deepEqual([...second.openGaps], [['open', { fromMs, cause }]]);
  second.warningsAre([warning('closed')]);
  const told = await until('they are told', () => {
    const since = [...second.journal.after(second.beginId)];
    return since.length >= 3 && since.map(({ type, cameraIds }) => `${type} ${cameraIds.join()}`.trim());
  });
  assert.deepEqual(told, ['recorder.started', 'warning.raised closed', 'warning.cleared open']);
});
