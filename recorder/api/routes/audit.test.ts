// `GET /api/audit`, and what jobs, protections, live streams and still images leave in it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { workspace } from '../../../test/support/workspace.ts';
import { readAudit } from '../../audit/read.ts';
import { AuditTrail } from '../../audit/trail.ts';
import { Visits } from '../../audit/visits.ts';
import type { Job } from '../../jobs/job.ts';
import type { Protection } from '../../contract/protection.ts';
import { as, archiveStatus, build, cameraStatus, type ApiChanges } from '../test-support.ts';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

const FROM = Date.UTC(2026, 0, 1, 9) / 1000;
const WINDOW = { from: '2026-01-01T09:00:00.000Z', to: '2026-01-01T09:10:00.000Z' };
const query = `from=${FROM}&to=${FROM + 600}`;

type Line = Record<string, unknown>;

async function setup(t: TestContext, changes: ApiChanges = {}) {
  const directory = workspace(t);
  const clock = new VirtualClock();
  const settings = { directory, node: 'rack-1', maxAgeMs: Infinity, maxBytes: Infinity };
  const trail = new AuditTrail({ ...settings, clock, log: silentLog });
  const visits = new Visits({ audit: trail, views: true, clock });
  const reader = { read: (asked: Parameters<typeof readAudit>[1]) => readAudit(directory, asked), end: trail.end };
  const api = await build(t, { audit: { sink: trail, visits, reader }, ...changes });
  api.cameras.push({ status: cameraStatus(), archive: archiveStatus(), live: undefined });
  /** All lines, oldest first, when nothing more comes. */
  async function lines(): Promise<Line[]> {
    visits.close();
    await trail.close();
    const page = await readAudit(directory, { fromMs: -Infinity, toMs: Infinity, limit: 1000 });
    return page.lines.toReversed().map(({ n: _n, time: _time, node: _node, prev: _prev, ...line }) => line);
  }
  return { ...api, directory, trail, lines };
}

test('an admin reads the audit in pages; others are refused; the query itself is recorded', async (t) => {
  const { app, trail, lines } = await setup(t);
  for (const camera of ['gate', 'dock', 'gate']) trail.write({ what: 'export', caller: 'ops', camera });
  await trail.close();
  const ask = async (url: string, role: 'viewer' | 'operator' | 'admin' = 'admin') =>
    (await app.inject({ url, headers: as(role) })) as unknown as { statusCode: number; json: () => Line };
  assert.equal((await ask('/api/audit', 'operator')).statusCode, 403);
  const first = (await ask('/api/audit?what=export&camera=gate&limit=1')).json();
  const [line] = first['lines'] as Line[];
  assert.deepEqual([line?.['n'], line?.['what'], line?.['camera'], line?.['caller']], [3, 'export', 'gate', 'ops']);
  const second = (await ask(`/api/audit?what=export&camera=gate&limit=1&cursor=${String(first['next'])}`)).json();
  assert.deepEqual(
    (second['lines'] as Line[]).map(({ n }) => n),
    [1],
  );
  for (const wrong of ['what=nothing', 'limit=0', 'limit=1001', 'cursor=x', 'from=yesterday']) {
    const answer = await ask(`/api/audit?${wrong}`);
    assert.deepEqual([wrong, answer.statusCode, answer.json()['code']], [wrong, 400, 'invalid-parameter']);
  }
  const about = (await lines()).slice(3).map(({ what, caller, status }) => [what, caller, status]);
  assert.deepEqual(about.slice(0, 2), [
    ['read-audit', 'operator', 403],
    ['read-audit', 'admin', 200],
  ]);
});

const job = (changes: Partial<Job> = {}): Job => ({
  kind: 'export',
  cameraId: 'gate',
  fromMs: FROM * 1000,
  toMs: (FROM + 600) * 1000,
  id: 'e1',
  state: 'done',
  progress: 1,
  createdAtMs: 0,
  completedAtMs: 0,
  outcome: { sizeBytes: 5_000, durationMs: 600_000, gaps: [] },
  reason: undefined,
  ...changes,
});

const noManifest = {
  manifest: async () => undefined,
  signingKey: async () => ({ publicKey: '', fingerprint: '', sign: () => Buffer.alloc(64) }),
};

test('a case leaves all of its cameras: when it is asked for, refused, taken and removed', async (t) => {
  const path = join(workspace(t), 'c1.mp4');
  writeFileSync(path, Buffer.alloc(5_000));
  const cameras = ['gate', 'yard'];
  const made = job({ id: 'c1', case: { cameras } });
  const { app, lines, ...api } = await setup(t, {
    jobs: {
      ffmpegIsThere: async () => true,
      submit: async () => made,
      isMember: () => true,
      fileName: () => 'result',
      get: async () => made,
      list: async () => [made],
      remove: async () => true,
      estimate: async () => ({ sizeBytes: 1, durationMs: 1, gaps: [] }),
      result: async () => ({ path, sizeBytes: 5_000, modifiedMs: 0 }),
      ...noManifest,
    },
  });
  api.cameras.push({ status: cameraStatus({ id: 'yard' }), archive: archiveStatus(), live: undefined });
  const headers = as('operator');
  const ask = (cameras: readonly string[]) =>
    app.inject({ method: 'POST', url: '/api/cases', headers, payload: { cameras, from: FROM, to: FROM + 600 } });
  await ask(cameras);
  await ask(['gate', 'nobody']);
  await app.listen({ host: '127.0.0.1', port: 0 });
  await (await fetch(`${app.listeningOrigin}/api/archive/jobs/c1/download`, { headers })).arrayBuffer();
  await app.inject({ method: 'DELETE', url: '/api/archive/jobs/c1', headers });
  await app.close();
  const about = (await lines()).map(({ what, phase, camera, cameras, from, to, job, outcome }) => {
    return [what, phase ?? outcome, camera ?? cameras, from, to, job];
  });
  const window = [WINDOW.from, WINDOW.to];
  assert.deepEqual(about, [
    ['case', 'done', cameras, ...window, 'c1'],
    ['case', 'failed', ['gate', 'nobody'], ...window, undefined],
    ['download', 'start', cameras, ...window, 'c1'],
    ['remove-job', 'done', cameras, ...window, 'c1'],
    ['download', 'end', cameras, ...window, 'c1'],
  ]);
});

