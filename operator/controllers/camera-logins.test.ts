import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { ApiError } from '../kube/api.ts';
import { CAMERA, ROLE, SECRET } from '../kube/resources.ts';
import { MemoryApi } from '../kube/test-support.ts';
import { roleOf } from '../manifests/recorder-access.ts';
import { CameraLogins } from './camera-logins.ts';

const KEY = 'home/default';
const pool = parseRecorderPool({
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { name: 'default', namespace: 'home', uid: 'pool-1' },
  spec: { archive: { hostPath: '/mnt' } },
});

async function setting() {
  const api = new MemoryApi();
  const clock = new VirtualClock();
  const changed: string[] = [];
  const cameras = async (): Promise<readonly Camera[]> =>
    (await api.list(CAMERA, { namespace: 'home' })).items.map((object) => parseCamera(object));
  const open = (): CameraLogins =>
    new CameraLogins({ api, changed: ({ metadata }) => changed.push(metadata.name), clock });
  const logins = open();
  return {
    api,
    clock,
    changed,
    logins,
    open,
    granted: async (of = logins) => of.granted(KEY, pool, await cameras()),
    reads: () => api.calls.filter((call) => call.startsWith('get secrets/')).length,
    camera: (name: string, secret: string, spec: object = {}) =>
      api.create(CAMERA, {
        apiVersion: API_VERSION,
        kind: 'Camera',
        metadata: { name, namespace: 'home' },
        spec: { source: 'rtsp://10.0.0.9/1', credentialsSecretRef: { name: secret }, ...spec },
      }),
    secret: (name: string, hosts?: string) =>
      api.create(SECRET, {
        metadata: { name, namespace: 'home', ...(hosts && { annotations: { 'kube-nvr.dev/camera-hosts': hosts } }) },
      }),
    /** The Role as made by versions that granted every Secret that a Camera names. */
    oldRole: (secrets: readonly string[], uid = 'pool-1') => {
      const { annotations: _, ...metadata } = roleOf({ namespace: 'home', name: 'default' }, secrets).metadata;
      const owner = { apiVersion: API_VERSION, kind: 'RecorderPool', name: 'default', uid, controller: true };
      const role = roleOf({ namespace: 'home', name: 'default' }, secrets);
      return api.create(ROLE, {
        ...role,
        metadata: { ...metadata, ownerReferences: [owner] },
      });
    },
    loginOf: async (name: string) => (await api.get(CAMERA, { namespace: 'home', name }))['status'],
  };
}

test('recorders get the Secrets that name hosts, and no other that a Camera names', async () => {
  const { camera, secret, granted, logins, changed } = await setting();
  await secret('gate-login', '10.0.0.0/8');
  await secret('smtp');
  for (const name of ['gate-login', 'smtp', 'missing']) await camera(`with-${name}`, name);
  assert.deepEqual(await granted(), ['gate-login']);
  assert.deepEqual(changed.toSorted(), ['with-gate-login', 'with-missing', 'with-smtp']);
  const named = (name: string) =>
    logins.secretOf(KEY, { spec: { credentialsSecretRef: { name } } } as unknown as Camera);
  assert.deepEqual(
    [named('gate-login'), named('smtp'), named('missing'), named('other')],
    ['NamesHosts', 'NamesNone', 'Missing', undefined],
  );
});

test('a Secret that names no hosts is looked at again after 10 s, one that does after 10 minutes', async () => {
  const { api, camera, secret, granted, clock, reads, changed } = await setting();
  await secret('gate-login', '10.0.0.0/8');
  await secret('yard-login');
  await camera('gate', 'gate-login');
  await camera('yard', 'yard-login');
  await granted();
  await granted();
  assert.equal(reads(), 2);
  changed.length = 0;
  const annotations = { 'kube-nvr.dev/camera-hosts': '*' };
  await api.mergePatch(SECRET, { namespace: 'home', name: 'yard-login' }, { metadata: { annotations } });
  clock.advance(10_000);
  assert.deepEqual((await granted()).toSorted(), ['gate-login', 'yard-login']);
  assert.deepEqual([reads(), changed], [3, ['yard']]);
  clock.advance(600_000);
  await granted();
  assert.equal(reads(), 5);
});

