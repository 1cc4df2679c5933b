// The log of the process: lines to standard output, and to files where the configuration says so.

import { pino } from 'pino';
import type { Registry } from 'prom-client';
import { LevelSwitch } from '../../base/log-level.ts';
import type { Log } from '../../base/log.ts';
import { scraped } from '../../base/scraped.ts';
import { RotatingFile } from '../../base/rotating-file.ts';
import type { Config } from '../config/schema.ts';

export interface Logs {
  readonly logLevels: LevelSwitch;
  readonly log: Log;
  /** Written at every level. Undefined if the log is in files: then the audit has its own files. */
  readonly audit: Log | undefined;
}

export function createLogs({ level, directory, maxFileBytes, maxFiles }: Config['log']): Logs {
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

export const registerLogMetrics = (registry: Registry, logLevels: Pick<LevelSwitch, 'bugs'>): void =>
  scraped(registry).counter(
    'internal_errors_total',
    'Faults of the program itself. Each is logged once with its stack, with the field bug.',
    [],
    () => logLevels.bugs,
  );
