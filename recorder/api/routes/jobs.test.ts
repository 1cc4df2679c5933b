// Jobs over HTTP: who may ask for what, what is refused and why, and how results are sent.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { workspace } from '../../../test/support/workspace.ts';
import { sha256 } from '../../../base/new-token.ts';
import { JobError } from '../../jobs/error.ts';
import { JobsUnavailable, type Job, type JobRequest } from '../../jobs/job.ts';
import { resultName } from '../../jobs/movie-name.ts';
import { NodeKeyError } from '../../jobs/node-key.ts';
import type { JobKeeper } from '../deps.ts';
import {
  archiveStatus,
  as,
  build as buildApi,
  cameraStatus,
  gapReader,
  fakeCluster,
  noGaps,
  type ApiChanges,
} from '../test-support.ts';

const FROM = 1_767_607_200;
const BYTES = Buffer.from('0123456789abcdefghij');

const job = (changes: Partial<Job> = {}): Job => ({
  kind: 'export',
  cameraId: 'gate',
  fromMs: FROM * 1000,
  toMs: (FROM + 60) * 1000,
  id: 'e0123',
  state: 'done',
  progress: 1,
  createdAtMs: FROM * 1000 + 100_500,
  completedAtMs: FROM * 1000 + 101_500,
  outcome: { sizeBytes: BYTES.length, durationMs: 50_000, gaps: [{ fromMs: FROM * 1000, toMs: FROM * 1000 + 10_000 }] },
  reason: undefined,
  ...changes,
});

interface Keeper extends JobKeeper {
  readonly asked: JobRequest[];
  /** Of assemblies. */
  readonly credentials: string[];
  jobs: Job[];
  expired: boolean;
  ffmpeg: boolean;
  redis: boolean;
}

function keeper(t: TestContext): Keeper {
  const path = join(workspace(t), 'e0123.mp4');
  writeFileSync(path, BYTES);
  const checked = (): void => {
    if (!made.redis) throw new JobsUnavailable('the program redis-server is not installed: install it');
  };
  const made: Keeper = {
    asked: [],
    credentials: [],
    jobs: [job()],
    expired: false,
    ffmpeg: true,
    redis: true,
    ffmpegIsThere: async () => made.ffmpeg,
    fileName: (job) => resultName(job),
    isMember: (address) => address.startsWith('nvr'),
    async submit(request, credential) {
      checked();
      made.asked.push(request);
      if (credential !== undefined) made.credentials.push(credential);
      return job();
    },
    async get(id) {
      checked();
      return made.jobs.find((known) => known.id === id);
    },
    async list() {
      checked();
      return made.jobs;
    },
    async remove(id) {
      const known = made.jobs.some((known) => known.id === id);
      made.jobs = made.jobs.filter((known) => known.id !== id);
      return known;
    },
    async estimate({ cameraId }) {
      if (cameraId !== 'gate') throw new JobError('no-footage', 'nothing there');
      return { sizeBytes: 1234, durationMs: 50_000, gaps: [] };
    },
    manifest: async () => (made.expired ? undefined : { text: Buffer.from('{}\n'), signature: Buffer.alloc(64, 7) }),
    signingKey: async () => ({ publicKey: 'PEM', fingerprint: 'f'.repeat(64), sign: () => Buffer.alloc(64) }),
    result: async () => (made.expired ? undefined : { path, sizeBytes: BYTES.length, modifiedMs: (FROM + 102) * 1000 }),
  };
  return made;
}

/** An API that knows the cameras gate and yard. */
async function build(t: TestContext, changes: ApiChanges) {
  const api = await buildApi(t, changes);
  for (const id of ['gate', 'yard']) {
    api.cameras.push({ status: cameraStatus({ id }), archive: archiveStatus(), live: undefined });
  }
  return api;
}

const post = (path: string) => ({ method: 'POST' as const, url: `/api/archive/${path}`, headers: as('operator') });
const get = (path: string, headers: Record<string, string> = {}) => ({
  url: `/api/archive/jobs${path}`,
  headers: { ...as('viewer'), ...headers },
});

test('an export and a time-lapse are taken with 202 and say where to look', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const exported = await app.inject(post(`gate/export?from=${FROM}&to=${FROM + 14_400}`));
  assert.equal(exported.statusCode, 202);
  assert.deepEqual(exported.json(), {
    job_id: 'e0123',
    status_url: '/api/archive/jobs/e0123',
    download_url: '/api/archive/jobs/e0123/download',
  });
  assert.equal((await app.inject(post(`gate/timelapse?from=${FROM}.5&to=${FROM + 60}&speed=120`))).statusCode, 202);
  assert.deepEqual(jobs.asked, [
    { kind: 'export', cameraId: 'gate', fromMs: FROM * 1000, toMs: (FROM + 14_400) * 1000, by: 'operator' },
    {
      kind: 'timelapse',
      cameraId: 'gate',
      fromMs: FROM * 1000 + 500,
      toMs: (FROM + 60) * 1000,
      speed: 120,
      by: 'operator',
    },
  ]);
});

