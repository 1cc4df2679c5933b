import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../base/log.ts';
import { PeerUnavailable, type PeerSender } from '../peers/peer-requests.ts';
import { nodeHolder } from './node-holder.ts';

const BY = { name: 'guard', credential: undefined };
const HOUR = { fromMs: 0, toMs: 3_600_000 };

test('a node whose Lease has ended is asked for footage only if it says that it is there', async () => {
  const requests: string[] = [];
  let isThere = false;
  const peers: PeerSender = {
    request: (nodeId, { path }) => {
      requests.push(path);
      return Promise.reject(new PeerUnavailable(nodeId, 'away', 'no'));
    },
    upgrade: () => assert.fail('nothing is upgraded'),
    answers: async () => isThere,
  };
  const about = { nodeId: 'rack-2', oldestMs: undefined, newestMs: undefined, isOnline: false };
  const holder = nodeHolder(about, { peers, log: silentLog });
  const asked = () =>
    Promise.all([
      holder.files('gate', HOUR, BY),
      holder.segments('gate', 'from=0&to=3600', BY),
      holder.times({ cameraIds: ['gate'], interval: HOUR, resolutionMs: 0, preview: false }, BY),
    ]);
  for (const answer of await asked()) assert.equal(answer.kind, 'away');
  assert.deepEqual(requests, []);
  isThere = true;
  await asked();
  assert.equal(requests.length, 3);
});
