#!/usr/bin/env node
// The entry point of the command `recorder`: reads environment and arguments, and starts the recorder or another command.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../base/clock.ts';
import { messageOf } from '../base/error.ts';
import { podPlace } from '../base/kubernetes/pod-place.ts';
import { COMMANDS } from './commands/table.ts';
import { filesIn, inEnvironment, metricsTokenFile, withMetricsToken } from './config/environment.ts';
import { ConfigError, loadConfig, located } from './config/load.ts';
import type { Config } from './config/schema.ts';
import { DatabaseError } from './database/error.ts';
import { TokenFileError } from './http/admin-token.ts';
import { createLogs, type Logs } from './run/logs.ts';
import { RecorderProcess } from './run/recorder-process.ts';
import { serviceManager } from './run/service-manager.ts';
import { startProblems } from './commands/check-config.ts';
import { runCommand, UsageError } from './commands/command.ts';

const ABOUT_COMMANDS = [...COMMANDS].flatMap(([name, { usage, subcommand, text }]) =>
  usage === undefined ? [] : { usage, name: subcommand === undefined ? name : `${name} ${subcommand}`, text },
);

const USAGE = `Usage: recorder [--config FILE] [--check-config] [--reindex] [--adopt-archive] [--version]
       recorder --hash-password
${ABOUT_COMMANDS.map(({ usage }) => `       recorder ${usage}\n`).join('')}
  --config FILE    configuration (default /etc/recorder/config.yaml); conf.d/*.yaml next to it is read as well
  --check-config   check the configuration, print its errors, and exit
  --reindex        rebuild the database's table of recordings from the files of the archive, and exit
  --adopt-archive  accept the directory at record_path as this node's archive, whatever disk was there before, and exit
  --hash-password  read a password, print its hash for auth.users of the configuration, and exit
  --version        print the version, and exit
${ABOUT_COMMANDS.map(({ name, text }) => `  ${name.padEnd(15)}  ${text}\n`).join('')}
SIGHUP reloads cameras, tokens and licence. SIGUSR2 logs everything; a second one restores the configured level. SIGTERM
and SIGINT close all files and stop.
`;

/**
 * Disk access and name lookups share this thread pool. Changes and syncs of the archive use at most 96 threads
 * (archive/disk/disk-turns.ts), so that a disk that hangs leaves threads for everything else.
 */
process.env['UV_THREADPOOL_SIZE'] ??= '112';

/** Footage and data about cameras are for the user and group of the recorder: files 0640, directories 0750. */
process.umask(0o027);

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const print = (text: string): void => void process.stdout.write(text);
const printError = (text: string): void => void process.stderr.write(text);

async function main(): Promise<void> {
  const [name = '', ...args] = process.argv.slice(2);
  const command = COMMANDS.get(name);
  if (command) {
    process.exitCode = await runCommand(await command.load(), args, {
      clock: systemClock,
      version,
      stdin: process.stdin,
      stdout: process.stdout,
      env: process.env,
      print,
      printError,
      interrupted: () => abortsOn('SIGINT'),
      load: async (file) => inEnvironment(await loadFiles(file), process.env),
    });
    return;
  }
  const options = parseArguments();
  if (options.help) return print(USAGE);
  if (options.version) return print(`${version}\n`);
  if (options['hash-password']) {
    const { runHashPassword } = await import('./commands/hash-password.ts');
    return print(`${await runHashPassword(process.stdin, printError)}\n`);
  }

  const file = options.config;
  const load = async (): Promise<Config> =>
    withMetricsToken(inEnvironment(await loadFiles(file), process.env), process.env);
  const config = await load();
  await directoriesPrepared(config);
  if (options['check-config']) {
    await requireStartable(config, file, true);
    return print(`${file}: ok, ${config.cameras.length} cameras\n`);
  }
  if (options['adopt-archive']) return adoptArchive(config, file);
  if (options.reindex) return reindexArchive(config);

  await requireStartable(config, file, false);
  const logs = openLogs(config);
  const pod = podPlace(process.env);
  const manager = serviceManager(process.env);
  await new RecorderProcess(config, { file, load, namedFiles, logs, version, pod, manager }).run();
}