test('outside of a cluster, all nodes are this one', async (t) => {
  const jobs = keeper(t);
  const footage = [{ fromMs: FROM * 1000, toMs: (FROM + 60) * 1000 }];
  const gaps = gapReader(async (...asked) => ({ ...(await noGaps.ofThisNode(...asked)), footage }));
  const { app } = await build(t, { jobs, gaps });
  const url = `gate/export?scope=cluster&from=${FROM}&to=${FROM + 60}`;
  assert.equal((await app.inject(post(`${url}&dry_run=1`))).json().duration_seconds, 50);
  assert.equal((await app.inject(post(url))).statusCode, 202);
  assert.equal(jobs.asked[0]?.assembly, undefined);
});

test('an export without a body may name any type of content, and a time-lapse, too', async (t) => {
  const { app } = await build(t, { jobs: keeper(t) });
  for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain; charset=utf-8', 'nonsense'])
    for (const path of ['gate/export?', 'gate/timelapse?speed=2&']) {
      const { headers, ...request } = post(`${path}from=${FROM}&to=${FROM + 60}`);
      const empty = { ...headers, 'content-type': type, 'content-length': '0' };
      assert.equal((await app.inject({ ...request, headers: empty })).statusCode, 202, type);
    }
});

test('in a cluster an export is of this node, unless it is requested of all nodes; it gets no credential of its caller', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs, cluster: fakeCluster('node-1') });
  const url = `gate/export?from=${FROM}&to=${FROM + 60}`;
  for (const scope of ['', '&scope=cluster']) assert.equal((await app.inject(post(url + scope))).statusCode, 202);
  assert.deepEqual(
    jobs.asked.map(({ isOfAllNodes }) => isOfAllNodes),
    [undefined, true],
  );
  assert.deepEqual(jobs.credentials, []);
});

for (const [query, status, detail] of [
  ['gate/export', 400, /^from: /],
  [`gate/export?from=${FROM}`, 400, /^to: /],
  [`gate/export?from=noon&to=${FROM}`, 400, /^from: expected a number of seconds/],
  [`gate/export?from=${FROM}&to=${FROM}`, 400, /^from: expected a time before to/],
  [`gate/export?from=${FROM}&to=${FROM + 14_401}`, 413, /^to: expected at most 4 hours/],
  [`gate/timelapse?from=${FROM}&to=${FROM + 14_401}&speed=2`, 413, /^to: /],
  [`gate/timelapse?from=${FROM}&to=${FROM + 60}`, 400, /^speed: expected a whole number from 2 to 120/],
  [`gate/timelapse?from=${FROM}&to=${FROM + 60}&speed=1`, 400, /^speed: /],
  [`gate/timelapse?from=${FROM}&to=${FROM + 60}&speed=121`, 400, /^speed: /],
  [`gate/timelapse?from=${FROM}&to=${FROM + 60}&speed=2.5`, 400, /^speed: /],
  [`nobody/export?from=${FROM}&to=${FROM + 60}`, 404, /does not know such a camera/],
  [`nobody/timelapse?from=${FROM}&to=${FROM + 60}&speed=2`, 404, /does not know such a camera/],
] as const) {
  test(`${query} is refused with ${status}`, async (t) => {
    const { app } = await build(t, { jobs: keeper(t) });
    const answer = await app.inject(post(query));
    assert.equal(answer.statusCode, status);
    assert.match(answer.json<{ detail: string }>().detail, detail);
  });
}

test('without ffmpeg, or without Redis, both kinds answer 503 with what is missing', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const both = [`gate/export?from=${FROM}&to=${FROM + 60}`, `gate/timelapse?from=${FROM}&to=${FROM + 60}&speed=2`];
  for (const [missing, code] of [
    ['redis', 'jobs-unavailable'],
    ['ffmpeg', 'ffmpeg-missing'],
  ] as const) {
    jobs[missing] = false;
    for (const path of both) {
      const answer = await app.inject(post(path));
      const { detail, code: said } = answer.json<{ detail: string; code: string }>();
      assert.deepEqual([answer.statusCode, said], [503, code]);
      assert.match(detail, /install it/);
    }
  }
});

test('a viewer looks and downloads, and may not make or remove jobs', async (t) => {
  const { app } = await build(t, { jobs: keeper(t) });
  const headers = as('viewer');
  const url = `/api/archive/gate/export?from=${FROM}&to=${FROM + 60}`;
  assert.equal((await app.inject({ method: 'POST', url, headers })).statusCode, 403);
  assert.equal((await app.inject({ method: 'DELETE', url: '/api/archive/jobs/e0123', headers })).statusCode, 403);
  assert.equal((await app.inject({ url: '/api/archive/jobs/e0123' })).statusCode, 401);
  assert.equal((await app.inject({ url: '/api/archive/jobs/e0123/download?access_token=viewer' })).statusCode, 200);
});