test('what was granted before Secrets had to name hosts continues, for the hosts it went to, and says so in the Camera', async () => {
  const { camera, secret, granted, oldRole, loginOf, open } = await setting();
  await oldRole(['gate-login', 'yard-login']);
  await secret('gate-login');
  await secret('yard-login', '10.0.0.9');
  await secret('smtp');
  await camera('gate', 'gate-login', { snapshot: 'http://10.0.0.10/s.jpg', onvif: 'http://10.0.0.9/onvif' });
  await camera('away', 'gate-login', { source: 'rtsp://gate.example/1', suspend: true });
  await camera('yard', 'yard-login');
  await camera('thief', 'smtp');
  assert.deepEqual((await granted()).toSorted(), ['gate-login', 'yard-login']);
  assert.deepEqual(await loginOf('gate'), { login: { secretName: 'gate-login', hosts: ['10.0.0.9', '10.0.0.10'] } });
  assert.deepEqual(await loginOf('away'), { login: { secretName: 'gate-login', hosts: ['gate.example'] } });
  assert.deepEqual([await loginOf('yard'), await loginOf('thief')], [undefined, undefined]);
  // The next leader learns this from the Cameras.
  assert.deepEqual((await granted(open())).toSorted(), ['gate-login', 'yard-login']);
});

test('a Secret that names hosts and then none any more is not granted for where it went before either', async () => {
  const { api, camera, secret, granted, clock, oldRole, loginOf, open } = await setting();
  const annotate = (hosts: string | null) =>
    api.mergePatch(
      SECRET,
      { namespace: 'home', name: 'gate-login' },
      { metadata: { annotations: { 'kube-nvr.dev/camera-hosts': hosts } } },
    );
  await oldRole(['gate-login']);
  await secret('gate-login');
  await camera('gate', 'gate-login');
  assert.deepEqual(await granted(), ['gate-login']);
  await api.apply(ROLE, roleOf({ namespace: 'home', name: 'default' }, ['gate-login']), { fieldManager: 'operator' });
  await annotate('10.0.0.8');
  clock.advance(10_000);
  assert.deepEqual(await granted(), ['gate-login']);
  assert.ok('login' in ((await loginOf('gate')) as object), 'its recorder may not have read the Secret again yet');
  clock.advance(60_000);
  assert.deepEqual(await granted(), ['gate-login']);
  assert.deepEqual(await loginOf('gate'), {}, 'what the Secret names counts alone');
  await annotate(null);
  clock.advance(600_000);
  assert.deepEqual(await granted(), []);
  assert.deepEqual(await granted(open()), [], 'nor by the next leader');
});

test('it happens once: what was made after it names hosts, or is not granted', async () => {
  const { api, camera, secret, granted, oldRole, open } = await setting();
  await oldRole(['gate-login']);
  await secret('gate-login');
  await camera('gate', 'gate-login');
  await granted();
  await api.apply(ROLE, roleOf({ namespace: 'home', name: 'default' }, ['gate-login', 'smtp']), {
    fieldManager: 'operator',
  });
  await secret('smtp');
  await camera('thief', 'smtp');
  assert.deepEqual(await granted(open()), ['gate-login']);
});

test('the Role of another pool of the same name says nothing about what was granted', async () => {
  const { camera, secret, granted, oldRole } = await setting();
  await oldRole(['gate-login'], 'another');
  await secret('gate-login');
  await camera('gate', 'gate-login');
  assert.deepEqual(await granted(), []);
});

test('a Secret that vanishes is not mistaken for one that names no hosts', async () => {
  const { api, camera, secret, granted, clock, logins, changed } = await setting();
  await secret('gate-login', '*');
  await camera('gate', 'gate-login');
  await granted();
  changed.length = 0;
  await api.delete(SECRET, { namespace: 'home', name: 'gate-login' });
  clock.advance(600_000);
  assert.deepEqual(await granted(), [], 'one of this name that is made later need not be for cameras');
  const [gate] = (await api.list(CAMERA, { namespace: 'home' })).items.map((object) => parseCamera(object));
  assert.ok(gate);
  assert.deepEqual([logins.secretOf(KEY, gate), changed], ['Missing', ['gate']]);
  await secret('gate-login', '*');
  clock.advance(10_000);
  assert.deepEqual(await granted(), ['gate-login']);
});

test('a Secret that the operator may not read is not granted; without an answer nothing is taken away', async () => {
  const { api, camera, secret, granted, clock } = await setting();
  await secret('gate-login', '*');
  await camera('gate', 'gate-login');
  api.before = (_verb, { kind }) => {
    if (kind === 'Secret') throw new ApiError(403, 'Forbidden', 'no');
  };
  assert.deepEqual(await granted(), []);
  api.before = () => {};
  clock.advance(10_000);
  assert.deepEqual(await granted(), ['gate-login']);
  clock.advance(600_000);
  api.before = (_verb, { kind }) => {
    if (kind === 'Secret') throw new ApiError(0, 'Timeout', 'no answer');
  };
  await assert.rejects(granted(), /no answer/);
});
