// The events of the failover bench, each as a function: what is done to a recording cluster, and what each camera lost by it.
// Durations come from the files and the gap ledgers of the nodes, times of the Leases from the API server. All clocks are those
// of one machine. Those with a type parameter are the same for clusters of every kind.

import { RESOURCES } from '../../cluster/own-operator.ts';
import { until } from '../../support/until.ts';
import { sleep } from '../processes.ts';
import { median } from '../report.ts';
import { endOf, holesIn, type Piece } from './footage.ts';
import { SELDOM_MS, SLOW_MS, type Assignments, type LedgerReport, type RecordingStage } from './recording-stage.ts';
import type { FailoverStage } from './stage.ts';

/** The results of one run for one row, by name: seconds and counts. */
export type Figures = Readonly<Record<string, number>>;
/** The results for each row of the table to which a run belongs. */
type Outcome = Readonly<Record<string, Figures>>;

/** `S`: the clusters that it can happen to. */
export interface Event<S extends RecordingStage = FailoverStage> {
  readonly name: string;
  /** Of the cameras of its stage. */
  readonly haveMemory?: boolean;
  run(stage: S, run: number): Promise<Outcome>;
}

export const FREEZE_MS = 8_000;
const OPERATOR_FREEZE_MS = 30_000;
/**
 * A silence of 15 s moves cameras, and a suspect watch delays its detection by at most 2 s. If a disturbance has not moved a
 * camera after this time, and every node has renewed its Lease since, it will not do so any more.
 */
const WATCH_MS = 20_000;
/** How often to look for cameras without an owner. */
const OWNERS_MS = 1_000;
/** By then the current pictures are on disk: a run waits half a second for its clock, and then comes a fragment. */
export const WRITTEN_MS = 2_500;

export const seconds = (ms: number): number => Math.round(ms) / 1000;
export const worst = (values: readonly number[]): number => Math.max(0, ...values);
const lengthOf = (holes: ReturnType<typeof holesIn>): number =>
  holes.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);

/** Cameras whose epoch has changed. */
const movesBetween = (before: Assignments, after: Assignments): number =>
  [...before].filter(([camera, { epoch }]) => after.get(camera)?.epoch !== epoch).length;

/** For each camera, the time in [fromMs, toMs) for which no disk has footage. */
export async function missing(
  stage: RecordingStage,
  cameras: readonly string[],
  fromMs: number,
  toMs: number,
): Promise<readonly number[]> {
  const footage = await stage.footageUntil(cameras, fromMs, toMs);
  return [...footage.values()].map((pieces) => lengthOf(holesIn(pieces, fromMs, toMs)));
}

const nodeOfRun = (stage: RecordingStage, run: number): string =>
  stage.nodes[run % stage.nodes.length] ?? 'there are no nodes';

interface Loss<S> {
  readonly strike: (stage: S, node: string) => Promise<unknown>;
  readonly heal: (stage: S, node: string) => Promise<unknown>;
  /** Which one is struck; default: each in turn. */
  readonly nodeOf?: (stage: S, run: number) => Promise<string> | string;
  /** The node continues to record unnoticed: its footage overlaps with that of the others until it is back. */
  readonly recordsOn?: true;
}

/** A node goes away: others have its cameras on their disks 15 to 20 s after its last sign of life. */
export const loss = <S extends RecordingStage>(
  name: string,
  { strike, heal, nodeOf = nodeOfRun, recordsOn }: Loss<S>,
): Event<S> => ({
  name,
  async run(stage, run) {
    const node = await nodeOf(stage, run);
    const cameras = stage.camerasOf(node);
    const others = stage.nodes.filter((other) => other !== node);
    const before = await stage.assignments();
    const strikeMs = Date.now();
    await strike(stage, node);
    const found = await stage.firstPictures(cameras, others, strikeMs);
    const renewedMs = await stage.renewedMs(node);
    const onDisk = [...found.values()].map(({ onDiskMs }) => onDiskMs);
    const moved = new Set(cameras);
    const after = await stage.assignments();
    const figures = {
      cameras: cameras.length,
      leaseToLast: seconds(Math.max(...onDisk) - renewedMs),
      leaseToFirst: seconds(Math.min(...onDisk) - renewedMs),
      strikeToLast: seconds(Math.max(...onDisk) - strikeMs),
      /** Cameras of other nodes must not be affected. */
      otherMoves: [...before].filter(([camera, { epoch }]) => !moved.has(camera) && after.get(camera)?.epoch !== epoch)
        .length,
      ...(recordsOn ? {} : await lostFrames(stage, cameras, node, strikeMs, onDisk)),
    };
    const healMs = Date.now();
    await heal(stage, node);
    const healed = recordsOn ? { heal: await doubles(stage, cameras, node, strikeMs, healMs) } : undefined;
    await stage.atHome();
    const homeMs = Date.now();
    await sleep(WRITTEN_MS);
    const failback = { gap: seconds(worst(await missing(stage, cameras, healMs, homeMs))) };
    return { [name]: figures, ...healed, failback };
  },
});

