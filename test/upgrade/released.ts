// What a released version of the recorder left on a disk, and what that version answered about it.

import { globSync } from 'node:fs';
import { RecorderProcess } from '../support/recorder-process.ts';

/** The cameras of the recorder whose state is kept: nobody answers at their addresses any more. */
export const CAMERAS = [
  { id: 'gate', name: 'Front gate' },
  { id: 'yard', name: 'Yard' },
] as const;

export interface Released {
  /** Of package.json. */
  readonly version: string;
  /** The interval of the questions, in milliseconds of Unix time. */
  readonly fromMs: number;
  readonly toMs: number;
  /** A time shortly after the version was killed, for the clock of the recorder that takes over. */
  readonly nowMs: number;
  /** The answers of the version after its own restart, by path. */
  readonly answers: Readonly<Record<string, unknown>>;
}

/** The paths whose answers an upgrade must keep. */
export function questions({ fromMs, toMs }: Pick<Released, 'fromMs' | 'toMs'>): string[] {
  const interval = `from=${fromMs / 1000}&to=${toMs / 1000}`;
  return [
    ...CAMERAS.flatMap(({ id }) => ['segments', 'gaps'].map((what) => `/api/archive/${id}/${what}?${interval}`)),
    '/api/archive/protections',
    '/api/archive/jobs',
  ];
}

/** A recorder over the state in `directory`, at a time near that of the state; its cameras do not answer. */
export function overState(directory: string, nowMs: number): Promise<RecorderProcess> {
  return RecorderProcess.start({
    directory,
    config: {
      cameras: CAMERAS.map((camera) => ({ ...camera, source: 'rtsp://127.0.0.1:9/none' })),
      archive: { segmentDuration: '5s' },
    },
    // Not by the program `faketime`, which does not pass signals on.
    env: {
      ...process.env,
      TZ: 'UTC',
      LD_PRELOAD: globSync('/usr/lib/*/faketime/libfaketime.so.1')[0],
      // A whole second, and none before `nowMs`: a computer that starts quickly would answer of a time that had not come.
      FAKETIME: `@${new Date(Math.ceil(nowMs / 1_000) * 1_000).toISOString().slice(0, 19).replace('T', ' ')}`,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });
}

/** What the recorder answers, by path. */
export async function answersOf(recorder: RecorderProcess, paths: readonly string[]): Promise<Record<string, unknown>> {
  return Object.fromEntries(await Promise.all(paths.map(async (path) => [path, await recorder.get(path)] as const)));
}
