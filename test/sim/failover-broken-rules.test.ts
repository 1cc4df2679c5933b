// The model check of the assignment protocol is checked itself: a rule that is broken must show in some world.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Violation } from './failover/monitor.ts';
import { broken, OPERATOR_MUTATIONS, RECORDER_MUTATIONS, type Rules } from './failover/mutation.ts';
import {
  EVERYTHING_AT_ONCE,
  LOST_NODE,
  scenarioOf,
  SLOW_SERVER,
  STANDBY,
  VALUES_CHANGE,
  type Scenario,
} from './failover/scenarios.ts';

/** The same worlds in every run. */
const MUTANT_SEEDS = 3_000;

/** Where a broken rule shows only in worlds of one kind, the others are left out. */
const SHOWS_IN: Readonly<Record<string, Scenario>> = {
  'recorder believes lower epochs': EVERYTHING_AT_ONCE,
  'recorder stops without an answer': EVERYTHING_AT_ONCE,
  'asks once': EVERYTHING_AT_ONCE,
  'nobody tells the plan': LOST_NODE,
  'any node takes over': STANDBY,
  'the standby is the owner': STANDBY,
  'standbys are not written': STANDBY,
  'what is held is dropped on the way': STANDBY,
  'restarts are not noticed': STANDBY,
  'the lower epoch owns': LOST_NODE,
  'renewals wait for answers': SLOW_SERVER,
  'a longer interval is not announced': VALUES_CHANGE,
  'the pool says how nodes renew': VALUES_CHANGE,
};

/**
 * The first seed, where it is not 1. Informers take nothing back (base/kubernetes/informer.ts), so the rule after them matters in few
 * worlds: in one of 1 500 of its kind.
 */
const FIRST_SEED: Readonly<Record<string, number>> = { 'recorder believes lower epochs': 7_000 };

async function isNoticed(rules: Rules, mutation: string): Promise<void> {
  const first = FIRST_SEED[mutation] ?? 1;
  for (let seed = first; seed < first + MUTANT_SEEDS; seed++) {
    const scenario = scenarioOf(seed);
    if (scenario !== (SHOWS_IN[mutation] ?? scenario)) continue;
    try {
      await scenario.run(seed, rules);
    } catch (err) {
      if (err instanceof Violation) return;
      throw err;
    }
  }
  assert.fail(`nothing was noticed in ${MUTANT_SEEDS} worlds`);
}

for (const [name, mutation] of Object.entries({ ...RECORDER_MUTATIONS, ...OPERATOR_MUTATIONS })) {
  test(`the check notices: ${name} (${mutation.meaning})`, async () => isNoticed(await broken(mutation), name));
}
