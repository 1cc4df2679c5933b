// Runs thousands of worlds, and fails for each in which something that must hold does not. The message names the seed of the world;
// run it alone with SEED=<seed> node --test test/sim/failover.test.ts

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { newSeed } from '../../support/random.ts';
import { LONG } from '../../support/variant.ts';
import { Violation } from './monitor.ts';
import { RULES } from './mutation.ts';
import { SCENARIOS, scenarioOf, type Scenario } from './scenarios.ts';

/** The one world that is to be run. */
export const SEED = process.env['SEED'];
/** Of all scenarios together. */
const RUNS = LONG ? 100_000 : 2_000;

/** Of all scenarios. */
const WEIGHT = SCENARIOS.reduce((sum, { weight }) => sum + weight, 0);

export async function tryOut(scenario: Scenario, seed: number): Promise<void> {
  try {
    (await scenario.run(seed, RULES)).dispose();
    // A world ends without a turn of the real event loop, in which alone Node forgets the followers of an AbortSignal.any.
    await nextTurn();
  } catch (err) {
    const what = err instanceof Violation ? err.message : String(err instanceof Error ? err.stack : err);
    assert.fail(`SEED=${seed} (${scenario.name}): ${what}`);
  }
}

/** Their share of the worlds, a test each. */
export function testWorlds(scenarios: readonly Scenario[]): void {
  const base = newSeed();
  for (const scenario of scenarios) {
    test(`${scenario.name}: what must hold does`, { skip: SEED !== undefined && 'SEED names one world' }, async (t) => {
      let worlds = 0;
      for (let seed = base; seed < base + RUNS; seed++) {
        if (scenarioOf(seed) !== scenario) continue;
        await tryOut(scenario, seed);
        worlds += 1;
      }
      assert.ok(worlds >= Math.floor((RUNS * scenario.weight) / WEIGHT));
      t.diagnostic(`${worlds} worlds, seeds from ${base}`);
    });
  }
}
