// The model check of the assignment protocol (docs/design/failover.md): the operator's own plan and detector, and the
// recorders' side of the protocol, in thousands of virtual worlds. A failing world is named by its seed; run it alone
// with SEED=<seed> node --test test/sim/failover.test.ts

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Violation } from './failover/monitor.ts';
import { MUTATIONS, type Mutation } from './failover/mutation.ts';
import { loseThirty, SCENARIOS, scenarioOf, type Scenario } from './failover/scenarios.ts';
import { LONG } from '../support/variant.ts';

const ONE = process.env['SEED'];
const RUNS = LONG ? 200_000 : 10_000;
/** Other worlds in every run. */
const BASE = Math.floor(Math.random() * 2 ** 30);
/** Of the worlds in which a broken rule must show; the same in every run. */
const MUTANT_SEEDS = 3_000;

function tryOut(scenario: Scenario, seed: number): void {
  try {
    scenario.run(seed);
  } catch (err) {
    const what = err instanceof Violation ? err.message : String(err instanceof Error ? err.stack : err);
    assert.fail(`SEED=${seed} (${scenario.name}): ${what}`);
  }
}

for (const scenario of SCENARIOS) {
  test(`${scenario.name}: what must hold does`, { skip: ONE !== undefined && 'SEED names one world' }, (t) => {
    let worlds = 0;
    for (let seed = BASE; seed < BASE + RUNS; seed++) {
      if (scenarioOf(seed) !== scenario) continue;
      tryOut(scenario, seed);
      worlds += 1;
    }
    assert.ok(worlds > RUNS / 20);
    t.diagnostic(`${worlds} worlds, seeds from ${BASE}`);
  });
}

test('the world that SEED names', { skip: ONE === undefined && 'no SEED is given' }, () => {
  tryOut(scenarioOf(Number(ONE)), Number(ONE));
});

test('a world is the same each time its seed is run', () => {
  for (let seed = 0; seed < 24; seed++) {
    const [first, second] = [scenarioOf(seed).run(seed), scenarioOf(seed).run(seed)];
    assert.deepEqual(second.monitor.moves, first.monitor.moves);
    assert.deepEqual([...second.monitor.firstWritten], [...first.monitor.firstWritten]);
  }
});

test('thirty cameras of a lost node are written elsewhere 15 to 20 s after its last sign of life', () => {
  for (let seed = 1; seed <= (LONG ? 1_000 : 30); seed++) loseThirty(seed);
});

for (const [mutation, meaning] of Object.entries(MUTATIONS)) {
  test(`the check notices: ${mutation} (${meaning})`, () => {
    for (let seed = 1; seed <= MUTANT_SEEDS; seed++) {
      try {
        scenarioOf(seed).run(seed, mutation as Mutation);
      } catch (err) {
        if (err instanceof Violation) return;
        throw err;
      }
    }
    assert.fail(`nothing was noticed in ${MUTANT_SEEDS} worlds`);
  });
}
