// Timelines, days and protections of all nodes of a cluster, at each of them.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { Members } from '../../test/support/members.ts';
import type { Gap } from '../contract/gap-report.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import { as, build, fakeCluster, noGaps } from './test-support.ts';

const FROM = Date.UTC(2026, 0, 1, 11) / 1_000;
type Seconds = readonly [from: number, to: number];

interface NodeMade {
  readonly footage: Readonly<Record<string, readonly Seconds[]>>;
  readonly gaps: readonly Seconds[];
}

/** `gate` moved from node-1 to node-2; node-2 also has footage of its preview. node-3 has nothing, and answers for all. */
const NODES: Readonly<Record<string, NodeMade>> = {
  'node-1': { footage: { gate: [[0, 100]] }, gaps: [[100, 160]] },
  'node-2': {
    footage: {
      gate: [
        [150, 300],
        [320, 400],
      ],
      'gate~preview': [[150, 400]],
    },
    gaps: [[300, 320]],
  },
  'node-3': { footage: {}, gaps: [] },
};
const MEMBERS = Object.keys(NODES).map((nodeId) => ({
  nodeId,
  nodeName: nodeId,
  address: undefined,
  role: 'voter' as const,
  isOnline: true,
  lastSeenMs: 0,
  cameras: 0,
  version: undefined,
}));

const at = ([from, to]: Seconds) => ({ fromMs: (FROM + from) * 1_000, toMs: (FROM + to) * 1_000 });

/** `isOnline`: as the Leases of the nodes say. */
async function stage(t: TestContext, isOnline: boolean | undefined = true) {
  const members = await Members.open(t);
  const apps = new Map<string, FastifyInstance>();
  for (const [nodeId, { footage, gaps }] of Object.entries(NODES)) {
    const holders: FootageHolder[] = ['node-1', 'node-2']
      .filter((other) => other !== nodeId)
      .map((other) => ({ nodeId: other, oldestMs: FROM * 1_000, newestMs: undefined, isOnline }));
    const window = { id: `p-${nodeId}`, cameraId: 'gate', ...at([0, 50]), createdMs: 0, note: 'the red car' };
    const { app, clock } = await build(t, {
      times: {
        refresh: async () => {},
        of: async (cameraId, fromMs, toMs) => ({
          keptFromMs: footage[cameraId] && at(footage[cameraId][0] as Seconds).fromMs,
          footage: (footage[cameraId] ?? []).map(at),
          report: {
            ...(await noGaps.ofThisNode(cameraId, fromMs, toMs)),
            gaps: (cameraId === 'gate' ? gaps : []).map((gap): Gap => ({
              ...at(gap),
              cause: 'moved',
              isOpen: false,
              isProvisional: false,
            })),
          },
        }),
      },
      protections: {
        windows: {
          list: async () => (nodeId === 'node-3' ? [] : [{ ...window, untilMs: undefined, by: undefined }]),
          add: async () => assert.fail(),
          remove: async () => assert.fail(),
        },
        keptMs: 1,
      },
      peers: await members.requestsOf(nodeId),
      cluster: fakeCluster(nodeId, {
        footageHolders: async (cameraId: string) => (cameraId.startsWith('gate') ? holders : []),
        metrics: async () => ({ leader: undefined, hasMajority: true, voters: [], nodes: MEMBERS }),
      }),
    });
    clock.advance(3_600_000);
    await members.listen(nodeId, { api: app, playback: app });
    apps.set(nodeId, app);
  }
  const get = async (nodeId: string, path: string) => {
    const answer = await (apps.get(nodeId) as FastifyInstance).inject({ url: path, headers: as('viewer') });
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json();
  };
  return { members, get };
}

const seconds = (list: readonly { start_ms: number; end_ms: number }[]): Seconds[] =>
  list.map(({ start_ms, end_ms }) => [start_ms / 1_000 - FROM, end_ms / 1_000 - FROM]);
const timeline = (ids: string, to = 500): string =>
  `/api/archive/timeline?${ids}&from=${FROM}&to=${FROM + to}&scope=cluster`;

