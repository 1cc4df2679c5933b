// The recorder's clock. The console shows all times by it, because the clock of a viewer's device may be wrong.

import { computed, signal } from '@preact/signals';

/** A larger difference from the device's clock is shown as a banner. */
const WRONG_MS = 30_000;
/** Measurements less exact than this are used only until there is a better one. */
const GOOD_ENOUGH_MS = 200;

const offsetMs = signal(0);
let accuracyMs = Infinity;

/** Milliseconds since 1970 by the recorder's clock. */
export const now = (): number => Date.now() + offsetMs.value;

/** How far this device's clock is away from the recorder's: positive if it is slow; undefined if it is right. */
export const deviceClockErrorMs = computed(() => (Math.abs(offsetMs.value) > WRONG_MS ? offsetMs.value : undefined));

/** The recorder's clock said `serverMs` some time between `sentMs` and `receivedMs` of this device's clock. */
export function learnClock(serverMs: number, sentMs: number, receivedMs: number): void {
  const errorMs = (receivedMs - sentMs) / 2;
  const found = serverMs + errorMs - receivedMs;
  const isSame = Math.abs(found - offsetMs.peek()) <= errorMs + accuracyMs;
  if (errorMs > Math.max(GOOD_ENOUGH_MS, accuracyMs) && isSame) return;
  accuracyMs = errorMs;
  offsetMs.value = found;
}

/** The same as `now()`, once a second: for texts such as "12 s ago". */
export const tick = signal(Date.now());

export function startClock(): void {
  tick.value = now();
  setInterval(() => (tick.value = now()), 1_000);
}