test('a window with fractions of a second is kept to the millisecond, and told in whole seconds around it', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  await app.inject(post(`gate/export?from=${FROM}.4567&to=${FROM + 60}.25`));
  assert.deepEqual(
    jobs.asked.map(({ fromMs, toMs }) => [fromMs, toMs]),
    [[FROM * 1000 + 457, FROM * 1000 + 60_250]],
  );
  jobs.jobs = [job({ ...jobs.asked[0] })];
  const { from, to, from_ms, to_ms } = (await app.inject(get('/e0123'))).json<Record<string, number>>();
  assert.deepEqual([from, to, from_ms, to_ms], [FROM, FROM + 61, FROM * 1000 + 457, FROM * 1000 + 60_250]);
});

test('an assembly that fails before its window is known has none; an expired result says so', async (t) => {
  const jobs = keeper(t);
  jobs.jobs = [
    job({ id: 'a1', fromMs: 0, toMs: 0, state: 'failed', outcome: undefined, reason: 'x', reasonCode: 'peer-failed' }),
    job({ createdAtMs: 0, completedAtMs: 1_000 }),
  ];
  const { app } = await build(t, { jobs });
  const failed = (await app.inject(get('/a1'))).json<Record<string, unknown>>();
  assert.ok(!('from' in failed) && !('to' in failed) && failed['reason_code'] === 'peer-failed');
  const expired = (await app.inject(get('/e0123'))).json<Record<string, unknown>>();
  assert.deepEqual([expired['state'], expired['is_expired'], expired['expires_at']], ['done', true, 3_601]);
});

test('the state of a job has the fields of the specification', async (t) => {
  const jobs = keeper(t);
  const running = { state: 'running', progress: 0.425, completedAtMs: undefined, outcome: undefined } as const;
  jobs.jobs.push(job({ id: 't1', kind: 'timelapse', speed: 10, ...running }));
  jobs.jobs.push(
    job({ id: 'e2', state: 'failed', progress: 0, outcome: undefined, reason: 'no footage', reasonCode: 'no-footage' }),
  );
  const { app } = await build(t, { jobs });
  const window = { from: FROM, to: FROM + 60, from_ms: FROM * 1000, to_ms: (FROM + 60) * 1000 };
  const created_at_ms = FROM * 1000 + 100_500;
  const common = { camera_id: 'gate', ...window, created_at: FROM + 100, created_at_ms };
  const expected = [
    {
      job_id: 'e0123',
      ...common,
      completed_at: FROM + 101,
      expires_at: FROM + 101 + 3_600,
      is_expired: false,
      kind: 'export',
      state: 'done',
      progress: 100,
      size_bytes: 20,
      duration_seconds: 50,
      gaps: [{ start: '2026-01-05T10:00:00.000+00:00', end: '2026-01-05T10:00:10.000+00:00' }],
      elsewhere: [],
      manifest_url: '/api/archive/jobs/e0123/manifest',
      signature_url: '/api/archive/jobs/e0123/signature',
    },
    { job_id: 't1', ...common, kind: 'timelapse', speed: 10, state: 'running', progress: 43 },
    {
      job_id: 'e2',
      ...common,
      completed_at: FROM + 101,
      kind: 'export',
      state: 'failed',
      progress: 0,
      reason: 'no footage',
      reason_code: 'no-footage',
    },
  ];
  for (const item of expected) assert.deepEqual((await app.inject(get(`/${item.job_id}`))).json(), item);
  assert.deepEqual((await app.inject(get(''))).json(), { jobs: expected });
  assert.equal((await app.inject(get('/e9'))).statusCode, 404);
});

test('a failed job says how it can be requested again: a case without a camera, but not without its only one', async (t) => {
  const jobs = keeper(t);
  const failed = { state: 'failed', outcome: undefined, reason: 'x', reasonCode: 'codec-changed' } as const;
  const without = { retry: { withoutCamera: 'gate' } };
  jobs.jobs.push(
    job({ id: 'e5', ...failed, retry: { splitAtMs: 5 } }),
    job({ id: 'e6', ...failed, ...without, case: { cameras: ['gate', 'yard'] } }),
    job({ id: 'e7', ...failed, ...without, case: { cameras: ['gate'] } }),
    job({ id: 'e8', ...failed }),
  );
  const { app } = await build(t, { jobs });
  const retries = ['e5', 'e6', 'e7', 'e8'].map(async (id) => (await app.inject(get(`/${id}`))).json().retry);
  assert.deepEqual(await Promise.all(retries), [{ split_at_ms: 5 }, { without_camera: 'gate' }, undefined, undefined]);
});