test('every node has the footage of all, says which is on another, and has the gaps that are left', async (t) => {
  const { get } = await stage(t);
  const expected: Readonly<Record<string, { readonly own: Seconds[]; readonly others: [string, Seconds][] }>> = {
    'node-1': {
      own: [[0, 100]],
      others: [
        ['node-2', [150, 300]],
        ['node-2', [320, 400]],
      ],
    },
    'node-2': {
      own: [
        [150, 300],
        [320, 400],
      ],
      others: [['node-1', [0, 100]]],
    },
    'node-3': {
      own: [],
      others: [
        ['node-1', [0, 100]],
        ['node-2', [150, 300]],
        ['node-2', [320, 400]],
      ],
    },
  };
  for (const [nodeId, { own, others }] of Object.entries(expected)) {
    const { cameras } = await get(nodeId, timeline('camera=gate&preview=1'));
    const [gate] = cameras;
    assert.deepEqual(seconds(gate.spans), own, nodeId);
    assert.deepEqual(
      gate.elsewhere.map((part: { node_id: string }) => part.node_id),
      others.map(([node]) => node),
    );
    assert.deepEqual(
      seconds(gate.elsewhere),
      others.map(([, part]) => part),
    );
    assert.ok(gate.elsewhere.every(({ online }: { online: boolean }) => online));
    // Node-1 was still responsible when node-2 began.
    assert.deepEqual(seconds(gate.gaps), [
      [100, 150],
      [300, 320],
    ]);
    assert.equal(gate.kept_from_ms, FROM * 1_000);
    assert.deepEqual(seconds(gate.preview), [[150, 400]]);
    assert.deepEqual(
      gate.protections.map(({ id }: { id: string }) => id),
      nodeId === 'node-2' ? ['p-node-2', 'p-node-1'] : ['p-node-1', 'p-node-2'],
    );
  }
});

test('a node whose Lease has ended is asked, too: others may still reach it', async (t) => {
  const { get } = await stage(t, false);
  const [gate] = (await get('node-1', timeline('camera=gate'))).cameras;
  assert.deepEqual(
    gate.elsewhere.map(({ node_id, online }: Record<string, unknown>) => [node_id, online]),
    [
      ['node-2', true],
      ['node-2', true],
    ],
  );
});

test('of a node that does not answer, the time is named that it may have footage of', async (t) => {
  const { members, get } = await stage(t);
  await members.kill('node-2');
  const [gate] = (await get('node-1', timeline('camera=gate'))).cameras;
  assert.deepEqual(seconds(gate.spans), [[0, 100]]);
  assert.deepEqual(
    gate.elsewhere.map(({ node_id, online }: Record<string, unknown>) => [node_id, online]),
    [['node-2', false]],
  );
  // Nobody has footage of the future.
  const later = await get('node-1', timeline('camera=gate', 86_400));
  const [{ elsewhere }] = later.cameras;
  assert.ok(elsewhere.length > 0);
  for (const { end_ms } of elsewhere) assert.ok(end_ms <= later.server_time_ms, `${end_ms} ${later.server_time_ms}`);
});

test('the days of a month count the footage of all nodes', async (t) => {
  const { get } = await stage(t);
  for (const nodeId of Object.keys(NODES)) {
    const { days } = await get(nodeId, '/api/archive/gate/days?month=2026-01&tz=UTC&scope=cluster');
    assert.deepEqual(
      days.map((day: Record<string, unknown>) => [day['date'], day['recorded_seconds'], day['missing_seconds']]),
      [['2026-01-01', 330, 70]],
      nodeId,
    );
  }
});

test('protections are those of all nodes, in pages too, and nodes that do not answer are named', async (t) => {
  const { members, get } = await stage(t);
  const listed = async (query = '') => get('node-3', `/api/archive/protections?scope=cluster${query}`);
  const { protections, nodes_away } = await listed();
  assert.deepEqual(
    protections.map(({ id, node_id }: Record<string, unknown>) => [id, node_id]),
    [
      ['p-node-1', 'node-1'],
      ['p-node-2', 'node-2'],
    ],
  );
  assert.deepEqual(nodes_away, []);
  const first = await listed('&limit=1');
  const second = await listed(`&limit=1&cursor=${first.next}`);
  assert.deepEqual([first.protections[0].id, second.protections[0].id], ['p-node-1', 'p-node-2']);
  await members.kill('node-1');
  const left = await listed();
  assert.deepEqual([left.protections.length, left.nodes_away], [1, ['node-1']]);
});
