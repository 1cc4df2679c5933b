// For the tests of this room: playback of an archive in a temporary directory, with a camera driven by a virtual clock.

import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { silentLog } from '../../base/log.ts';
import { bench, temporaryDirectory, type Bench, type BenchOptions } from '../archive/test-support.ts';
import { readFragmentAt } from '../mp4/read-fragment.ts';
import { Authenticator, type AuthOptions } from '../http/auth.ts';
import { buildPlayback } from './app.ts';
import { openFootage } from '../footage/open.ts';
import type { PlaybackDeps } from './deps.ts';

export interface Stage extends Bench {
  readonly app: FastifyInstance;
  readonly auth: Authenticator;
  /** Seconds since 1970 at which the first picture was captured. */
  readonly start: number;
}

type PlaybackChanges = Partial<Omit<PlaybackDeps, 'auth'>> & {
  readonly auth?: AuthOptions;
  /** The cluster of the node. */
  readonly around?: Pick<Parameters<typeof openFootage>[0], 'cluster' | 'peers'>;
};

/** Playback of an empty archive; both are closed after the test. */
export async function stage(
  t: TestContext,
  options: Omit<BenchOptions, 'root'> & { readonly playback?: PlaybackChanges } = {},
): Promise<Stage> {
  const root = temporaryDirectory(t);
  const { playback, ...rest } = options;
  const { auth: access, around, ...others } = playback ?? {};
  const archive = await bench({ root, segmentDurationMs: 30_000, ...rest });
  const auth = new Authenticator(access ?? { mode: 'none', tokens: [] }, { clock: archive.clock });
  const app = await buildPlayback({
    version: '1.2.3',
    footage: openFootage({
      recordPath: root,
      archive: archive.archive,
      clock: archive.clock,
      ...around,
      log: silentLog,
    }),
    auth,
    clock: archive.clock,
    log: silentLog,
    ...others,
  });
  t.after(async () => {
    await app.close();
    await archive.archive.close();
  });
  return { ...archive, app, auth, start: archive.clock.wallMs() / 1000 };
}

export interface PlayedSample {
  /** In ticks of the track. */
  readonly dts: number;
  readonly pts: number;
  readonly sync: boolean;
  readonly bytes: Buffer;
}

/** The samples of consecutive fragments in `bytes` from `at` on, by track. */
export async function samplesOf(bytes: Buffer, at = 0): Promise<Map<number, PlayedSample[]>> {
  const read = async (offset: number, length: number): Promise<Buffer> => bytes.subarray(offset, offset + length);
  const tracks = new Map<number, PlayedSample[]>();
  for (let start = at; start < bytes.length;) {
    const fragment = await readFragmentAt(read, bytes.length, start);
    if (!fragment) throw new Error(`no fragment at ${start} of ${bytes.length}`);
    let offset = fragment.payloadOffset;
    for (const { trackId, baseDecodeTime, samples } of fragment.tracks) {
      const list = tracks.get(trackId) ?? [];
      tracks.set(trackId, list);
      let dts = baseDecodeTime;
      for (const { size, duration, compositionOffset, sync } of Array.from(samples)) {
        list.push({ dts, pts: dts + compositionOffset, sync, bytes: bytes.subarray(offset, offset + size) });
        dts += duration;
        offset += size;
      }
    }
    start = fragment.end;
  }
  return tracks;
}

/** Run time that a picture of the test camera carries; see `TestCamera`. */
export const carriedTime = ({ bytes }: PlayedSample): number => bytes.readUIntBE(5, 6);

/** The path and query of an address in the answer of `url`, which may be relative to it. */
export function resolved(address: string, url: string): string {
  const { pathname, search } = new URL(address, new URL(url, 'http://node'));
  return `${pathname}${search}`;
}