test('a result is sent inline, or as an attachment with a name; in ranges; and not after it has expired', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const whole = await app.inject(get('/e0123/download'));
  assert.deepEqual(
    [whole.statusCode, whole.headers['content-type'], whole.headers['content-disposition'], whole.rawPayload],
    [200, 'video/mp4', 'inline; filename="gate_20260105T100000Z.mp4"', BYTES],
  );
  const attached = await app.inject(get('/e0123/download?download=1'));
  assert.match(String(attached.headers['content-disposition']), /^attachment; filename="gate_20260105T100000Z.mp4"$/);
  const etag = String(whole.headers.etag);
  for (const [headers, status, body, contentRange] of [
    [{ range: 'bytes=5-9' }, 206, '56789', 'bytes 5-9/20'],
    [{ range: 'bytes=15-' }, 206, 'fghij', 'bytes 15-19/20'],
    [{ range: 'bytes=-3' }, 206, 'hij', 'bytes 17-19/20'],
    [{ range: 'bytes=5-9', 'if-range': etag }, 206, '56789', 'bytes 5-9/20'],
    [{ range: 'bytes=5-9', 'if-range': '"other"' }, 200, BYTES.toString(), undefined],
    [{ range: 'bytes=0-1,4-5' }, 200, BYTES.toString(), undefined],
  ] as const) {
    const answer = await app.inject(get('/e0123/download', headers));
    assert.deepEqual(
      [answer.statusCode, answer.payload, answer.headers['content-range']],
      [status, body, contentRange],
    );
  }
  const behind = await app.inject(get('/e0123/download', { range: 'bytes=20-' }));
  assert.deepEqual([behind.statusCode, behind.headers['content-range']], [416, 'bytes */20']);
  jobs.expired = true;
  assert.equal((await app.inject(get('/e0123/download'))).statusCode, 410);
});

test('a download is conditional: by its tag and by its time, for the whole and for a range', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const ask = async (headers: Record<string, string>) => {
    const { statusCode, rawPayload } = await app.inject(get('/e0123/download', headers));
    return [statusCode, rawPayload.length];
  };
  const { etag, 'last-modified': modified } = (await app.inject(get('/e0123/download'))).headers as Record<
    string,
    string
  >;
  assert.ok(etag && modified);
  assert.deepEqual(await ask({ 'if-none-match': etag }), [304, 0]);
  assert.deepEqual(await ask({ 'if-none-match': `"other", W/${etag}` }), [304, 0]);
  assert.deepEqual(await ask({ 'if-none-match': '"other"' }), [200, BYTES.length]);
  assert.deepEqual(await ask({ 'if-modified-since': modified }), [304, 0]);
  assert.deepEqual(await ask({ range: 'bytes=0-0', 'if-range': modified }), [206, 1]);
  assert.deepEqual(await ask({ range: 'bytes=0-0', 'if-range': '"other"' }), [200, BYTES.length]);
  assert.equal((await ask({ 'if-match': '"other"' }))[0], 412);
});

test('a result of several movies is an archive; each is listed, and can be had alone, in ranges', async (t) => {
  const jobs = keeper(t);
  const movie = { durationMs: 3_000, codec: 'avc1', width: 160, height: 96 };
  const parts = [
    { ...movie, name: 'gate_1_h264.mp4', offset: 2, sizeBytes: 6, fromMs: FROM * 1000, toMs: FROM * 1000 + 3_000.4 },
    {
      ...movie,
      name: 'gate_2_h265.mp4',
      offset: 10,
      sizeBytes: 8,
      fromMs: FROM * 1000 + 3_000.4,
      toMs: (FROM + 60) * 1000,
      codec: 'hvc1',
    },
  ];
  jobs.jobs = [
    job({ outcome: { sizeBytes: BYTES.length, durationMs: 6_000, gaps: [], untilMs: FROM * 1000 + 6_000, parts } }),
  ];
  const { app } = await build(t, { jobs });
  const told = (await app.inject(get('/e0123'))).json<{ parts: Record<string, unknown>[]; known_until_ms: number }>();
  assert.equal(told.known_until_ms, FROM * 1000 + 6_000);
  assert.deepEqual(told.parts[1], {
    part: 2,
    name: 'gate_2_h265.mp4',
    codec: 'h265',
    from_ms: FROM * 1000 + 3_000,
    to_ms: (FROM + 60) * 1000,
    duration_seconds: 3,
    size_bytes: 8,
    offset: 10,
    download_url: '/api/archive/jobs/e0123/download?part=2',
  });
  const whole = await app.inject(get('/e0123/download'));
  assert.deepEqual(
    [whole.statusCode, whole.headers['content-type'], whole.headers['content-disposition'], whole.rawPayload],
    [200, 'application/zip', 'inline; filename="gate_20260105T100000Z.zip"', BYTES],
  );
  const second = await app.inject(get('/e0123/download?part=2&download=1'));
  assert.deepEqual(
    [second.statusCode, second.headers['content-type'], second.headers['content-disposition'], second.payload],
    [200, 'video/mp4', 'attachment; filename="gate_2_h265.mp4"', 'abcdefgh'],
  );
  assert.notEqual(second.headers.etag, whole.headers.etag);
  const range = await app.inject(get('/e0123/download?part=2', { range: 'bytes=6-99' }));
  assert.deepEqual([range.statusCode, range.payload, range.headers['content-range']], [206, 'gh', 'bytes 6-7/8']);
  const behind = await app.inject(get('/e0123/download?part=1', { range: 'bytes=6-' }));
  assert.deepEqual([behind.statusCode, behind.headers['content-range']], [416, 'bytes */6']);
  const code = async (path: string): Promise<unknown> => {
    const answer = await app.inject(get(path));
    return [answer.statusCode, answer.json<{ code: string }>().code];
  };
  assert.deepEqual(await code('/e0123/download?part=3'), [404, 'no-such-part']);
  assert.equal((await app.inject(get('/e0123/download?part=0'))).statusCode, 400);
  jobs.jobs = [job()];
  assert.deepEqual(await code('/e0123/download?part=1'), [404, 'no-such-part']);
});

