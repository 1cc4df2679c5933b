// What a recorder says of cameras that were removed, whatever removed them: a file, a table, the API or a cluster.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RecorderProcess } from './recorder-process.ts';
import { until } from './until.ts';

interface Ready {
  readonly warnings: readonly { readonly code: string; readonly camera_id?: string | null }[];
}

/** A warning, an event, a line of the audit and the last line of the ledger name each of them. */
export async function untilRemovalIsTold(recorder: RecorderProcess, ...ids: readonly string[]): Promise<void> {
  await until(`the removal of ${ids.join(', ')} is told`, async () => {
    const { warnings } = (await recorder.get('/api/health/ready')) as Ready;
    const events = await (await recorder.fetch('/api/events?last_event_id=0&seconds=0&types=camera.removed')).text();
    for (const id of ids) {
      const warned = warnings.filter(({ code, camera_id }) => code === 'camera-removed' && camera_id === id);
      assert.equal(warned.length, 1, `a warning names ${id}: ${JSON.stringify(warnings)}`);
      assert.ok(events.includes(`"subject":"${id}"`), `an event names ${id}: ${events}`);
      const audit = JSON.stringify(await recorder.get(`/api/audit?what=cameras&camera=${id}`));
      assert.match(audit, /"removed":[1-9]/, `the audit names ${id}`);
      const ledger = readFileSync(join(recorder.recordPath, `.kube-nvr/gaps/${id}.jsonl`), 'utf8');
      const states = ledger.split('\n').filter((line) => line.includes('"state":'));
      assert.match(states.at(-1) ?? '', /"state":"absent"/, `the ledger of ${id} ends: ${ledger.slice(-500)}`);
    }
    return true;
  });
}