/** What the files of a stopped node show: until when it recorded, and which time is missing. */
async function lostFrames(
  stage: RecordingStage,
  cameras: readonly string[],
  node: string,
  strikeMs: number,
  onDisk: readonly number[],
): Promise<Figures> {
  const footage = await stage.footage(cameras, strikeMs - 10_000);
  const last: number[] = [];
  const gaps: number[] = [];
  for (const pieces of footage.values()) {
    const endMs = endOf(pieces.filter((piece) => piece.node === node));
    last.push(endMs);
    gaps.push(firstElsewhere(pieces, node, strikeMs) - endMs);
  }
  return {
    frameToLast: seconds(Math.max(...onDisk) - Math.min(...last)),
    gap: seconds(worst(gaps)),
    gapMedian: seconds(median(gaps)),
  };
}

/** When the footage of a camera starts on another node after it was lost. */
const firstElsewhere = (pieces: readonly Piece[], node: string, strikeMs: number): number =>
  Math.min(...pieces.filter((piece) => piece.node !== node && piece.fromMs > strikeMs).map(({ fromMs }) => fromMs));

/** A node that continued to record is back: when it stops recording the cameras of others, and how much footage exists twice. */
async function doubles(
  stage: RecordingStage,
  cameras: readonly string[],
  node: string,
  strikeMs: number,
  healMs: number,
): Promise<Figures> {
  /** What it recorded while it was away, without what returns home later. */
  const kept = (pieces: readonly Piece[]): readonly Piece[] =>
    pieces.filter((piece) => piece.node === node && piece.fromMs < healMs);
  const listed = until(
    'both archives are listed',
    async () => {
      const all = await stage.cameras();
      const both = all.filter(({ metadata, status }) => {
        if (!cameras.includes(metadata.name)) return true;
        const nodes = new Set(status?.archives?.map((archive) => archive.node));
        return nodes.has(node) && nodes.size > 1;
      });
      return both.length === all.length && Date.now();
    },
    SLOW_MS,
    SELDOM_MS,
  );
  const footage = await until(
    `${node} has closed its files`,
    async () => {
      const found = await stage.footage(cameras, strikeMs);
      return [...found.values()].every((pieces) => kept(pieces).every(({ isOpen }) => !isOpen)) && found;
    },
    SLOW_MS,
    SELDOM_MS,
  );
  const ends = [...footage.values()].map((pieces) => endOf(kept(pieces)));
  const doubled = [...footage.values()].map((pieces) => {
    return Math.max(0, endOf(kept(pieces)) - firstElsewhere(pieces, node, strikeMs));
  });
  return {
    doublesEnd: seconds(Math.max(...ends) - healMs),
    doubled: seconds(worst(doubled)),
    listed: seconds((await listed) - healMs),
    /** It continued to record while it was cut off, so nothing is missing. */
    gap: seconds(worst(await missing(stage, cameras, strikeMs - 5_000, healMs))),
  };
}

/** Something hangs or restarts, which must have no effect. */
export const calm = <S extends RecordingStage>(
  name: string,
  disturb: (stage: S, node: string) => Promise<unknown>,
): Event<S> => ({
  name,
  async run(stage, run) {
    const { cameraNames } = stage;
    const before = await stage.assignments();
    const dropped = await stage.dropped();
    const startMs = Date.now();
    await disturb(stage, nodeOfRun(stage, run));
    const endMs = Date.now();
    await stage.heardSince(endMs);
    await sleep(Math.max(1_000, startMs + WATCH_MS - Date.now()));
    const overMs = Date.now();
    const moves = movesBetween(before, await stage.assignments());
    await sleep(WRITTEN_MS);
    const lost = await missing(stage, cameraNames, startMs - 1_000, overMs);
    const ledgers = await Promise.all(
      cameraNames.map((camera) => stage.ledger(before.get(camera)?.node ?? '', camera, startMs - 1_000, overMs)),
    );
    return {
      [name]: {
        moves,
        lost: seconds(worst(lost)),
        ledger: worst(ledgers.map(({ missing_seconds: missed }) => missed)),
        ...causesOf(ledgers),
        /** Pictures that all cameras together could not send. */
        dropped: (await stage.dropped()) - dropped,
        watched: seconds(overMs - startMs),
      },
    };
  },
});

