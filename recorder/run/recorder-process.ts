// The recorder of this process: started once, reloaded by a signal and when its files change, stopped by a signal.

import { flushCompileCache } from 'node:module';
import { systemClock } from '../../base/clock.ts';
import type { PodPlace } from '../../base/kubernetes/pod-place.ts';
import { Turns } from '../../base/turns.ts';
import type { AskedRemovals } from '../config/changes.ts';
import { ConfigError } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { ConfigWatcher } from '../config/watch.ts';
import type { Logs } from './logs.ts';
import { startRecorder, type Recorder } from './recorder.ts';
import type { ServiceManager } from './service-manager.ts';

interface RecorderProcessOptions {
  /** The configuration file. */
  readonly file: string;
  /** Reads the configuration again. */
  readonly load: () => Promise<Config>;
  /** Files besides those of the configuration that are read again when they change. */
  readonly namedFiles: (config: Config) => readonly string[];
  readonly logs: Logs;
  readonly version: string;
  readonly pod: PodPlace | undefined;
  readonly manager: ServiceManager;
}

/** A stop that takes longer is aborted: open files are completed at the next start. */
const MAX_STOP_MS = 8_000;

const EXIT_POLL_MS = 20;
/** For the last line of the log, which is written in the background. */
const LAST_WORDS_MS = 200;

/** Timers of the clock keep no process alive, and while a recorder starts or stops there may be nothing else. */
const AWAKE_MS = 3_600_000;

/** After this time, everything that the next start needs is compiled. */
const COMPILED_MS = 5_000;

const isUsingFiles = (): boolean => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));

export class RecorderProcess {
  readonly #options: RecorderProcessOptions;
  readonly #starting: Promise<Recorder>;
  #config: Config;
  /** Reloads run one after the other, so that the last one wins. */
  readonly #reloads = new Turns(1);
  /** Before that, no files are open that would need to be closed. */
  #isRecording = false;
  #isStopping = false;
  #exitCode = 0;

  /** Begins to start the recorder; `run` waits until it has started. */
  constructor(config: Config, options: RecorderProcessOptions) {
    this.#options = options;
    this.#config = config;
    const { logs, version, pod, file } = options;
    setInterval(() => {}, AWAKE_MS);
    this.#starting = startRecorder(config, {
      clock: systemClock,
      log: logs.log,
      logLevels: logs.logLevels,
      ...(logs.audit ? { audit: logs.audit } : {}),
      version,
      pod,
      configuration: { file, reload: (removed) => this.#reloads.take(() => this.#load(removed)) },
      recording: () => (this.#isRecording = true),
    });
  }

  /** Resolves when the recorder runs; rejects when it cannot start. It ends with the process. */
  async run(): Promise<void> {
    this.#stopWhenAsked();
    await this.#starting;
    this.#options.manager.ready();
    // Node writes the cache when it exits, which a crash prevents. Without NODE_COMPILE_CACHE this does nothing.
    setTimeout(flushCompileCache, COMPILED_MS).unref();
    this.#reloadWhenAsked();
  }

  #stopWhenAsked(): void {
    const { log } = this.#options.logs;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (!this.#isStopping) log.info({ signal }, 'stopping');
        this.#stop();
      });
    }
    process.on('unhandledRejection', (err) => log.bug({ err }, 'unhandled rejection'));
    process.on('uncaughtException', (err) => {
      log.bug({ err }, 'uncaught exception');
      // Its state is unknown: close the files and exit, so that it is started again.
      this.#exitCode = 1;
      this.#stop();
    });
  }

  #stop(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    if (!this.#isRecording) process.exit(this.#exitCode);
    this.#options.manager.stopping();
    setTimeout(() => this.#kill(), MAX_STOP_MS).unref();
    this.#starting
      .then((recorder) => recorder.close())
      .then(
        () => this.#exit(this.#exitCode),
        (err: unknown) => {
          this.#options.logs.log.error({ err }, 'the recorder could not be stopped cleanly');
          this.#exit(1);
        },
      );
  }

  /** Exits when no file is being read or written: `process.exit` waits for the threads of the pool. */
  #exit(code: number): void {
    if (isUsingFiles()) setTimeout(() => this.#exit(code), EXIT_POLL_MS);
    else process.exit(code);
  }

  /** A dead disk may hold a thread for ever, and `process.exit` with it. */
  #kill(): void {
    const seconds = MAX_STOP_MS / 1_000;
    this.#options.logs.log.error({ seconds }, 'the recorder could not be stopped in time, it is killed');
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), LAST_WORDS_MS);
  }

  #reloadWhenAsked(): void {
    const { file, namedFiles, logs } = this.#options;
    const reload = (asked: AskedRemovals): void => {
      if (this.#isStopping) return;
      this.#reloads
        .take(() => this.#load(asked))
        .catch((err: unknown) => {
          if (err instanceof ConfigError) {
            logs.log.error({ problem: err.message }, 'the configuration has errors, the old one stays in use');
          } else logs.log.error({ err }, 'the configuration could not be reloaded');
        });
    };
    void new ConfigWatcher(file, () => reload([]), { clock: systemClock, others: () => namedFiles(this.#config) });
    process.on('SIGHUP', () => reload('everything'));
  }

  async #load(asked: AskedRemovals): Promise<void> {
    const recorder = await this.#starting;
    await recorder.reload(async () => (this.#config = await this.#options.load()), asked);
  }
}