test('what is not done yet answers 202, what failed 409 with its reason, what is unknown 404', async (t) => {
  const jobs = keeper(t);
  jobs.jobs.push(job({ id: 'e1', state: 'pending', outcome: undefined, completedAtMs: undefined }));
  jobs.jobs.push(job({ id: 'e2', state: 'failed', outcome: undefined, reason: 'no footage' }));
  const { app } = await build(t, { jobs });
  const pending = await app.inject(get('/e1/download'));
  assert.deepEqual([pending.statusCode, pending.json<{ state: string }>().state], [202, 'pending']);
  const failed = await app.inject(get('/e2/download'));
  assert.deepEqual([failed.statusCode, failed.json<{ detail: string }>().detail], [409, 'no footage']);
  assert.equal((await app.inject(get('/e3/download'))).statusCode, 404);
});

test('a job is removed once', async (t) => {
  const { app } = await build(t, { jobs: keeper(t) });
  const remove = { method: 'DELETE' as const, url: '/api/archive/jobs/e0123', headers: as('operator') };
  assert.equal((await app.inject(remove)).statusCode, 204);
  assert.equal((await app.inject(remove)).statusCode, 404);
});

test('a dry run says how long, how large and which gaps, and makes no job', async (t) => {
  const jobs = keeper(t);
  const clock = new VirtualClock((FROM - 30) * 1000);
  const { app } = await build(t, { jobs, clock });
  const asked = `export?from=${FROM}&to=${FROM + 60}&dry_run=1`;
  const common = { from: FROM, to: FROM + 60, from_ms: FROM * 1000, to_ms: (FROM + 60) * 1000 };
  const estimate = await app.inject(post(`gate/${asked}`));
  assert.deepEqual(
    [estimate.statusCode, estimate.json()],
    [200, { camera_id: 'gate', ...common, duration_seconds: 50, size_bytes: 1234, gaps: [], elsewhere: [] }],
  );
  for (const path of ['export?', 'timelapse?speed=2&']) {
    const answer = await app.inject(post(`gate/${path}from=${FROM}&to=${FROM + 60}&dry_run=1`));
    assert.deepEqual(answer.json(), estimate.json());
  }
  // What is still to come is no gap.
  const start = '2026-01-05T10:00:00.000+00:00';
  for (const gaps of [
    [],
    [{ start, end: '2026-01-05T10:00:30.000+00:00' }],
    [{ start, end: '2026-01-05T10:01:00.000+00:00' }],
    [{ start, end: '2026-01-05T10:01:00.000+00:00' }],
  ]) {
    assert.deepEqual((await app.inject(post(`yard/${asked}`))).json(), {
      camera_id: 'yard',
      ...common,
      duration_seconds: 0,
      size_bytes: 0,
      gaps,
      elsewhere: [],
      reason: 'nothing there',
      reason_code: 'no-footage',
    });
    clock.advance(60_000);
  }
  assert.deepEqual(jobs.asked, []);
});

const PART = { peer_addr: 'nvr2:9997', peer_job_id: 'e1', ordinal: 0 };
const assemble = (body: unknown, role: 'admin' | 'operator' = 'admin') => ({
  method: 'POST' as const,
  url: '/api/archive/gate/assemble',
  headers: as(role),
  payload: body as object,
});

test('an assembly is taken with 202; its parts are in the order of their ordinals, its credential beside it', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const parts = [
    { ...PART, ordinal: 1 },
    { peer_addr: 'nvr3:9997', peer_job_id: 'e2', ordinal: 0 },
  ];
  assert.equal((await app.inject(assemble({ kind: 'export', parts }))).statusCode, 202);
  assert.equal((await app.inject(assemble({ kind: 'timelapse', speed: 120, parts: [PART] }))).statusCode, 202);
  const request = { cameraId: 'gate', fromMs: 0, toMs: 0, by: 'admin' };
  assert.deepEqual(jobs.asked, [
    {
      kind: 'export',
      ...request,
      assembly: {
        parts: [
          { peerAddress: 'nvr3:9997', peerJobId: 'e2' },
          { peerAddress: 'nvr2:9997', peerJobId: 'e1' },
        ],
        withCredential: true,
      },
    },
    {
      kind: 'timelapse',
      ...request,
      speed: 120,
      assembly: { parts: [{ peerAddress: 'nvr2:9997', peerJobId: 'e1' }], withCredential: true },
    },
  ]);
  assert.deepEqual(jobs.credentials, ['Bearer admin', 'Bearer admin']);
});

