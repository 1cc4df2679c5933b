// Processor time of recording with all safeguards of an archive (retention, gap ledger, rows in Postgres, checksums), compared
// with the same without limits and database, and with the last commit before any of this existed. All three record at the same
// time, each from its own cameras, so that other load on the machine affects all of them.

import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Postgres, postgresMissing } from '../../support/postgres.ts';
import { CAMERAS, cpuShare, emptyDirectory, recording, type Bench } from '../bench.ts';
import { sleep } from '../processes.ts';
import type { RecorderOptions } from '../recorder.ts';
import { median, table } from '../report.ts';

/** "The page: stills can be taken of recordings": cameras were recorded and played, and none of these safeguards existed. */
const BEFORE = '4eda267f677f1fbd56e4d3551b756653a6225d5a';
const ROOT = join(import.meta.dirname, '..', '..', '..');

type Name = 'before' | 'plain' | 'everything';

export async function measureEverything(bench: Bench): Promise<void> {
  const missing = postgresMissing();
  if (missing !== false) {
    bench.say(`not measured: ${missing}`);
    return;
  }
  const cleanups: (() => unknown)[] = [];
  try {
    const postgres = await Postgres.start({ after: (cleanup) => void cleanups.push(cleanup as () => unknown) });
    await compare(bench, await postgres.createDatabase('bench'));
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

async function compare(bench: Bench, url: string): Promise<void> {
  // Each camera starts a new file in each window: three times as often as with five minutes.
  const { rounds, warmUpSeconds, seconds } = bench.quick
    ? { rounds: 1, warmUpSeconds: 6, seconds: 10 }
    : { rounds: 5, warmUpSeconds: 15, seconds: 100 };
  const segmentDuration = `${seconds}s`;
  const program = programBefore(bench);
  const variants: Partial<Record<Name, Omit<RecorderOptions, 'urls' | 'directory'>>> = {
    ...(program === undefined ? {} : { before: { segmentDuration, program } }),
    plain: { segmentDuration },
    everything: {
      segmentDuration,
      settings: {
        database: { url },
        // Limits that are checked but never reached.
        archive: { segmentDuration, retention: { maxAge: '100d', maxSize: '1TiB', minFree: '1%' } },
      },
    },
  };
  const names = Object.keys(variants) as Name[];
  const shares: Record<Name, number[]> = { before: [], plain: [], everything: [] };
  let bad = 0;
  let sent = 0;
  /** Starts the recorders one inside the other, and measures when all of them record. */
  const together = async (left: readonly Name[], pids: ReadonlyMap<Name, readonly number[]>): Promise<void> => {
    const [name, ...others] = left;
    if (name === undefined) {
      await sleep(warmUpSeconds * 1000);
      await Promise.all(Array.from(pids, async ([name, own]) => void shares[name].push(await cpuShare(own, seconds))));
      return;
    }
    const { verdict } = await recording(
      bench,
      { cameras: CAMERAS, name: `recorder-${name}`, ...variants[name] },
      ({ recorder }) => together(others, new Map([...pids, [name, recorder.pids]])),
    );
    bad += verdict.lost + verdict.torn + verdict.disordered;
    sent += verdict.sent;
  };
  for (let round = 0; round < rounds; round++) {
    const first = round % names.length;
    await together([...names.slice(first), ...names.slice(0, first)], new Map());
  }
  const percent = (share: number): string => ((share / CAMERAS) * 100).toFixed(3);
  bench.say(`CPU, percent of one core a camera; all at once; segments and windows of ${seconds} s`);
  bench.say(
    table(
      ['recorder', 'median', 'each round'],
      names.map((name) => [name, percent(median(shares[name])), shares[name].map(percent).join('  ')]),
    ),
  );
  const ratio = (to: Name): number =>
    median(shares.everything.map((share, round) => share / (shares[to][round] ?? NaN)));
  bench.figure({
    figure: 'CPU with retention, gap ledger and Postgres / before they were there',
    unit: 'ratio',
    measured: program === undefined ? NaN : ratio('before'),
    ...(program === undefined ? {} : { must: 1.05 }),
    note:
      program === undefined ? 'no history of the repository here' : `commit ${BEFORE.slice(0, 7)}; median of rounds`,
  });
  bench.figure({
    figure: '  the same / without limits and database',
    unit: 'ratio',
    measured: ratio('plain'),
    must: 1.05,
  });
  bench.figure({ figure: '  pictures lost, torn or out of order', unit: `of ${sent}`, measured: bad, must: 0, aim: 0 });
}

/** The program of the earlier commit with the current packages; undefined if the repository does not contain it. */
function programBefore(bench: Bench): string | undefined {
  const directory = emptyDirectory(bench, 'before');
  const archive = join(directory, 'tree.tar');
  const run = spawnSync('git', ['archive', '-o', archive, BEFORE, 'base', 'recorder', 'package.json'], { cwd: ROOT });
  if (run.status !== 0) return undefined;
  const tree = join(directory, 'tree');
  mkdirSync(tree);
  if (spawnSync('tar', ['-xf', archive, '-C', tree]).status !== 0) return undefined;
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  return join(tree, 'recorder', 'main.ts');
}
