// The output of discovery: the table, YAML that our configuration accepts, and manifests that our schema accepts.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { cameraSchema } from '../../../crds/camera.ts';
import { workspace } from '../../../test/support/workspace.ts';
import { CAMERA_ID } from '../../../base/camera-id.ts';
import { loadConfig } from '../../config/load.ts';
import type { DeviceReport } from './describe.ts';
import { cameraEntries } from './entries.ts';
import { formatConfig, formatManifests, formatTable } from './output.ts';

const CREDENTIALS = { username: 'admin', password: `p@ss: "w/1 #'` };

interface Parts {
  readonly address?: string;
  readonly name?: string;
  readonly model?: string;
  readonly streams?: number;
  readonly problems?: readonly string[];
  readonly movable?: boolean;
  readonly memory?: boolean;
}

function report({
  address = '10.0.0.9',
  name,
  model = 'Dome 1',
  streams = 1,
  problems = [],
  movable = false,
  memory = false,
}: Parts = {}): DeviceReport {
  const profiles = Array.from({ length: streams }, (_, i) => ({
    token: `p${i}`,
    name: `main ${i}`,
    sourceToken: `s${i}`,
    sourceConfiguration: undefined,
    video: { codec: 'H264', width: 1920, height: 1080, framesPerSecond: 25 },
    movable,
  }));
  return {
    device: { address, url: `http://${address}/onvif/device_service`, name, hardware: undefined },
    information: { manufacturer: 'Acme', model, firmware: '1.10', serial: '1' },
    profiles,
    streams: profiles.map((profile, i) => ({
      profile,
      source: `rtsp://${address}:554/${i}?a=1&b=2`,
      snapshot: i === 0 ? `http://${address}/snap.jpg` : undefined,
      preview: i === 0 ? `rtsp://${address}:554/small` : undefined,
    })),
    movable,
    memory,
    problems,
  };
}

/** Difficult names; describeDevice has made each of them one printable line. */
const ODD =
  ` - *anchor &a !tag @x #x "x" 'x' {x} [x] -_x x:_y yes null 1.5 ~ Ä_ö_ü 日本 . --- ... %x > | << = ${'a'.repeat(64)}`
    .split(' ')
    .map((name) => name.replaceAll('_', ' '));

/** As the API server returns it: `kubectl apply` adds the namespace. */
const inNamespace = (manifest: object): object => ({
  ...manifest,
  metadata: { ...(manifest as { metadata: object }).metadata, namespace: 'default' },
});

test('the table', () => {
  const refused = {
    ...report({ address: '10.0.0.10', streams: 0, problems: ['the camera refuses the login'] }),
    information: undefined,
  };
  assert.equal(
    formatTable([report({ movable: true, memory: true }), report({ address: '10.0.1.2', streams: 6 }), refused]),
    `ADDRESS    MAKER  MODEL   FIRMWARE  PTZ  MEMORY  PROFILES
10.0.0.9   Acme   Dome 1  1.10      yes  yes     main 0: H264 1920x1080 25 fps
10.0.1.2   Acme   Dome 1  1.10      -    -       main 0: H264 1920x1080 25 fps; main 1: H264 1920x1080 25 fps; main 2: H264 1920x1080 25 fps; main 3: H264 1920x1080 25 fps; and 2 more
10.0.0.10  -      -       -         -    -       (the camera refuses the login)
`,
  );
});

test('ids are made of model and address, differ, and are names of Kubernetes', () => {
  const ids = cameraEntries([
    report(),
    report({ address: '10.0.0.10', streams: 2 }),
    report({ model: 'Dome-1!' }),
    report({ model: '' }),
    report({ model: '日本' }),
    report({ model: 'x'.repeat(64) }),
  ]).map(({ id }) => id);
  assert.deepEqual(ids, [
    'dome-1-10-0-0-9',
    'dome-1-10-0-0-10',
    'dome-1-10-0-0-10-2',
    'dome-1-10-0-0-9-2',
    'camera-10-0-0-9',
    'camera-10-0-0-9-2',
    `${'x'.repeat(36)}-10-0-0-9`,
  ]);
});

test('any model makes ids that the configuration and Kubernetes take', () => {
  const reports = ODD.flatMap((model) => [report({ model, streams: 20, address: '192.168.100.200' })]);
  const ids = cameraEntries(reports).map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const id of ids) {
    assert.match(id, CAMERA_ID);
    assert.match(id, /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
    assert.ok(id.length <= 57, id);
  }
});

