import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import type { RecorderPod } from '../observe/caches.ts';
import { addressesOf, podsByNode } from './addresses.ts';

const pool = (spec: object) =>
  parseRecorderPool({
    apiVersion: 'kube-nvr.dev/v1alpha1',
    kind: 'RecorderPool',
    metadata: { name: 'default', namespace: 'video' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
  });
const pod = (status: NonNullable<RecorderPod['status']>, annotations = {}): RecorderPod => ({
  metadata: { name: 'p', annotations },
  spec: { nodeName: 'node-1' },
  status,
});
const IPS = { podIP: '10.1.0.7', hostIP: '192.0.2.7' };
const urls = (spec: object, from: RecorderPod) => {
  const { address, playbackAddress } = addressesOf(pool(spec), from) ?? {};
  return [address, playbackAddress];
};

test('a recorder is reached where its pod or node is, or where the template says', () => {
  assert.deepEqual(urls({}, pod(IPS)), ['http://10.1.0.7:9997', 'http://10.1.0.7:9996']);
  const hostPort = { advertise: { type: 'HostPort' } };
  assert.deepEqual(urls(hostPort, pod(IPS)), ['http://192.0.2.7:9997', 'http://192.0.2.7:9996']);
  const template = { advertise: { type: 'Template', template: 'https://{node}.nvr.example' } };
  assert.deepEqual(urls(template, pod({})), ['https://node-1.nvr.example', 'https://node-1.nvr.example']);
  assert.deepEqual(urls({}, pod({ podIP: 'fd00::7' })), ['http://[fd00::7]:9997', 'http://[fd00::7]:9996']);
});

test('a pod without an address changes nothing', () => {
  assert.equal(addressesOf(pool({}), pod({})), undefined);
});

test('the scheme is that of the pod, which may be older than what the pool says now', () => {
  const tls = { tls: { secretRef: { name: 'tls' } } };
  assert.equal(urls(tls, pod(IPS, { 'kube-nvr.dev/scheme': 'http' }))[0], 'http://10.1.0.7:9997');
  assert.equal(urls({}, pod(IPS, { 'kube-nvr.dev/scheme': 'https' }))[0], 'https://10.1.0.7:9997');
  assert.equal(urls(tls, pod(IPS))[0], 'https://10.1.0.7:9997', 'a pod of before does not say');
});

test('of two pods on a node the one counts that stays, and of two that stay the newer one', () => {
  const named = (name: string, metadata: object): RecorderPod => ({
    metadata: { name, ...metadata },
    spec: { nodeName: 'node-1' },
  });
  const going = named('going', {
    creationTimestamp: '2026-11-22T10:00:02Z',
    deletionTimestamp: '2026-11-22T10:00:03Z',
  });
  const old = named('old', { creationTimestamp: '2026-11-22T10:00:00Z' });
  const young = named('young', { creationTimestamp: '2026-11-22T10:00:01Z' });
  for (const pods of [
    [going, old, young],
    [young, going, old],
  ]) {
    assert.equal(podsByNode(pods).get('node-1')?.metadata.name, 'young');
  }
  assert.equal(podsByNode([going]).get('node-1')?.metadata.name, 'going');
  assert.equal(podsByNode([young]).get('node-2'), undefined);
});
