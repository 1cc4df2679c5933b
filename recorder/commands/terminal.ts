// Questions to the person at a terminal.

import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { ReadStream } from 'node:tty';

export const isTerminal = (input: NodeJS.ReadableStream): boolean => (input as ReadStream).isTTY;

/** Resolves to the line that is typed. `hidden`: it is not shown, as it is a password. */
export async function ask(
  question: string,
  input: NodeJS.ReadableStream,
  print: (text: string) => void,
  { hidden = false } = {},
): Promise<string> {
  const output = new Writable({
    write: (text, _encoding, done) => {
      if (!hidden) print(String(text));
      done();
    },
  });
  const terminal = createInterface({ input, output, terminal: true });
  try {
    if (hidden) print(question);
    const line = await terminal.question(hidden ? '' : question);
    if (hidden) print('\n');
    return line;
  } finally {
    terminal.close();
  }
}