test('YAML is a configuration that loads, with login and names, whatever the devices are called', async (t) => {
  const file = join(workspace(t), 'config.yaml');
  const reports = ODD.map((name, i) => report({ name, model: name, address: `10.0.0.${i + 1}`, movable: i % 2 === 0 }));
  writeFileSync(file, formatConfig(reports, CREDENTIALS));
  const { cameras } = await loadConfig(file);
  assert.equal(cameras.length, ODD.length);
  const [first] = cameras;
  assert.equal(first!.source, 'rtsp://admin:p%40ss%3A%20%22w%2F1%20%23%27@10.0.0.1:554/0?a=1&b=2');
  assert.equal(first!.preview?.source, 'rtsp://10.0.0.1:554/small');
  assert.equal(first!.snapshot, 'http://10.0.0.1/snap.jpg');
  assert.equal(first!.onvif, 'http://10.0.0.1/onvif/device_service');
  assert.equal(first!.ptz, true);
  const named = cameras.find(({ name }) => name === 'Ä ö ü');
  assert.ok(named === undefined || named.name === 'Ä ö ü');
  assert.ok(cameras.some(({ name }) => name === 'x: y'));
});

test('YAML without cameras is a configuration, too, and says what was left out', async (t) => {
  const file = join(workspace(t), 'config.yaml');
  const text = formatConfig([report({ streams: 0, problems: ['it: # refuses'] })], undefined);
  writeFileSync(file, text);
  assert.deepEqual((await loadConfig(file)).cameras, []);
  assert.match(text, /^# 10\.0\.0\.9: left out, it: # refuses$/m);
});

test('a name that several devices have is left out', async (t) => {
  const file = join(workspace(t), 'config.yaml');
  const names = ['Gate', 'Gate', '前门', '后门', 'Dock'];
  const reports = names.map((name, i) => report({ name, address: `10.0.0.${i + 1}` }));
  writeFileSync(file, formatConfig(reports, undefined));
  const { cameras } = await loadConfig(file);
  assert.deepEqual(
    cameras.map(({ name }) => name),
    ['dome-1-10-0-0-1', 'dome-1-10-0-0-2', '前门', '后门', 'Dock'],
  );
});

test('manifests: a Secret with the login, and a Camera without it that the schema takes', () => {
  const text = formatManifests(
    [report({ name: 'Gate', movable: true, memory: true }), report({ address: '10.0.0.8', streams: 2, memory: true })],
    CREDENTIALS,
  );
  const documents = parseAllDocuments(text).map((document) => document.toJS() as Record<string, unknown>);
  assert.deepEqual(
    documents.map(({ kind }) => kind),
    ['Secret', 'Camera', 'Secret', 'Camera', 'Secret', 'Camera'],
  );
  assert.deepEqual(documents[0], {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'dome-1-10-0-0-9-login', annotations: { 'kube-nvr.dev/camera-hosts': '10.0.0.9' } },
    type: 'kubernetes.io/basic-auth',
    stringData: { username: 'admin', password: `p@ss: "w/1 #'` },
  });
  assert.deepEqual(documents[1], {
    apiVersion: 'kube-nvr.dev/v1alpha1',
    kind: 'Camera',
    metadata: { name: 'dome-1-10-0-0-9' },
    spec: {
      displayName: 'Gate',
      source: 'rtsp://10.0.0.9:554/0?a=1&b=2',
      preview: { source: 'rtsp://10.0.0.9:554/small' },
      credentialsSecretRef: { name: 'dome-1-10-0-0-9-login' },
      snapshot: 'http://10.0.0.9/snap.jpg',
      ptz: true,
      onvif: 'http://10.0.0.9/onvif/device_service',
      edge: { onvif: true },
    },
  });
  // Of several inputs, nothing says which recording belongs to which.
  assert.deepEqual(documents.filter(({ spec }) => (spec as { edge?: object } | undefined)?.edge).length, 1);
  for (const document of documents.filter(({ kind }) => kind === 'Camera')) {
    const parsed = cameraSchema.safeParse(inNamespace(document));
    assert.ok(parsed.success, JSON.stringify(parsed.error?.issues));
    assert.ok(!JSON.stringify(document).includes('w/1'));
  }
});

test('manifests without a login name no Secret', () => {
  const documents = parseAllDocuments(formatManifests([report()], undefined));
  assert.equal(documents.length, 1);
  assert.ok(!documents[0]!.toString().includes('credentialsSecretRef'));
});

test('manifests of odd names are taken by the schema', () => {
  const reports = ODD.map((name, i) => report({ name, model: name, address: `10.0.0.${i + 1}` }));
  for (const document of parseAllDocuments(formatManifests(reports, CREDENTIALS))) {
    const value = document.toJS() as { kind: string };
    if (value.kind !== 'Camera') continue;
    const parsed = cameraSchema.safeParse(inNamespace(value));
    assert.ok(parsed.success, JSON.stringify(parsed.error?.issues));
  }
});
