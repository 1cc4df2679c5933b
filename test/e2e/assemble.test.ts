// Three recorders as processes: exports of two become one movie of the third.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { CertificateAuthority } from '../cluster/certificates.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../support/joined-file.ts';
import { PeerServer, json } from '../support/peer-server.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;
const TOKEN = 'a-token-of-all-nodes';
const authorization = `Bearer ${TOKEN}`;
const FROM = WALL_START_MS / 1000;

interface JobAnswer {
  readonly job_id: string;
  readonly state: string;
  readonly from: number;
  readonly to: number;
  readonly kind: string;
  readonly speed?: number;
  readonly size_bytes?: number;
  readonly duration_seconds?: number;
  readonly gaps?: readonly { start: string; end: string }[];
  readonly reason?: string;
}

interface NodeOptions {
  /** Four seconds from `fromMs` on, pictures numbered from `firstNumber`. */
  readonly footage?: { readonly fromMs: number; readonly firstNumber: number };
  /** Who signed its certificate, which makes it speak HTTPS, and what beside the system's it trusts of others. */
  readonly authority?: CertificateAuthority;
  readonly trusts?: CertificateAuthority;
}

async function node(t: TestContext, peers: readonly string[], { footage, authority, trusts }: NodeOptions = {}) {
  const directory = workspace(t);
  if (footage) {
    const startMs = WALL_START_MS + footage.fromMs;
    const path = join(directory, 'recordings', formatPath({ name: 'Gate', cameraId: 'gate', startMs }));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, recordedPart(numberedVideo(directory, footage), { wallStartMs: startMs }));
  }
  const sha256 = createHash('sha256').update(TOKEN).digest('hex');
  const issued = authority?.issue(basename(directory), { commonName: 'recorder', hosts: ['127.0.0.1'] });
  const recorder = await RecorderProcess.start({
    directory,
    config: {
      auth: { mode: 'token', tokens: [{ name: 'all', role: 'admin', sha256 }] },
      cluster: { peers, ...(trusts && { ca: trusts.certFile }) },
      ...(issued && { tls: { certificate: issued.cert, key: issued.key } }),
      cameras: [],
    },
    ...(authority && { authority: authority.cert }),
  });
  // Its Redis ends with it.
  t.after(() => recorder.stop());
  return recorder;
}

const address = ({ url }: RecorderProcess): string => new URL(url).host;

async function ask<T>(recorder: RecorderProcess, method: string, path: string, body?: unknown): Promise<T> {
  const headers = { authorization, ...(body ? { 'content-type': 'application/json' } : {}) };
  const payload = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await recorder.fetch(`/api/archive/${path}`, { method, headers, ...payload });
  assert.ok(answer.ok, await answer.clone().text());
  return (await answer.json()) as T;
}

const exported = async (recorder: RecorderProcess, from: number, to: number): Promise<string> =>
  (await ask<JobAnswer>(recorder, 'POST', `gate/export?from=${from}&to=${to}`)).job_id;

async function ended(recorder: RecorderProcess, id: string): Promise<JobAnswer> {
  return until(
    `job ${id} ends`,
    async () => {
      const job = await ask<JobAnswer>(recorder, 'GET', `jobs/${id}`);
      return (job.state === 'done' || job.state === 'failed') && job;
    },
    60_000,
  );
}

async function download(recorder: RecorderProcess, id: string, to: string): Promise<string> {
  const answer = await recorder.fetch(`/api/archive/jobs/${id}/download`, { headers: { authorization } });
  assert.equal(answer.status, 200);
  writeFileSync(to, Buffer.from(await answer.arrayBuffer()));
  return to;
}

