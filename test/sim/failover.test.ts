// The model check of the assignment protocol (docs/design/failover.md): the operator's own plan and detector, and the
// recorders' own cluster code, in thousands of virtual worlds. Those in which everything goes wrong at once, and those
// with a broken rule, have files of their own, so that two processors share the work.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG } from '../support/variant.ts';
import { RULES } from './failover/mutation.ts';
import { EVERYTHING_AT_ONCE, loseThirty, SCENARIOS, scenarioOf } from './failover/scenarios.ts';
import { SEED, testWorlds, tryOut } from './failover/worlds.ts';

testWorlds(SCENARIOS.filter((scenario) => scenario !== EVERYTHING_AT_ONCE));

test('the world that SEED names', { skip: SEED === undefined && 'no SEED is given' }, async () => {
  await tryOut(scenarioOf(Number(SEED)), Number(SEED));
});

test('a world is the same each time its seed is run', async () => {
  for (let seed = 0; seed < 24; seed++) {
    const first = await scenarioOf(seed).run(seed, RULES);
    const second = await scenarioOf(seed).run(seed, RULES);
    assert.deepEqual(second.monitor.moves, first.monitor.moves);
    assert.deepEqual([...second.monitor.firstWritten], [...first.monitor.firstWritten]);
  }
});

test('thirty cameras of a lost node are written elsewhere 15 to 20 s after its last sign of life', async () => {
  for (let seed = 1; seed <= (LONG ? 1_000 : 30); seed++) await loseThirty(seed, RULES);
});
