// The command `recorder discover`: prints the cameras in the networks of the node as a table, as entries of the
// configuration file, or as manifests.

import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { text as readAll } from 'node:stream/consumers';
import { messageOf } from '../../base/error.ts';
import { parseDuration, ValueError } from '../config/values.ts';
import type { DeviceReport } from '../onvif/discovery/describe.ts';
import { discover } from '../onvif/discovery/discover.ts';
import { formatConfig, formatManifests, formatProblem, formatTable } from '../onvif/discovery/output.ts';
import { addressesOf } from '../onvif/discovery/probe.ts';
import type { Credentials } from '../onvif/target.ts';
import { parsedArgs, UsageError, type CommandContext } from './command.ts';
import { anywhere } from '../reach/reach.ts';

export const usage = `Usage: recorder discover [--interface NAME]... [--timeout 3s] [--user NAME --password-file FILE] [--output FORMAT]

Searches the networks of this machine for ONVIF cameras (WS-Discovery), and asks the cameras for their streams.

  --interface NAME      search from this interface, by name or IPv4 address; without it, from all except loopback
  --timeout DURATION    how long to wait for answers, from 1s to 1m (default 3s)
  --user NAME           the cameras' user
  --password-file FILE  a file whose first line is the password; - for standard input
  --output FORMAT       table (default); yaml: the section cameras: of a configuration file, with the login;
                        kubernetes: a Camera and a Secret for each
`;

const FORMATS = { table: formatTable, yaml: formatConfig, kubernetes: formatManifests } as const;
const MAX_PASSWORD = 1024;

/** For `credentialsOf`. */
export const LOGIN_OPTIONS = { user: { type: 'string' }, 'password-file': { type: 'string' } } as const;

export async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const options = parsedArgs(args, {
    options: {
      ...LOGIN_OPTIONS,
      interface: { type: 'string', multiple: true, default: [] },
      timeout: { type: 'string', default: '3s' },
      output: { type: 'string', default: 'table' },
    },
  }).values;
  const format = formatOf(options.output);
  const timeoutMs = timeoutOf(options.timeout);
  const credentials = await credentialsOf(options, context.stdin);
  context.print(format(await searched(options.interface, timeoutMs, credentials, context), credentials));
  return 0;
}

/**
 * What answers in the networks of these interfaces, or of all except loopback if none is named. Prints what goes wrong. Throws
 * `UsageError` for an interface that is not there.
 */
export async function searched(
  interfaces: readonly string[],
  timeoutMs: number,
  credentials: Credentials | undefined,
  { clock, printError }: Pick<CommandContext, 'clock' | 'printError'>,
): Promise<readonly DeviceReport[]> {
  const { addresses, unknown } = addressesOf(networkInterfaces(), interfaces);
  if (unknown.length > 0) throw new UsageError(`--interface: there is no ${unknown.join(', ')} with an IPv4 address`);
  if (addresses.length === 0) throw new UsageError('this machine has no network with an IPv4 address');
  const { reports, problems } = await discover(
    { from: addresses, timeoutMs, credentials },
    { clock, reach: anywhere() },
  );
  for (const problem of problems) printError(formatProblem(problem));
  if (reports.length === 0) printError(formatProblem(`no camera answered at ${addresses.join(', ')}`));
  return reports;
}

function formatOf(text: string): (typeof FORMATS)[keyof typeof FORMATS] {
  if (Object.hasOwn(FORMATS, text)) return FORMATS[text as keyof typeof FORMATS];
  throw new UsageError(`--output: expected one of ${Object.keys(FORMATS).join(', ')}`);
}

function timeoutOf(text: string): number {
  try {
    const ms = parseDuration(text);
    if (ms >= 1_000 && ms <= 60_000) return ms;
  } catch (err) {
    if (!(err instanceof ValueError)) throw err;
  }
  throw new UsageError('--timeout: expected a duration from 1s to 1m');
}

/** A password is not accepted as an argument: every process of the machine could read it. */
export async function credentialsOf(
  options: { readonly user?: string | undefined; readonly 'password-file'?: string | undefined },
  stdin: NodeJS.ReadableStream,
): Promise<Credentials | undefined> {
  const { user, 'password-file': file } = options;
  if (user === undefined) {
    if (file !== undefined) throw new UsageError('--password-file: needs --user');
    return undefined;
  }
  if (file === undefined) throw new UsageError('--user: needs --password-file, - for standard input');
  const password = (await readPassword(file, stdin)).split(/\r?\n/, 1)[0] as string;
  if (password.length > MAX_PASSWORD) throw new UsageError('--password-file: its first line is not a password');
  return { username: user, password };
}

async function readPassword(file: string, stdin: NodeJS.ReadableStream): Promise<string> {
  try {
    return file === '-' ? await readAll(stdin) : await readFile(file, 'utf8');
  } catch (err) {
    throw new UsageError(`--password-file: ${messageOf(err)}`, { cause: err });
  }
}
