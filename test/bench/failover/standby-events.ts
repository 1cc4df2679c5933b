// The events of the failover bench in which every camera has a standby: what is missing a minute after one node was lost, restarted or
// drained.

import { RESOURCES } from '../../cluster/own-operator.ts';
import { sleep } from '../processes.ts';
import { missing, seconds, worst, WRITTEN_MS, type Event } from './events.ts';
import type { FailoverStage } from './stage.ts';

/** Missing seconds are counted this long after the event. */
const AFTER_MS = 60_000;
/** Standbys hold no more than what they have after this time. */
const HELD_MS = 32_000;

type Act = (stage: FailoverStage, node: string) => Promise<unknown>;

/** `node`: the one that it befalls, by default in turns. */
const withStandby = (
  name: string,
  strike: Act,
  heal: Act = async () => {},
  nodeOf = async (stage: FailoverStage, run: number) => stage.nodes[run % stage.nodes.length] ?? '',
): Event => ({
  name: `standby-${name}`,
  async run(stage, run) {
    const node = await nodeOf(stage, run);
    await stage.useStandbys(true);
    await sleep(HELD_MS);
    const startMs = Date.now();
    await strike(stage, node);
    await sleep(AFTER_MS);
    const endMs = Date.now() - WRITTEN_MS;
    const lost = await missing(stage, stage.cameraNames, startMs - 5_000, endMs);
    await heal(stage, node);
    await stage.useStandbys(false);
    await stage.atHome();
    return {
      [`standby-${name}`]: {
        missing: seconds(worst(lost)),
        cameras: stage.camerasOf(node).length,
        affected: lost.filter((ms) => ms > 0).length,
      },
    };
  },
});

const drain =
  (isDrained: boolean): Act =>
  (stage, node) =>
    stage.cluster.api.patch(`${RESOURCES}/recordernodes/${node}`, 'merge', { spec: { drain: isDrained } });

export const STANDBY_EVENTS: readonly Event[] = [
  withStandby(
    'killed',
    (stage, node) => stage.cluster.node(node).kill(),
    (stage, node) => stage.startNode(node),
  ),
  withStandby(
    'cut',
    async (stage, node) => stage.cluster.node(node).cutOff('api', 'peers', 'viewers'),
    async (stage, node) => stage.cluster.node(node).reconnect(),
  ),
  withStandby(
    'frozen',
    async (stage, node) => stage.cluster.node(node).freezePod(await stage.podOf(node)),
    async (stage, node) => stage.cluster.node(node).thawPod(await stage.podOf(node)),
  ),
  withStandby(
    'restarted',
    (stage, node) => stage.restartPod(node, 'asked'),
    undefined,
    (stage) => stage.freshNode(),
  ),
  withStandby(
    'pod-killed',
    (stage, node) => stage.restartPod(node, 'killed'),
    undefined,
    (stage) => stage.freshNode(),
  ),
  withStandby('drained', drain(true), drain(false)),
];
