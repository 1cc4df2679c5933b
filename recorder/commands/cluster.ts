// The command `recorder cluster`: makes a cluster of servers without Kubernetes, and lets servers join it.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { asOwnerOf } from '../../base/as-owner.ts';
import { AdminClient, AdminError, ADMIN_OPTIONS, ADMIN_USAGE, readNamed } from './admin-client.ts';
import { askToJoin, JoinError } from '../certificates/ask-to-join.ts';
import { EXPULSION_STEPS } from '../certificates/expulsion.ts';
import { foundCluster } from '../certificates/found-cluster.ts';
import { parseJoinToken } from '../certificates/join-token.ts';
import { nodeFiles, readCluster, writeMember } from '../certificates/node-files.ts';
import { ConfigError, loadConfig } from '../config/load.ts';
import { nodeNameProblem } from './node-name.ts';
import type { Config } from '../config/schema.ts';
import { parseListen } from '../config/values.ts';
import { reachedAs } from '../config/exposure.ts';
import { CONFIG_OPTION, parsedArgs, UsageError, type CommandContext } from './command.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import { ask, isTerminal } from './terminal.ts';

const CONFIG_LINE = '  --config FILE      configuration of the recorder (default /etc/recorder/config.yaml)\n';

const CLUSTER_USAGE = `Usage: recorder cluster init [--address HOST]
       recorder cluster token NODE
       recorder cluster join MEMBER --token TOKEN [--address HOST]
       recorder cluster rotate-key [--force]
       recorder cluster expel NODE [--force]
       recorder cluster recover [--force]

Makes a cluster of servers without Kubernetes, and lets servers join it. Each has --help.

  init        on the first server: make the CA of the cluster and the certificate of this server
  token       on a member: make a token with which the server of this name joins, once, within an hour
  join        on another server: get a certificate of the cluster from the member at this address
  rotate-key  on a member: replace the key that encrypts the Secrets of the cluster
  expel       on another member: take every right back from a server that was stolen or taken over
  recover     on the last server, when the others are lost for good: make a cluster of this one alone
`;

const INIT_USAGE = `Usage: recorder cluster init [--address HOST] [--config FILE]

Makes the CA of a cluster, the certificate of this server, and conf.d/cluster.yaml next to the configuration. It starts nothing.

  --address HOST     the name or address at which the other servers reach this one (default: all of this machine)
${CONFIG_LINE}`;

const CLUSTER_TOKEN_USAGE = `Usage: recorder cluster token NODE

Prints a token with which the server whose node name is NODE joins the cluster. It is valid once, for an hour.

${ADMIN_USAGE}`;

const JOIN_USAGE = `Usage: recorder cluster join MEMBER --token TOKEN [--address HOST] [--config FILE]

Gets a certificate of the cluster for this server, and writes conf.d/cluster.yaml next to the configuration. It starts nothing.

  MEMBER             name or address of a member, with its cluster.listen port if that is not 9995
  --token TOKEN      that recorder cluster token has printed for this server
  --token-file FILE  a file with the token, instead of --token: other users of this machine see the arguments of commands
  --address HOST     the name or address at which the other servers reach this one (default: all of this machine)
${CONFIG_LINE}`;

const ROTATE_USAGE = `Usage: recorder cluster rotate-key [--force]

Replaces the key that encrypts the Secrets of the cluster: all members get the new one, and all Secrets are encrypted with it.

  --force            also while members are away, which get the key when they return
${ADMIN_USAGE}`;

const EXPEL_USAGE = `Usage: recorder cluster expel NODE [--force]

Takes every right back from the server whose node name is NODE, which was stolen or taken over: removes it, and replaces the key that
encrypts the Secrets of the cluster and its CA, while the other servers go on. Names the passwords of cameras that the server knows.
Disconnect the server from the network first. Repeat the command if it fails.

  --force            also while other members are away, which have to join again
${ADMIN_USAGE}`;

const RECOVER_USAGE = `Usage: recorder cluster recover [--force] [--config FILE]

For the last server of a cluster whose other servers are lost for good, and with them the majority: makes a cluster of this server alone
out of its own state. The recorder must be stopped. What the lost servers knew and this one did not is lost. They must not run again
before this server does. It starts nothing.

  --force            do not ask
${CONFIG_LINE}`;

