// The command `recorder audit`: checks whether every line in the files of an audit is as it was written.

import { verifyAudit } from '../audit/verify.ts';
import { UsageError, type CommandContext } from './command.ts';

export const usage = `Usage: recorder audit DIRECTORY

Checks that every line of the audit in DIRECTORY follows from the previous one, and prints the last one. Exits with 1 if a line
does not.
`;

export async function run([directory, ...more]: readonly string[], { print }: CommandContext): Promise<number> {
  if (directory === undefined || more.length > 0 || directory.startsWith('-')) {
    throw new UsageError('expected one directory');
  }
  const { lines, first, end, broken } = await verifyAudit(directory);
  if (broken !== undefined) print(`${broken}\n`);
  else if (!end) print(`${directory}: the directory contains no audit\n`);
  else {
    const about = `${lines} lines, ${first} to ${end.n}, the last with SHA-256 ${end.sha256}`;
    print(`${about}: every line follows from the previous one\n`);
  }
  return broken === undefined && end ? 0 : 1;
}
