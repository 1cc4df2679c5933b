// `recorder --hash-password`: reads a password from standard input, or from a terminal without showing it, and returns its hash
// for the configuration.

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { ReadStream } from 'node:tty';
import { hashPassword, MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../base/password-hash.ts';
import { UsageError } from './usage-error.ts';

/** `ask` writes to the terminal. Throws `UsageError` for a password that is too short or too long. */
export async function runHashPassword(input: NodeJS.ReadableStream, ask: (text: string) => void): Promise<string> {
  const password = (input as ReadStream).isTTY ? await typed(input, ask) : await firstLine(input);
  if (password.length < MIN_PASSWORD_LENGTH) {
    throw new UsageError(`expected a password of at least ${MIN_PASSWORD_LENGTH} characters`);
  }
  if (password.length > MAX_PASSWORD_LENGTH) {
    throw new UsageError(`expected a password of at most ${MAX_PASSWORD_LENGTH} characters`);
  }
  return hashPassword(password);
}

async function typed(input: NodeJS.ReadableStream, ask: (text: string) => void): Promise<string> {
  // Its output would show what is typed.
  const output = new Writable({ write: (_text, _encoding, done) => done() });
  const terminal = createInterface({ input, output, terminal: true });
  try {
    ask('Password: ');
    const password = await terminal.question('');
    ask('\nOnce more: ');
    const again = await terminal.question('');
    ask('\n');
    if (again !== password) throw new UsageError('the passwords differ');
    return password;
  } finally {
    terminal.close();
  }
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
