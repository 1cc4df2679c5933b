// The command `recorder admin-link`: prints a link to the page of the recorder on this machine. The first person who opens it
// chooses name and password of an admin.

import { asOwnerOf } from '../../base/as-owner.ts';
import { formatListen } from '../config/values.ts';
import { AdminCode, adminLink, reachable } from '../http/admin-code.ts';
import { makesUsers } from '../run/access.ts';
import { CONFIG_OPTION, parsedArgs, UsageError, type CommandContext } from './command.ts';

export const usage = `Usage: recorder admin-link [--config FILE]

Prints a link to the page of the recorder on this machine. The first person who opens it chooses a name and a password, and is an
admin. The link is valid once, for 24 hours, until the recorder restarts or this command runs again.

  --config FILE    configuration of the recorder (default /etc/recorder/config.yaml)
`;

export async function run(args: readonly string[], { clock, load, print }: CommandContext): Promise<number> {
  const config = await load(parsedArgs(args, { options: CONFIG_OPTION }).values.config);
  if (!makesUsers(config)) {
    throw new UsageError(
      'users of this recorder are not made on the page: see auth.mode, and in a pool the Secret of its tokens',
    );
  }
  const address = `${config.tls ? 'https' : 'http'}://${formatListen(config.listen)}`;
  // The recorder must be able to read what root writes for it.
  const code = await asOwnerOf(config.workDir, () => new AdminCode(config.workDir, clock).make());
  print(`${adminLink(reachable(address), code)}\n`);
  return 0;
}