for (const [what, body, status, detail] of [
  ['without parts', { kind: 'export' }, 400, /^parts: expected a list of parts/],
  ['with no part', { kind: 'export', parts: [] }, 400, /^parts: expected at least one part/],
  [
    'with 201 parts',
    { kind: 'export', parts: Array.from({ length: 201 }, () => PART) },
    400,
    /^parts: expected at most 200 parts/,
  ],
  ['of another kind', { kind: 'film', parts: [PART] }, 400, /^kind: expected export or timelapse/],
  ['without speed', { kind: 'timelapse', parts: [PART] }, 400, /^speed: expected a whole number from 2 to 120/],
  ['with half a speed', { kind: 'timelapse', speed: 2.5, parts: [PART] }, 400, /^speed: /],
  ['with speed as text', { kind: 'timelapse', speed: '4', parts: [PART] }, 400, /^speed: /],
  ['too fast', { kind: 'timelapse', speed: 121, parts: [PART] }, 400, /^speed: /],
  ['with an ordinal twice', { kind: 'export', parts: [PART, PART] }, 400, /^parts\.1\.ordinal: 0 is already the/],
  [
    'with an ordinal missing',
    { kind: 'export', parts: [PART, { ...PART, ordinal: 2 }] },
    400,
    /^parts\.1\.ordinal: expected 0 to 1: there is no part 1/,
  ],
  ['without ordinal', { kind: 'export', parts: [{ ...PART, ordinal: undefined }] }, 400, /^parts\.0\.ordinal: /],
  ['with half an ordinal', { kind: 'export', parts: [{ ...PART, ordinal: 0.5 }] }, 400, /^parts\.0\.ordinal: /],
  ['with a negative ordinal', { kind: 'export', parts: [{ ...PART, ordinal: -1 }] }, 400, /^parts\.0\.ordinal: /],
  ['without job', { kind: 'export', parts: [{ ...PART, peer_job_id: '' }] }, 400, /^parts\.0\.peer_job_id: /],
  ['with a path', { kind: 'export', parts: [{ ...PART, peer_job_id: '../x' }] }, 400, /^parts\.0\.peer_job_id: /],
  ...['nvr2', 'nvr2:0', 'nvr2:65536', 'http://nvr2:1', 'a@nvr2:1', 'nvr2:1/x', 'nvr2:1?x', ''].map(
    (peer_addr) =>
      [
        `from "${peer_addr}"`,
        { kind: 'export', parts: [{ ...PART, peer_addr }] },
        400,
        /^parts\.0\.peer_addr: expected /,
      ] as const,
  ),
  [
    'from a stranger',
    { kind: 'export', parts: [PART, { ...PART, peer_addr: '169.254.169.254:80', ordinal: 1 }] },
    403,
    /^parts\.1\.peer_addr: 169\.254\.169\.254:80 is not a member of the cluster/,
  ],
] as const) {
  test(`an assembly ${what} is refused with ${status}`, async (t) => {
    const jobs = keeper(t);
    const { app } = await build(t, { jobs });
    const answer = await app.inject(assemble(body));
    assert.equal(answer.statusCode, status);
    assert.match(answer.json<{ detail: string }>().detail, detail);
    assert.deepEqual(jobs.asked, []);
  });
}

test('an assembly needs the role admin, and as a time-lapse ffmpeg', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  assert.equal((await app.inject(assemble({ kind: 'export', parts: [PART] }, 'operator'))).statusCode, 403);
  jobs.ffmpeg = false;
  assert.equal((await app.inject(assemble({ kind: 'export', parts: [PART] }))).statusCode, 202);
  assert.equal((await app.inject(assemble({ kind: 'timelapse', speed: 4, parts: [PART] }))).statusCode, 503);
});

const postCase = (payload: object, role: 'operator' | 'viewer' = 'operator') => ({
  method: 'POST' as const,
  url: '/api/cases',
  headers: as(role),
  payload: { cameras: ['gate', 'yard'], from: FROM, to: FROM + 60, ...payload },
});

