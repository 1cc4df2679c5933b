// Days of a site on a virtual clock: fifty cameras with the faults of real ones, a recorder with viewers, exports, retention
// at work and a database that comes and goes. What must hold: every second is accounted for, and nothing grows.
// SOAK_HOURS says how long; LONG=1 is three days.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { workspace } from '../support/workspace.ts';

const PROGRAM = fileURLToPath(new URL('days.ts', import.meta.url));
const PRELOAD = new URL('../support/preload.ts', import.meta.url).href;

test('days of a site: every second is accounted for, and nothing grows', { timeout: 12 * 3_600_000 }, async (t) => {
  const args = ['--import', PRELOAD, PROGRAM, workspace(t)];
  const program = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  t.after(() => program.kill('SIGKILL'));
  const [code] = (await once(program, 'exit')) as [number | null];
  assert.equal(code, 0, 'the program says above what does not hold');
});
