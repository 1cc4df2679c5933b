// Divides the memory for media in this process, and defines what is released first. docs/sizing.md says what a camera
// needs.

import { Gauge, Counter, type Registry } from 'prom-client';
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

/** Footage that waits for the disk may use this share, so that live streams continue meanwhile. */
const FOR_WRITING = 7 / 8;
/** Footage always has this share, even if there are too many cameras for the memory: it is enough for a working disk. */
const AT_LEAST_FOR_WRITING = 1 / 4;

/** Bytes of media that a process with this much memory may hold. */
export function mediaBytes({ bytes, from }: MemoryLimit): number {
  const free =
    from === 'control-group'
      ? bytes * OF_LIMIT - PROGRAM_BYTES
      : Math.min(bytes * OF_MACHINE - PROGRAM_BYTES, MOST_OF_MACHINE);
  return Math.max(LEAST_BYTES, Math.floor(free));
}

/** Data that cameras send and that are not a fragment yet; they cannot be refused. */
export const forCameras = (memory: MemoryBudget): MemoryAccount => memory.open('cameras', { maxBytes: Infinity });

/** The share of each kind of answer. */
const FOR_ANSWERS = 1 / 8;

export interface AnswerMemory {
  /** Data that were read and are not sent yet. */
  readonly playback: MemoryAccount;
  /** Still images that are fetched or kept. */
  readonly images: MemoryAccount;
  /** Buffers of exports and time-lapses. */
  readonly jobs: MemoryAccount;
}

/** Answers have their own limits, and cannot release memory. */
export function forAnswers(memory: MemoryBudget): AnswerMemory {
  const maxBytes = memory.limitBytes * FOR_ANSWERS;
  const open = (name: string): MemoryAccount => memory.open(name, { maxBytes });
  return { playback: open('playback'), images: open('images'), jobs: open('jobs') };
}

/** The share of events that are kept, and of events that wait for clients. */
const FOR_EVENTS = 1 / 16;
/** An hour of events of a few hundred cameras that keep connecting and disconnecting. */
const MOST_EVENTS = 8 * MiB;

interface EventMemory {
  /** The last hour of events. `shed` drops the oldest. */
  readonly journal: (shed: (bytes: number) => void) => MemoryAccount;
  /** Events that wait for connections of clients. */
  readonly streams: MemoryAccount;
}

export const forEvents = (memory: MemoryBudget): EventMemory => ({
  streams: memory.open('event-streams', { maxBytes: memory.limitBytes * FOR_EVENTS }),
  journal: (shed) => {
    const maxBytes = Math.min(memory.limitBytes * FOR_EVENTS, MOST_EVENTS);
    return memory.open('events', { maxBytes, minBytes: maxBytes / 4, shed });
  },
});

/** The share of standbys. */
const FOR_STANDBYS = 1 / 2;

/**
 * Only recording takes precedence over it. `shed` is set later, because the order of the accounts is fixed before it is
 * known.
 */
export function forStandbys(memory: MemoryBudget): (shed: (bytes: number) => void) => MemoryAccount {
  let release = (_bytes: number): void => {};
  const maxBytes = memory.limitBytes * FOR_STANDBYS;
  const account = memory.open('standby', { maxBytes, shed: (bytes) => release(bytes) });
  return (shed) => {
    release = shed;
    return account;
  };
}

/** Opened last, so that all other users release memory for recording. */
export const forWriting = (memory: MemoryBudget): MemoryAccount =>
  memory.open('writing', {
    maxBytes: memory.limitBytes * FOR_WRITING,
    minBytes: memory.limitBytes * AT_LEAST_FOR_WRITING,
  });

export function registerMemoryMetrics(registry: Registry, memory: MemoryBudget): void {
  const perUser = (
    Metric: typeof Gauge | typeof Counter,
    name: string,
    help: string,
    valueOf: (account: MemoryAccount) => number,
  ): void => {
    registry.registerMetric(
      new Metric<string>({
        name,
        help,
        labelNames: ['kind'],
        registers: [],
        collect() {
          this.reset();
          for (const account of memory.accounts) this.inc({ kind: account.name }, valueOf(account));
        },
      }),
    );
  };
  const limit = new Gauge({
    name: 'kube_nvr_memory_budget_limit_bytes',
    help: 'Bytes of media that this process may hold at the same time.',
    registers: [registry],
  });
  limit.set(memory.limitBytes);
  perUser(
    Gauge,
    'kube_nvr_memory_budget_used_bytes',
    'Bytes of media that are held, by use.',
    ({ usedBytes }) => usedBytes,
  );
  perUser(
    Counter,
    'kube_nvr_memory_budget_sheds_total',
    'How often media was dropped because memory was short, by kind of use.',
    ({ sheds }) => sheds,
  );
  perUser(
    Counter,
    'kube_nvr_memory_budget_refusals_total',
    'How often a request for memory was refused, by kind of use.',
    ({ refusals }) => refusals,
  );
}
