#!/usr/bin/env node
// The entry point of the recorder: handles arguments, environment and signals.

import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { systemClock } from '../base/clock.ts';
import { LevelSwitch } from '../base/log-level.ts';
import { RotatingFile } from '../base/rotating-file.ts';
import { podPlace } from '../base/kubernetes/pod-place.ts';
import { messageOf } from '../base/error.ts';
import { inEnvironment, metricsTokenFile, withMetricsToken } from './config/environment.ts';
import type { Config } from './config/schema.ts';
import { ConfigError, loadConfig, located } from './config/load.ts';
import { DatabaseError } from './database/error.ts';
import { ConfigWatcher } from './config/watch.ts';
import { TokenFileError } from './http/admin-token.ts';
import { startRecorder } from './recorder.ts';
import { startProblems } from './start-problems.ts';

const USAGE = `Usage: recorder [--config FILE] [--check-config] [--reindex] [--adopt-archive] [--version]
       recorder discover [--help]
       recorder probe URL [--help]
       recorder token create --name NAME [--help]
       recorder webhook test [--help]
       recorder prepare-node [--help]
       recorder audit DIRECTORY
       recorder verify FILE [--help]

  --config FILE    configuration (default /etc/recorder/config.yaml); conf.d/*.yaml next to it is read as well
  --check-config   check the configuration, print its errors, and exit
  --reindex        rebuild the database's table of recordings from the files of the archive, and exit
  --adopt-archive  accept the directory at record_path as this node's archive, whatever disk was there before, and exit
  --version        print the version, and exit
  discover         look for cameras in the networks of this machine
  probe            report what a camera is, what it does wrong, and what will be recorded of it
  token create     make a token that cannot be guessed, and print its entry for the configuration
  webhook test     send a test event to each webhook of the configuration; webhook secret: make a secret for one
  prepare-node     make a pool's directories on a Kubernetes node, for the recorder of the same pod
  audit            check whether the files of an audit are unchanged
  verify           check whether an export or a case is unchanged, and which node made it

SIGHUP reloads cameras, tokens and licence. SIGUSR2 logs everything; a second one restores the configured level. SIGTERM
and SIGINT close all files and stop.
`;

/** A stop that takes longer is aborted: open files are completed at the next start. */
const MAX_STOP_MS = 8_000;

/** After this time, everything that the next start needs is compiled. */
const COMPILED_MS = 5_000;

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

function parseArguments() {
  try {
    return parseArgs({
      options: {
        config: { type: 'string', default: '/etc/recorder/config.yaml' },
        'check-config': { type: 'boolean', default: false },
        reindex: { type: 'boolean', default: false },
        'adopt-archive': { type: 'boolean', default: false },
        version: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false, short: 'h' },
      },
    }).values;
  } catch (err) {
    process.stderr.write(`${messageOf(err)}\n\n${USAGE}`);
    return process.exit(2);
  }
}