/** The causes of all cameras together, to explain results. */
function causesOf(ledgers: readonly LedgerReport[]): Figures {
  const sums: Record<string, number> = {};
  for (const { seconds_by_cause: causes } of ledgers) {
    for (const [cause, lost] of Object.entries(causes))
      sums[cause] = Math.round(((sums[cause] ?? 0) + lost) * 1000) / 1000;
  }
  return sums;
}

/** A recorder ends, and its kubelet starts it again. */
const restarted = (name: string, how: 'asked' | 'killed'): Event => ({
  name,
  async run(stage) {
    const node = await stage.freshNode();
    const cameras = stage.camerasOf(node);
    const before = await stage.assignments();
    const startMs = Date.now();
    await stage.restartPod(node, how);
    await stage.firstPictures(cameras, [node], startMs);
    const backMs = Date.now();
    await sleep(WRITTEN_MS);
    const gaps = await missing(stage, cameras, startMs - 5_000, backMs);
    const ledgers = await Promise.all(cameras.map((camera) => stage.ledger(node, camera, startMs - 5_000, backMs)));
    const moves = movesBetween(before, await stage.assignments());
    await stage.atHome();
    const ledger = worst(ledgers.map(({ missing_seconds: missed }) => missed));
    return { [name]: { gap: seconds(worst(gaps)), gapMedian: seconds(median(gaps)), ledger, moves } };
  },
});

/** Counts cameras without an owner, repeatedly until `work` is done. */
async function watchOwners(stage: RecordingStage, work: () => Promise<void>): Promise<number> {
  let ownerless = 0;
  const over = new AbortController();
  const watch = (async () => {
    while (!over.signal.aborted) {
      const cameras = await stage.cameras();
      ownerless = Math.max(ownerless, cameras.filter(({ status }) => status?.assignment?.node === undefined).length);
      await sleep(OWNERS_MS);
    }
  })();
  try {
    await work();
  } finally {
    over.abort();
  }
  await watch;
  return ownerless;
}

/** Requested moves: the time without footage, until every camera is at home again. */
export const planned = <S extends RecordingStage>(
  name: string,
  work: (stage: S, run: number) => Promise<Figures>,
): Event<S> => ({
  name,
  async run(stage, run) {
    const startMs = Date.now();
    let own: Figures = {};
    const ownerless = await watchOwners(stage, async () => {
      own = await work(stage, run);
      await stage.atHome(2 * SLOW_MS);
    });
    const endMs = Date.now();
    await sleep(WRITTEN_MS);
    const gaps = await missing(stage, stage.cameraNames, startMs - 1_000, endMs);
    return { [name]: { gap: seconds(worst(gaps)), gapMedian: seconds(median(gaps)), ownerless, ...own } };
  },
});

/** Tells the cameras of a node to leave it, and waits until they have. */
export async function untilDrained(stage: RecordingStage, node: string): Promise<void> {
  const cameras = stage.camerasOf(node);
  await stage.drain(node, true);
  await until(
    `${node} is empty`,
    async () => {
      const assignments = await stage.assignments();
      return cameras.every((camera) => {
        const assignment = assignments.get(camera);
        return assignment?.node !== node && assignment?.handover === 'Complete';
      });
    },
    SLOW_MS,
    SELDOM_MS,
  );
}

export const drained = planned<RecordingStage>('drained', async (stage, run) => {
  const node = nodeOfRun(stage, run);
  const startMs = Date.now();
  await untilDrained(stage, node);
  const took = seconds(Date.now() - startMs);
  await stage.drain(node, false);
  return { cameras: stage.camerasOf(node).length, took };
});

const rolled = planned<FailoverStage>('rolled', async (stage, run) => {
  const before = await stage.pool();
  const startMs = Date.now();
  // Recorders read the pool's retention only at their start, so a change of it is a new version.
  const spec = { archive: { retention: { maxAgeSeconds: 86_400 + run } } };
  await stage.cluster.api.patch(`${RESOURCES}/recorderpools/default`, 'merge', { spec });
  await until(
    'every pod is new',
    async () => {
      const { metadata, status } = await stage.pool();
      const rollout = status?.conditions?.find(({ type }) => type === 'RolloutStopped');
      return (
        metadata.generation !== before.metadata.generation &&
        status?.observedGeneration === metadata.generation &&
        rollout?.observedGeneration === metadata.generation &&
        rollout?.reason === 'UpToDate' &&
        status?.nodesUpdated === stage.nodes.length
      );
    },
    3 * SLOW_MS,
    SELDOM_MS,
  );
  stage.allFresh();
  return { took: seconds(Date.now() - startMs) };
});

interface MajorityLoss<S> {
  /** Whether the cluster says that it has no majority. */
  readonly isShown: (stage: S, survivor: string) => Promise<boolean>;
  /** How many cameras have moved since. */
  readonly movesSince: (stage: S, before: Assignments, survivor: string, startMs: number) => Promise<number>;
}

