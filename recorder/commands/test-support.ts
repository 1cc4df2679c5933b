// What commands get in tests.

import { PassThrough, Readable } from 'node:stream';
import { systemClock } from '../../base/clock.ts';
import type { CommandContext } from './command.ts';

/** A context, and what a command prints with it. */
export function commandContext(given: Partial<CommandContext> = {}) {
  const printed = { out: '', err: '' };
  const context: CommandContext = {
    clock: systemClock,
    version: '1.2.3',
    stdin: Readable.from([]),
    print: (text) => void (printed.out += text),
    printError: (text) => void (printed.err += text),
    interrupted: () => new AbortController().signal,
    stdout: new PassThrough(),
    env: {},
    load: () => Promise.reject(new Error('no configuration is needed')),
    ...given,
  };
  return { context, printed };
}