/** The log, filtered by level, and the audit, which is always written, to its own files if the log is in files. */
function createLogs({ level, directory, maxFileBytes, maxFiles }: Config['log']) {
  const logLevels = new LevelSwitch(level);
  // pino passes every line on; `logLevels` filters.
  const options = { level: 'debug', base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (directory === undefined) {
    const all = pino(options);
    return { logLevels, log: logLevels.apply(all), audit: all.child({ audit: true }) };
  }
  const file = new RotatingFile({ directory, name: 'recorder.log', maxBytes: maxFileBytes, maxFiles });
  const streams = [process.stdout, file].map((stream) => ({ stream, level: 'debug' as const }));
  const all = pino(options, pino.multistream(streams));
  return { logLevels, log: logLevels.apply(all), audit: undefined };
}

// Commands are loaded on demand, so that they do not slow down the start of the recorder.

async function discoverCameras(args: readonly string[]): Promise<void> {
  const { DISCOVER_USAGE, runDiscover, UsageError } = await import('./discover.ts');
  try {
    await runDiscover(args, {
      clock: systemClock,
      stdin: process.stdin,
      print: (text) => void process.stdout.write(text),
      complain: (text) => void process.stderr.write(text),
    });
  } catch (err) {
    if (!(err instanceof UsageError)) throw err;
    process.stderr.write(`${err.message}\n\n${DISCOVER_USAGE}`);
    process.exitCode = 2;
  }
}

async function probeCamera(args: readonly string[]): Promise<void> {
  const { PROBE_USAGE, runProbe, UsageError } = await import('./probe.ts');
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  const print = (text: string) => void process.stdout.write(text);
  try {
    process.exitCode = await runProbe(args, { clock: systemClock, version, print }, interrupted.signal);
  } catch (err) {
    if (!(err instanceof UsageError)) throw err;
    process.stderr.write(`${err.message}\n\n${PROBE_USAGE}`);
    process.exitCode = 2;
  }
}

async function makeToken(args: readonly string[]): Promise<void> {
  const { TOKEN_USAGE, runToken, UsageError } = await import('./token.ts');
  try {
    process.stdout.write(runToken(args));
  } catch (err) {
    if (!(err instanceof UsageError)) throw err;
    process.stderr.write(`${err.message}\n\n${TOKEN_USAGE}`);
    process.exitCode = 2;
  }
}

async function callWebhooks(args: readonly string[]): Promise<void> {
  const { runWebhook, UsageError, WEBHOOK_USAGE } = await import('./webhooks.ts');
  const load = async (file: string): Promise<Config> => inEnvironment(await loadConfig(file), process.env);
  try {
    const print = (text: string): void => void process.stdout.write(text);
    process.exitCode = await runWebhook(args, { load, print, clock: systemClock });
  } catch (err) {
    if (!(err instanceof UsageError)) throw err;
    process.stderr.write(`${err.message}\n\n${WEBHOOK_USAGE}`);
    process.exitCode = 2;
  }
}

async function prepareDirectories(args: readonly string[]): Promise<void> {
  const { PrepareError, runPrepareNode } = await import('./prepare-node.ts');
  try {
    runPrepareNode(args, (line) => void process.stdout.write(`${line}\n`));
  } catch (err) {
    if (!(err instanceof PrepareError)) throw err;
    process.stderr.write(`recorder: ${err.message}\n`);
    process.exitCode = 1;
  }
}

async function checkAudit(args: readonly string[]): Promise<void> {
  const { runAudit } = await import('./audit.ts');
  process.exitCode = await runAudit(args, (text) => void process.stdout.write(text));
}

async function verifyResult(args: readonly string[]): Promise<void> {
  const { runVerify } = await import('./verify.ts');
  process.exitCode = await runVerify(args, (text) => void process.stdout.write(text));
}

/** Files besides those of the configuration that are read again when they change. */
const namedFiles = ({ auth, webhooksFile }: Config): readonly string[] =>
  [auth.tokensFile, webhooksFile, metricsTokenFile(process.env)].filter((file) => file !== undefined);

async function main(): Promise<void> {
  if (process.argv[2] === 'discover') return discoverCameras(process.argv.slice(3));
  if (process.argv[2] === 'probe') return probeCamera(process.argv.slice(3));
  if (process.argv[2] === 'token') return makeToken(process.argv.slice(3));
  if (process.argv[2] === 'webhook') return callWebhooks(process.argv.slice(3));
  if (process.argv[2] === 'prepare-node') return prepareDirectories(process.argv.slice(3));
  if (process.argv[2] === 'audit') return checkAudit(process.argv.slice(3));
  if (process.argv[2] === 'verify') return verifyResult(process.argv.slice(3));
  const options = parseArguments();
  if (options.help) return void process.stdout.write(USAGE);
  if (options.version) return void process.stdout.write(`${version}\n`);

  const load = async (): Promise<Config> =>
    withMetricsToken(inEnvironment(await loadConfig(options.config), process.env), process.env);
  const config = await load();
  const owner = process.env['KUBE_NVR_DIRECTORY_OWNER'];
  if (owner) {
    const { untilPrepared } = await import('./prepare-node.ts');
    const directories = [dirname(config.workDir), config.recordPath];
    await untilPrepared(directories, owner, { clock: systemClock, log: createLogs(config.log).log });
  }
  let loaded = config;
  const isCheck = options['check-config'];
  if (isCheck || !(options['adopt-archive'] || options.reindex)) {
    const problems = await startProblems(config, { mayRun: isCheck });
    if (problems.length > 0) throw await located(problems, options.config);
  }
  if (isCheck) {
    process.stdout.write(`${options.config}: ok, ${config.cameras.length} cameras\n`);
    return;
  }

  const { log, logLevels, audit } = createLogs(config.log);
  // Not SIGUSR1, which Node uses for its debugger.
  process.on('SIGUSR2', () => {
    logLevels.toggleDebug();
    log.warn({ level: logLevels.level }, 'log level changed');
  });
  if (options['adopt-archive']) {
    const { adoptArchive } = await import('./adopt.ts');
    const id = await adoptArchive(config, options.config, { pod: podPlace(process.env), log });
    process.stdout.write(`${config.recordPath}: archive ${id} is the archive of this node\n`);
    return;
  }
  if (options.reindex) {
    const interrupted = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => interrupted.abort());
    const say = (line: string) => void process.stdout.write(`${line}\n`);
    const { reindexArchive } = await import('./reindex.ts');
    await reindexArchive(config, { clock: systemClock, log, say }, interrupted.signal);
    process.exit(interrupted.signal.aborted ? 1 : 0);
  }

  let reloading: Promise<void> = Promise.resolve();
  /** Reloads run one after the other, so that the last one wins. */
  const reload = (): Promise<void> => {
    const before = reloading;
    const reloaded = (async () => {
      await before;
      const next = await load();
      loaded = next;
      const recorder = await starting;
      await recorder.reload(next);
    })();
    reloading = reloaded.catch(() => {});
    return reloaded;
  };

  // Before that, no files are open that would need to be closed.
  let isRecording = false;
  const starting = startRecorder(config, {
    clock: systemClock,
    log,
    logLevels,
    ...(audit ? { audit } : {}),
    version,
    pod: podPlace(process.env),
    configuration: { file: options.config, reload },
    recording: () => (isRecording = true),
  });

  let stopping = false;
  let code = 0;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    if (!isRecording) process.exit(code);
    // A second signal, or a stop that hangs on a dead disk, must not wait for ever.
    setTimeout(() => process.exit(1), MAX_STOP_MS).unref();
    starting
      .then((recorder) => recorder.close())
      .then(
        () => process.exit(code),
        (err: unknown) => {
          log.error({ err }, 'the recorder could not be stopped cleanly');
          process.exit(1);
        },
      );
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (!stopping) log.info({ signal }, 'stopping');
      stop();
    });
  }
  process.on('unhandledRejection', (err) => log.error({ err }, 'unhandled rejection'));
  process.on('uncaughtException', (err) => {
    log.error({ err }, 'uncaught exception');
    // Its state is unknown: close the files and exit, so that it is started again.
    code = 1;
    stop();
  });
  await starting;
  // Node writes the cache when it exits, which a crash prevents. Without NODE_COMPILE_CACHE this does nothing.
  setTimeout(flushCompileCache, COMPILED_MS).unref();

  const reloadNow = (): void => {
    if (stopping) return;
    reload().catch((err: unknown) => {
      if (err instanceof ConfigError) {
        log.error({ problem: err.message }, 'the configuration has errors, the old one stays in use');
      } else log.error({ err }, 'the configuration could not be reloaded');
    });
  };
  const others = (): readonly string[] => namedFiles(loaded);
  void new ConfigWatcher(options.config, reloadNow, { clock: systemClock, others });
  process.on('SIGHUP', reloadNow);
}

main().catch((err: unknown) => {
  // One line for an error in the configuration; a stack trace for a bug.
  const text =
    err instanceof ConfigError || err instanceof DatabaseError || err instanceof TokenFileError
      ? err.message
      : err instanceof Error
        ? (err.stack ?? err.message)
        : String(err);
  process.stderr.write(`recorder: ${text}\n`);
  process.exit(1);
});
