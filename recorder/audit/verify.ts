// Verifies that every line in the files of an audit follows from the previous one.

import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ASIDE, NEWEST, hashOf, parseLine, type AuditLine, type ChainEnd } from './files.ts';

interface Verdict {
  readonly lines: number;
  /** Number of the oldest line. */
  readonly first: number | undefined;
  readonly end: ChainEnd | undefined;
  /** The first place where the chain is broken: file, line in it, and what is wrong. */
  readonly broken: string | undefined;
}

/** Throws errors of the file system. */
export async function verifyAudit(directory: string): Promise<Verdict> {
  let lines = 0;
  let first: number | undefined;
  let end: ChainEnd | undefined;
  for (const name of (await readdir(directory)).filter((name) => ASIDE.test(name) || name === NEWEST).sort()) {
    let number = 0;
    for await (const text of createInterface({ input: createReadStream(join(directory, name)) })) {
      number++;
      const line = parseLine(text);
      first ??= line?.n;
      const problem = problemOf(line, end);
      if (problem !== undefined) return { lines, first, end, broken: `${name}:${number}: ${problem}` };
      end = { n: line?.n ?? (end as ChainEnd).n + 1, sha256: hashOf(text) };
      lines++;
    }
  }
  return { lines, first, end, broken: undefined };
}

/** A line truncated by a crash is not JSON: it is valid if the next line has its hash. */
function problemOf(line: AuditLine | undefined, before: ChainEnd | undefined): string | undefined {
  if (!before) return line ? undefined : 'this is not a line of an audit';
  if (!line) return undefined;
  const expected = before.n + 1;
  if (line.n !== expected) return `line ${line.n} is at the position of line ${expected}`;
  return line.prev === before.sha256 ? undefined : `line ${before.n} was changed after it was written`;
}
