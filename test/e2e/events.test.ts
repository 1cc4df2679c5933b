// What a recorder tells of itself while its cameras come and go, it is killed and started again: each event once, in order.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { newWebhookSecret } from '../../recorder/events/signature.ts';
import { startCamera } from '../camera/camera.ts';
import { EventReader, type ReadEvent } from '../support/event-reader.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const noRedis = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;

const isState = (camera: string, state: string) => (event: ReadEvent) =>
  event.type === 'camera.state' && event.data.subject === camera && event.data.data['state'] === state;

test('cameras, gaps, a kill and a stop: a client that reconnects misses nothing and gets nothing twice', async (t) => {
  let gate = await startCamera({ pace: 'realtime' });
  const { port } = gate;
  const config = { cameras: [{ id: 'gate', source: gate.url }] };
  let recorder = await RecorderProcess.start({ directory: workspace(t), config });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  const first = await EventReader.open(`${recorder.url}/api/events?last_event_id=0`);
  await first.until(isState('gate', 'recording'));
  await first.until(({ type, data }) => type === 'gap.closed' && data.data['cause'] === 'starting');
  await gate.close();
  await first.until(isState('gate', 'retrying'));
  await first.until(({ type, data }) => type === 'gap.opened' && data.data['cause'] === 'camera-unreachable');
  recorder.child.signal('SIGKILL');
  await first.ended;

  recorder = await recorder.restart();
  const second = await EventReader.open(`${recorder.url}/api/events`, { 'last-event-id': first.lastEventId });
  gate = await startCamera({ pace: 'realtime', port });
  t.after(() => gate.close());
  await second.until(isState('gate', 'recording'));
  await second.until(({ type, data }) => type === 'gap.closed' && data.data['cause'] === 'process-down');
  // What follows until there is a picture has gaps of its own.
  await second.until(() => {
    const types = [...first.events, ...second.events].map(({ type }) => type);
    return types.lastIndexOf('gap.closed') > types.lastIndexOf('gap.opened');
  });
  await recorder.stop();
  await second.ended;
  assert.equal(second.events.at(-1)?.type, 'recorder.stopped');

  recorder = await recorder.restart();
  const all = await EventReader.open(`${recorder.url}/api/events?seconds=0&last_event_id=0`);
  await all.ended;
  const seen = [...first.events, ...second.events];
  const ids = seen.map(({ id }) => Number(id));
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
  );
  assert.deepEqual(
    all.events.slice(0, seen.length).map(({ id }) => id),
    seen.map(({ id }) => id),
  );
  const kinds = seen.map(({ type }) => type);
  assert.equal(kinds[0], 'recorder.started');
  assert.equal(kinds.filter((type) => type === 'recorder.started').length, 2);
  // Opened and closed in turn, the one that lasted over the kill as well.
  const gaps = seen.filter(({ type }) => type.startsWith('gap.'));
  gaps.forEach(({ type, data: { data } }, i) => {
    const before = gaps[i - 1]?.data.data;
    assert.equal(type, i % 2 === 0 ? 'gap.opened' : 'gap.closed');
    if (i % 2 === 1) assert.equal(data['start_ms'], before?.['start_ms']);
    else if (before) assert.ok(Number(data['start_ms']) >= Number(before['end_ms']));
  });
  assert.equal(gaps.length % 2, 0, 'none is open');
});

test(
  'a job is reported from when it is asked for to its end, and is found ended then',
  { skip: noRedis },
  async (t) => {
    const gate = await startCamera({ pace: 'realtime' });
    t.after(() => gate.close());
    const config = { archive: { segmentDuration: '1s' }, cameras: [{ id: 'gate', source: gate.url }] };
    const recorder = await RecorderProcess.start({ directory: workspace(t), config });
    t.after(() => recorder.stop());
    // A camera records before the first second of it is on the disk.
    await until('a closed segment', async () => {
      const { archive } = (await recorder.get('/api/archive/gate/segments')) as { archive: { is_open: boolean }[] };
      return archive.some((segment) => !segment.is_open);
    });
    const fromMs = Date.now();
    const reader = await EventReader.open(`${recorder.url}/api/events?types=job.*`);
    await reader.begun();
    const post = async (path: string): Promise<string> => {
      const answer = await fetch(`${recorder.url}/api/archive/gate/${path}`, { method: 'POST' });
      assert.equal(answer.status, 202, await answer.clone().text());
      return ((await answer.json()) as { job_id: string }).job_id;
    };
    // Of the future: there is no footage of it.
    const failing = await post(
      `export?from=${Math.ceil(fromMs / 1000) + 3_600}&to=${Math.ceil(fromMs / 1000) + 3_601}`,
    );
    const failed = await reader.until(({ type }) => type === 'job.failed');
    assert.equal(failed.data.data['job_id'], failing);
    assert.equal((failed.data.data['reason'] as { code: string }).code, 'no-footage');
    const done = await post(`export?from=${Math.floor(fromMs / 1000) - 2}&to=${Math.ceil(fromMs / 1000)}`);
    const { data } = await reader.until(({ type }) => type === 'job.done');
    assert.deepEqual([data.data['job_id'], data.data['progress'], data.subject], [done, 100, 'gate']);
    const job = (await recorder.get(`/api/archive/jobs/${done}`)) as { state: string; size_bytes: number };
    assert.deepEqual([job.state, job.size_bytes], ['done', data.data['size_bytes']]);
    const kinds = reader.events.filter((event) => event.data.data['job_id'] === done).map(({ type }) => type);
    assert.deepEqual([kinds[0], kinds[1], kinds.at(-1)], ['job.queued', 'job.progress', 'job.done']);
  },
);

test('a webhook that answers 500 while the recorder is killed gets each event once, in order, when it is well', async (t) => {
  const taken: { id: string; type: string }[] = [];
  const refused: string[] = [];
  let isWell = false;
  let changed = Promise.withResolvers<void>();
  const receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      if (isWell) taken.push(JSON.parse(body) as { id: string; type: string });
      else refused.push(body);
      response.writeHead(isWell ? 200 : 500).end();
      changed.resolve();
      changed = Promise.withResolvers();
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const gate = await startCamera({ pace: 'realtime' });
  t.after(() => gate.close());
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const config = { cameras: [{ id: 'gate', source: gate.url }], webhooks: [{ url, secret: newWebhookSecret() }] };
  let recorder = await RecorderProcess.start({ directory: workspace(t), config });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  await recorder.untilRecording('gate');
  while (refused.length === 0) await changed.promise;
  recorder.child.signal('SIGKILL');
  await recorder.child.exit();
  recorder = await recorder.restart();
  await recorder.untilRecording('gate');
  isWell = true;
  const isDone = (): boolean => taken.filter(({ type }) => type === 'dev.kube-nvr.recorder.started').length === 2;
  while (!isDone()) await changed.promise;
  const all = await EventReader.open(`${recorder.url}/api/events?seconds=0&last_event_id=0`);
  await all.ended;
  assert.deepEqual(
    taken.map(({ id }) => id),
    all.events.slice(0, taken.length).map(({ id }) => id),
  );
});
