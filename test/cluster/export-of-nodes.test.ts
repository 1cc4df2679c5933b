// Footage of one camera on three nodes: exports, gaps and jobs as any node tells them. Real control plane, operator and
// recorders; the recorders ask each other with certificates of the pool's CA.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { RESOURCES } from './own-operator.ts';
import { createTlsPool, onStage, operatorHere } from './stage.ts';

const NODES = ['node-1', 'node-2', 'node-3'] as const;
const SLOW_MS = 120_000;
const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
const TOKENS = [
  { name: 'ops', role: 'admin', sha256: sha256('ops') },
  { name: 'guard', role: 'viewer', sha256: sha256('guard') },
  { name: 'other', role: 'operator', cameras: ['yard'], sha256: sha256('other') },
];

interface Elsewhere {
  readonly node_id: string;
  readonly start_ms: number;
  readonly end_ms: number;
  readonly online: boolean;
}
interface Gap {
  readonly start: string;
  readonly end: string;
  readonly cause?: string;
}
interface Job {
  readonly job_id: string;
  readonly status_url: string;
  readonly state: string;
  readonly reason?: string;
  readonly duration_seconds: number;
  readonly size_bytes: number;
  readonly sha256: string;
  readonly gaps: readonly Gap[];
  readonly elsewhere: readonly Elsewhere[];
  /** Of a case. */
  readonly cameras: readonly { readonly gaps: readonly Gap[]; readonly elsewhere: readonly Elsewhere[] }[];
}
interface GapList {
  readonly gaps: readonly (Gap & { readonly start_ms: number; readonly end_ms: number })[];
  readonly elsewhere: readonly Elsewhere[];
  readonly footage: readonly { readonly start_ms: number; readonly end_ms: number }[];
}
type CameraObject = KubeObject & {
  readonly status?: { readonly assignment?: { readonly node?: string; readonly handover?: string } };
};

let cluster: Cluster;
let authority: string;
let directory: string;
/** The window of all tests: footage of each of the nodes, in the order in which they had the camera. */
let window: { fromMs: number; toMs: number };
let order: readonly string[];

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

interface Asked {
  readonly method?: string;
  readonly token?: string;
  /** Of a session, in place of the token. */
  readonly cookie?: string | undefined;
  /** Sent as JSON. */
  readonly sends?: object;
}

