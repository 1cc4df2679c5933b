import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode, type RecorderNodeStatus } from '../../crds/recorder-node.ts';
import { Peers } from './peers.ts';

const nodeOf = (name: string, status: RecorderNodeStatus, spec: object = {}): [string, RecorderNode] => [
  name,
  parseRecorderNode({
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: { name, namespace: 'video' },
    spec: { nodeName: name, poolRef: { name: 'default' }, role: 'Voter', ...spec },
    status,
  }),
];

test('the owner of a camera is the other node that reports it under the highest epoch', () => {
  const report = (epoch: number) => [{ name: 'gate', epoch, state: 'Recording' as const }];
  const nodes = new Map([
    nodeOf('a', { cameras: report(9) }, { address: 'http://10.0.0.1:9997' }),
    nodeOf('b', { cameras: report(2) }, { address: 'http://10.0.0.2:9997' }),
    nodeOf('c', { cameras: report(3) }, { address: 'http://10.0.0.3:9997' }),
  ]);
  const peers = new Peers('a', () => ({ nodes, pool: undefined }));
  assert.deepEqual(peers.ownerOf('gate'), { nodeId: 'c', url: 'http://10.0.0.3:9997', epoch: 3 });
  assert.equal(peers.ownerOf('yard'), undefined);
});

test('many questions cost one look at the reports, until those change', () => {
  let looks = 0;
  let nodes = new Map([nodeOf('b', { cameras: [] })]);
  const peers = new Peers('a', () => {
    looks++;
    return { nodes, pool: undefined };
  });
  for (let i = 0; i < 10_000; i++) assert.equal(peers.ownerOf(`made-up-${i}`), undefined);
  assert.equal(looks, 1);
  nodes = new Map([nodeOf('b', { cameras: [{ name: 'gate', epoch: 1, state: 'Recording' }] })]);
  peers.changed();
  assert.equal(peers.ownerOf('gate')?.nodeId, 'b');
});

test('footage reaches up to the last picture that a node has reported, and it may have more if it records the camera', () => {
  const [oldestTime, newestTime, lastWrittenTime] = [0, 60_000, 90_000].map((ms) => new Date(ms).toISOString());
  const archives = [{ camera: 'gate', oldestTime, newestTime }];
  const cameras = [{ name: 'gate', epoch: 1, state: 'Recording' as const, lastWrittenTime }];
  const nodes = new Map([nodeOf('b', { archives, cameras }), nodeOf('c', { archives })]);
  const found = new Peers('a', () => ({ nodes, pool: undefined })).holdersOf('gate');
  assert.deepEqual(
    found.map(({ nodeId, oldestMs, newestMs, isRecording }) => [nodeId, oldestMs, newestMs, isRecording]),
    [
      ['b', 0, 90_000, true],
      ['c', 0, 60_000, false],
    ],
  );
});

test('where a node is, the operator says: what a node says of itself leads nowhere', () => {
  const archives = [{ camera: 'gate' }];
  const evil = { address: 'evil.example:1', playbackAddress: 'https://evil.example', archives };
  const cameras = [{ name: 'gate', epoch: 1, state: 'Recording' as const }];
  const said = { address: 'https://10.0.0.3:9997', playbackAddress: 'https://10.0.0.3:9996' };
  const nodes = new Map([nodeOf('b', { ...evil, cameras }), nodeOf('c', evil, said)]);
  const peers = new Peers('a', () => ({ nodes, pool: undefined }));
  assert.equal(peers.ownerOf('gate')?.url, undefined);
  assert.deepEqual(
    peers.holdersOf('gate').map(({ url, playbackUrl }) => [url, playbackUrl]),
    [
      [undefined, undefined],
      [said.address, said.playbackAddress],
    ],
  );
  assert.deepEqual([peers.members(), peers.playbacks()], [[said.address], [said.playbackAddress]]);
});

test('a report that the operator refuses draws no camera to its node', () => {
  const report = (epoch: number) => [{ name: 'gate', epoch, state: 'Recording' as const }];
  const nodes = new Map([
    nodeOf('b', { cameras: report(2) }),
    nodeOf('c', { cameras: report(2 ** 53 - 1) }, { refusedReports: ['gate'] }),
  ]);
  assert.equal(new Peers('a', () => ({ nodes, pool: undefined })).ownerOf('gate')?.nodeId, 'b');
});

test('sessions that a member has ended are ended everywhere, those that a removed node says are not', () => {
  const endedSessions = [{ of: 'id-1', endedTime: '2026-01-01T12:00:00.123Z' }];
  const nodes = new Map([nodeOf('b', { endedSessions }), nodeOf('c', {})]);
  const peers = new Peers('a', () => ({ nodes, pool: undefined }));
  const told: unknown[] = [];
  peers.followSessions(({ ended }) => told.push(ended));
  peers.changed();
  peers.changed();
  const ended = [{ of: 'id-1', atMs: Date.UTC(2026, 0, 1, 12, 0, 0, 123) }];
  assert.deepEqual(told, [[], ended]);
  nodes.set(...nodeOf('b', { endedSessions }, { role: 'Removed' }));
  peers.changed();
  assert.deepEqual(told, [[], ended, []]);
});

test('sessions of a node are known by the key that it reports, until the node is removed', () => {
  const [key, other] = ['A'.repeat(43), 'B'.repeat(43)];
  const nodes = new Map([nodeOf('b', { sessionKey: key }), nodeOf('c', { sessionKey: other }), nodeOf('d', {})]);
  const peers = new Peers('a', () => ({ nodes, pool: undefined }));
  const told: unknown[] = [];
  peers.followSessions(({ keys }) => told.push(Object.fromEntries(keys)));
  const known = (): readonly unknown[] => {
    peers.changed();
    return [told.at(-1), told.length];
  };
  assert.deepEqual(known(), [{ b: key, c: other }, 2]);
  assert.deepEqual(known(), [{ b: key, c: other }, 2], 'nothing has changed');
  nodes.set(...nodeOf('b', { sessionKey: key }, { role: 'Removed' }));
  assert.deepEqual(known(), [{ c: other }, 3]);
  nodes.delete('c');
  assert.deepEqual(known(), [{}, 4]);
});

test('members are the nodes that the store has and that were not removed, once there is a list of them', () => {
  const nodes = new Map([nodeOf('b', {}, { role: 'Removed' }), nodeOf('c', {})]);
  const peers = new Peers('a', () => ({ nodes, pool: undefined }));
  const known = (): readonly boolean[] => ['b', 'c', 'x'].map((nodeId) => peers.isMember(nodeId));
  assert.deepEqual(known(), [false, true, false]);
  nodes.clear();
  assert.deepEqual(known(), [true, true, true]);
});
