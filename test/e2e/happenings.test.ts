// What another system reports of a camera, from the recipes of docs/events.md to everything that shows it, also after a kill.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { sha256 } from '../../base/new-token.ts';
import { newWebhookSecret } from '../../recorder/events/signature.ts';
import { OnvifDevice } from '../onvif/device.ts';
import { EventReader } from '../support/event-reader.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const missing = ['curl', 'jq'].find((program) => spawnSync(program, ['--version']).error) ?? false;
const skip = missing && `${missing} is not installed`;
const PAGE = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8');

interface Found {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly start_ms: number;
  readonly end_ms: number | null;
  readonly data?: unknown;
}

const token = (name: string, role: string) => ({ name, role, sha256: sha256(name).toString('hex') });

/** Nobody answers for the camera: what is told of it is kept all the same. */
async function start(t: TestContext, changes: object = {}): Promise<RecorderProcess> {
  const config = {
    auth: {
      mode: 'token',
      tokens: [{ ...token('reporter', 'reporter'), cameras: ['gate'] }, token('viewer', 'viewer')],
    },
    cameras: ['gate', 'yard'].map((id) => ({ id, source: 'rtsp://127.0.0.1:9/' })),
    ...changes,
  };
  const recorder = await RecorderProcess.start({ directory: workspace(t), config });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  return recorder;
}

const VIEWER = { authorization: 'Bearer viewer' };

async function found(recorder: RecorderProcess, query = ''): Promise<readonly Found[]> {
  const window = `from=${Date.now() / 1000 - 80_000}&to=${Date.now() / 1000 + 60}`;
  const answer = await fetch(`${recorder.url}/api/events/search?camera=gate&${window}${query}`, { headers: VIEWER });
  assert.equal(answer.status, 200, await answer.clone().text());
  return ((await answer.json()) as { events: Found[] }).events;
}

/** The code block of the page that contains `text`, for this recorder. */
function recipe(recorder: RecorderProcess, text: string): string {
  const block = [...PAGE.matchAll(/^```(?:sh|yaml)\n(.*?)^```$/gms)].find(([, code = '']) => code.includes(text));
  assert.ok(block?.[1], text);
  return block[1].replaceAll('https://nvr:9997', recorder.url);
}

const shell = (script: string, env: NodeJS.ProcessEnv): Promise<{ stdout: string }> =>
  promisify(execFile)('sh', ['-c', script], { env: { ...process.env, TOKEN: 'reporter', ...env } });

test('what is reported is in the stream, at the webhook, in search and timeline, and there after a kill', async (t) => {
  const posted: { type: string; subject: string; data: Found }[] = [];
  const receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      posted.push(JSON.parse(body) as (typeof posted)[number]);
      response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  let recorder = await start(t, { webhooks: [{ url, secret: newWebhookSecret(), events: ['camera.event'] }] });
  const stream = await EventReader.open(`${recorder.url}/api/events?types=camera.event`, VIEWER);
  await stream.begun();
  const event = { specversion: '1.0', id: 'e1', source: 'door', type: 'door.opened', data: { card: 7 } };
  const report = (): Promise<Response> =>
    fetch(`${recorder.url}/api/cameras/gate/events`, {
      method: 'POST',
      headers: { authorization: 'Bearer reporter', 'content-type': 'application/cloudevents+json' },
      body: JSON.stringify(event),
    });
  assert.deepEqual(await (await report()).json(), { stored: 1, known: 0 });
  const { data } = await stream.until(({ type }) => type === 'camera.event');
  await until('the webhook has it', () => posted.length > 0);
  for (const told of [data, posted[0] ?? assert.fail()]) {
    assert.deepEqual([told.type, told.subject], ['dev.kube-nvr.camera.event', 'gate']);
    const { id, source, type, data: own } = told.data as unknown as Found;
    assert.deepEqual({ specversion: '1.0', id, source, type, data: own }, event);
  }
  recorder.child.signal('SIGKILL');
  await recorder.child.exit();
  recorder = await recorder.restart();
  t.after(() => recorder.child[Symbol.asyncDispose]());
  assert.deepEqual(await (await report()).json(), { stored: 0, known: 1 });
  assert.deepEqual(
    (await found(recorder, '&type=door.*')).map(({ id }) => id),
    ['e1'],
  );
  const window = `from=${Math.floor(Date.now() / 1000) - 3_600}&to=${Math.ceil(Date.now() / 1000) + 60}`;
  const timeline = await fetch(`${recorder.url}/api/archive/timeline?camera=gate&events=1&${window}`, {
    headers: VIEWER,
  });
  const { cameras } = (await timeline.json()) as { cameras: { events: Found[] }[] };
  assert.deepEqual(
    cameras[0]?.events.map(({ id }) => id),
    ['e1'],
  );
});

