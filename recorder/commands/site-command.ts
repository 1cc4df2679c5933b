// A command for a whole site: how its arguments are read, with a recorder to ask or as a plugin of kubectl.

import { ADMIN_OPTIONS, ADMIN_USAGE, type AdminOptions } from './admin-client.ts';
import { parsedArgs, UsageError, type Command, type CommandContext } from './command.ts';
import { KUBECTL_OPTIONS, KUBECTL_USAGE, KubectlSite } from './kubectl.ts';
import { ofServer, type Site, type Values } from './site.ts';

export interface SiteCommand {
  /** Its arguments, and what they do, without the options of all commands. */
  readonly synopsis: string;
  readonly text: string;
  /** How many arguments without a name it has. */
  readonly takes: readonly [number, number];
  readonly options?: Readonly<Record<string, { readonly type: 'string' | 'boolean'; readonly short?: string }>>;
  readonly run: (site: Site, args: readonly string[], values: Values, context: CommandContext) => Promise<number>;
}

/** `isPlugin`: it is called as `kubectl nvr`. */
export function siteCommand(about: SiteCommand, isPlugin: boolean): Command {
  const { synopsis, text, takes, options = {} } = about;
  const usage = `Usage: ${isPlugin ? 'kubectl nvr' : 'recorder'} ${synopsis}\n\n${text}${isPlugin ? KUBECTL_USAGE : ADMIN_USAGE}`;
  const shared = isPlugin ? KUBECTL_OPTIONS : ADMIN_OPTIONS;
  return {
    usage,
    run: async (args, context) => {
      const { values, positionals } = parsedArgs(args, {
        allowPositionals: true,
        options: { ...shared, ...options },
      });
      const [least, most] = takes;
      if (positionals.length < least || positionals.length > most) throw new UsageError(`expected: ${synopsis}`);
      const given = values as Values;
      const site = isPlugin ? new KubectlSite(given, context) : ofServer(given as unknown as AdminOptions, context);
      return about.run(site, positionals, given, context);
    },
  };
}
