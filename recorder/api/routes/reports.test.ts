import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { Members } from '../../../test/support/members.ts';
import type { GapCause } from '../../contract/gap-cause.ts';
import type { Gap } from '../../contract/gap-report.ts';
import { fingerprintOf, NodeKeyError } from '../../jobs/node-key.ts';
import { checkedText } from '../../jobs/signed-text.ts';
import type { Report } from '../../objectives/report.ts';
import type { JobKeeper } from '../deps.ts';
import { as, build, cameraStatus, fakeCluster, noGaps, token } from '../test-support.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const KEY = {
  publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  fingerprint: fingerprintOf(publicKey),
  sign: (text: Uint8Array) => sign(null, text, privateKey),
};
const MONTH_MS = Date.UTC(2026, 9, 1);
const HOUR_MS = 3_600_000;
type Hours = readonly [from: number, to: number, cause?: GapCause];

interface Known {
  /** Of the camera gate, in hours since the month began. */
  readonly recorded: readonly Hours[];
  readonly gaps: readonly Hours[];
}

const at = ([from, to]: Hours) => ({
  fromMs: Math.round(MONTH_MS + from * HOUR_MS),
  toMs: Math.round(MONTH_MS + to * HOUR_MS),
});

/** Retention has removed the first hour of all footage. */
const timesOf = ({ recorded, gaps }: Known) => ({
  refresh: async () => {},
  of: async (cameraId: string, fromMs: number, toMs: number) => {
    const isGate = cameraId === 'gate';
    const written = isGate ? recorded.map(at) : [];
    return {
      keptFromMs: undefined,
      footage: written.filter((part) => part.fromMs >= MONTH_MS + HOUR_MS),
      report: {
        ...(await noGaps.ofThisNode(cameraId, fromMs, toMs)),
        recorded: written,
        gaps: (isGate ? gaps : []).map((gap): Gap => ({
          ...at(gap),
          cause: gap[2] ?? 'unknown',
          isOpen: false,
          isProvisional: false,
        })),
      },
    };
  },
});

const OBJECTIVE = { name: 'insurance', target: 99, windowMs: 0, excused: ['stopped' as const] };
const keeper = (signingKey: JobKeeper['signingKey']) => ({ signingKey }) as JobKeeper;

/** One node, in the time zone UTC. */
async function stage(t: TestContext, known: Known, signingKey: JobKeeper['signingKey'] = async () => KEY) {
  const tokens = [token('viewer'), { ...token('viewer', 'dock'), name: 'dock', cameras: ['dock-*'] }];
  const { app, cameras } = await build(t, {
    auth: { mode: 'token', tokens },
    site: { name: 'Depot <7>', timeZone: 'UTC' },
    objectives: () => [OBJECTIVE],
    times: timesOf(known),
    jobs: keeper(signingKey),
  });
  cameras.push({ status: cameraStatus({ id: 'gate', name: 'Gate & yard' }), live: undefined, archive: undefined });
  return async (query = '', by = 'viewer') =>
    app.inject({ url: `/api/reports/2026-10${query}`, headers: { authorization: `Bearer ${by}` } });
}

const KNOWN: Known = {
  recorded: [
    [0, 1],
    [1, 20],
    [20.5, 40],
  ],
  gaps: [
    [20, 20.5, 'camera-unreachable'],
    [40, 60, 'stopped'],
  ],
};

