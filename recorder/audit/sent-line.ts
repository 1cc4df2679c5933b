// A line of the audit as it is sent to a collector, with the stream that it belongs to.

import { hashOf, parseLine, type ChainEnd } from './files.ts';

/** Where the lines of a node come from: together with `n` of a line, it is unique at the collector. */
export interface Stream {
  readonly node: string;
  readonly site?: string | undefined;
  /** The namespace of Kubernetes in which the recorder runs. */
  readonly namespace?: string | undefined;
  /** The RecorderPool that the node records for. */
  readonly pool?: string | undefined;
  readonly version: string;
}

export interface SentLine {
  readonly n: number;
  /** SHA-256 of the line. The line contains that of the one before, so no other line has it: a collector drops duplicates by it. */
  readonly id: string;
  /** Milliseconds since 1970; undefined for a line that a crash has cut. */
  readonly timeMs: number | undefined;
  /** SHA-256 of the previous line; undefined for a line that a crash has cut. */
  readonly prev: string | undefined;
  /** Whether it tells of a call that was refused or failed. */
  readonly isRefusal: boolean;
  /** The facts by which a collector filters, of those that the line has. */
  readonly facts: Readonly<Record<string, string>>;
  /** The line as it is in the file. */
  readonly text: string;
}

const FACTS = ['what', 'caller', 'statedBy', 'camera', 'outcome'] as const;
const REFUSALS: ReadonlySet<unknown> = new Set(['denied', 'failed']);

/** `before`: the end of the chain before the line. */
export function sentLineOf(text: string, before: ChainEnd): SentLine {
  const line = parseLine(text);
  const timeMs = Date.parse(line?.time ?? '');
  const facts = FACTS.flatMap((name) => {
    const value = line?.[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  return {
    n: line?.n ?? before.n + 1,
    id: hashOf(text),
    timeMs: Number.isNaN(timeMs) ? undefined : timeMs,
    prev: line?.prev,
    isRefusal: REFUSALS.has(line?.['outcome']),
    facts: Object.fromEntries(facts) as SentLine['facts'],
    text,
  };
}
