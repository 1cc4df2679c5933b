// The command `recorder token create`: prints a random token and its entry for the configuration.

import { stringify } from 'yaml';
import { firstProblem } from '../config/load.ts';
import { TokenFile } from '../config/schema.ts';
import { newToken, sha256 } from '../../base/new-token.ts';
import { parsedArgs, UsageError, type CommandContext } from './command.ts';

export const usage = `Usage: recorder token create --name NAME [--role viewer] [--cameras ID,ID]

Makes a token of 256 random bits. The configuration contains only its hash, so the token is shown only once.

  --name NAME       name of the owner, for logs and audit
  --role ROLE       viewer (default), operator, admin or reporter (only reports events)
  --cameras IDS     only for these cameras, separated by commas; * stands for any characters
`;

export function run([command, ...args]: readonly string[], { print }: Pick<CommandContext, 'print'>): number {
  if (command !== 'create') throw new UsageError('expected "token create"');
  const { name, role, cameras } = parsedArgs(args, {
    options: { name: { type: 'string' }, role: { type: 'string', default: 'viewer' }, cameras: { type: 'string' } },
  }).values;
  if (name === undefined) throw new UsageError('--name: expected the name of the owner');
  const token = newToken();
  const entry = {
    name,
    role,
    sha256: sha256(token).toString('hex'),
    ...(cameras === undefined ? {} : { cameras: cameras.split(',') }),
  };
  const parsed = TokenFile.safeParse(entry);
  if (!parsed.success) {
    const { key, problem } = firstProblem(parsed.error);
    throw new UsageError(`--${key.replace(/\[.*/, '')}: ${problem}`);
  }
  const item = stringify([entry]).replace(/^(?=.)/gm, '  ');
  print(
    `${token}\n\nThis token is not shown again. Put into the configuration, or as a list into the file of auth.tokensFile:\n\nauth:\n  tokens:\n${item.replace(/^/gm, '  ').trimEnd()}\n`,
  );
  return 0;
}