test('a report has a row a camera and day, with footage that was removed, and says whether objectives are met', async (t) => {
  const answer = await (await stage(t, KNOWN))();
  assert.equal(answer.statusCode, 200, answer.body);
  const { rows, objectives, cameras, site } = answer.json<Report>();
  const stopped = (ms: number) => ({ cause: 'stopped', missing_ms: ms });
  const unreachable = { cause: 'camera-unreachable', missing_ms: 1_800_000 };
  assert.equal(site, 'Depot <7>');
  assert.deepEqual(rows, [
    {
      date: '2026-10-01',
      camera_id: 'gate',
      recorded_ms: 23.5 * HOUR_MS,
      missing_ms: 1_800_000,
      causes: [unreachable],
    },
    {
      date: '2026-10-02',
      camera_id: 'gate',
      recorded_ms: 16 * HOUR_MS,
      missing_ms: 8 * HOUR_MS,
      causes: [stopped(8 * HOUR_MS)],
    },
    {
      date: '2026-10-03',
      camera_id: 'gate',
      recorded_ms: 0,
      missing_ms: 12 * HOUR_MS,
      causes: [stopped(12 * HOUR_MS)],
    },
  ]);
  assert.deepEqual(cameras, [
    {
      camera_id: 'gate',
      name: 'Gate & yard',
      recorded_ms: 39.5 * HOUR_MS,
      missing_ms: 20.5 * HOUR_MS,
      causes: [unreachable, stopped(20 * HOUR_MS)],
    },
  ]);
  const balance = {
    recorded_ms: 39.5 * HOUR_MS,
    missing_ms: 1_800_000,
    excused_ms: 20 * HOUR_MS,
    achieved_percent: 98.75,
    budget_ms: 0.4 * HOUR_MS,
    budget_left_ms: -0.1 * HOUR_MS,
    met: false,
  };
  assert.deepEqual(objectives, [
    {
      name: 'insurance',
      target_percent: 99,
      excused: ['stopped'],
      cameras: 1,
      ...balance,
      worst_cameras: [{ camera_id: 'gate', ...balance }],
    },
  ]);
});

test('report and page are signed as they are sent, by the key of the node', async (t) => {
  const ask = await stage(t, KNOWN);
  for (const query of ['', '?format=html']) {
    const { rawPayload } = await ask(query);
    assert.deepEqual(checkedText(rawPayload), { fingerprint: KEY.fingerprint, isRight: true });
  }
});

test('the page says in words what the numbers are, and takes no text for markup', async (t) => {
  const { body, headers } = await (await stage(t, KNOWN))('?format=html');
  assert.match(String(headers['content-type']), /^text\/html/);
  assert.match(String(headers['content-security-policy']), /default-src 'none'/);
  for (const text of [
    'Recording report 2026-10, Depot &lt;7&gt;',
    '<td>Gate &amp; yard</td>',
    'Not met: 98.75 % recorded',
    '30 min 00 s missing, 24 min 00 s allowed: 6 min 00 s too much',
    '<td>stopped 8 h 00 min</td>',
    'a user stopped it (enabled: false, /cameras/stop)',
  ])
    assert.ok(body.includes(text), `${text} is not in ${body}`);
});

test('a caller gets a report of the cameras that it may see', async (t) => {
  const { cameras, rows, objectives } = (await (await stage(t, KNOWN))('', 'dock')).json<Report>();
  assert.deepEqual([cameras, rows, objectives[0]?.cameras, objectives[0]?.achieved_percent], [[], [], 0, null]);
});

test('without a key there is no report, and a month that is none is named', async (t) => {
  const ask = await stage(t, KNOWN, () => Promise.reject(new NodeKeyError('is a link')));
  assert.equal((await ask()).json<{ code: string }>().code, 'signing-key-unusable');
  assert.equal((await ask('?tz=Europe/Bonn')).statusCode, 400);
});

/** node-1 recorded gate; node-2 took over; node-3 never had a picture of it, but knows of a gap. */
const NODES: Readonly<Record<string, Known>> = {
  'node-1': {
    recorded: [[1, 10.1234567]],
    gaps: [
      [0, 1, 'starting'],
      [10, 30, 'node-down'],
    ],
  },
  'node-2': { recorded: [[11, 30]], gaps: [[9, 11, 'moved']] },
  'node-3': { recorded: [], gaps: [[30, 31, 'refused-login']] },
};

async function cluster(t: TestContext, down: readonly string[] = [], nodes = NODES) {
  const members = await Members.open(t);
  const apps = new Map<string, FastifyInstance>();
  for (const [nodeId, known] of Object.entries(nodes)) {
    const holders = ['node-1', 'node-2']
      .filter((other) => other !== nodeId)
      .map((other) => ({ nodeId: other, oldestMs: MONTH_MS, newestMs: undefined, isOnline: undefined }));
    const camera = { id: 'gate', name: 'Gate', nodeId: 'node-2', epoch: 2, state: 'recording' as const };
    const { app } = await build(t, {
      nodeName: nodeId,
      objectives: () => [OBJECTIVE],
      times: timesOf(known),
      jobs: keeper(async () => KEY),
      peers: await members.requestsOf(nodeId),
      cluster: fakeCluster(nodeId, {
        footageHolders: async () => holders,
        places: () => Object.keys(NODES).map((node) => ({ nodeId: node, url: '' })),
        cameras: async () => ({
          isCurrent: true,
          nodes: [],
          cameras: [{ ...camera, reason: undefined, lastWrittenMs: undefined, archives: [] }],
        }),
      }),
    });
    if (!down.includes(nodeId)) await members.listen(nodeId, { api: app, playback: app });
    apps.set(nodeId, app);
  }
  return async (nodeId: string, path: string) => {
    const answer = await (apps.get(nodeId) as FastifyInstance).inject({ url: path, headers: as('viewer') });
    assert.equal(answer.statusCode, 200, answer.body);
    return answer;
  };
}