const SUBCOMMANDS = new Map([
  ['init', { run: init, usage: INIT_USAGE }],
  ['token', { run: token, usage: CLUSTER_TOKEN_USAGE }],
  ['join', { run: joinAt, usage: JOIN_USAGE }],
  ['rotate-key', { run: rotateKey, usage: ROTATE_USAGE }],
  ['expel', { run: expel, usage: EXPEL_USAGE }],
  ['recover', { run: recover, usage: RECOVER_USAGE }],
]);

export const usage = ([command = '']: readonly string[]): string => SUBCOMMANDS.get(command)?.usage ?? CLUSTER_USAGE;

/** Of `cluster.listen` unless the configuration says otherwise. */
const PEERS_PORT = 9995;
const FILE_MODE = 0o640;
const DIRECTORY_MODE = 0o750;

const RotatedKey = z.object({ key_id: z.string(), secrets: z.number(), away: z.array(z.string()) });
const Expulsion = z.object({
  step: z.enum(EXPULSION_STEPS),
  problem: z.string().nullable(),
  away: z.array(z.string()),
  passwords: z.array(z.string()),
});
const Invitation = z.object({ token: z.string(), expires_at: z.string() });

/** Rejects with `ConfigError` and `NodeFileError`, too. */
export async function run([command = '', ...args]: readonly string[], context: CommandContext): Promise<number> {
  const subcommand = SUBCOMMANDS.get(command);
  if (!subcommand) throw new UsageError('expected init, token, join, rotate-key, expel or recover');
  return subcommand.run(args, context);
}

const SERVER_OPTIONS = { ...CONFIG_OPTION, address: { type: 'string' } } as const;

async function init(args: readonly string[], { clock, print, load }: CommandContext): Promise<number> {
  const { values } = parsedArgs(args, { options: SERVER_OPTIONS });
  const server = await serverOf(values, load);
  const { nodeName, cluster } = server.config;
  const write = await settingsOf(values.config, server, cluster.pool);
  const content = await foundCluster({
    nodeId: nodeName,
    namespace: STORE_NAMESPACE,
    pool: cluster.pool,
    names: server.names,
    nowMs: clock.wallMs(),
  });
  await asOwnerOf(server.files.directory, () => writeMember(server.files, content));
  await write();
  print(
    `${server.files.directory}: the CA of the cluster, and the certificate of ${nodeName}\n` +
      'Start the recorder: systemctl enable --now recorder\n' +
      'Then make a token for each other server, by its host name: recorder cluster token NODE\n',
  );
  return 0;
}

async function joinAt(args: readonly string[], { clock, print, printError, load }: CommandContext): Promise<number> {
  const { values, positionals } = parsedArgs(args, {
    allowPositionals: true,
    options: { ...SERVER_OPTIONS, token: { type: 'string' }, 'token-file': { type: 'string' } },
  });
  const [member, ...more] = positionals;
  if (member === undefined || more.length > 0) throw new UsageError('expected the address of a member');
  const address = memberAt(member);
  const given = await tokenIn(values);
  const parsed = parseJoinToken(given);
  if (!parsed) throw new UsageError('--token: expected what recorder cluster token has printed');
  const server = await serverOf(values, load);
  const { nodeName } = server.config;
  try {
    const asked = { address, token: parsed, nodeId: nodeName, names: server.names, clock };
    const { pool, ...content } = await askToJoin(asked);
    // Errors in the configuration are known only once the pool is known. By then there is a certificate, and the file
    // can be corrected.
    await asOwnerOf(server.files.directory, () => writeMember(server.files, content));
    await (
      await settingsOf(values.config, server, pool)
    )();
  } catch (err) {
    if (!(err instanceof JoinError)) throw err;
    printError(`recorder: ${err.message}\nThe name of this server is ${nodeName} (nodeName of the configuration).\n`);
    return 1;
  }
  print(
    `${server.files.directory}: the certificate of ${nodeName}\nStart the recorder: systemctl enable --now recorder\n`,
  );
  return 0;
}

