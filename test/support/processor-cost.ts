/** What the reference takes on the machine for which budgets are written, in milliseconds. */
const REFERENCE_MS = 8;
const TEXT = '<a></a>'.repeat((256 * 1024) / 7);

/** One pass over 256 KiB of text, as linear parsers make it. */
function reference(): void {
  const tag = /<(\/?)([a-z]+)>/y;
  const open: string[] = [];
  const names: (string | undefined)[] = [];
  for (let match = tag.exec(TEXT); match; match = tag.exec(TEXT)) {
    if (match[1]) names.push(open.pop());
    else open.push(match[2] as string);
  }
}

/** Processor time of this process for `step`, in milliseconds: most of what else the machine does is not in it. */
export function processorTime(step: () => void): number {
  const before = process.cpuUsage();
  step();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** How many times slower than the machine for which budgets are written this one is just now; at least 1. */
const slowness = (): number => Math.max(1, processorTime(reference) / REFERENCE_MS);

/**
 * Processor time of the fastest of ten tries, in milliseconds of a machine that takes 8 ms for the reference: a try that takes more than
 * `budgetMs` is measured beside the reference, because a machine may be slow, or share its caches.
 */
export function processorCost(step: () => void, budgetMs: number): number {
  const tries = new Tries(budgetMs);
  while (tries.goOn) tries.took(processorTime(step));
  return tries.bestMs;
}

/** The same of a step that waits; nothing else may run meanwhile. */
export async function processorCostOfAll(step: () => Promise<unknown>, budgetMs: number): Promise<number> {
  const tries = new Tries(budgetMs);
  while (tries.goOn) {
    const before = process.cpuUsage();
    await step();
    const { user, system } = process.cpuUsage(before);
    tries.took((user + system) / 1000);
  }
  return tries.bestMs;
}

class Tries {
  bestMs = Infinity;
  readonly #budgetMs: number;
  #left = 10;

  constructor(budgetMs: number) {
    this.#budgetMs = budgetMs;
  }

  /** No neighbour makes a try cost twenty times as much. */
  get goOn(): boolean {
    return this.#left > 0 && this.bestMs > this.#budgetMs && (this.#left === 10 || this.bestMs <= 20 * this.#budgetMs);
  }

  took(ms: number): void {
    this.#left--;
    this.bestMs = Math.min(this.bestMs, ms > this.#budgetMs ? ms / slowness() : ms);
  }
}
