// The events of the failover bench on servers without Kubernetes.

import { sleep } from '../processes.ts';
import { calm, drained, FREEZE_MS, loss, majorityLost, planned, seconds, untilDrained, type Event } from './events.ts';
import { filesSince } from './footage.ts';
import type { ServersStage } from './servers-stage.ts';

const IDLE_MS = 60_000;
const MEGABYTE = 1e6;

const follower = (stage: ServersStage, run: number): Promise<string> => stage.follower(run);

const rolled = planned<ServersStage>('rolled', async (stage) => {
  const startMs = Date.now();
  await stage.upgrade((node) => untilDrained(stage, node));
  return { took: seconds(Date.now() - startMs) };
});

/** What a member takes that records nothing, with its etcd. */
const idle: Event<ServersStage> = {
  name: 'idle',
  async run(stage, run) {
    const node = await stage.follower(run);
    await untilDrained(stage, node);
    const { recorder, etcd } = await stage.use(node, IDLE_MS);
    await stage.drain(node, false);
    await stage.atHome();
    return {
      idle: {
        memory: (recorder.bytes + etcd.bytes) / MEGABYTE,
        recorderMemory: recorder.bytes / MEGABYTE,
        etcdMemory: etcd.bytes / MEGABYTE,
        cores: recorder.cores + etcd.cores,
        recorderCores: recorder.cores,
        etcdCores: etcd.cores,
      },
    };
  },
};

export const SERVERS_EVENTS: readonly Event<ServersStage>[] = [
  loss<ServersStage>('killed', {
    strike: (stage, node) => stage.killNode(node),
    heal: (stage, node) => stage.startNode(node),
    nodeOf: follower,
  }),
  loss<ServersStage>('cut', {
    strike: async (stage, node) => stage.servers.cutOff(node),
    heal: async (stage, node) => stage.servers.reconnect(node),
    nodeOf: follower,
    recordsOn: true,
  }),
  loss<ServersStage>('frozen', {
    strike: (stage, node) => stage.servers.freeze(node),
    heal: (stage, node) => stage.servers.thaw(node),
    nodeOf: follower,
  }),
  loss<ServersStage>('leader-killed', {
    strike: (stage, node) => stage.killNode(node),
    heal: (stage, node) => stage.startNode(node),
    nodeOf: (stage) => stage.leader(),
  }),
  calm<ServersStage>('etcd-paused', async (stage) => {
    await Promise.all(stage.nodes.map((node) => stage.servers.freezeEtcd(node)));
    await sleep(FREEZE_MS);
    await Promise.all(stage.nodes.map((node) => stage.servers.thawEtcd(node)));
  }),
  calm<ServersStage>('recorder-paused', async (stage, node) => {
    await stage.servers.freeze(node);
    await sleep(FREEZE_MS);
    await stage.servers.thaw(node);
  }),
  drained,
  rolled,
  majorityLost<ServersStage>({
    isShown: async (stage, survivor) => !(await stage.servers.metrics(survivor)).has_majority,
    // Nobody can read the objects now: whose footage begins on the one that is left?
    async movesSince(stage, _, survivor, startMs) {
      const own = new Set(stage.camerasOf(survivor));
      const begun = filesSince(stage.archiveOf(survivor), startMs).map(({ camera }) => camera);
      return new Set(begun.filter((camera) => !own.has(camera))).size;
    },
  }),
  idle,
];
