import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../base/log.ts';
import { LevelSwitch } from '../../base/log-level.ts';
import { workspace } from '../../test/support/workspace.ts';
import { CurrentConfig } from '../config/current-config.ts';
import { loadConfig } from '../config/load.ts';
import { reload } from './reload.ts';

test('an error of a reload names the step that failed', async (t) => {
  const file = join(workspace(t), 'config.yaml');
  await writeFile(file, JSON.stringify({ record_path: '/mnt/archive', nodeName: 'node' }));
  const config = await loadConfig(file);
  const steps: string[] = [];
  const parts = {
    current: new CurrentConfig(config),
    journal: { newestId: 0 },
    networks: { configure: () => steps.push('networks') },
    license: { look: () => Promise.reject(new Error('no such file')) },
    wanted: { apply: () => steps.push('cameras') },
    log: silentLog,
    logLevels: new LevelSwitch('info'),
  };
  const deps = parts as unknown as Parameters<typeof reload>[2];
  await assert.rejects(
    reload(() => Promise.resolve(config), [], deps),
    { message: 'the licence could not be changed: no such file' },
  );
  assert.deepEqual(steps, ['networks']);
});