/** Everything that a recorder wrote in its own directory, and all that it printed. */
function tracesOf(recorder: RecorderProcess): string {
  const work = join(recorder.recordPath, '../work');
  const files = readdirSync(work, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return [
    recorder.child.output,
    ...files.map((file) => readFileSync(join(file.parentPath, file.name), 'latin1')),
  ].join();
}

const FIRST = { fromMs: 0, firstNumber: 0 };
const SECOND = { fromMs: 10_000, firstNumber: 1000 };

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

test(
  'exports of two nodes, asked for and assembled by a third, are one movie and one time-lapse',
  { skip },
  async (t) => {
    const first = await node(t, [], { footage: FIRST });
    const second = await node(t, [], { footage: SECOND });
    const third = await node(t, [address(first), address(second)]);
    // The second is asked before its export is done.
    const parts = [
      { peer_addr: address(second), peer_job_id: await exported(second, FROM + 5, FROM + 13), ordinal: 1 },
      { peer_addr: address(first), peer_job_id: await exported(first, FROM + 1, FROM + 5), ordinal: 0 },
    ];
    const taken = await ask<JobAnswer>(third, 'POST', 'gate/assemble', { kind: 'export', parts });
    const lapse = await ask<JobAnswer>(third, 'POST', 'gate/assemble', { kind: 'timelapse', speed: 2, parts });
    const job = await ended(third, taken.job_id);
    assert.equal(job.state, 'done', job.reason);
    const { from, to, kind, duration_seconds, gaps } = job;
    assert.deepEqual(
      { from, to, kind, duration_seconds },
      { from: FROM + 1, to: FROM + 13, kind: 'export', duration_seconds: 6 },
    );
    assert.deepEqual(
      gaps?.map(({ start, end }) => [Date.parse(start) / 1000 - FROM, Date.parse(end) / 1000 - FROM]),
      [[4, 10]],
    );
    const directory = workspace(t);
    const { numbers: seen, complaints } = await decodePictures(
      await download(third, taken.job_id, join(directory, 'a.mp4')),
    );
    assert.deepEqual({ seen, complaints }, { seen: [...numbers(25, 100), ...numbers(1000, 1075)], complaints: '' });

    const sped = await ended(third, lapse.job_id);
    assert.deepEqual([sped.state, sped.kind, sped.speed, sped.duration_seconds], ['done', 'timelapse', 2, 3]);
    const passed = (await decodePictures(await download(third, lapse.job_id, join(directory, 'b.mp4')))).numbers;
    assert.equal(passed.length, 90);
    assert.deepEqual([passed[0], passed.at(-1)], [25, 1073]);

    const stranger = await fetch(`${third.url}/api/archive/gate/assemble`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ kind: 'export', parts: [{ ...parts[0], peer_addr: address(third), ordinal: 0 }] }),
    });
    assert.equal(stranger.status, 403);
    assert.ok(!tracesOf(third).includes(TOKEN), 'the credential is nowhere');
    await third.stop();
    assert.deepEqual(
      readdirSync(join(third.recordPath, '../work/jobs')).sort(),
      [taken.job_id, lapse.job_id].flatMap((id) => [`${id}.manifest`, `${id}.mp4`]).sort(),
    );
  },
);

test(
  'nodes that speak HTTPS are asked over it when the authority of their certificates is trusted, and not otherwise',
  { skip },
  async (t) => {
    const authority = new CertificateAuthority(join(workspace(t), 'authority'));
    const stranger = new CertificateAuthority(join(workspace(t), 'stranger'));
    const first = await node(t, [], { footage: FIRST, authority });
    const second = await node(t, [], { footage: SECOND, authority });
    const peers = [address(first), address(second)];
    const parts = [
      { peer_addr: address(first), peer_job_id: await exported(first, FROM + 1, FROM + 5), ordinal: 0 },
      { peer_addr: address(second), peer_job_id: await exported(second, FROM + 5, FROM + 13), ordinal: 1 },
    ];
    const third = await node(t, peers, { authority, trusts: authority });
    const { job_id: id } = await ask<JobAnswer>(third, 'POST', 'gate/assemble', { kind: 'export', parts });
    const job = await ended(third, id);
    assert.equal(job.state, 'done', job.reason);
    const { numbers: seen } = await decodePictures(await download(third, id, join(workspace(t), 'a.mp4')));
    assert.deepEqual(seen, [...numbers(25, 100), ...numbers(1000, 1075)]);
    await third.stop();

    const wary = await node(t, peers, { authority, trusts: stranger });
    const { job_id: refused } = await ask<JobAnswer>(wary, 'POST', 'gate/assemble', { kind: 'export', parts });
    const { state, reason } = await ended(wary, refused);
    assert.equal(state, 'failed');
    assert.match(reason ?? '', /^part \d from 127\.0\.0\.1:\d+: .*UNABLE_TO/);
    await wary.stop();
  },
);

test(
  'an assembly that a kill interrupts before its parts are here fails, and says that it keeps no credential',
  { skip },
  async (t) => {
    const peer = await PeerServer.start(t);
    let recorder = await node(t, [peer.address]);
    const job = { camera_id: 'gate', from: FROM, to: FROM + 4, kind: 'export', state: 'running' };
    peer.routes.set('/api/archive/jobs/e1', json(job));
    const parts = [{ peer_addr: peer.address, peer_job_id: 'e1', ordinal: 0 }];
    const { job_id: id } = await ask<JobAnswer>(recorder, 'POST', 'gate/assemble', { kind: 'export', parts });
    await until('the peer is asked', () => peer.asked.length > 0);
    recorder.child.signal('SIGKILL');
    await recorder.child.exit();
    recorder = await recorder.restart();
    t.after(() => recorder.stop());
    const failed = await ended(recorder, id);
    assert.equal(failed.state, 'failed');
    assert.match(
      failed.reason ?? '',
      /^the recorder was restarted before all parts were fetched, and it does not store the credential/,
    );
    assert.ok(!tracesOf(recorder).includes(TOKEN));
    await recorder.stop();
    assert.deepEqual(readdirSync(join(recorder.recordPath, '../work/jobs')), []);
  },
);