async function token(args: readonly string[], context: CommandContext): Promise<number> {
  const { print, printError } = context;
  const { values, positionals } = parsedArgs(args, {
    allowPositionals: true,
    options: ADMIN_OPTIONS,
  });
  const [nodeId, ...more] = positionals;
  if (nodeId === undefined || more.length > 0) throw new UsageError('expected the node name of the server that joins');
  return asked(context, values, '/api/cluster/tokens', { node_id: nodeId }, (answer) => {
    const made = Invitation.parse(answer);
    print(`${made.token}\n`);
    printError(`For ${nodeId}, once, until ${made.expires_at}: recorder cluster join MEMBER --token TOKEN\n`);
  });
}

async function rotateKey(args: readonly string[], context: CommandContext): Promise<number> {
  const { print } = context;
  const { values } = parsedArgs(args, {
    options: {
      ...ADMIN_OPTIONS,
      force: { type: 'boolean', default: false },
    },
  });
  return asked(context, values, '/api/cluster/keys', { force: values.force }, (answer) => {
    const { key_id: key, secrets, away } = RotatedKey.parse(answer);
    print(`All ${secrets} Secrets are encrypted with the key ${key} now.\n`);
    if (away.length > 0) print(`Away, and get it when they return: ${away.join(', ')}\n`);
  });
}

const EXPULSION_PATH = '/api/cluster/expulsion';
const EXPEL_LOOK_MS = 1_000;
/** The recorder takes another certificate meanwhile, and may not answer for a moment. */
const EXPEL_MISSES = 30;
const EXPEL_STEPS: Readonly<Record<z.output<typeof Expulsion>['step'], string>> = {
  remove: 'The server is removed, with its logins and all tokens for joining.',
  keys: 'The key that encrypts Secrets is replaced.',
  trust: 'The other servers trust a new CA; etcd is started again on one after the other.',
  certificate: 'The other servers get certificates of the new CA.',
  drop: 'The other servers no longer trust the old CA; etcd is started again on one after the other.',
  done: 'Done: nothing that the server knows opens the cluster.',
};

async function expel(args: readonly string[], context: CommandContext): Promise<number> {
  const { clock, print, load } = context;
  const { values, positionals } = parsedArgs(args, {
    allowPositionals: true,
    options: { ...ADMIN_OPTIONS, force: { type: 'boolean', default: false } },
  });
  const [nodeId, ...more] = positionals;
  if (nodeId === undefined || more.length > 0) throw new UsageError('expected the node name of the server');
  // With the certificate that the recorder has by then.
  const call = async (method: string, body?: object): Promise<z.output<typeof Expulsion>> =>
    Expulsion.parse(await (await AdminClient.open(values, load)).call(method, EXPULSION_PATH, body));
  let state = await call('POST', { node_id: nodeId, force: values.force });
  let said: string | undefined;
  let misses = 0;
  for (;;) {
    if (state.step !== said) print(`${EXPEL_STEPS[state.step]}\n`);
    said = state.step;
    if (state.problem !== null) throw new AdminError(state.problem);
    if (state.step === 'done') break;
    await clock.sleep(EXPEL_LOOK_MS);
    try {
      state = await call('GET');
      misses = 0;
    } catch (err) {
      if (!(err instanceof AdminError) || ++misses > EXPEL_MISSES) throw err;
    }
  }
  if (state.away.length > 0) print(`Away, and have to join again: ${state.away.join(', ')}\n`);
  if (state.passwords.length > 0) print(`Change these passwords, at the cameras too: ${state.passwords.join(', ')}\n`);
  return 0;
}

/** Posts to the recorder as an admin. */
async function asked(
  { load }: CommandContext,
  options: Parameters<typeof AdminClient.open>[0],
  path: string,
  body: object,
  show: (answer: unknown) => void,
): Promise<number> {
  const client = await AdminClient.open(options, load);
  show(await client.call('POST', path, body));
  return 0;
}

