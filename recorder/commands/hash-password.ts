// `recorder --hash-password`: reads a password from standard input, or from a terminal without showing it, and returns its hash
// for the configuration.

import { createInterface } from 'node:readline/promises';
import { hashPassword } from '../../base/password-hash.ts';
import { problemOfPassword } from '../http/new-password.ts';
import { ask, isTerminal } from './terminal.ts';
import { UsageError } from './command.ts';

/** `print` writes to the terminal. Throws `UsageError` for a password that is too short, too long, or guessed first. */
export async function runHashPassword(input: NodeJS.ReadableStream, print: (text: string) => void): Promise<string> {
  const password = isTerminal(input) ? await typed(input, print) : await firstLine(input);
  const problem = problemOfPassword(password);
  if (problem !== undefined) throw new UsageError(`password: ${problem}`);
  return hashPassword(password);
}

async function typed(input: NodeJS.ReadableStream, print: (text: string) => void): Promise<string> {
  const password = await ask('Password: ', input, print, { hidden: true });
  const again = await ask('Once more: ', input, print, { hidden: true });
  if (again !== password) throw new UsageError('the passwords differ');
  return password;
}

async function firstLine(input: NodeJS.ReadableStream): Promise<string> {
  const lines = createInterface({ input });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
  }
}
