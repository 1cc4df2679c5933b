// The command `recorder admin-link`: prints a link to the page of the recorder on this machine. The first person who opens it
// chooses name and password of an admin.

import type { Clock } from '../../base/clock.ts';
import type { Config } from '../config/schema.ts';
import { formatListen } from '../config/values.ts';
import { AdminCode, adminLink, reachable } from '../http/admin-code.ts';
import { makesUsers } from '../run/access.ts';
import { parsedArgs } from './options.ts';
import { UsageError } from './usage-error.ts';

export const ADMIN_LINK_USAGE = `Usage: recorder admin-link [--config FILE]

Prints a link to the page of the recorder on this machine. The first person who opens it chooses a name and a password, and is an
admin. The link is valid once, for 24 hours, until the recorder restarts or this command runs again.

  --config FILE    configuration of the recorder (default /etc/recorder/config.yaml)
`;

interface Around {
  readonly clock: Clock;
  readonly load: (file: string) => Promise<Config>;
}

/** Throws `UsageError`. */
export async function runAdminLink(args: readonly string[], { clock, load }: Around): Promise<string> {
  const { help, config: file } = optionsIn(args);
  if (help) return ADMIN_LINK_USAGE;
  const config = await load(file);
  if (!makesUsers(config)) {
    throw new UsageError(
      'users of this recorder are not made on the page: see auth.mode, and in a pool the Secret of its tokens',
    );
  }
  const address = `${config.tls ? 'https' : 'http'}://${formatListen(config.listen)}`;
  return `${adminLink(reachable(address), await new AdminCode(config.workDir, clock).make())}\n`;
}

function optionsIn(args: readonly string[]) {
  return parsedArgs({
    args: [...args],
    options: {
      config: { type: 'string', default: '/etc/recorder/config.yaml' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  }).values;
}
