import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../../base/clock.ts';
import { ClusterView } from './access.ts';
import type { Vote } from './votes.ts';

const vote = (nodeId: string, hasVote: boolean): Vote => ({
  nodeId,
  hasVote,
  answers: true,
  leads: nodeId === 'rack-1',
  silentMs: 0,
});
const VOTERS = ['rack-1', 'rack-2', 'rack-3'];

/** Asks for the votes of all three when `voteMs` have passed since rack-3 became a learner. */
async function changeAfter(voteMs: number) {
  let ms = 0;
  const look = async (): Promise<readonly Vote[]> => [
    vote('rack-1', true),
    vote('rack-2', true),
    vote('rack-3', ms >= voteMs),
  ];
  const clock = { monotonicMs: () => ms, sleep: async (sleepMs: number) => void (ms += sleepMs) };
  const view = new ClusterView({
    nodeId: 'rack-1',
    cluster: {
      isReachable: true,
      ask: async () => ({ code: 200, message: 'voters: rack-1, rack-2, rack-3' }),
    } as never,
    servers: { votes: { look } } as never,
    clock: clock as Clock,
    membership: undefined as never,
    cameras: undefined as never,
  });
  return view.ask({ kind: 'ChangeMembership', voters: VOTERS });
}

test('a vote is given once etcd says so, and one that waits for data is told as that', async () => {
  assert.deepEqual(await changeAfter(3_600), { code: 200, message: 'voters: rack-1, rack-2, rack-3' });
  assert.deepEqual(await changeAfter(60_000), {
    code: 202,
    message: 'accepted, not done yet: rack-3 will have a vote with the data of the leader (GET /cluster/metrics)',
  });
});