test('a case is taken with 202, and its job tells of each camera', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const answer = await app.inject(postCase({ name: 'The gate, again', to: FROM + 60.25 }));
  assert.equal(answer.statusCode, 202);
  assert.equal(answer.json<Record<string, string>>()['status_url'], '/api/archive/jobs/e0123');
  const wanted = {
    kind: 'export',
    cameraId: 'gate',
    case: { cameras: ['gate', 'yard'], name: 'The gate, again' },
    fromMs: FROM * 1000,
    toMs: FROM * 1000 + 60_250,
    by: 'operator',
  } as const;
  assert.deepEqual(jobs.asked, [wanted]);
  assert.equal((await app.inject(postCase({}, 'viewer'))).statusCode, 403);
  const running = { state: 'running', progress: 0.5, outcome: undefined, completedAtMs: undefined } as const;
  const gap = { fromMs: FROM * 1000, toMs: FROM * 1000 + 60_000, cause: 'stopped' };
  const movie = { durationMs: 60_000, codec: 'avc1', width: 160, height: 96, fromMs: gap.fromMs, toMs: gap.toMs };
  const outcome = {
    sizeBytes: 20,
    durationMs: 60_000,
    gaps: [],
    parts: [{ ...movie, cameraId: 'gate', name: 'gate_1.mp4', offset: 2, sizeBytes: 6 }],
    cameras: [
      { cameraId: 'gate', durationMs: 60_000, gaps: [] },
      { cameraId: 'yard', durationMs: 0, gaps: [gap], reason: 'nothing', reasonCode: 'no-footage' },
    ],
  } as const;
  jobs.jobs = [job({ ...wanted, id: 'c1', ...running }), job({ ...wanted, id: 'c2', outcome })];
  const told = async (id: string) => (await app.inject(get(`/${id}`))).json<Record<string, unknown>>();
  const { cameras, camera_id, name, kind, gaps } = await told('c1');
  assert.deepEqual(
    { cameras, camera_id, name, kind, gaps },
    {
      cameras: [{ camera_id: 'gate' }, { camera_id: 'yard' }],
      camera_id: 'gate',
      name: 'The gate, again',
      kind: 'export',
      gaps: undefined,
    },
  );
  const done = await told('c2');
  const times = { start: '2026-01-05T10:00:00.000+00:00', end: '2026-01-05T10:01:00.000+00:00' };
  assert.deepEqual(done['cameras'], [
    { camera_id: 'gate', duration_seconds: 60, gaps: [], elsewhere: [] },
    {
      camera_id: 'yard',
      duration_seconds: 0,
      gaps: [{ ...times, cause: 'stopped' }],
      elsewhere: [],
      reason: 'nothing',
      reason_code: 'no-footage',
    },
  ]);
  const [part] = done['parts'] as Record<string, unknown>[];
  assert.deepEqual([part?.['camera_id'], part?.['name']], ['gate', 'gate_1.mp4']);
  const whole = await app.inject(get('/c2/download?download=1'));
  assert.equal(whole.headers['content-disposition'], 'attachment; filename="case_20260105T100000Z.zip"');
  assert.equal((await app.inject(get('/c2/download?part=1'))).headers['content-type'], 'video/mp4');
});

test('a case is kept for as long as was asked, and only operators and who asked for it see who that was', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const about = { name: 'Theft', number: '2026-17', reason: 'The police asked', notes: 'A white van' };
  assert.equal((await app.inject(postCase({ ...about, keep: true }))).statusCode, 202);
  assert.deepEqual(jobs.asked[0]?.case, { cameras: ['gate', 'yard'], ...about, isKept: true });
  const kept = { cameras: ['gate', 'yard'], ...about, isKept: true } as const;
  jobs.jobs = [job({ id: 'c1', by: 'anna', case: kept, completedAtMs: 0 })];
  const told = async (role: 'operator' | 'viewer') =>
    (await app.inject({ ...get('/c1'), headers: as(role) })).json<Record<string, unknown>>();
  const { case_reason, number, notes, is_kept, is_expired, expires_at, by } = await told('operator');
  assert.deepEqual(
    { case_reason, number, notes, is_kept, is_expired, expires_at, by },
    {
      case_reason: 'The police asked',
      number: '2026-17',
      notes: 'A white van',
      is_kept: true,
      is_expired: false,
      expires_at: undefined,
      by: 'anna',
    },
  );
  assert.equal((await told('viewer'))['by'], undefined);
  jobs.jobs = [job({ id: 'c1', by: 'viewer', case: kept })];
  assert.equal((await told('viewer'))['by'], 'viewer');
});

test('a case of all nodes is one job of this node; one of another scope is refused', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const post = (scope: string, cameras = ['gate', 'yard']) =>
    app.inject({ ...postCase({ cameras }), url: `/api/cases?scope=${scope}` });
  assert.equal((await post('cluster')).statusCode, 202);
  assert.deepEqual(
    jobs.asked.map(({ case: of, isOfAllNodes }) => ({ of, isOfAllNodes })),
    [{ of: { cameras: ['gate', 'yard'] }, isOfAllNodes: true }],
  );
  const unknown = await post('cluster', ['gate', 'nobody']);
  assert.equal(unknown.statusCode, 404);
  assert.match(unknown.json<{ detail: string }>().detail, /^cameras\.1: no node knows such a camera/);
  const wrong = await post('pool');
  assert.equal(wrong.statusCode, 400);
  assert.match(wrong.json<{ detail: string }>().detail, /^scope: expected node or cluster/);
  assert.equal(jobs.asked.length, 1);
});

