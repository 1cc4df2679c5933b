// charts/kube-nvr/files/alertmanager.yaml in a real Alertmanager: whom a fault wakes, and how often.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { Child } from '../support/child.ts';
import { freePorts } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';
import { alertsOf, ROOT, RULE_FILES } from './rule-files.ts';

const PROGRAM = 'prometheus-alertmanager';
const skip = spawnSync(PROGRAM, ['--version']).error && `${PROGRAM} is not installed`;
const FILE = readFileSync(join(ROOT, 'charts/kube-nvr/files/alertmanager.yaml'), 'utf8');
const CAMERAS = 30;

type Labels = Readonly<Record<string, string>>;

/** An Alertmanager with the file, but for its times, that posts to a receiver of this test. */
async function start(t: TestContext) {
  const messages: Labels[][] = [];
  const receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      messages.push((JSON.parse(body) as { alerts: { labels: Labels }[] }).alerts.map(({ labels }) => labels));
      response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const directory = workspace(t);
  const { route, inhibit_rules } = parse(FILE) as { route: object; inhibit_rules: readonly object[] };
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const config = {
    route: { receiver: 'test', group_wait: '1s', routes: [{ ...route, group_wait: '1s' }] },
    inhibit_rules,
    receivers: [{ name: 'test', webhook_configs: [{ url, send_resolved: false }] }],
  };
  writeFileSync(join(directory, 'alertmanager.yaml'), JSON.stringify(config));
  const [port] = await freePorts(1);
  const child = new Child(PROGRAM, [
    `--config.file=${join(directory, 'alertmanager.yaml')}`,
    `--storage.path=${join(directory, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
  ]);
  t.after(() => child[Symbol.asyncDispose]());
  const at = `http://127.0.0.1:${port}`;
  await until(`the Alertmanager is ready: ${child.output}`, async () => (await fetch(`${at}/-/ready`)).ok);
  const fire = async (...alerts: readonly Labels[]): Promise<void> => {
    const answer = await fetch(`${at}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(alerts.map((labels) => ({ labels: { cluster: 'plant', namespace: 'video', ...labels } }))),
    });
    assert.equal(answer.status, 200, await answer.clone().text());
  };
  /** What was told of the alerts: the message about one that came after them has come, too. */
  const told = async (): Promise<readonly Labels[][]> => {
    await until('a message', () => messages.length > 0);
    const isLast = (message: readonly Labels[]): boolean => message[0]?.['alertname'] === 'KubeNvrLocalSignIn';
    await fire({ alertname: 'KubeNvrLocalSignIn', instance: '10.0.0.9:9998' });
    await until('the last message', () => messages.some(isLast));
    return messages.filter((message) => !isLast(message));
  };
  return { told, fire };
}

const silent = (node: string) =>
  Array.from({ length: CAMERAS }, (_, n) => ({
    alertname: 'KubeNvrCameraSilent',
    camera: `${node}-camera-${n}`,
    node,
    instance: `${node}:9998`,
  }));

test('thirty cameras behind a dead switch are one message, and their gaps none', { skip }, async (t) => {
  const { told, fire } = await start(t);
  const cameras = silent('node-1');
  await fire(...cameras, ...cameras.map((labels) => ({ ...labels, alertname: 'KubeNvrGapSecondsRising', cause: 'a' })));
  const messages = await told();
  assert.equal(messages.length, 1);
  assert.equal(messages[0]?.length, CAMERAS);
  assert.ok(messages[0]?.every(({ alertname }) => alertname === 'KubeNvrCameraSilent'));
});

test('a dead node is one message for the node, and a silent camera of another node is told', { skip }, async (t) => {
  const { told, fire } = await start(t);
  const [other] = silent('node-2');
  await fire(
    { alertname: 'KubeNvrNodeOffline', pool: 'default', node: 'node-1' },
    { alertname: 'KubeNvrRecorderDown', node: 'node-1', instance: 'node-1:9998' },
    ...silent('node-1'),
    other as Labels,
  );
  const alerts = (await told()).flat().map(({ alertname, node }) => `${alertname} ${node}`);
  assert.deepEqual(alerts.sort(), ['KubeNvrCameraSilent node-2', 'KubeNvrNodeOffline node-1']);
});

test('servers without the labels of Kubernetes do not silence each other', { skip }, async (t) => {
  const { told, fire } = await start(t);
  await fire(
    { alertname: 'KubeNvrRecorderDown', instance: '10.0.0.5:9998' },
    { alertname: 'KubeNvrDiskExhausted', instance: '10.0.0.6:9998' },
    { alertname: 'KubeNvrCameraSilent', instance: '10.0.0.6:9998', camera: 'gate' },
    { alertname: 'KubeNvrCameraSilent', instance: '10.0.0.7:9998', camera: 'yard' },
  );
  const alerts = (await told()).flat().map(({ alertname, instance }) => `${alertname} ${instance}`);
  assert.deepEqual(alerts.sort(), [
    'KubeNvrCameraSilent 10.0.0.7:9998',
    'KubeNvrDiskExhausted 10.0.0.6:9998',
    'KubeNvrRecorderDown 10.0.0.5:9998',
  ]);
});

test('every alert that the file names exists', () => {
  const known = new Set(RULE_FILES.flatMap(alertsOf).map(({ alert }) => alert));
  const named = [...FILE.matchAll(/KubeNvr\w+/g)].map(([name]) => name).filter((name) => name !== 'KubeNvr');
  assert.deepEqual(
    named.filter((name) => !known.has(name)),
    [],
  );
});