test('every node of a cluster has equal numbers, to the millisecond, also of gaps that only another node knows', async (t) => {
  const ask = await cluster(t);
  const reports = new Map<string, Report>();
  for (const nodeId of Object.keys(NODES)) {
    const { signature: _signature, ...report } = (await ask(nodeId, '/api/reports/2026-10?tz=UTC')).json();
    reports.set(nodeId, report as Report);
  }
  const [first] = reports.values();
  for (const [nodeId, report] of reports) assert.deepEqual(report, first, nodeId);
  const [camera] = first?.cameras ?? [];
  const lostMs = Math.round(11 * HOUR_MS) - Math.round(10.1234567 * HOUR_MS);
  assert.deepEqual(camera?.causes, [
    { cause: 'refused-login', missing_ms: HOUR_MS },
    { cause: 'node-down', missing_ms: lostMs },
    { cause: 'starting', missing_ms: HOUR_MS },
  ]);
  assert.deepEqual(first?.silent_nodes, []);
});

test('the calendar of each node has the missing time of the report', async (t) => {
  const ask = await cluster(t);
  for (const nodeId of Object.keys(NODES)) {
    const { rows } = (await ask(nodeId, '/api/reports/2026-10?tz=UTC')).json<Report>();
    const { days } = (await ask(nodeId, '/api/archive/gate/days?month=2026-10&tz=UTC&scope=cluster')).json<{
      days: { date: string; missing_seconds: number }[];
    }>();
    assert.deepEqual(
      days.map(({ date, missing_seconds }) => [date, Math.round(missing_seconds * 1_000)]),
      rows.map(({ date, missing_ms }) => [date, missing_ms]),
    );
  }
});

test('a report names the nodes that did not answer', async (t) => {
  const ask = await cluster(t, ['node-1']);
  const answer = await ask('node-2', '/api/reports/2026-10?tz=UTC');
  assert.deepEqual(answer.json<Report>().silent_nodes, ['node-1']);
  assert.match(
    (await ask('node-2', '/api/reports/2026-10?tz=UTC&format=html')).body,
    /Not complete: node-1 did not answer/,
  );
});

test('thousands of gaps, which a timeline joins, keep their milliseconds and causes', async (t) => {
  const gaps = Array.from({ length: 6_000 }, (_, i): Hours => [
    i / 100,
    i / 100 + 1 / 360,
    i % 3 === 0 ? 'disk-slow' : 'packets-lost',
  ]);
  const ask = await cluster(t, [], {
    ...NODES,
    'node-1': { recorded: [], gaps },
    'node-2': { recorded: [[1.001, 2.002]], gaps: [] },
  });
  const gapMs = gaps.reduce((sums, gap) => {
    const { fromMs, toMs } = at(gap);
    const lostMs =
      Math.max(0, Math.min(toMs, at([0, 1.001]).toMs) - fromMs) +
      Math.max(0, toMs - Math.max(fromMs, at([0, 2.002]).toMs));
    return sums.set(gap[2] ?? 'unknown', (sums.get(gap[2] ?? 'unknown') ?? 0) + lostMs);
  }, new Map<GapCause, number>());
  for (const nodeId of ['node-1', 'node-3']) {
    const { causes } = (await ask(nodeId, '/api/reports/2026-10?tz=UTC')).json<Report>().cameras[0] ?? {};
    const found = new Map(causes?.map(({ cause, missing_ms }) => [cause, missing_ms]));
    for (const [cause, ms] of gapMs) assert.equal(found.get(cause), ms, `${nodeId} ${cause}`);
  }
});