for (const [payload, status, detail] of [
  [{ cameras: [] }, 400, /^cameras: expected at least one camera/],
  [{ cameras: 'gate' }, 400, /^cameras: expected a list of cameras/],
  [{ cameras: ['gate', '../x'] }, 400, /^cameras\.1: expected the id of a camera/],
  [{ cameras: ['gate', 'gate'] }, 400, /^cameras\.1: this is already cameras\.0/],
  [{ cameras: Array.from({ length: 65 }, (_, i) => `c${i}`) }, 400, /^cameras: expected at most 64 cameras/],
  [{ cameras: ['gate', 'nobody'] }, 404, /^cameras\.1: this node does not know such a camera/],
  [{ from: 'noon' }, 400, /^from: expected a number of seconds since 1970/],
  [{ from: undefined }, 400, /^from: expected a number of seconds since 1970/],
  [{ to: 1e15 }, 400, /^to: not a time/],
  [{ to: FROM }, 400, /^from: expected a time before to/],
  [{ to: FROM + 14_401 }, 413, /^to: expected at most 4 hours/],
  [{ name: '' }, 400, /^name: expected a text/],
  [{ name: 'x'.repeat(201) }, 400, /^name: expected at most 200 characters/],
] as const) {
  test(`a case of ${JSON.stringify(payload).slice(0, 60)} is refused with ${status}`, async (t) => {
    const jobs = keeper(t);
    const { app } = await build(t, { jobs });
    const answer = await app.inject(postCase(payload));
    assert.deepEqual([answer.statusCode, jobs.asked], [status, []]);
    assert.match(answer.json<{ detail: string }>().detail, detail);
  });
}

test('a case needs the right to each of its cameras, and so do its job and its result', async (t) => {
  const jobs = keeper(t);
  const tokens = ['gate', 'yard'].map((id) => ({
    name: id,
    role: 'operator' as const,
    sha256: sha256(id).toString('hex'),
    cameras: [id],
  }));
  const { app } = await build(t, { jobs, auth: { mode: 'token', tokens } });
  const headers = { authorization: 'Bearer gate' };
  const refused = await app.inject({ ...postCase({}), headers });
  assert.equal(refused.statusCode, 404);
  const detail = 'cameras.1: this node does not know such a camera';
  assert.equal(refused.json<{ detail: string }>().detail, detail, 'as for one that there is not');
  assert.deepEqual(jobs.asked, []);
  jobs.jobs = [job({ id: 'c1', case: { cameras: ['gate', 'yard'] } })];
  for (const path of ['/c1', '/c1/download', '/c1/manifest', '/c1/signature']) {
    const url = `/api/archive/jobs${path}`;
    assert.equal((await app.inject({ url, headers })).statusCode, 404, path);
  }
  assert.equal((await app.inject({ method: 'DELETE', url: '/api/archive/jobs/c1', headers })).statusCode, 404);
  assert.deepEqual((await app.inject({ url: '/api/archive/jobs', headers })).json(), { jobs: [] });
});

test('manifest and signature are sent as they are, for as long as the result', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const manifest = await app.inject(get('/e0123/manifest'));
  assert.deepEqual(
    [manifest.statusCode, manifest.payload, manifest.headers['content-disposition']],
    [200, '{}\n', 'attachment; filename="gate_20260105T100000Z.mp4.manifest.json"'],
  );
  assert.match(String(manifest.headers['content-type']), /^application\/json/);
  const signature = await app.inject(get('/e0123/signature'));
  assert.deepEqual(signature.rawPayload, Buffer.alloc(64, 7));
  assert.match(String(signature.headers['content-disposition']), /\.mp4\.manifest\.json\.sig"$/);
  jobs.jobs = [job({ state: 'running', outcome: undefined })];
  const early = await app.inject(get('/e0123/manifest'));
  assert.deepEqual([early.statusCode, early.json<{ code: string }>().code], [409, 'job-not-done']);
  jobs.jobs = [job()];
  jobs.expired = true;
  assert.equal((await app.inject(get('/e0123/signature'))).statusCode, 410);
});

test('the public key of the node is reported with its fingerprint; one that cannot be used is 503', async (t) => {
  const jobs = keeper(t);
  const { app } = await build(t, { jobs });
  const ask = () => app.inject({ url: '/api/keys', headers: as('viewer') });
  const key = { algorithm: 'Ed25519', fingerprint: 'f'.repeat(64), public_key: 'PEM' };
  assert.deepEqual((await ask()).json(), { node: 'rack-1', keys: [key] });
  assert.equal((await app.inject({ url: '/api/keys' })).statusCode, 401);
  jobs.signingKey = () => Promise.reject(new NodeKeyError('/work/signing/key.pem is a link'));
  const { detail, code } = (await ask()).json<Record<string, string>>();
  assert.equal(code, 'signing-key-unusable');
  assert.doesNotMatch(detail ?? '', /\/work/);
});
