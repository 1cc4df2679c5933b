import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { API_VERSION, RECORDER_POOLS } from '../../crds/names.ts';
import { KeyRotation, RotationError } from './key-rotation.ts';
import { nodesPath, type StoreApi } from './secrets.ts';

const NAMESPACE = 'video';
const POOL = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/${RECORDER_POOLS}/default`;
const KEYS = 'kube-nvr.dev/keys';

/** A cluster whose nodes have these keys; this node is `a`. */
function stage(nodes: Readonly<Record<string, string>>) {
  const clock = new VirtualClock();
  const kept = new Map(Object.entries(nodes).map(([name, keys]) => [`${nodesPath(NAMESPACE)}/${name}`, keys]));
  kept.set(POOL, 'k1');
  const objectAt = (path: string) => ({
    metadata: {
      name: path.slice(path.lastIndexOf('/') + 1),
      resourceVersion: '1',
      annotations: { [KEYS]: kept.get(path) },
    },
  });
  const api = {
    get: async (path: string) => objectAt(path),
    list: async (path: string) => {
      // The others look meanwhile.
      clock.advance(250);
      return {
        items: [...kept.keys()].filter((one) => one.startsWith(`${path}/`)).map(objectAt),
        resourceVersion: '1',
      };
    },
    call: async (_method: string, path: string, change: { metadata: { annotations: Record<string, string> } }) =>
      void kept.set(path, change.metadata.annotations[KEYS] ?? ''),
  } as unknown as StoreApi;
  let ids = ['k1'];
  const keys = {
    get ids() {
      return ids;
    },
    grow: async () => ((ids = [...ids, 'k2']), 'k2'),
    follow: async (wanted: readonly string[]) => void (ids = [...wanted]),
  };
  let resealed = 0;
  const reseal = async (): Promise<number> => ++resealed;
  const rotation = new KeyRotation({ api, namespace: NAMESPACE, pool: 'default', nodeId: 'a', keys, reseal, clock });
  const passing = setInterval(() => clock.advance(250), 1);
  const rotate = (force: boolean) => rotation.rotate({ force }).finally(() => clearInterval(passing));
  return { rotate, order: () => kept.get(POOL), sealsWith: () => ids[0], resealed: () => resealed };
}

test('a key is used once every other node has it', async () => {
  const { rotate, order, sealsWith } = stage({ a: 'k1', b: 'k2,k1', c: 'k2,k1' });
  assert.deepEqual(await rotate(false), { key: 'k2', secrets: 1, away: [] });
  assert.deepEqual([order(), sealsWith()], ['k2,k1', 'k2']);
});

test('while a node is away the key is replaced by force only, and the node is named', async () => {
  const nodes = { a: 'k1', b: 'k2,k1', c: 'k1' };
  const refused = stage(nodes);
  await assert.rejects(
    refused.rotate(false),
    (err) => err instanceof RotationError && /because c does not/.test(err.message),
  );
  assert.deepEqual([refused.sealsWith(), refused.resealed()], ['k1', 0]);
  assert.deepEqual((await stage(nodes).rotate(true)).away, ['c']);
});

test('not even force uses a key that no other node has: with this node it would be lost', async () => {
  const { rotate, sealsWith, resealed } = stage({ a: 'k1', b: 'k1', c: 'k1' });
  await assert.rejects(rotate(true), /at least one other node must have it/);
  assert.deepEqual([sealsWith(), resealed()], ['k1', 0]);
});
