// npm run bench:failover [-- [servers] [EVENT...] [--runs N] [--quick] [--stages N] [--key-frames SECONDS] [--resume] [--save]]: kills,
// disconnects and freezes parts of clusters of real recorders, and reads the effects from the files. See docs/design/failover.md.
//
// `servers`: clusters of three servers without Kubernetes. `--stages`: number of clusters that run at the same time. Each run is saved
// as a line of JSON in test/bench/cache/failover.jsonl (failover-servers.jsonl) when it is over; `--resume` continues an interrupted
// bench. `--save` keeps the table and the runs in test/bench/results/, and the table in docs/performance.md.

import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { clusterMissing } from '../../cluster/cluster.ts';
import { serversMissing } from '../../packages/servers.ts';
import { prepareMedia, tinyPictures } from '../media.ts';
import { machine, measuredInWords } from '../report.ts';
import { EVENTS as BASIC_EVENTS, type Event } from './events.ts';
import type { RecordingStage } from './recording-stage.ts';
import {
  failoverTable,
  isMet,
  lineOf,
  POOL_ROWS,
  SERVER_ROWS,
  shortFailoverTable,
  type Row,
  type Run,
} from './rows.ts';
import { SERVERS_EVENTS } from './servers-events.ts';
import { ServersStage } from './servers-stage.ts';
import { FailoverStage } from './stage.ts';
import { WHOLE_EVENTS } from './whole-events.ts';

/** A kind of cluster that is measured. */
interface Kind<S extends RecordingStage> {
  /** Of its files, and of the mark in docs/performance.md. */
  readonly name: string;
  readonly events: readonly Event<S>[];
  readonly rows: readonly Row[];
  /** Why it cannot be measured here, or false. */
  readonly missing: string | false;
  readonly camerasPerNode: number;
  readonly nodes: number;
  start(directory: string, haveMemory: boolean): Promise<S>;
}

const CACHE = join(import.meta.dirname, '../cache');
const RESULTS = join(import.meta.dirname, '../results');
const QUICK_RUNS = 2;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '20' },
    quick: { type: 'boolean', default: false },
    nodes: { type: 'string' },
    cameras: { type: 'string' },
    idle: { type: 'string' },
    'key-frames': { type: 'string', default: '1' },
    viewers: { type: 'string', default: '1000' },
    stages: { type: 'string', default: '1' },
    resume: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    keep: { type: 'string' },
  },
});
if (positionals[0] === 'scale') {
  const { runScale } = await import('./scale.ts');
  process.exit(await runScale(values));
}
if (positionals[0] === 'users') {
  const { runUsers } = await import('./users.ts');
  process.exit(await runUsers(values));
}
if (positionals[0] === 'standby') {
  const { runStandbyCosts } = await import('./standby-costs.ts');
  process.exit(await runStandbyCosts(values));
}
if (positionals[0] === 'relayed') {
  const { runRelayed } = await import('./relayed.ts');
  process.exit(await runRelayed(values));
}

const keyFrameSeconds = Number(values['key-frames']);
const keyFrameMs = keyFrameSeconds * 1000;
const media = prepareMedia(CACHE, tinyPictures(keyFrameSeconds));
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort());

const nodes = Number(values.nodes ?? 3);
const pools: Kind<FailoverStage> = {
  name: 'failover',
  events: [...BASIC_EVENTS, ...WHOLE_EVENTS],
  rows: POOL_ROWS,
  missing: clusterMissing(),
  camerasPerNode: Number(values.cameras ?? 30),
  nodes,
  start: (directory, haveMemory) =>
    FailoverStage.start({ media, haveMemory, keyFrameMs, directory, nodes, camerasPerNode: pools.camerasPerNode }),
};
const servers: Kind<ServersStage> = {
  name: 'failover-servers',
  events: SERVERS_EVENTS,
  rows: SERVER_ROWS,
  missing: serversMissing(),
  camerasPerNode: Number(values.cameras ?? 10),
  nodes: 3,
  start: (directory) => ServersStage.start({ media, keyFrameMs, directory, camerasPerNode: servers.camerasPerNode }),
};

/** The type of tmpfs in statfs(2). */
const IN_MEMORY = 0x01021994;

