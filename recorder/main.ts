#!/usr/bin/env node
// The recorder's composition root: arguments, environment and signals end here.

import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { systemClock } from '../base/clock.ts';
import { LevelSwitch } from '../base/log-level.ts';
import { RotatingFile } from '../base/rotating-file.ts';
import { podPlace } from '../base/kubernetes/pod-place.ts';
import { inEnvironment } from './config/environment.ts';
import type { Config } from './config/schema.ts';
import { ConfigError, loadConfig } from './config/load.ts';
import { DatabaseError } from './database/error.ts';
import { ConfigWatcher } from './config/watch.ts';
import { startRecorder } from './recorder.ts';

const USAGE = `Usage: recorder [--config FILE] [--check-config] [--reindex] [--adopt-archive] [--version]
       recorder discover [--help]

  --config FILE    configuration (default /etc/recorder/config.yaml); conf.d/*.yaml beside it is read as well
  --check-config   say whether the configuration is right, and exit
  --reindex        make the database's table of recordings anew from the files of the archive, and exit
  --adopt-archive  take the directory at record_path for this node's archive, whatever disk was there before, and exit
  --version        print the version, and exit
  discover         look for cameras in the networks of this machine

SIGHUP reloads cameras, tokens and licence; SIGUSR2 logs everything, and again as before; SIGTERM and SIGINT stop after
closing every file.
`;

/** A stop that takes longer than this is given up: open files are finished at the next start. */
const MAX_STOP_MS = 8_000;

/** By then all is compiled that the next start takes. */
const COMPILED_MS = 5_000;

/** Disks and name lookups share this pool; a disk that hangs may hold a thread for each camera that writes to it. */
process.env['UV_THREADPOOL_SIZE'] ??= '16';

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
    process.stderr.write(`${err instanceof Error ? err.message : String(err)}\n\n${USAGE}`);
    return process.exit(2);
  }
}

/** What is logged by level, and what is always: who changed something. */
function createLogs({ level, directory, maxFileBytes, maxFiles }: Config['log']) {
  const logLevels = new LevelSwitch(level);
  // Every line comes through: `logLevels` decides.
  const options = { level: 'debug', base: null, timestamp: pino.stdTimeFunctions.isoTime };
  if (directory === undefined) {
    const all = pino(options);
    return { logLevels, log: logLevels.apply(all), audit: all.child({ audit: true }) };
  }
  const file = (name: string) => new RotatingFile({ directory, name, maxBytes: maxFileBytes, maxFiles });
  const streams = [process.stdout, file('recorder.log')].map((stream) => ({ stream, level: 'debug' as const }));
  const all = pino(options, pino.multistream(streams));
  return { logLevels, log: logLevels.apply(all), audit: pino(options, file('audit.log')) };
}

// Programs of their own are loaded when they are asked for: a recorder that starts does not wait for them.

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

async function main(): Promise<void> {
  if (process.argv[2] === 'discover') return discoverCameras(process.argv.slice(3));
  const options = parseArguments();
  if (options.help) return void process.stdout.write(USAGE);
  if (options.version) return void process.stdout.write(`${version}\n`);

  const load = async (): Promise<Config> => inEnvironment(await loadConfig(options.config), process.env);
  const config = await load();
  let { tokensFile } = config.auth;
  if (options['check-config']) {
    process.stdout.write(`${options.config}: ok, ${config.cameras.length} cameras\n`);
    return;
  }

  const { log, logLevels, audit } = createLogs(config.log);
  // Not SIGUSR1, which Node takes for its debugger.
  process.on('SIGUSR2', () => {
    logLevels.toggleDebug();
    log.warn({ level: logLevels.level }, 'log level changed');
  });
  if (options['adopt-archive']) {
    const { adoptArchive } = await import('./adopt.ts');
    const id = await adoptArchive(config, options.config, log);
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

  // Before that nothing is open that would have to be closed.
  let isRecording = false;
  const starting = startRecorder(config, {
    clock: systemClock,
    log,
    logLevels,
    audit,
    version,
    pod: podPlace(process.env),
    recording: () => (isRecording = true),
  });

  const stop = (code: number): void => {
    if (!isRecording) process.exit(code);
    // A second signal, or a stop that hangs on a dead disk, must not wait for ever.
    setTimeout(() => process.exit(1), MAX_STOP_MS).unref();
    starting
      .then((recorder) => recorder.close())
      .then(
        () => process.exit(code),
        (err: unknown) => {
          log.error({ err }, 'stop failed');
          process.exit(1);
        },
      );
  };
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      log.info({ signal }, 'stopping');
      stop(0);
    });
  }
  process.on('unhandledRejection', (err) => log.error({ err }, 'unhandled rejection'));
  process.on('uncaughtException', (err) => {
    log.error({ err }, 'uncaught exception');
    if (!stopping) stop(1);
    stopping = true;
  });
  const recorder = await starting;
  // Node does so at its end, which a crash has not. Nothing happens where no NODE_COMPILE_CACHE is named.
  setTimeout(flushCompileCache, COMPILED_MS).unref();

  const reload = async (): Promise<void> => {
    try {
      const next = await load();
      tokensFile = next.auth.tokensFile;
      await recorder.reload(next);
    } catch (err) {
      if (!(err instanceof ConfigError)) throw err;
      log.error({ problem: err.message }, 'configuration refused, the old one stays');
    }
  };
  const reloadNow = (): void => {
    if (!stopping) reload().catch((err: unknown) => log.error({ err }, 'reload failed'));
  };
  const others = (): readonly string[] => (tokensFile === undefined ? [] : [tokensFile]);
  void new ConfigWatcher(options.config, reloadNow, { clock: systemClock, others });
  process.on('SIGHUP', reloadNow);
}

main().catch((err: unknown) => {
  // One line for a mistake in the configuration; a trace for a bug.
  const text =
    err instanceof ConfigError || err instanceof DatabaseError
      ? err.message
      : err instanceof Error
        ? (err.stack ?? err.message)
        : String(err);
  process.stderr.write(`recorder: ${text}\n`);
  process.exit(1);
});
