import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { isDown, Votes } from './votes.ts';

const LEADER = '1';

/** etcd with three members, of which `hung` do not answer, and `learners` have no vote. */
function etcdOf({ hung = [], learners = [] }: { hung?: string[]; learners?: string[] }) {
  const names = ['rack-1', 'rack-2', 'rack-3'];
  const state = { hung, learners, isReachable: true };
  const written: { readonly path: string; readonly conditions: unknown }[] = [];
  const clock = new VirtualClock();
  const votes = new Votes({
    nodeId: 'rack-1',
    namespace: 'default',
    clock,
    etcd: {
      members: () =>
        state.isReachable
          ? Promise.resolve(
              names.map((name, index) => ({
                id: String(index + 1),
                name,
                peerUrls: [],
                clientUrls: [name],
                isLearner: state.learners.includes(name),
              })),
            )
          : Promise.reject(new Error('etcd cannot be reached')),
      status: (name) =>
        state.hung.includes(name)
          ? Promise.reject(new Error('it did not answer in time'))
          : Promise.resolve({
              memberId: String(names.indexOf(name) + 1),
              version: '3.4.23',
              leaderId: LEADER,
              isLearner: state.learners.includes(name),
              databaseBytes: 0,
            }),
      close: () => Promise.resolve(),
    },
    api: {
      list: () =>
        Promise.resolve({
          items: names.map((name) => ({ metadata: { name }, spec: { role: name === 'rack-3' ? 'Removed' : 'Voter' } })),
        } as never),
      apply: (path, _manager, body) => {
        written.push({ path, conditions: (body as { status: { conditions: unknown } }).status.conditions });
        return Promise.resolve({} as never);
      },
    },
  });
  return { state, clock, votes, written };
}

const shown = (votes: Votes): readonly string[] =>
  votes.last.map(
    ({ nodeId, hasVote, answers, leads }) =>
      `${nodeId}${hasVote ? ' votes' : ''}${answers ? ' answers' : ''}${leads ? ' leads' : ''}`,
  );

test('a member has a vote if etcd has given it one, whether or not the member answers', async () => {
  const { votes } = etcdOf({ hung: ['rack-2'], learners: ['rack-3'] });
  await votes.look();
  assert.deepEqual(shown(votes), ['rack-1 votes answers leads', 'rack-2 votes', 'rack-3 answers']);
});

test('a member is down when it has not answered for 15 s, and not before', async () => {
  const { state, clock, votes } = etcdOf({});
  await votes.look();
  state.hung = ['rack-2'];
  clock.advance(14_000);
  await votes.look();
  assert.ok(!votes.last.some(isDown));
  clock.advance(1_000);
  await votes.look();
  assert.deepEqual(
    votes.last.filter(isDown).map(({ nodeId }) => nodeId),
    ['rack-2'],
  );
  state.hung = [];
  await votes.look();
  assert.ok(!votes.last.some(isDown));
});

test("a server's own member is down until it has answered once", async () => {
  const { state, votes } = etcdOf({ hung: ['rack-1', 'rack-2'] });
  await votes.look();
  assert.deepEqual(
    votes.last.filter(isDown).map(({ nodeId }) => nodeId),
    ['rack-1'],
  );
  state.hung = [];
  await votes.look();
  assert.ok(!isDown(votes.own!));
});

test('when no member answers, none is said to answer', async () => {
  const { state, votes } = etcdOf({});
  await votes.look();
  state.isReachable = false;
  await votes.look();
  assert.deepEqual(shown(votes), ['rack-1 votes', 'rack-2 votes', 'rack-3 votes']);
});

test('the condition of a node says what etcd says, and a removed node has none', async () => {
  const { votes, written } = etcdOf({ learners: ['rack-2'] });
  await votes.look();
  await votes.show();
  const reasons = written.map(({ path, conditions }) => [
    path.split('/').at(-2),
    (conditions as { reason: string }[]).map(({ reason }) => reason),
  ]);
  assert.deepEqual(reasons, [
    ['rack-1', ['Voting']],
    ['rack-2', ['NotVoting']],
  ]);
});
