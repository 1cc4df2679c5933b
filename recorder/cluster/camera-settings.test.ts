import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION, CAMERA_GROUP_LABEL } from '../../crds/names.ts';
import { selfSignedCertificate } from '../../test/camera/certificate.ts';
import { settingsOf } from './camera-settings.ts';

const camera = (spec: object, login?: object): Camera =>
  parseCamera({
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: { name: 'gate', namespace: 'home' },
    spec: { source: 'rtsp://10.0.0.9/1', credentialsSecretRef: { name: 'gate-login' }, ...spec },
    ...(login && { status: { login } }),
  });
const login = (...hosts: readonly string[]) => ({
  username: 'u',
  password: 'p@ss',
  hosts: hosts.length > 0 ? hosts : undefined,
});

test('the login goes to the hosts that its Secret names, and to no other address of the camera', () => {
  const spec = { snapshot: 'http://10.0.0.10/s.jpg', onvif: 'http://10.0.0.9:8080/onvif' };
  const { camera: settings } = settingsOf(camera(spec), login('10.0.0.9'));
  assert.deepEqual(
    [settings?.source, settings?.snapshot, settings?.onvif],
    ['rtsp://u:p%40ss@10.0.0.9/1', 'http://10.0.0.10/s.jpg', 'http://u:p%40ss@10.0.0.9:8080/onvif'],
  );
  assert.equal(settingsOf(camera(spec), login('10.0.0.0/24')).camera?.snapshot, 'http://u:p%40ss@10.0.0.10/s.jpg');
});

test('a memory at an address with times gets the login on hosts that its Secret names, one over ONVIF needs no address', () => {
  const of = (edge: Camera['spec']['edge']) => settingsOf(camera({ edge }), login('10.0.0.9')).camera?.edge;
  const path = '/tracks/101?starttime={start}&endtime={end}';
  assert.deepEqual(of({ replay: `rtsp://10.0.0.9${path}`, timeZone: 'Europe/Berlin', maxBitrate: 8 }), {
    source: { kind: 'address', replay: `rtsp://u:p%40ss@10.0.0.9${path}`, timeZone: 'Europe/Berlin' },
    maxBitrate: 8_000_000,
  });
  assert.deepEqual(of({ replay: `rtsp://10.0.0.10${path}` })?.source, {
    kind: 'address',
    replay: `rtsp://10.0.0.10${path}`,
    timeZone: undefined,
  });
  assert.deepEqual(of({ onvif: true }), { source: { kind: 'onvif', recording: undefined }, maxBitrate: undefined });
  assert.equal(of(undefined), undefined);
});

test('a preview gets the login on hosts that its Secret names, like every address of the camera', () => {
  const of = (source: string, ...hosts: string[]) =>
    settingsOf(camera({ preview: { source } }), login(...hosts)).camera?.preview?.source;
  assert.equal(of('rtsp://10.0.0.9/2', '10.0.0.9'), 'rtsp://u:p%40ss@10.0.0.9/2');
  assert.equal(of('rtsp://10.0.0.10/2', '10.0.0.9'), 'rtsp://10.0.0.10/2');
  assert.equal(settingsOf(camera({}), login('10.0.0.9')).camera?.preview, undefined);
});

test('the group of a camera is its label', () => {
  const given = camera({});
  const of = (labels: Record<string, string>) =>
    settingsOf({ ...given, metadata: { ...given.metadata, labels } }, login('10.0.0.9')).camera?.group;
  assert.deepEqual(
    [of({ [CAMERA_GROUP_LABEL]: 'yard' }), of({ [CAMERA_GROUP_LABEL]: '' }), of({ app: 'x' })],
    ['yard', undefined, undefined],
  );
});

test('a preview that is recorded has limits of its own', () => {
  const preview = {
    source: 'rtsp://10.0.0.9/2',
    recorded: true,
    retention: { maxAgeSeconds: 86_400, maxSize: '10Gi' },
  };
  const settings = settingsOf(camera({ preview }), login('10.0.0.9')).camera?.preview;
  assert.equal(settings?.recorded, true);
  assert.deepEqual(settings?.retention, { maxAgeMs: 86_400_000, maxSizeBytes: 10 * 2 ** 30, minFree: undefined });
});