async function recover(
  args: readonly string[],
  { clock, stdin, print, printError, load }: CommandContext,
): Promise<number> {
  const { values } = parsedArgs(args, {
    options: { ...CONFIG_OPTION, force: { type: 'boolean', default: false } },
  });
  const config = await load(values.config);
  const { cluster, nodeName } = config;
  if (cluster.mode !== 'etcd') throw new UsageError('this recorder belongs to no cluster of servers (cluster.mode)');
  if (!values.force) {
    if (!isTerminal(stdin)) throw new UsageError('expected --force: the other servers leave the cluster for good');
    const question = `All other servers leave the cluster for good. Type the name of this one (${nodeName}) to go on: `;
    if ((await ask(question, stdin, print)).trim() !== nodeName) return (printError('Nothing was changed.\n'), 1);
  }
  const { recoverCluster } = await import('./cluster-recover.ts');
  const removed = await recoverCluster({ config, clock });
  print(
    `The cluster is ${nodeName} alone now. Removed: ${removed.join(', ') || 'none'}\n` +
      'Start the recorder: systemctl start recorder\n' +
      'A server that was removed records nothing until it is added again (POST /cluster/add-learner).\n',
  );
  return 0;
}

interface Server {
  readonly config: Config;
  readonly address: string | undefined;
  readonly names: readonly string[];
  readonly files: ReturnType<typeof nodeFiles>;
}

/** Throws UsageError for a server that is a member already. */
async function serverOf(
  { address, config: file }: { readonly address?: string | undefined; readonly config: string },
  load: CommandContext['load'],
): Promise<Server> {
  const config = await load(file);
  const { cluster, nodeName } = config;
  if (cluster.mode === 'kubernetes') throw new UsageError('this recorder is configured for Kubernetes (cluster.mode)');
  const name = nodeNameProblem(nodeName);
  if (name !== undefined) throw new ConfigError(file, 'nodeName', name);
  if (address !== undefined && !URL.canParse(`https://${address}:1/`)) {
    throw new UsageError('--address: expected a name or an address, IPv6 in brackets');
  }
  const files = nodeFiles(cluster.dataDir, nodeName);
  if (await asOwnerOf(files.directory, () => readCluster(files))) {
    throw new UsageError(
      `this server belongs to a cluster already (${files.cluster}): it leaves it with POST /cluster/leave, and forgets it when ${dirname(files.cluster)} is deleted`,
    );
  }
  const names = [
    ...new Set([...(address === undefined ? [] : [address.replace(/^\[|\]$/g, '')]), ...reachedAs(config)]),
  ];
  return { config, address, names, files };
}

/** Checks the file of settings before anything is written. The result writes it, unless the configuration is for a cluster already. */
async function settingsOf(configFile: string, { config, address }: Server, pool: string): Promise<() => Promise<void>> {
  const { cluster, listen } = config;
  if (cluster.mode === 'etcd' && cluster.pool === pool) return async () => {};
  const directory = join(dirname(configFile), 'conf.d');
  const file = join(directory, 'cluster.yaml');
  if (existsSync(file)) throw new UsageError(`${file} exists already: set cluster.mode: etcd there, or remove it`);
  const settings = {
    mode: 'etcd',
    ...(pool !== 'default' && { pool }),
    ...(cluster.listen === undefined && { listen: `0.0.0.0:${PEERS_PORT}` }),
    ...(address !== undefined && cluster.advertise === '' && { advertise: `${address}:${listen.port}` }),
  };
  const text = `# Written by recorder cluster.\n${stringify({ cluster: settings })}`;
  await loadConfig(configFile, { change: { file, text } });
  return () =>
    asOwnerOf(directory, () => {
      mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
      writeFileSync(file, text, { mode: FILE_MODE, flag: 'wx' });
    });
}

function memberAt(text: string): { readonly host: string; readonly port: number } {
  const bare = /^[^:]*$|^\[.*\]$/.test(text) ? `${text}:${PEERS_PORT}` : text;
  try {
    const address = parseListen(bare);
    if (address.host !== '' && address.port > 0 && !bare.startsWith(':')) return address;
  } catch {
    // Explained below.
  }
  throw new UsageError('expected the address of a member, such as rack-1, 192.0.2.1:9995 or [2001:db8::1]');
}

async function tokenIn(values: {
  readonly token?: string | undefined;
  readonly 'token-file'?: string | undefined;
}): Promise<string> {
  const { token: given, 'token-file': file } = values;
  if ((given === undefined) === (file === undefined)) throw new UsageError('expected --token or --token-file');
  if (given !== undefined) return given.trim();
  return (await readNamed('--token-file', file as string)).trim();
}
