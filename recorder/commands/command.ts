// What a command of `recorder` is, what it gets, and how it reads its arguments.

import { parseArgs, type ParseArgsConfig } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Config } from '../config/schema.ts';

/** What a command uses of its process. */
export interface CommandContext {
  readonly clock: Clock;
  readonly version: string;
  readonly stdin: NodeJS.ReadableStream;
  /** Writes results to standard output. */
  readonly print: (text: string) => void;
  /** Takes a stream of bytes. */
  readonly stdout: NodeJS.WritableStream;
  /** Writes errors to standard error. */
  readonly printError: (text: string) => void;
  /** Aborts when the user interrupts. */
  readonly interrupted: () => AbortSignal;
  /** Reads a configuration file. */
  readonly load: (file: string) => Promise<Config>;
  /** The environment, for the programs of the user that a command starts. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface Command {
  /** What `--help` prints, and wrong arguments are answered with; of the subcommand that the arguments name. */
  readonly usage: string | ((args: readonly string[]) => string);
  /** Resolves to the exit code. Rejects with `UsageError` for wrong arguments, and with `CommandError`. */
  readonly run: (args: readonly string[], context: CommandContext) => number | Promise<number>;
}

/** Invalid arguments; the message is for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** It cannot be done; the message is for the user. */
export class CommandError extends Error {}

/** An option with the path of the recorder's configuration. */
export const CONFIG_OPTION = { config: { type: 'string', default: '/etc/recorder/config.yaml' } } as const;

/** Like `parseArgs`; throws `UsageError` for arguments that `config` does not allow. */
export function parsedArgs<const T extends Omit<ParseArgsConfig, 'args'>>(args: readonly string[], config: T) {
  try {
    return parseArgs({ ...config, args: [...args] });
  } catch (err) {
    throw new UsageError(messageOf(err), { cause: err });
  }
}

/** Runs a command, or prints its usage. Resolves to the exit code. */
export async function runCommand(
  { usage, run }: Command,
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  const text = typeof usage === 'string' ? usage : usage(args);
  if (args.includes('--help') || args.includes('-h')) return (context.print(text), 0);
  try {
    return await run(args, context);
  } catch (err) {
    if (err instanceof CommandError) return (context.printError(`recorder: ${err.message}\n`), 1);
    if (!(err instanceof UsageError)) throw err;
    context.printError(`${err.message}\n\n${text}`);
    return 2;
  }
}