test('a camera whose source its Secret does not name is not recorded, and says what the Secret names', () => {
  const { problem } = settingsOf(camera({ source: 'rtsp://evil.example/1' }), login('10.0.0.0/24', 'gate.example'));
  assert.deepEqual(problem, {
    code: 'no-credentials',
    message:
      'Secret gate-login is not for the host of spec.source: its annotation kube-nvr.dev/camera-hosts names 10.0.0.0/24, gate.example',
  });
});

test('a Secret that names no hosts is good for where it went before it had to, and for nothing else', () => {
  const before = { secretName: 'gate-login', hosts: ['10.0.0.9'] };
  assert.equal(settingsOf(camera({}, before), login()).camera?.source, 'rtsp://u:p%40ss@10.0.0.9/1');
  assert.match(
    settingsOf(camera({ source: 'rtsp://10.0.0.8/1' }, before), login()).problem?.message ?? '',
    /camera-hosts is missing, and it was used for 10\.0\.0\.9 before$/,
  );
  assert.match(settingsOf(camera({}), login()).problem?.message ?? '', /camera-hosts is missing$/);
  const another = { secretName: 'yard-login', hosts: ['10.0.0.9'] };
  assert.match(settingsOf(camera({}, another), login()).problem?.message ?? '', /camera-hosts is missing$/);
  // Only what the Secret names counts.
  assert.ok(settingsOf(camera({}, before), login('10.0.0.8')).problem);
});

// The first host is what simple parsing finds; what follows `@` is what a parser finds that allows `/` in passwords.
for (const source of ['rtsp://10.0.0.9:99999/@evil.example/1', 'rtsp://10.0.0.9_%2f/@evil.example/']) {
  test(`the host that is judged is the one that is connected to: ${source}`, () => {
    assert.match(
      settingsOf(camera({ source }), login('10.0.0.9')).problem?.message ?? '',
      /^Secret gate-login is not for/,
    );
  });
}

test('an address of HTTP that URL parsers read differently gets no login', () => {
  const snapshot = 'http://10.0.0.9\\evil.example/s.jpg';
  const { camera: settings } = settingsOf(camera({ snapshot }), login('10.0.0.9'));
  assert.equal(settings?.snapshot, snapshot);
});

test('the certificate of a camera is judged as the Camera says, as in the configuration file', () => {
  const tlsOf = (tls?: object) => settingsOf(camera(tls ? { tls } : {}), login('10.0.0.9')).camera?.tls;
  const fingerprint = Array.from({ length: 32 }, () => 'AB').join(':');
  assert.deepEqual(tlsOf(), { verify: false });
  assert.deepEqual(tlsOf({ verify: true }), { verify: true });
  assert.deepEqual(tlsOf({ fingerprint }), { verify: false, fingerprint: 'ab'.repeat(32) });
  const { cert } = selfSignedCertificate('camera');
  assert.deepEqual(tlsOf({ ca: cert }), { verify: true, ca: cert });
  const broken = settingsOf(camera({ tls: { ca: `-----BEGIN CERTIFICATE-----\nx` } }), login('10.0.0.9'));
  assert.deepEqual(broken.problem, { code: 'invalid-camera', message: 'spec.tls.ca: expected certificates in PEM' });
});

test('a login in clear is allowed by the Camera', () => {
  for (const allowPlaintextLogin of [false, true]) {
    const { camera: settings } = settingsOf(camera({ allowPlaintextLogin }), login('10.0.0.9'));
    assert.equal(settings?.allowPlaintextLogin, allowPlaintextLogin);
  }
});

test('a camera without a reference has no login, whatever its hosts', () => {
  const plain = camera({ credentialsSecretRef: undefined });
  assert.equal(settingsOf(plain, undefined).camera?.source, 'rtsp://10.0.0.9/1');
});

test('a camera with an address of an unknown kind is not recorded, and says why; another unknown value costs its field', () => {
  const { problem } = settingsOf(camera({ source: 'srt://10.0.0.9/' }), login('10.0.0.9'));
  assert.deepEqual([problem?.code, problem?.message.startsWith('spec.source')], ['invalid-camera', true]);
  assert.equal(settingsOf(camera({ transport: 'Quic' }), login('10.0.0.9')).camera?.transport, 'auto');
});
