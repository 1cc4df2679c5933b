// npm run bench:failover [-- [EVENT...] [--runs N] [--quick] [--stages N] [--key-frames SECONDS] [--resume] [--save]]: kills,
// disconnects and freezes parts of clusters of real recorders, and reads the effects from the files. See docs/design/failover.md.
//
// `--stages`: number of clusters that run at the same time. Each run is saved as a line of JSON in
// test/bench/cache/failover.jsonl when it is over; `--resume` continues an interrupted bench. `--save` keeps the table and the
// runs in test/bench/results/, and the table in the README.

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
import { prepareMedia, tinyPictures } from '../media.ts';
import { machine, machineInWords } from '../report.ts';
import { EVENTS as BASIC_EVENTS, type Event } from './events.ts';
import { failoverTable, isMet, lineOf, shortFailoverTable, type Run } from './rows.ts';
import { FailoverStage } from './stage.ts';
import { WHOLE_EVENTS } from './whole-events.ts';

const EVENTS: readonly Event[] = [...BASIC_EVENTS, ...WHOLE_EVENTS];
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
    keep: { type: 'string', default: join(CACHE, 'failover.jsonl') },
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
const nodes = Number(values.nodes ?? 3);
const camerasPerNode = Number(values.cameras ?? 30);
const unknown = positionals.find((name) => !EVENTS.some((event) => event.name === name));
if (unknown !== undefined) {
  console.error(`no such event: ${unknown}; events are ${EVENTS.map(({ name }) => name).join(' ')}`);
  process.exit(2);
}
const missing = clusterMissing();
if (missing) {
  console.error(missing);
  process.exit(1);
}

const events = EVENTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const keyFrameSeconds = Number(values['key-frames']);
const runsEach = values.quick ? QUICK_RUNS : Number(values.runs);
const runs: Run[] = [];
mkdirSync(CACHE, { recursive: true });
if (values.resume && existsSync(values.keep)) {
  const lines = readFileSync(values.keep, 'utf8').split('\n');
  runs.push(...lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Run));
} else {
  writeFileSync(values.keep, '');
}

/** One run of every event, then the next: an interrupted bench has the same number of each. Those that need other cameras come last. */
const waiting: { readonly event: Event; readonly run: number }[] = [];
for (const haveMemory of [false, true]) {
  for (let run = 1; run <= runsEach; run++) {
    for (const event of events.filter((one) => (one.haveMemory ?? false) === haveMemory)) {
      if (!runs.some((one) => one.event === event.name && one.run === run)) waiting.push({ event, run });
    }
  }
}

const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-failover-'));
const media = prepareMedia(CACHE, tinyPictures(keyFrameSeconds));
const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort());

/** The type of tmpfs in statfs(2). */
const IN_MEMORY = 0x01021994;
const disk = statfsSync(tmpdir()).type === IN_MEMORY ? 'in memory (tmpfs)' : 'on disk';
const head = [
  `kube-nvr failover bench, ${new Date().toISOString().slice(0, 10)}`,
  machine(),
  `cluster  ${nodes} nodes of ${camerasPerNode} cameras (160x90, 25 pictures a second, a key frame every ${keyFrameSeconds} s), ${values.stages} side by side; etcd and archives ${disk}`,
].join('\n');
console.log(`${head}\n`);

function keep(run: Run): void {
  runs.push(run);
  appendFileSync(values.keep, `${JSON.stringify(run)}\n`);
  console.log(`${run.time.slice(11, 19)} [${run.stage}] ${lineOf(run)}`);
}

const startStage = (number: number, haveMemory = false): Promise<FailoverStage> =>
  FailoverStage.start({
    media,
    haveMemory,
    keyFrameMs: keyFrameSeconds * 1000,
    directory: join(directory, `stage-${number}`),
    nodes,
    camerasPerNode,
  });

/** Performs runs until none is left. If a run does not end, its cluster is abandoned and the next run uses a new one. */
async function work(first: FailoverStage, number: number): Promise<void> {
  let stage: FailoverStage | undefined = first;
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
  const stages: FailoverStage[] = [];
  for (let i = 1; i <= Number(values.stages) && waiting.length > 0; i++) {
    stages.push(await startStage(i, waiting[0]?.event.haveMemory));
  }
  await Promise.all(stages.map((stage, i) => work(stage, i + 1)));
} finally {
  rmSync(directory, { recursive: true, force: true });
}
const text = `${head}\n\n${failoverTable(runs)}\n`;
console.log(`\n${text}`);
if (values.save) {
  const order = (run: Run): number => EVENTS.findIndex(({ name }) => name === run.event) * 1_000 + run.run;
  const lines = runs.toSorted((a, b) => order(a) - order(b)).map(lineOf);
  writeFileSync(join(RESULTS, 'failover.txt'), `${text}\n== runs (seconds; counts)\n${lines.join('\n')}\n`);
  const page = join(import.meta.dirname, '../../../docs/performance.md');
  const block = `<!-- failover -->\n\n${shortFailoverTable(runs)}\n\nMeasured on ${machineInWords()}.\n\n<!-- /failover -->`;
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(/<!-- failover -->(.*<!-- \/failover -->)?/s, () => block),
  );
}
process.exitCode = runs.every(isMet) ? 0 : 1;
