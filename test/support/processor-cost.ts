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

/**
 * Processor time of the fastest of ten tries, in milliseconds of a machine that takes 8 ms for the reference: a try that takes more than
 * `budgetMs` is measured beside the reference, because a machine may be slow, or share its caches.
 */
export function processorCost(step: () => void, budgetMs: number): number {
  let best = Infinity;
  for (let i = 0; i < 10 && best > budgetMs; i++) {
    const ms = processorTime(step);
    const slowness = ms > budgetMs ? Math.max(1, processorTime(reference) / REFERENCE_MS) : 1;
    best = Math.min(best, ms / slowness);
    // No neighbour makes a try cost this much.
    if (best > 20 * budgetMs) break;
  }
  return best;
}
