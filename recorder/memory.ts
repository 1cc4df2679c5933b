// How much memory media may take in this process, and what gives way first. docs/sizing.md says what a camera needs.

import { Gauge, Counter, type Registry } from 'prom-client';
import { MemoryBudget, type MemoryAccount } from '../base/memory-budget.ts';
import type { MemoryLimit } from '../base/memory-limit.ts';

const MiB = 1024 ** 2;

/** The program itself, its heap, and what is free in its pools. */
const PROGRAM_BYTES = 160 * MiB;
/** Of a control group's limit: the rest is for what the kernel counts as ours, sockets and files, and for the garbage collector. */
const OF_LIMIT = 3 / 4;
/** Of a machine without such a limit, which others use as well; and no more than this. */
const OF_MACHINE = 1 / 4;
const MOST_OF_MACHINE = 1024 * MiB;
const LEAST_BYTES = 16 * MiB;

/** Footage that waits for the disk may take all but this share, so that live streams go on while it waits. */
const FOR_WRITING = 7 / 8;
/** And has this share even where cameras are too many for the memory: a disk that works loses nothing with it. */
const AT_LEAST_FOR_WRITING = 1 / 4;

/** Bytes of media that a process may hold that has this much memory. */
export function mediaBytes({ bytes, from }: MemoryLimit): number {
  const free =
    from === 'control-group'
      ? bytes * OF_LIMIT - PROGRAM_BYTES
      : Math.min(bytes * OF_MACHINE - PROGRAM_BYTES, MOST_OF_MACHINE);
  return Math.max(LEAST_BYTES, Math.floor(free));
}

/** What cameras are sending: not yet a fragment, and not to be refused. */
export const forCameras = (memory: MemoryBudget): MemoryAccount => memory.open('cameras', { maxBytes: Infinity });

/** What answers people may hold, each so much of all. */
const FOR_ANSWERS = 1 / 8;

export interface AnswerMemory {
  /** Read and not sent yet. */
  readonly playback: MemoryAccount;
  /** Still images that are fetched or kept. */
  readonly images: MemoryAccount;
  /** Buffers of exports and time-lapses. */
  readonly jobs: MemoryAccount;
}

/** They have bounds of their own, and nothing to let go of. */
export function forAnswers(memory: MemoryBudget): AnswerMemory {
  const maxBytes = memory.limitBytes * FOR_ANSWERS;
  const open = (name: string): MemoryAccount => memory.open(name, { maxBytes });
  return { playback: open('playback'), images: open('images'), jobs: open('jobs') };
}

/** Those who follow what happens, each so much of all. */
const FOR_EVENTS = 1 / 16;
/** An hour of some hundred cameras that come and go all the time. */
const MOST_EVENTS = 8 * MiB;

export interface EventMemory {
  /** The last hour of events. `shed`: lets the oldest of them go. */
  readonly journal: (shed: (bytes: number) => void) => MemoryAccount;
  /** What waits for connections of those who follow. */
  readonly streams: MemoryAccount;
}

export const forEvents = (memory: MemoryBudget): EventMemory => ({
  streams: memory.open('event-streams', { maxBytes: memory.limitBytes * FOR_EVENTS }),
  journal: (shed) => {
    const maxBytes = Math.min(memory.limitBytes * FOR_EVENTS, MOST_EVENTS);
    return memory.open('events', { maxBytes, minBytes: maxBytes / 4, shed });
  },
});

/** Opened last: all others give way to recording. */
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
    help: 'Bytes of media that this process may hold at once.',
    registers: [registry],
  });
  limit.set(memory.limitBytes);
  perUser(
    Gauge,
    'kube_nvr_memory_budget_used_bytes',
    'Bytes of media that are held, by kind of use.',
    ({ usedBytes }) => usedBytes,
  );
  perUser(
    Counter,
    'kube_nvr_memory_budget_sheds_total',
    'How often something was let go of because memory was short, by what it was held for.',
    ({ sheds }) => sheds,
  );
  perUser(
    Counter,
    'kube_nvr_memory_budget_refusals_total',
    'How often there was no room for more, by kind of use.',
    ({ refusals }) => refusals,
  );
}
