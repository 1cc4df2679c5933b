// The model check of the assignment protocol (docs/design/failover.md): the operator's own plan and detector, and the
// recorders' side of the protocol, in thousands of virtual worlds. A failing world is named by its seed; run it alone
// with SEED=<seed> node --test test/sim/failover.test.ts

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Violation } from './failover/monitor.ts';
import {
  brokenOperator,
  brokenRecorder,
  OPERATOR_MUTATIONS,
  RECORDER_MUTATIONS,
  RULES,
  type RecorderMutation,
  type Rules,
} from './failover/mutation.ts';
import { loseThirty, SCENARIOS, scenarioOf, type Scenario } from './failover/scenarios.ts';
import { LONG } from '../support/variant.ts';

const ONE = process.env['SEED'];
const RUNS = LONG ? 200_000 : 10_000;
/** Other worlds in every run. */
const BASE = Math.floor(Math.random() * 2 ** 30);
/** Of the worlds in which a broken rule must show; the same in every run. */
const MUTANT_SEEDS = 3_000;

async function tryOut(scenario: Scenario, seed: number): Promise<void> {
  try {
    await scenario.run(seed, RULES);
  } catch (err) {
    const what = err instanceof Violation ? err.message : String(err instanceof Error ? err.stack : err);
    assert.fail(`SEED=${seed} (${scenario.name}): ${what}`);
  }
}

for (const scenario of SCENARIOS) {
  test(`${scenario.name}: what must hold does`, { skip: ONE !== undefined && 'SEED names one world' }, async (t) => {
    let worlds = 0;
    for (let seed = BASE; seed < BASE + RUNS; seed++) {
      if (scenarioOf(seed) !== scenario) continue;
      await tryOut(scenario, seed);
      worlds += 1;
    }
    assert.ok(worlds > RUNS / 20);
    t.diagnostic(`${worlds} worlds, seeds from ${BASE}`);
  });
}

test('the world that SEED names', { skip: ONE === undefined && 'no SEED is given' }, async () => {
  await tryOut(scenarioOf(Number(ONE)), Number(ONE));
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

/** Where a broken rule shows only in worlds of one kind, the others are left out. */
const SHOWS_IN: Readonly<Record<string, string>> = { 'recorder believes lower epochs': 'everything at once' };

async function isNoticed(rules: Rules, mutation: string): Promise<void> {
  for (let seed = 1; seed <= MUTANT_SEEDS; seed++) {
    if (scenarioOf(seed).name !== (SHOWS_IN[mutation] ?? scenarioOf(seed).name)) continue;
    try {
      await scenarioOf(seed).run(seed, rules);
    } catch (err) {
      if (err instanceof Violation) return;
      throw err;
    }
  }
  assert.fail(`nothing was noticed in ${MUTANT_SEEDS} worlds`);
}

for (const [mutation, meaning] of Object.entries(RECORDER_MUTATIONS)) {
  test(`the check notices: ${mutation} (${meaning})`, () =>
    isNoticed(brokenRecorder(mutation as RecorderMutation), mutation));
}

for (const [name, mutation] of Object.entries(OPERATOR_MUTATIONS)) {
  test(`the check notices: ${name} (${mutation.meaning})`, async () => isNoticed(await brokenOperator(mutation), name));
}