/** Resolves to the exit code. */
async function bench<S extends RecordingStage>(kind: Kind<S>, names: readonly string[]): Promise<number> {
  const { name, events: all, rows, camerasPerNode } = kind;
  const unknown = names.find((wanted) => !all.some((event) => event.name === wanted));
  if (unknown !== undefined) {
    console.error(`no such event: ${unknown}; events are ${all.map((event) => event.name).join(' ')}`);
    return 2;
  }
  if (kind.missing) {
    console.error(kind.missing);
    return 1;
  }
  const events = all.filter((event) => names.length === 0 || names.includes(event.name));
  const runsEach = values.quick ? QUICK_RUNS : Number(values.runs);
  const kept = values.keep ?? join(CACHE, `${name}.jsonl`);
  const runs: Run[] = [];
  mkdirSync(CACHE, { recursive: true });
  if (values.resume && existsSync(kept)) {
    const lines = readFileSync(kept, 'utf8').split('\n');
    runs.push(...lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Run));
  } else {
    writeFileSync(kept, '');
  }

  /** One run of every event, then the next: an interrupted bench has the same number of each. Those that need other cameras come last. */
  const waiting: { readonly event: Event<S>; readonly run: number }[] = [];
  for (const haveMemory of [false, true]) {
    for (let run = 1; run <= runsEach; run++) {
      for (const event of events.filter((one) => (one.haveMemory ?? false) === haveMemory)) {
        if (!runs.some((one) => one.event === event.name && one.run === run)) waiting.push({ event, run });
      }
    }
  }

  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-failover-'));
  const disk = statfsSync(tmpdir()).type === IN_MEMORY ? 'in memory (tmpfs)' : 'on disk';
  const head = [
    `kube-nvr failover bench, ${new Date().toISOString().slice(0, 10)}`,
    machine(),
    `cluster  ${kind.nodes} nodes of ${camerasPerNode} cameras (160x90, 25 pictures a second, a key frame every ${keyFrameSeconds} s), ${values.stages} side by side; etcd and archives ${disk}`,
  ].join('\n');
  console.log(`${head}\n`);

  function keep(run: Run): void {
    runs.push(run);
    appendFileSync(kept, `${JSON.stringify(run)}\n`);
    console.log(`${run.time.slice(11, 19)} [${run.stage}] ${lineOf(run, rows)}`);
  }

  const startStage = (number: number, haveMemory = false): Promise<S> =>
    kind.start(join(directory, `stage-${number}`), haveMemory);

  /** Performs runs until none is left. If a run does not end, its cluster is abandoned and the next run uses a new one. */
  async function work(first: S, number: number): Promise<void> {
    let stage: S | undefined = first;
    try {
      for (let next = waiting.shift(); next && !stopping.signal.aborted; next = waiting.shift()) {
        const { event, run } = next;
        const about = { event: event.name, run, stage: number };
        if (stage && stage.haveMemory !== (event.haveMemory ?? false)) {
          await stage.close();
          stage = undefined;
        }
        stage ??= await startStage(number, event.haveMemory);
        try {
          const outcome = await event.run(stage, run);
          keep({ ...about, time: new Date().toISOString(), outcome });
        } catch (err) {
          const reasons = [];
          for (let one: unknown = err; one instanceof Error; one = one.cause) reasons.push(one.message);
          keep({ ...about, time: new Date().toISOString(), error: reasons.join(': ') });
          await stage.close();
          stage = undefined;
        }
      }
    } finally {
      await stage?.close();
    }
  }

  try {
    // One after another: a starting cluster would disturb one that is being measured.
    const stages: S[] = [];
    for (let i = 1; i <= Number(values.stages) && waiting.length > 0; i++) {
      stages.push(await startStage(i, waiting[0]?.event.haveMemory));
    }
    await Promise.all(stages.map((stage, i) => work(stage, i + 1)));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const text = `${head}\n\n${failoverTable(runs, rows)}\n`;
  console.log(`\n${text}`);
  if (values.save) {
    const order = (run: Run): number => all.findIndex((event) => event.name === run.event) * 1_000 + run.run;
    const lines = runs.toSorted((a, b) => order(a) - order(b)).map((run) => lineOf(run, rows));
    writeFileSync(join(RESULTS, `${name}.txt`), `${text}\n== runs (seconds; counts)\n${lines.join('\n')}\n`);
    const page = join(import.meta.dirname, '../../../docs/performance.md');
    const block = `<!-- ${name} -->\n\n${shortFailoverTable(runs, rows)}\n\n${measuredInWords()}\n\n<!-- /${name} -->`;
    writeFileSync(
      page,
      readFileSync(page, 'utf8').replace(new RegExp(`<!-- ${name} -->(.*<!-- /${name} -->)?`, 's'), () => block),
    );
  }
  return runs.every((run) => isMet(run, rows)) ? 0 : 1;
}

process.exitCode =
  positionals[0] === 'servers' ? await bench(servers, positionals.slice(1)) : await bench(pools, positionals);