test('the commands of the page with curl report an event and find it', { skip }, async (t) => {
  const recorder = await start(t);
  const { stdout } = await shell(recipe(recorder, 'till-4711'), {});
  assert.deepEqual(JSON.parse(stdout), { stored: 1, known: 0 });
  const [event] = await found(recorder);
  assert.deepEqual([event?.source, event?.type, event?.data], ['till', 'drawer.opened', { amount: 12.5 }]);
  const now = Math.floor(Date.now() / 1000);
  const search = recipe(recorder, 'type=person,drawer.*')
    .replace(/from=\d+/, `from=${now - 3_600}`)
    .replace(/to=\d+/, `to=${now + 3_600}`);
  const answer = JSON.parse((await shell(search, { TOKEN: 'viewer' })).stdout) as { events: Found[] };
  assert.deepEqual(
    answer.events.map(({ id }) => id),
    ['till-4711'],
  );
});

test('the script of the page for Frigate reports what Frigate publishes, once each', { skip }, async (t) => {
  const recorder = await start(t);
  const startS = Math.floor(Date.now() / 1000) - 60;
  const message = (type: string, changes: object = {}): string => {
    const after = {
      id: `${startS}.5-abc`,
      camera: 'gate',
      label: 'person',
      start_time: startS + 0.5,
      end_time: type === 'end' ? startS + 8.25 : null,
      top_score: 0.87,
      false_positive: false,
      entered_zones: ['door'],
      ...changes,
    };
    return JSON.stringify({ before: after, type, after });
  };
  const messages = [
    message('new'),
    message('update'),
    message('end'),
    message('end'),
    message('end', { id: 'wrong', false_positive: true }),
    message('end', { id: 'second', label: 'car' }),
  ];
  const bin = workspace(t);
  writeFileSync(join(bin, 'messages'), messages.map((text) => `${text}\n`).join(''));
  writeFileSync(join(bin, 'mosquitto_sub'), `#!/bin/sh\ncat ${join(bin, 'messages')}\n`, { mode: 0o755 });
  await shell(recipe(recorder, 'mosquitto_sub -h'), { MQTT: 'broker', PATH: `${bin}:${process.env['PATH'] ?? ''}` });
  const events = await found(recorder);
  assert.deepEqual(
    events.map(({ id, type }) => [id, type]),
    [
      [`${startS}.5-abc`, 'person'],
      ['second', 'car'],
    ],
  );
  const [{ start_ms, end_ms, data } = assert.fail()] = events;
  assert.deepEqual([start_ms, end_ms], [startS * 1000, (startS + 8) * 1000]);
  assert.deepEqual(data, { score: 0.87, zones: ['door'] });
});

test('what Home Assistant makes of the rest_command of the page is an event', async (t) => {
  const recorder = await start(t);
  const yaml = recipe(recorder, 'rest_command:');
  const values: Readonly<Record<string, string>> = {
    camera: 'gate',
    id: '01JDXYZ',
    type: 'door.opened',
    time: `${new Date().toISOString().slice(0, -1)}+00:00`,
  };
  const filled = yaml.replaceAll(/\{\{ (\w+) \}\}/g, (_, name: string) => values[name] ?? assert.fail(name));
  const url = /^ +url: (.*)$/m.exec(filled)?.[1] ?? '';
  const payload = /^ +payload: >\n +(.*)$/m.exec(filled)?.[1] ?? '';
  const headers = { authorization: 'Bearer reporter', 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: payload });
  assert.deepEqual(await answer.json(), { stored: 1, known: 0 });
  assert.deepEqual(
    (await found(recorder)).map(({ id, source, type }) => [id, source, type]),
    [['01JDXYZ', 'home-assistant', 'door.opened']],
  );
});

test('what a camera tells over ONVIF is in the stream when it begins and ends, and in search, and a recorder that stops leaves the camera', async (t) => {
  const device = await OnvifDevice.start({ credentials: { username: 'eve', password: 'secret' }, events: {} });
  t.after(() => device.close());
  const source = 'rtsp://eve:secret@127.0.0.1:9/';
  const recorder = await start(t, {
    cameras: [
      { id: 'gate', source, onvif: device.url },
      { id: 'yard', source, onvif: device.url, events: 'never' },
    ],
  });
  const stream = await EventReader.open(`${recorder.url}/api/events?types=camera.event`, VIEWER);
  await stream.begun();
  const motion = (isActive: boolean) =>
    device.events?.tell({
      topic: 'RuleEngine/CellMotionDetector/Motion',
      source: { VideoSourceConfigurationToken: 'vsc' },
      data: { IsMotion: String(isActive) },
      operation: 'Changed',
    });
  await until('the recorder pulls', () => device.events?.waiting === 1);
  const beganMs = Date.now();
  motion(true);
  await until('the begin is in the stream', () => stream.events.length === 1);
  await until('the recorder pulls again', () => device.events?.waiting === 1);
  motion(false);
  await until('the end is in the stream', () => stream.events.length === 2);
  const [event, ...others] = await found(recorder);
  assert.deepEqual(others, []);
  assert.deepEqual(
    [event?.source, event?.type, event?.data],
    [
      'camera',
      'motion',
      {
        topic: 'RuleEngine/CellMotionDetector/Motion',
        VideoSourceConfigurationToken: 'vsc',
        IsMotion: 'true',
      },
    ],
  );
  assert.ok(event && Math.abs(event.start_ms - beganMs) < 60_000 && (event.end_ms ?? 0) >= event.start_ms);
  motion(true);
  await until('it is kept', async () => (await found(recorder)).length === 2);
  await recorder.stop();
  assert.equal(device.events?.points, 0, 'the pull point is given back');
});
