// `kubectl nvr`: the commands for a whole site as a plugin of kubectl. The file `kubectl-nvr` on the PATH calls `recorder kubectl`.

import { runCommand, UsageError, type Command } from './command.ts';
import { SITE_COMMANDS } from './site-commands.ts';
import { siteCommand, type SiteCommand } from './site-command.ts';

const COMMANDS: ReadonlyMap<string, SiteCommand> = new Map(Object.entries(SITE_COMMANDS));

const USAGE = `Usage: kubectl nvr COMMAND [--help]

${[...COMMANDS.values()].map(({ synopsis, text }) => `  ${synopsis}\n      ${text.split('\n')[0]}\n`).join('')}`;

const named = (name: string | undefined): Command | undefined => {
  const found = COMMANDS.get(name ?? '');
  return found && siteCommand(found, true);
};

export const KUBECTL_NVR: Command = {
  usage: ([name]) => (named(name)?.usage as string | undefined) ?? USAGE,
  run: ([name, ...args], context) => {
    const command = named(name);
    if (!command) throw new UsageError(name === undefined ? 'expected a command' : `there is no command ${name}`);
    return runCommand(command, args, context);
  },
};
