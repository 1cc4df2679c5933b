// The memory for media in this process. `front/memory.ts` and `engine/memory.ts` divide it; what was opened first is released first
// (docs/sizing.md says what a camera needs).

import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
import type { MemoryLimit } from '../../base/memory-limit.ts';

const MiB = 1024 ** 2;

/** The program itself, its heap, and free blocks in its pools. */
const PROGRAM_BYTES = 160 * MiB;
/**
 * Share of the limit of a control group. The rest is for sockets and files, which the kernel counts too, and for the
 * garbage collector.
 */
const OF_LIMIT = 3 / 4;
/** Share of the memory of a machine without such a limit, which other programs use too; at most the next value. */
const OF_MACHINE = 1 / 4;
const MOST_OF_MACHINE = 1024 * MiB;
const LEAST_BYTES = 16 * MiB;

/** Bytes of media that a process with this much memory may hold. */
export function mediaBytes({ bytes, from }: MemoryLimit): number {
  const free =
    from === 'control-group'
      ? bytes * OF_LIMIT - PROGRAM_BYTES
      : Math.min(bytes * OF_MACHINE - PROGRAM_BYTES, MOST_OF_MACHINE);
  return Math.max(LEAST_BYTES, Math.floor(free));
}

export function registerMemoryMetrics(registry: Registry, memory: MemoryBudget): void {
  const { counter, gauge } = scraped(registry);
  const perUser = (valueOf: (account: MemoryAccount) => number) => () =>
    memory.accounts.map((account) => [{ kind: account.name }, valueOf(account)] as const);
  gauge(
    'memory_budget_limit_bytes',
    'Bytes of media that this process may hold at the same time.',
    [],
    () => memory.limitBytes,
  );
  gauge(
    'memory_budget_used_bytes',
    'Bytes of media that are held, by use.',
    ['kind'],
    perUser(({ usedBytes }) => usedBytes),
  );
  counter(
    'memory_budget_sheds_total',
    'How often media was dropped because memory was short, by kind of use.',
    ['kind'],
    perUser(({ sheds }) => sheds),
  );
  counter(
    'memory_budget_refusals_total',
    'How often a request for memory was refused, by kind of use.',
    ['kind'],
    perUser(({ refusals }) => refusals),
  );
}
