// Which nodes are alive, as a recorder tells it: what it asks of the API server for that.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { nodeLeaseName } from '../../crds/names.ts';
import { ApiServerError, type KubernetesObject } from './api-server.ts';
import { Membership } from './membership.ts';

/** `nodes` nodes that renew their Leases whenever somebody looks. */
function stage(nodes: number) {
  const clock = new VirtualClock();
  const lists: {
    readonly query: Readonly<Record<string, string>>;
    readonly answer: () => void;
    readonly fail: () => void;
  }[] = [];
  const api = {
    list: (_path: string, { query = {} }: { query?: Record<string, string> } = {}) => {
      const { promise, resolve, reject } = Promise.withResolvers<{
        items: KubernetesObject[];
        resourceVersion: string;
      }>();
      const renewTime = new Date(clock.wallMs()).toISOString();
      const items = Array.from({ length: nodes }, (_, i) => ({
        metadata: { name: nodeLeaseName(`node-${i}`), resourceVersion: `${lists.length}` },
        spec: { renewTime },
      }));
      lists.push({
        query,
        answer: () => resolve({ items, resourceVersion: '1' }),
        fail: () => reject(new ApiServerError(0, 'UNREACHABLE', 'no answer')),
      });
      return promise;
    },
  };
  const cluster = { nodes: new Map(), pool: undefined, assignments: new Map() };
  const membership = new Membership({ api, cluster, namespace: 'video', nodeId: 'node-0', clock });
  return { clock, lists, membership };
}

/** How many lists are made while somebody asks four times a second for a minute. */
async function listsInAMinute(nodes: number): Promise<number> {
  const { clock, lists, membership } = stage(nodes);
  for (let ms = 0; ms < 60_000; ms += 250) {
    const before = lists.length;
    const looked = membership.look();
    if (lists.length > before) lists.at(-1)?.answer();
    await looked;
    for (let i = 0; i < nodes; i++) assert.ok(membership.isOnline(`node-${i}`), `node-${i} after ${ms} ms`);
    clock.advance(250);
  }
  return lists.length;
}

test('all who ask within a second share a list of the Leases, in large pools within three, and no live node looks silent', async () => {
  assert.deepEqual([await listsInAMinute(3), await listsInAMinute(200), await listsInAMinute(1_000)], [60, 30, 20]);
});

test('no list begins while another one waits, and a failed one is made again', async () => {
  const { clock, lists, membership } = stage(3);
  const first = membership.look();
  clock.advance(20_000);
  const second = membership.look();
  assert.equal(lists.length, 1);
  lists[0]?.fail();
  await Promise.all([first, second]);
  assert.equal(membership.isOnline('node-1'), false);
  const third = membership.look();
  assert.equal(lists.length, 2);
  lists[1]?.answer();
  await third;
  assert.equal(membership.isOnline('node-1'), true);
});

test('the list comes from the cache of the API server', async () => {
  const { lists, membership } = stage(3);
  const looked = membership.look();
  lists[0]?.answer();
  await looked;
  assert.equal(lists[0]?.query['resourceVersion'], '0');
});
