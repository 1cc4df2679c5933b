// The shares of answers and events in the memory for media.

import type { MemoryAccount, MemoryBudget } from '../../base/memory-budget.ts';

const MiB = 1024 ** 2;

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
  const open = (name: string): MemoryAccount => memory.open(name, { maxBytes, isApart: true });
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
  streams: memory.open('event-streams', { maxBytes: memory.limitBytes * FOR_EVENTS, isApart: true }),
  journal: (shed) => {
    const maxBytes = Math.min(memory.limitBytes * FOR_EVENTS, MOST_EVENTS);
    return memory.open('events', { maxBytes, minBytes: maxBytes / 4, shed, isApart: true });
  },
});