const loadFiles = (file: string): Promise<Config> => loadConfig(file, filesIn(process.env));

function parseArguments() {
  try {
    return parseArgs({
      options: {
        config: { type: 'string', default: '/etc/recorder/config.yaml' },
        'check-config': { type: 'boolean', default: false },
        reindex: { type: 'boolean', default: false },
        'adopt-archive': { type: 'boolean', default: false },
        'hash-password': { type: 'boolean', default: false },
        version: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false, short: 'h' },
      },
    }).values;
  } catch (err) {
    process.stderr.write(`${messageOf(err)}\n\n${USAGE}`);
    return process.exit(2);
  }
}

/** Waits for the directories that a pod of the operator prepares for this one. */
async function directoriesPrepared({ workDir, recordPath, log }: Config): Promise<void> {
  const owner = process.env['KUBE_NVR_DIRECTORY_OWNER'];
  if (!owner) return;
  const { untilPrepared } = await import('./commands/prepare-node.ts');
  await untilPrepared([dirname(workDir), recordPath], owner, { clock: systemClock, log: createLogs(log).log });
}

/** Throws ConfigError. `mayRun`: a recorder may run with this configuration already. */
async function requireStartable(config: Config, file: string, mayRun: boolean): Promise<void> {
  const problems = await startProblems(config, { mayRun });
  if (problems.length > 0) throw await located(problems, file);
}

/** The log of the process. SIGUSR2 switches its level; Node uses SIGUSR1 for its debugger. */
function openLogs(config: Config): Logs {
  const logs = createLogs(config.log);
  process.on('SIGUSR2', () => {
    logs.logLevels.toggleDebug();
    logs.log.warn({ level: logs.logLevels.level }, 'the log level was changed');
  });
  return logs;
}

async function adoptArchive(config: Config, file: string): Promise<void> {
  const { adoptArchive: adopt } = await import('./commands/adopt-archive.ts');
  const id = await adopt(config, file, { pod: podPlace(process.env), log: openLogs(config).log });
  print(`${config.recordPath}: archive ${id} is the archive of this node\n`);
}

async function reindexArchive(config: Config): Promise<never> {
  const interrupted = abortsOn('SIGTERM', 'SIGINT');
  const { reindexArchive: reindex } = await import('./commands/reindex.ts');
  const { log } = openLogs(config);
  await reindex(config, { clock: systemClock, log, say: (line) => print(`${line}\n`) }, interrupted);
  process.exit(interrupted.aborted ? 1 : 0);
}

function abortsOn(...signals: readonly NodeJS.Signals[]): AbortSignal {
  const controller = new AbortController();
  for (const signal of signals) process.once(signal, () => controller.abort());
  return controller.signal;
}

/** Files besides those of the configuration that are read again when they change. */
const namedFiles = ({ auth, webhooksFile }: Config): readonly string[] =>
  [
    auth.tokensFile,
    auth.usersFile,
    auth.issuersFile,
    auth.sessionKeyFile,
    webhooksFile,
    metricsTokenFile(process.env),
  ].filter((file) => file !== undefined);

// Timers of the clock keep no process alive: a command that waits by one would end there, as if it had done its work.
const awake = setInterval(() => {}, 2 ** 30);
main()
  .finally(() => clearInterval(awake))
  .catch((err: unknown) => {
    // One line for an error in the configuration; a stack trace for a bug.
    const text =
      err instanceof ConfigError ||
      err instanceof DatabaseError ||
      err instanceof TokenFileError ||
      err instanceof UsageError
        ? err.message
        : err instanceof Error
          ? (err.stack ?? err.message)
          : String(err);
    process.stderr.write(`recorder: ${text}\n`);
    process.exit(1);
  });
