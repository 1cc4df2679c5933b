// An archive of four cameras on a real disk, and cases made from it: `gate` with a gap of six seconds, `yard` with a change of
// codec, `lane` with times between milliseconds, `porch` without footage.

import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { exportCase, type CaseDeps, type CaseRequest, type WrittenCase } from '../../recorder/jobs/case.ts';
import { Manifest, signManifest } from '../../recorder/jobs/manifest.ts';
import { NodeKey } from '../../recorder/jobs/node-key.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from './joined-file.ts';
import { workspace } from './workspace.ts';

export const MADE_MS = WALL_START_MS + 3_600_000;
/** The number of the picture on screen `ms` after `WALL_START_MS`, if there is one. */
export const numberAt = (ms: number): number => Math.floor(ms / 40);

export interface CaseStage {
  readonly directory: string;
  readonly key: NodeKey;
  readonly deps: CaseDeps;
  /** The bytes read from the archive's disk. */
  readonly root: string;
  readonly make: (changes?: Partial<CaseRequest>, deps?: Partial<CaseDeps>) => Promise<MadeCase>;
}

export interface MadeCase {
  readonly path: string;
  readonly written: WrittenCase;
  readonly manifest: Manifest;
}

/** Encoded once for all tests of a file. */
const VIDEOS = new Map<string, ReturnType<typeof numberedVideo>>();

function videoOf(codec: 'h264' | 'h265', firstNumber: number): ReturnType<typeof numberedVideo> {
  const key = `${codec} ${firstNumber}`;
  const known = VIDEOS.get(key);
  if (known) return known;
  const made = numberedVideo(tmpdir(), { codec, firstNumber, encoder: 'keyint=25:min-keyint=25:scenecut=0' });
  VIDEOS.set(key, made);
  return made;
}

export async function caseStage(t: TestContext): Promise<CaseStage> {
  const directory = workspace(t);
  const root = join(directory, 'recordings');
  const record = (cameraId: string, startMs: number, codec: 'h264' | 'h265', run: string, wallMs = startMs): void => {
    const video = videoOf(codec, numberAt(startMs));
    const path = join(root, formatPath({ name: cameraId, cameraId, startMs: WALL_START_MS + startMs }));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, recordedPart(video, { run, wallStartMs: WALL_START_MS + wallMs }));
  };
  record('gate', 0, 'h264', 'a');
  record('gate', 10_000, 'h264', 'b');
  record('yard', 4_000, 'h264', 'c');
  record('yard', 8_000, 'h265', 'd');
  // Its clock has finer times than milliseconds.
  record('lane', 0, 'h264', 'e', 0.4321);
  record('lane', 6_000, 'h264', 'f', 6_000.8765);
  const clock = new VirtualClock(MADE_MS);
  const archive = new Archive({ root, clock, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  t.after(() => archive.close());
  const key = await NodeKey.open(join(directory, 'signing'));
  const deps: CaseDeps = {
    recordPath: root,
    archive,
    wallMs: () => clock.wallMs(),
    version: '1.2.3',
    spareBytes: async () => Infinity,
    knownTime: async (_cameraId, fromMs, toMs) => ({
      gaps: [{ fromMs, toMs, cause: 'camera-unreachable' }],
      untilMs: toMs,
    }),
    sign: (written) => {
      const about = {
        kind: 'case',
        of: { cameras: [], name: 'The gate, again' },
        madeMs: MADE_MS,
        version: '1.2.3',
        node: 'rack-1',
      } as const;
      return signManifest(about, written, key);
    },
  };
  const path = join(directory, 'jobs', 'case.zip');
  return {
    directory,
    key,
    deps,
    root,
    async make(changes = {}, changedDeps = {}) {
      const window = { fromMs: WALL_START_MS + 2_000, toMs: WALL_START_MS + 12_000 };
      const request = { cameraIds: ['gate', 'yard', 'porch'], ...window, ...changes };
      const written = await exportCase(request, path, { ...deps, ...changedDeps }, new AbortController().signal);
      return { path, written, manifest: Manifest.parse(JSON.parse(written.manifest.text.toString())) };
    },
  };
}