/** All nodes but one die; one comes back, and then another. */
export const majorityLost = <S extends RecordingStage>({ isShown, movesSince }: MajorityLoss<S>): Event<S> => ({
  name: 'majority-lost',
  async run(stage, run) {
    const survivor = nodeOfRun(stage, run);
    const [returning = '', dead = ''] = stage.nodes.filter((node) => node !== survivor);
    const before = await stage.assignments();
    const startMs = Date.now();
    await Promise.all([returning, dead].map((node) => stage.killNode(node)));
    await until('the cluster says so', () => isShown(stage, survivor), SLOW_MS);
    const shown = Date.now() - startMs;
    await sleep(Math.max(0, startMs + WATCH_MS - Date.now()));
    const moves = await movesSince(stage, before, survivor, startMs);
    const endMs = Date.now();
    await sleep(WRITTEN_MS);
    const rest = await missing(stage, stage.camerasOf(survivor), startMs - 1_000, endMs);
    await stage.startNode(returning);
    const backMs = await until(
      `${returning} renews its Lease`,
      async () => {
        const renewedMs = await stage.renewedMs(returning);
        return renewedMs > endMs && renewedMs;
      },
      SLOW_MS,
    );
    const own = await stage.firstPictures(stage.camerasOf(returning), stage.nodes, endMs);
    const found = await stage.firstPictures(stage.camerasOf(dead), [survivor, returning], endMs);
    const onDisk = [...found.values()].map(({ onDiskMs }) => onDiskMs);
    const strayed = [...own.values()].filter(({ node }) => node !== returning).length;
    await stage.startNode(dead);
    await stage.atHome();
    return {
      'majority-lost': {
        moves,
        rest: seconds(worst(rest)),
        shown: seconds(shown),
        /** Time since the first Lease of the node that returned. */
        followed: seconds(Math.max(...onDisk) - backMs),
        /** Cameras of the node that returned should stay there. */
        strayed,
      },
    };
  },
});

const poolWithoutMajority = majorityLost<FailoverStage>({
  async isShown(stage) {
    const { status } = await stage.pool();
    const is = (type: string, value: string): boolean =>
      status?.conditions?.some((one) => one.type === type && one.status === value) === true;
    return is('QuorumAvailable', 'False') && is('FailoverSuspended', 'True') && status?.leader === undefined;
  },
  movesSince: async (stage, before) => movesBetween(before, await stage.assignments()),
});

export const EVENTS: readonly Event[] = [
  loss<FailoverStage>('killed', {
    strike: (stage, node) => stage.killNode(node),
    heal: (stage, node) => stage.startNode(node),
  }),
  loss<FailoverStage>('cut', {
    strike: async (stage, node) => stage.cluster.node(node).cutOff('api', 'peers', 'viewers'),
    heal: async (stage, node) => stage.cluster.node(node).reconnect(),
    recordsOn: true,
  }),
  loss<FailoverStage>('frozen', {
    strike: async (stage, node) => stage.cluster.node(node).freezePod(await stage.podOf(node)),
    heal: async (stage, node) => stage.cluster.node(node).thawPod(await stage.podOf(node)),
  }),
  loss<FailoverStage>('killed-with-leader', {
    strike: async (stage, node) => {
      const leader = await stage.leader();
      await Promise.all([stage.killNode(node), stage.killLeader(leader)]);
    },
    heal: (stage, node) => Promise.all([stage.startNode(node), stage.startOperator()]),
  }),
  calm<FailoverStage>('leader-killed', async (stage) =>
    stage.killLeader(await stage.leader()).then(() => stage.startOperator()),
  ),
  calm<FailoverStage>('api-restarted', (stage) => stage.cluster.controlPlane.restart('kube-apiserver')),
  calm<FailoverStage>('etcd-paused', async (stage) => {
    await stage.cluster.controlPlane.pause('etcd');
    await sleep(FREEZE_MS);
    stage.cluster.controlPlane.resume('etcd');
  }),
  calm<FailoverStage>('recorder-paused', async (stage, node) => {
    const pod = await stage.podOf(node);
    await stage.cluster.node(node).freezePod(pod);
    await sleep(FREEZE_MS);
    await stage.cluster.node(node).thawPod(pod);
  }),
  calm<FailoverStage>('operator-paused', async (stage) => {
    const { program } = await stage.leader();
    await program.pause();
    await sleep(OPERATOR_FREEZE_MS);
    program.resume();
  }),
  restarted('pod-restarted', 'asked'),
  restarted('pod-killed', 'killed'),
  drained,
  rolled,
  poolWithoutMajority,
];
