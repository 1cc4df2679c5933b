// Random numbers that can be repeated with a seed.

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

/**
 * Random numbers for a test, with another seed each time. The seed is printed, and shown when the test fails; TEST_SEED=...
 * repeats the run.
 */
export function seeded(): () => number {
  const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 32));
  console.log(`chance: TEST_SEED=${seed}`);
  return random(seed);
}
