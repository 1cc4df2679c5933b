// The events of the failover bench after which nothing is to be missing: cameras have a standby, a memory of their own, or both. A
// minute after one node was lost, restarted or drained, the missing seconds are counted; the numbers of decoded pictures prove them.

import { sleep } from '../processes.ts';
import { missing, seconds, worst, WRITTEN_MS, type Event, type Figures } from './events.ts';
import { KEPT_BY, proofOf } from './memory-cameras.ts';
import type { FailoverStage } from './stage.ts';

/** Missing seconds are counted this long after the event. */
const AFTER_MS = 60_000;
/** Standbys hold no more than what they have after this time. */
const HELD_MS = 32_000;

type Act = (stage: FailoverStage, node: string) => Promise<unknown>;

/** `nodeOf`: the one that it befalls, by default in turns. */
const whole = (
  name: string,
  strike: Act,
  heal: Act = async () => {},
  nodeOf = async (stage: FailoverStage, run: number) => stage.nodes[run % stage.nodes.length] ?? '',
): Event => ({
  name: `whole-${name}`,
  haveMemory: true,
  async run(stage, run) {
    const node = await nodeOf(stage, run);
    const cameras = stage.cameraNames;
    await stage.heldFor(
      cameras.filter((camera) => stage.keptBy(camera) !== 'edge'),
      HELD_MS,
    );
    const fromMs = Date.now() - 5_000;
    await strike(stage, node);
    await sleep(AFTER_MS);
    const toMs = Date.now() - WRITTEN_MS;
    const outcome: Record<string, Figures> = {};
    for (const keptBy of KEPT_BY) {
      const lost = await missing(
        stage,
        cameras.filter((camera) => stage.keptBy(camera) === keptBy),
        fromMs,
        toMs,
      );
      const affected = lost.filter((ms) => ms > 0).length;
      outcome[`${keptBy}-${name}`] = { missing: seconds(worst(lost)), cameras: lost.length, affected };
    }
    await heal(stage, node);
    await stage.forgive();
    for (const camera of cameras) {
      const row = `${stage.keptBy(camera)}-${name}`;
      const movie = await stage.window(camera, fromMs, toMs);
      const proof = await proofOf(movie, toMs - fromMs, stage.cluster.directory);
      const { unfollowed = 0, unwhole = 0, ...others } = outcome[row] ?? {};
      if (proof.words !== '') console.error(`${camera} (${row}): ${proof.words}`);
      outcome[row] = {
        ...others,
        unfollowed: unfollowed + proof.unfollowed,
        unwhole: unwhole + (proof.isWhole ? 0 : 1),
      };
    }
    return outcome;
  },
});

const drain =
  (isDrained: boolean): Act =>
  (stage, node) =>
    stage.drain(node, isDrained);

export const WHOLE_EVENTS: readonly Event[] = [
  whole(
    'killed',
    (stage, node) => stage.killNode(node),
    (stage, node) => stage.startNode(node),
  ),
  whole(
    'cut',
    async (stage, node) => stage.cluster.node(node).cutOff('api', 'peers', 'viewers'),
    async (stage, node) => stage.cluster.node(node).reconnect(),
  ),
  whole(
    'frozen',
    async (stage, node) => stage.cluster.node(node).freezePod(await stage.podOf(node)),
    async (stage, node) => stage.cluster.node(node).thawPod(await stage.podOf(node)),
  ),
  whole(
    'restarted',
    (stage, node) => stage.restartPod(node, 'asked'),
    undefined,
    (stage) => stage.freshNode(),
  ),
  whole(
    'pod-killed',
    (stage, node) => stage.restartPod(node, 'killed'),
    undefined,
    (stage) => stage.freshNode(),
  ),
  whole('drained', drain(true), drain(false)),
];
