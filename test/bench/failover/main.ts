// npm run bench:failover [-- [EVENT...] [--runs N] [--nodes N] [--cameras N]]: kills, cuts and freezes parts of a cluster of
// real recorders, and reads from the files what that cost. See docs/design/failover.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { clusterMissing } from '../../cluster/cluster.ts';
import { prepareMedia } from '../media.ts';
import { sleep } from '../processes.ts';
import { machine, table } from '../report.ts';
import { FailoverStage } from './stage.ts';

/** Seconds that one run has cost; the worst camera counts. */
interface Outcome {
  /** From the node's last sign of life to footage of the last camera elsewhere. */
  readonly failoverSeconds?: number;
  /** Cameras whose assignment has another epoch afterwards. */
  readonly moves?: number;
}

interface Event {
  readonly what: string;
  readonly must: string;
  run(stage: FailoverStage): Promise<Outcome>;
  isMet(outcome: Outcome): boolean;
}

const FREEZE_MS = 8_000;
const OPERATOR_FREEZE_MS = 30_000;
/** What does not move a camera within this time does not move it. */
const WATCH_MS = 25_000;

/** A node goes away: its cameras must be recorded elsewhere 15 to 20 s after its last sign of life. */
const loss = (
  what: string,
  strike: (stage: FailoverStage, node: string) => Promise<void>,
  heal: (stage: FailoverStage, node: string) => Promise<void>,
): Event => ({
  what,
  must: '15-20 s, all cameras',
  async run(stage) {
    const { node, cameras } = await stage.busiest();
    const found = stage.newFootage(cameras, node);
    await strike(stage, node);
    const startMs = Date.now();
    const last = Math.max(...(await found).values());
    await heal(stage, node);
    await stage.settled();
    return { failoverSeconds: (last - startMs) / 1000 };
  },
  isMet: ({ failoverSeconds = Infinity }) => failoverSeconds >= 14 && failoverSeconds <= 20,
});

/** Something hangs or restarts that must not move a camera. */
const calm = (what: string, disturb: (stage: FailoverStage) => Promise<void>): Event => ({
  what,
  must: '0 moves',
  async run(stage) {
    const before = await stage.assignments();
    await disturb(stage);
    await sleep(WATCH_MS);
    await stage.settled();
    const after = await stage.assignments();
    const moves = [...before].filter(([camera, { epoch }]) => after.get(camera)?.epoch !== epoch).length;
    return { moves };
  },
  isMet: ({ moves }) => moves === 0,
});

const podOf = async (stage: FailoverStage, node: string): Promise<string> => {
  const processes = await stage.cluster.node(node).processes();
  const recorder = processes.find(({ container }) => container === 'recorder');
  if (!recorder) throw new Error(`${node} has no recorder`);
  return recorder.pod;
};

const EVENTS: Readonly<Record<string, Event>> = {
  killed: loss(
    'node killed',
    (stage, node) => stage.cluster.node(node).kill(),
    (stage, node) => stage.cluster.node(node).start(),
  ),
  cut: loss(
    'node cut off',
    async (stage, node) => stage.cluster.node(node).cutOff('api', 'peers', 'viewers'),
    async (stage, node) => stage.cluster.node(node).reconnect(),
  ),
  frozen: loss(
    'recorder process frozen',
    async (stage, node) => stage.cluster.node(node).freezePod(await podOf(stage, node)),
    async (stage, node) => stage.cluster.node(node).thawPod(await podOf(stage, node)),
  ),
  'killed-with-leader': loss(
    "node killed with the operator's leader",
    async (stage, node) => {
      await Promise.all([stage.cluster.node(node).kill(), stage.killLeader()]);
    },
    async (stage, node) => {
      await Promise.all([stage.cluster.node(node).start(), stage.startOperator()]);
    },
  ),
  'leader-killed': calm('operator leader killed', async (stage) => {
    await stage.killLeader();
    await stage.startOperator();
  }),
  'api-restarted': calm('API server restarted', (stage) => stage.cluster.controlPlane.restart('kube-apiserver')),
  'etcd-paused': calm('etcd paused 8 s', async (stage) => {
    await stage.cluster.controlPlane.pause('etcd');
    await sleep(FREEZE_MS);
    stage.cluster.controlPlane.resume('etcd');
  }),
  'recorder-paused': calm('recorder frozen 8 s', async (stage) => {
    const { node } = await stage.busiest();
    const pod = await podOf(stage, node);
    await stage.cluster.node(node).freezePod(pod);
    await sleep(FREEZE_MS);
    await stage.cluster.node(node).thawPod(pod);
  }),
  'operator-paused': calm('operator frozen 30 s', async (stage) => {
    const leader = await stage.leader();
    leader.kill('SIGSTOP');
    await sleep(OPERATOR_FREEZE_MS);
    leader.kill('SIGCONT');
  }),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '20' },
    nodes: { type: 'string', default: '3' },
    cameras: { type: 'string', default: '90' },
  },
});
const names = positionals.length > 0 ? positionals : Object.keys(EVENTS);
const unknown = names.find((name) => !EVENTS[name]);
if (unknown !== undefined) {
  console.error(`no such event: ${unknown}; events are ${Object.keys(EVENTS).join(' ')}`);
  process.exit(2);
}
const missing = clusterMissing();
if (missing) {
  console.error(missing);
  process.exit(1);
}

const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-failover-'));
const media = prepareMedia(join(import.meta.dirname, '../cache'));
console.log(
  `kube-nvr failover bench\n${machine()}\n${values.nodes} nodes, ${values.cameras} cameras, ${values.runs} runs each\n`,
);
const stage = await FailoverStage.start({
  media,
  directory,
  nodes: Number(values.nodes),
  cameras: Number(values.cameras),
});
const rows: string[][] = [];
try {
  for (const name of names) {
    const event = EVENTS[name] as Event;
    const outcomes: Outcome[] = [];
    for (let run = 1; run <= Number(values.runs); run++) {
      const outcome = await event.run(stage);
      outcomes.push(outcome);
      console.log(`${event.what}, run ${run}: ${JSON.stringify(outcome)}${event.isMet(outcome) ? '' : ' MISSED'}`);
    }
    const seconds = outcomes.flatMap(({ failoverSeconds }) => failoverSeconds ?? []).sort((a, b) => a - b);
    const measured =
      seconds.length > 0
        ? `${seconds[0]?.toFixed(1)} to ${seconds.at(-1)?.toFixed(1)} s, median ${seconds[seconds.length >> 1]?.toFixed(1)} s`
        : `${outcomes.reduce((sum, { moves = 0 }) => sum + moves, 0)} moves`;
    const missed = outcomes.filter((outcome) => !event.isMet(outcome)).length;
    rows.push([event.what, event.must, measured, String(outcomes.length), missed === 0 ? 'met' : `MISSED ${missed}`]);
  }
} finally {
  await stage.close();
  rmSync(directory, { recursive: true, force: true });
}
console.log(`\n${table(['event', 'must', 'measured', 'runs', 'verdict'], rows)}`);
