// `POST /api/cameras/discover`: what is found, without passwords, and one search at a time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeviceReport } from '../../onvif/discovery/describe.ts';
import { StillError } from '../../snapshots/error.ts';
import type { ApiDeps } from '../deps.ts';
import { as, build } from '../test-support.ts';

const VIDEO = { codec: 'H265', width: 2560, height: 1440, framesPerSecond: 25 };
const PROFILE = {
  token: 'main',
  name: 'main',
  sourceToken: undefined,
  sourceConfiguration: undefined,
  video: VIDEO,
  movable: false,
};
const GOOD: DeviceReport = {
  device: { address: '10.0.0.9', url: 'http://10.0.0.9/onvif/device_service', name: 'Gate', hardware: undefined },
  information: { manufacturer: 'Acme', model: 'Dome 1', firmware: '1', serial: '2' },
  profiles: [PROFILE],
  streams: [
    { profile: PROFILE, source: 'rtsp://10.0.0.9:554/main', preview: undefined, snapshot: 'http://10.0.0.9/still.jpg' },
  ],
  movable: true,
  memory: false,
  problems: [],
};
const STRICT: DeviceReport = {
  ...GOOD,
  device: { ...GOOD.device, address: '10.0.0.10', hardware: 'Bullet' },
  information: undefined,
  streams: [],
  problems: ['refuses the login'],
};

type Discoverer = ApiDeps['discoverer'];

const finds = (changes: Partial<Discoverer> = {}): Discoverer => ({
  search: async () => ({ reports: [GOOD, STRICT], problems: ['10.1.0.1: no route'] }),
  known: async (sources) => new Set(sources.filter((source) => source.includes('10.0.0.9'))),
  stillOfNew: () => Promise.reject(new StillError('camera-unreachable', 'the camera cannot be reached')),
  ...changes,
});

const asked = { method: 'POST', url: '/api/cameras/discover', headers: as('admin') } as const;

test('cameras that are found come with all that a configuration needs, except the password', async (t) => {
  const { app } = await build(t, { discoverer: finds() });
  const { statusCode, body, json } = await app.inject({
    ...asked,
    payload: { login: { user: 'root', password: 'hunter2' } },
  });
  assert.equal(statusCode, 200, body);
  const { cameras, left_out, problems } = json();
  const { config, manifest, ...camera } = cameras[0];
  assert.deepEqual(camera, {
    id: 'dome-1-10-0-0-9',
    name: 'Gate',
    maker: 'Acme',
    model: 'Dome 1',
    address: '10.0.0.9',
    source: 'rtsp://10.0.0.9:554/main',
    preview: null,
    snapshot: 'http://10.0.0.9/still.jpg',
    onvif: 'http://10.0.0.9/onvif/device_service',
    ptz: true,
    video: { codec: 'H265', width: 2560, height: 1440 },
    is_known: true,
  });
  assert.match(config, /source: rtsp:\/\/root:PASSWORD@10\.0\.0\.9:554\/main/);
  assert.match(manifest, /kind: Secret[^]*password: PASSWORD[^]*kind: Camera/);
  assert.deepEqual(left_out, [{ address: '10.0.0.10', model: 'Bullet', problem: 'refuses the login' }]);
  assert.deepEqual(problems, ['10.1.0.1: no route']);
  assert.ok(!body.includes('hunter2'));
});

test('one search runs at a time', async (t) => {
  const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Discoverer['search']>>>();
  const begun = Promise.withResolvers<undefined>();
  const search = (): typeof promise => {
    begun.resolve(undefined);
    return promise;
  };
  const { app } = await build(t, { discoverer: finds({ search }) });
  const first = app.inject({ ...asked, payload: {} }).then((answer) => answer);
  await begun.promise;
  const second = await app.inject({ ...asked, payload: {} });
  assert.deepEqual([second.statusCode, second.json().code], [409, 'discovery-busy']);
  resolve({ reports: [], problems: [] });
  assert.equal((await first).statusCode, 200);
  assert.equal((await app.inject({ ...asked, payload: {} })).statusCode, 200);
});

test('a wrong request names the field, and a camera that makes no still says why', async (t) => {
  const { app } = await build(t, { discoverer: finds() });
  for (const payload of [{ seconds: 99 }, { login: { user: 'root' } }, { login: { user: '', password: '' } }]) {
    const { statusCode, body } = await app.inject({ ...asked, payload });
    assert.equal(statusCode, 400, body);
    assert.match(body, /seconds|login/);
  }
  const still = await app.inject({
    ...asked,
    url: '/api/cameras/test/still',
    payload: { source: 'rtsp://10.0.0.9/', snapshot: 'http://10.0.0.9/still.jpg' },
  });
  assert.deepEqual([still.statusCode, still.json().code], [502, 'camera-unreachable']);
});