async function ask(
  node: string,
  path: string,
  { method = 'GET', token = 'ops', cookie, sends }: Asked = {},
): Promise<Answer> {
  const agent = new Agent({ keepAlive: false, ca: authority });
  const origin = `https://${cluster.node(node).address}:9997`;
  const headers = {
    // Only the recorder's own page may change anything with a session.
    ...(cookie === undefined ? { authorization: `Bearer ${token}` } : { cookie, origin }),
    ...(sends && { 'content-type': 'application/json' }),
  };
  const sent = request(`${origin}${path}`, { agent, method, headers, timeout: SLOW_MS });
  sent.end(sends && JSON.stringify(sends));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

async function json<T>(node: string, path: string, options: Parameters<typeof ask>[2] = {}): Promise<T> {
  const { status, body } = await ask(node, path, options);
  assert.ok(status === 200 || status === 202, `${path} at ${node} answers ${status}: ${body.toString()}`);
  return JSON.parse(body.toString()) as T;
}

const query = ({ fromMs, toMs } = window): string => `from=${fromMs / 1000}&to=${toMs / 1000}`;

/** Requests a job at `node`, and follows it at `follower`. */
async function made(node: string, path: string, follower = node, cookie?: string, sends?: object): Promise<Job> {
  const submitted = await json<Job>(node, path, { method: 'POST', cookie, ...(sends && { sends }) });
  const job = await until(
    `${submitted.job_id} has ended`,
    async () => {
      const found = await json<Job>(follower, submitted.status_url, { cookie });
      return (found.state === 'done' || found.state === 'failed') && found;
    },
    SLOW_MS,
  );
  assert.equal(job.state, 'done', job.reason);
  return job;
}

/** The cookie of a new session. */
async function signIn(node: string): Promise<string> {
  const { headers } = await ask(node, '/api/session', { method: 'POST', sends: { token: 'ops' } });
  const [cookie = ''] = headers['set-cookie'] ?? [];
  return cookie.split(';', 1)[0] as string;
}

const gapsAt = (node: string, more = ''): Promise<GapList> =>
  json<GapList>(node, `/api/archive/gate/gaps?${query()}${more}`);

/** Pictures of a movie that are shown: time of each in seconds, and its size. */
function picturesOf(bytes: Buffer): readonly { readonly time: number; readonly size: number }[] {
  const file = join(directory, `${sha256(bytes).slice(0, 12)}.mp4`);
  writeFileSync(file, bytes);
  const show = ['-select_streams', 'v', '-show_entries', 'packet=pts_time,size,flags', '-of', 'json', file];
  const { packets } = JSON.parse(
    execFileSync('ffprobe', ['-v', 'error', ...show], { encoding: 'utf8', maxBuffer: 1 << 26 }),
  ) as {
    packets: readonly { pts_time: string; size: string; flags: string }[];
  };
  return packets
    .filter(({ flags, pts_time }) => !flags.includes('D') && Number(pts_time) >= 0)
    .map(({ pts_time, size }) => ({ time: Number(pts_time), size: Number(size) }));
}

const assignment = async () => (await cluster.api.get<CameraObject>(`${RESOURCES}/cameras/gate`)).status?.assignment;

const drain = (node: string, drained: boolean): Promise<unknown> =>
  cluster.api.patch(`${RESOURCES}/recordernodes/${node}`, 'merge', { spec: { drain: drained } });

const footageAt = async (node: string): Promise<number> => {
  const fromMs = Date.now() - 600_000;
  const path = `/api/archive/gate/gaps?${query({ fromMs, toMs: Date.now() })}&local=1&footage=1`;
  const { footage } = await json<GapList>(node, path);
  return footage.reduce((sum, { start_ms, end_ms }) => sum + end_ms - start_ms, 0);
};

suite('footage of a camera on three nodes', { skip: clusterMissing() }, () => {
  onStage({
    nodes: NODES.length,
    operator: operatorHere,
    begin: async (started, camera) => {
      directory = mkdtempSync(join(started.directory, 'exports-'));
      cluster = started;
      authority = await createTlsPool(started, camera, TOKENS);
      const had: string[] = [];
      for (const _ of NODES) {
        const node = await until(
          'the camera is recorded for some seconds on another node',
          async () => {
            const { node: now, handover } = (await assignment()) ?? {};
            if (now === undefined || had.includes(now) || (had.length > 0 && handover !== 'Complete')) return false;
            return (await footageAt(now)) > 6_000 && now;
          },
          SLOW_MS,
        );
        had.push(node);
        if (had.length < NODES.length) await drain(node, true);
      }
      order = had;
      const [first, , last] = await Promise.all(
        had.map((node) =>
          json<GapList>(
            node,
            `/api/archive/gate/gaps?${query({ fromMs: Date.now() - 600_000, toMs: Date.now() })}&local=1&footage=1`,
          ),
        ),
      );
      window = { fromMs: first!.footage[0]!.start_ms + 2_000, toMs: last!.footage.at(-1)!.end_ms - 1_000 };
      await until(
        'every node knows what the others hold',
        async () => {
          const lists = await Promise.all(NODES.map((node) => gapsAt(node)));
          return lists.every(({ elsewhere }) => new Set(elsewhere.map(({ node_id }) => node_id)).size === 2);
        },
        SLOW_MS,
      );
    },
  });

  test('the gaps of a node name the footage of the others, and none is unknown', async () => {
    for (const node of NODES) {
      const { gaps, elsewhere } = await gapsAt(node);
      const others = new Set(elsewhere.map(({ node_id }) => node_id));
      assert.deepEqual(
        [...others].sort(),
        NODES.filter((other) => other !== node),
      );
      assert.ok(elsewhere.every(({ online }) => online));
      assert.ok(!gaps.some(({ cause }) => cause === 'unknown'), JSON.stringify(gaps));
    }
  });

  test('the timeline of all nodes is whole at each of them, and so are the days; each protects its own footage', async () => {
    interface Span {
      readonly start_ms: number;
      readonly end_ms: number;
    }
    interface Timeline {
      readonly cameras: readonly {
        readonly spans: readonly Span[];
        readonly gaps: readonly Span[];
        readonly elsewhere: readonly (Span & { readonly node_id: string; readonly online: boolean })[];
        readonly protections: readonly { readonly id: string }[];
      }[];
    }
    const seconds = (window.toMs - window.fromMs) / 1000;
    const secondsIn = (spans: readonly Span[]): number =>
      spans.reduce((sum, { start_ms, end_ms }) => sum + end_ms - start_ms, 0) / 1000;
    for (const node of NODES) {
      assert.equal((await ask(node, `/api/archive/gate/protect?${query()}`, { method: 'POST' })).status, 201);
    }
    for (const node of NODES) {
      const path = `/api/archive/timeline?camera=gate&${query()}&resolution_ms=1000&scope=cluster`;
      const [gate] = (await json<Timeline>(node, path)).cameras;
      assert.ok(gate);
      assert.deepEqual(gate.gaps, []);
      assert.ok(gate.elsewhere.every(({ node_id, online }) => online && node_id !== node));
      const found = secondsIn([...gate.spans, ...gate.elsewhere]);
      // During a handover two nodes record.
      assert.ok(found > seconds - 1.5, `${found} of ${seconds} s at ${node}`);
      assert.equal(gate.protections.length, NODES.length);
      const { protections } = await json<{ protections: readonly { readonly node_id: string }[] }>(
        node,
        '/api/archive/protections?scope=cluster',
      );
      assert.deepEqual(protections.map(({ node_id }) => node_id).sort(), [...NODES]);
      const month = new Date(window.fromMs).toISOString().slice(0, 7);
      const { days } = await json<{ days: readonly { readonly recorded_seconds: number }[] }>(
        node,
        `/api/archive/gate/days?month=${month}&tz=UTC&scope=cluster`,
      );
      const recorded = days.reduce((sum, { recorded_seconds }) => sum + recorded_seconds, 0);
      assert.ok(recorded >= seconds, `${recorded} of ${seconds} s at ${node}`);
    }
  });

  test('an export of a node has its own footage, and says what is on which other node', async () => {
    const [, second = ''] = order;
    const job = await made(second, `/api/archive/gate/export?${query()}`);
    assert.ok(job.job_id.startsWith(`${second}.e`), job.job_id);
    assert.ok(job.gaps.length >= 2);
    assert.deepEqual([...new Set(job.gaps.map(({ cause }) => cause))], ['on-other-node']);
    assert.deepEqual(
      [...new Set(job.elsewhere.map(({ node_id }) => node_id))].sort(),
      order.filter((node) => node !== second).sort(),
    );
    const elsewhereMs = job.elsewhere.reduce((sum, { start_ms, end_ms }) => sum + end_ms - start_ms, 0);
    const secondsIn = (window.toMs - window.fromMs) / 1000;
    assert.ok(Math.abs(job.duration_seconds + elsewhereMs / 1000 - secondsIn) < 0.5, JSON.stringify(job));
  });

  test('an export of all nodes is the same whole movie, wherever it is requested and fetched', async () => {
    const seconds = (window.toMs - window.fromMs) / 1000;
    const movies = [];
    for (const [i, node] of NODES.entries()) {
      const follower = NODES[(i + 1) % NODES.length] as string;
      // As the console asks: with a session, which every node accepts.
      const cookie = i === 0 ? await signIn(node) : undefined;
      const job = await made(node, `/api/archive/gate/export?${query()}&scope=cluster`, follower, cookie);
      assert.ok(job.job_id.startsWith(`${node}.e`), job.job_id);
      assert.deepEqual([job.gaps, job.elsewhere], [[], []]);
      assert.ok(Math.abs(job.duration_seconds - seconds) < 0.1, `${job.duration_seconds} of ${seconds} s`);
      const { status, body, headers } = await ask(
        follower,
        `${job.status_url ?? `/api/archive/jobs/${job.job_id}`}/download`,
      );
      assert.deepEqual([status, body.length, headers['content-type']], [200, job.size_bytes, 'video/mp4']);
      assert.equal(sha256(body), job.sha256);
      const range = await ask(follower, `/api/archive/jobs/${job.job_id}/manifest`);
      assert.match(range.body.toString(), new RegExp(`"node": "${node}"`));
      movies.push(picturesOf(body));
    }
    const [movie = []] = movies;
    assert.ok(movie.length >= seconds * 25 - 3, `${movie.length} pictures in ${seconds} s`);
    const longest = Math.max(...movie.slice(1).map(({ time }, n) => time - movie[n]!.time));
    assert.ok(longest < 0.1, `${longest} s between two pictures`);
    for (const other of movies.slice(1)) {
      assert.deepEqual(
        other.map(({ size }) => size),
        movie.map(({ size }) => size),
      );
      assert.ok(other.every(({ time }, n) => Math.abs(time - movie[n]!.time) < 0.02));
    }
  });

  test('a time-lapse of all nodes shows all of the window', async () => {
    const job = await made('node-1', `/api/archive/gate/timelapse?${query()}&speed=2&scope=cluster`, 'node-3');
    assert.ok(Math.abs(job.duration_seconds - (window.toMs - window.fromMs) / 2000) < 0.2, `${job.duration_seconds} s`);
  });

  test('a case of all nodes has the whole footage, and any node lists it and sends its ZIP file', async () => {
    const [first = '', , third = ''] = order;
    const sends = { cameras: ['gate'], from: window.fromMs / 1000, to: window.toMs / 1000, name: 'All of it' };
    const job = await made(first, '/api/cases?scope=cluster', third, await signIn(first), sends);
    assert.ok(job.job_id.startsWith(`${first}.c`), job.job_id);
    const seconds = (window.toMs - window.fromMs) / 1000;
    assert.ok(Math.abs(job.duration_seconds - seconds) < 0.1, `${job.duration_seconds} of ${seconds} s`);
    assert.deepEqual(
      job.cameras.map(({ gaps, elsewhere }) => [gaps, elsewhere]),
      [[[], []]],
    );
    const { status, body, headers } = await ask(third, `/api/archive/jobs/${job.job_id}/download`);
    assert.deepEqual([status, body.length, headers['content-type']], [200, job.size_bytes, 'application/zip']);
    const file = join(directory, 'case.zip');
    writeFileSync(file, body);
    const names = execFileSync('python3', ['-m', 'zipfile', '-l', file], { encoding: 'utf8' });
    assert.match(
      names,
      /gate - [\d-]{10} \d\d\.\d\d\.\d\d UTC\.mp4[^]*report\.html[^]*manifest\.json[^]*manifest\.json\.sig/,
    );
    const movie = await ask(third, `/api/archive/jobs/${job.job_id}/download?part=1`);
    const shown = picturesOf(movie.body);
    assert.ok(shown.length >= seconds * 25 - 3, `${shown.length} pictures in ${seconds} s`);
    // Without the footage of others, it is what this node has.
    const alone = await made(first, '/api/cases', first, undefined, sends);
    assert.ok(alone.duration_seconds < seconds - 4, `${alone.duration_seconds} s`);
  });

  test('a dry run of all nodes says what the job would have, without one', async () => {
    const before = await json<{ jobs: readonly Job[] }>('node-2', '/api/archive/jobs?scope=cluster');
    const path = `/api/archive/gate/export?${query()}&scope=cluster&dry_run=1`;
    const estimate = await json<Job>('node-2', path, { method: 'POST' });
    const seconds = (window.toMs - window.fromMs) / 1000;
    assert.ok(
      Math.abs(estimate.duration_seconds - seconds) < 0.1 && estimate.size_bytes > 1_000,
      JSON.stringify(estimate),
    );
    assert.deepEqual([estimate.gaps, estimate.elsewhere], [[], []]);
    const after = await json<{ jobs: readonly Job[] }>('node-2', '/api/archive/jobs?scope=cluster');
    assert.equal(after.jobs.length, before.jobs.length);
  });

  test('any node lists the jobs of all, newest first and in pages, without parts of other jobs', async () => {
    interface List {
      readonly jobs: readonly Job[];
      readonly nodes_away: readonly string[];
      readonly next?: string | null;
    }
    const whole = await json<List>('node-3', '/api/archive/jobs?scope=cluster');
    assert.deepEqual(whole.nodes_away, []);
    assert.deepEqual([...new Set(whole.jobs.map(({ job_id }) => job_id.split('.')[0] ?? ''))].sort(), [...NODES]);
    assert.equal(whole.jobs.length, 7, 'an export and a case of a node, five of all');
    const paged: string[] = [];
    for (let next: string | null | undefined; next !== null;) {
      const path = `/api/archive/jobs?scope=cluster&limit=2${next === undefined ? '' : `&cursor=${next}`}`;
      const page = await json<List>('node-1', path);
      paged.push(...page.jobs.map(({ job_id }) => job_id));
      ({ next } = page);
      assert.ok(next !== undefined && paged.length <= 8);
    }
    assert.deepEqual(
      paged,
      whole.jobs.map(({ job_id }) => job_id),
    );
  });

  test('another node lets a caller do with a job what the node of the job does', async () => {
    const { job_id: id } = await json<Job>('node-1', `/api/archive/gate/export?${query()}`, { method: 'POST' });
    const path = `/api/archive/jobs/${id}`;
    const status = async (method: string, token: string, suffix = ''): Promise<number> =>
      (await ask('node-2', `${path}${suffix}`, { method, token })).status;
    assert.deepEqual(
      [await status('GET', 'guess'), await status('GET', 'other'), await status('GET', 'guard')],
      [401, 404, 200],
    );
    assert.deepEqual([await status('DELETE', 'guard'), await status('DELETE', 'other')], [403, 404]);
    assert.equal(
      (await ask('node-2', `/api/archive/gate/export?${query()}&scope=cluster`, { method: 'POST', token: 'guard' }))
        .status,
      403,
    );
    assert.equal(await status('DELETE', 'ops'), 204);
    assert.equal((await ask('node-1', path)).status, 404);
    assert.equal((await ask('node-2', '/api/archive/jobs/node-9.e0123')).status, 404);
  });

  test('a node that is away is named, with its time, and no gap is unknown', async () => {
    const [first = '', away = ''] = order;
    const { job_id: lost } = await json<Job>(away, `/api/archive/gate/export?${query()}`, { method: 'POST' });
    cluster.node(away).cutOff();
    await until(
      `${first} knows that ${away} is away`,
      async () => {
        const { nodes } = await json<{ nodes: readonly { node_id: string; online: boolean }[] }>(
          first,
          '/cluster/metrics',
        );
        return nodes.some(({ node_id, online }) => node_id === away && !online);
      },
      SLOW_MS,
    );
    // Another window than before: a result that is complete is handed out again.
    const later = { fromMs: window.fromMs + 40, toMs: window.toMs };
    const job = await made(first, `/api/archive/gate/export?${query(later)}&scope=cluster`);
    assert.deepEqual(
      [...new Set(job.elsewhere.map(({ node_id, online }) => `${node_id} ${online}`))],
      [`${away} false`],
    );
    assert.deepEqual([...new Set(job.gaps.map(({ cause }) => cause))], ['on-node-away']);
    const gapMs = job.gaps.reduce((sum, { start, end }) => sum + Date.parse(end) - Date.parse(start), 0);
    assert.ok(Math.abs(job.duration_seconds * 1000 + gapMs - (later.toMs - later.fromMs)) < 500, JSON.stringify(job));
    for (const node of order.filter((one) => one !== away)) {
      const { gaps, elsewhere } = await gapsAt(node);
      assert.ok(!gaps.some(({ cause }) => cause === 'unknown'), JSON.stringify(gaps));
      assert.ok(elsewhere.some(({ node_id, online }) => node_id === away && !online));
    }
    const refused = await ask(first, `/api/archive/jobs/${lost}`);
    assert.deepEqual(
      [refused.status, (JSON.parse(refused.body.toString()) as { code: string }).code],
      [503, 'node-away'],
    );
    assert.ok(Number(refused.headers['retry-after']) > 0);
    const { nodes_away } = await json<{ nodes_away: readonly string[] }>(first, '/api/archive/jobs?scope=cluster');
    assert.deepEqual(nodes_away, [away]);
  });
});
