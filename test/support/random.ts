// Random numbers that can be repeated with a seed.

import { LONG } from './variant.ts';

/**
 * What random tests begin with. Where everything is required, as in CI, always the same: a failure there is one of the change under test.
 * Everywhere else, and in long variants, another one each time, which finds what is rare.
 */
export const newSeed = (): number =>
  process.env['KUBE_NVR_REQUIRE'] === 'all' && !LONG ? 1 : Math.floor(Math.random() * 2 ** 30);

/** A repeatable random number generator (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Random numbers for a test. The seed is printed, and shown when the test fails; TEST_SEED=... repeats the run. */
export function seeded(): () => number {
  const seed = Number(process.env['TEST_SEED'] ?? newSeed());
  console.log(`chance: TEST_SEED=${seed}`);
  return random(seed);
}