test('an export is in the audit: its window and job, the bytes of its download, and its removal', async (t) => {
  const path = join(workspace(t), 'e1.mp4');
  writeFileSync(path, Buffer.alloc(5_000));
  const { app, lines } = await setup(t, {
    jobs: {
      ffmpegIsThere: async () => true,
      submit: async () => job(),
      isMember: () => true,
      fileName: () => 'result',
      get: async () => job(),
      list: async () => [job()],
      remove: async () => true,
      estimate: async () => ({ sizeBytes: 1, durationMs: 1, gaps: [] }),
      result: async () => ({ path, sizeBytes: 5_000, modifiedMs: 0 }),
      ...noManifest,
    },
  });
  const headers = as('operator');
  await app.inject({ method: 'POST', url: `/api/archive/gate/export?${query}`, headers });
  await app.inject({ method: 'POST', url: `/api/archive/gate/export?${query}&dry_run=1`, headers });
  await app.inject({ method: 'POST', url: `/api/archive/gate/timelapse?${query}&speed=10`, headers });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const answer = await fetch(`${app.listeningOrigin}/api/archive/jobs/e1/download`, { headers });
  assert.equal((await answer.arrayBuffer()).byteLength, 5_000);
  await app.inject({ method: 'DELETE', url: '/api/archive/jobs/e1', headers });
  await app.close();
  const all = await lines();
  const about = all.map(({ what, phase, camera, from, to, job }) => ({ what, phase, camera, from, to, job }));
  const line = (what: string, changes: Line = {}): Line => ({
    what,
    phase: undefined,
    camera: 'gate',
    ...WINDOW,
    job: 'e1',
    ...changes,
  });
  assert.deepEqual(about, [
    line('export'),
    line('estimate', { job: undefined }),
    line('timelapse'),
    line('download', { phase: 'start' }),
    line('remove-job'),
    line('download', { phase: 'end' }),
  ]);
  const taken = all.at(-1)?.['bytes'] as number;
  assert.ok(taken >= 5_000 && taken < 7_000, `${taken}`);
});

test('a protection is in the audit: who protected which window until when, and who ended it', async (t) => {
  const windows: Protection[] = [];
  const { app, lines } = await setup(t, {
    protections: {
      windows: {
        list: async () => windows,
        async add(window, nowMs) {
          windows.push({ ...window, id: 'p1', createdMs: nowMs });
          return windows[0] as Protection;
        },
        remove: async () => windows.pop(),
      },
      keptMs: 86_400_000,
    },
  });
  const headers = as('operator');
  await app.inject({ method: 'POST', url: `/api/archive/gate/protect?${query}`, headers });
  await app.inject({ method: 'DELETE', url: '/api/archive/protections/p1', headers });
  assert.deepEqual(
    (await lines()).map(({ what, caller, camera, from, to, protection, until }) => [
      `${String(what)} by ${String(caller)} until ${String(until)}`,
      { camera, from, to, protection },
    ]),
    ['protect by operator until 2026-01-02T12:00:00.000Z', 'unprotect by operator until undefined'].map((about) => [
      about,
      { camera: 'gate', ...WINDOW, protection: 'p1' },
    ]),
  );
});

test('what an admin reads of a camera, and who looks at its still image, is written down', async (t) => {
  const image = { type: 'image/jpeg', body: Buffer.alloc(10), etag: '"1"', remainingMs: 1_000 };
  const still = async () => image;
  const { app, lines } = await setup(t, {
    doctor: {
      report: async () => undefined,
      capture: async () => Buffer.from('capture'),
      tryOut: () => assert.fail('nobody asked'),
    },
    stills: { snapshot: still, thumbnail: still, archived: () => assert.fail('nobody asked') },
  });
  await app.inject({ url: '/api/cameras/gate/capture', headers: as('admin') });
  await app.inject({ url: '/api/cameras/gate/probe', headers: as('operator') });
  for (let i = 0; i < 10; i++) await app.inject({ url: '/api/cameras/gate/thumbnail', headers: as('viewer') });
  assert.deepEqual(
    (await lines()).map(({ what, phase, caller, camera, status, requests }) => [
      what,
      phase ?? status,
      caller,
      camera,
      requests,
    ]),
    [
      ['capture', 200, 'admin', 'gate', undefined],
      ['probe', 403, 'operator', 'gate', undefined],
      ['still', 'start', 'viewer', 'gate', undefined],
      ['still', 'end', 'viewer', 'gate', 10],
    ],
  );
});
