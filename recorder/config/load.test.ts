import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { parse } from 'yaml';
import { ConfigError, loadConfig } from './load.ts';

/** Writes files into a fresh directory and returns the path of its config.yaml. */
async function files(t: TestContext, contents: Record<string, string>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'config-test-'));
  t.after(() => rm(directory, { recursive: true }));
  for (const [name, text] of Object.entries(contents)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  return join(directory, 'config.yaml');
}

const load = async (t: TestContext, contents: Record<string, string>) =>
  loadConfig(await files(t, contents), { hostName: 'host-7' });

/** The message of the refusal, with the directory taken out of it. */
async function refusal(t: TestContext, contents: Record<string, string>): Promise<string> {
  const file = await files(t, contents);
  const err = await loadConfig(file, { hostName: 'host-7' }).then(
    () => assert.fail('was accepted'),
    (err: unknown) => err,
  );
  assert.ok(err instanceof ConfigError, String(err));
  return err.message.replaceAll(`${dirname(file)}/`, '');
}

/** The same without the places of mistakes. */
const withoutPlaces = (message: string): string => message.replaceAll(/(\.yaml):\d+:\d+: /g, '$1: ');

const GATE = 'cameras: [{id: gate, source: "rtsp://10.0.0.9/stream1"}]';

/** RFC 8032 §7.1, test 1. */
const PUBLIC_KEY = '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';

for (const text of ['', '# cameras:\n', '---\n', 'null\n', '~'])
  test(`a file without content is refused, in case it is being written: ${JSON.stringify(text)}`, async (t) => {
    await refused(t, text, /config\.yaml: is empty: write \{\}/);
    await assert.rejects(load(t, { 'config.yaml': GATE, 'conf.d/10.yaml': text }), /10\.yaml: is empty/);
  });

test('a file without settings is a recorder without cameras and every default', async (t) => {
  const config = await load(t, { 'config.yaml': '{}' });
  assert.deepEqual(config, {
    nodeName: 'host-7',
    listen: { host: '0.0.0.0', port: 9997 },
    recordPath: '/var/lib/recorder/recordings',
    workDir: '/var/lib/recorder',
    playback: { listen: { host: '0.0.0.0', port: 9996 }, advertise: '' },
    metrics: { listen: { host: '127.0.0.1', port: 9998 }, requireToken: false },
    health: undefined,
    database: undefined,
    redis: undefined,
    ffmpeg: { path: 'ffmpeg' },
    log: { level: 'info', directory: undefined, maxFileBytes: 10 * 2 ** 20, maxFiles: 14 },
    auth: {
      mode: 'token',
      tokens: [],
      tokensFile: undefined,
      users: [],
      usersFile: undefined,
      issuers: [],
      issuersFile: undefined,
      sessionKeyFile: undefined,
      audiences: ['kube-nvr.dev'],
      allowPlaintext: false,
      allowedHosts: [],
      allowAnonymousNetwork: false,
    },
    audit: {
      directory: '/var/lib/recorder/audit',
      maxAgeMs: 90 * 86_400_000,
      maxBytes: 2 ** 30,
      views: true,
      syslog: undefined,
      otlp: undefined,
    },
    cors: { origins: [] },
    trustedProxies: [],
    cameraNetworks: [],
    tls: undefined,
    license: { file: '/etc/recorder/recorder.lic', publicKey: '', required: false },
    archive: {
      segmentDurationMs: 300_000,
      maxBitrate: 100_000_000,
      syncIntervalMs: 5_000,
      disks: [],
      retention: { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined },
      protectForMs: 90 * 86_400_000,
      targets: [],
      copies: [],
    },
    console: { site: '', timeZone: undefined },
    ptz: { moveTimeoutMs: 10_000 },
    cluster: {
      mode: 'none',
      pool: 'default',
      renewIntervalMs: 2_000,
      dataDir: '/var/lib/recorder/data',
      advertise: '',
      peers: [],
      networks: [],
    },
    objectives: [],
    webhooks: [],
    webhooksFile: undefined,
    mail: undefined,
    cameras: [],
  });
});

const refused = (t: TestContext, text: string, message: RegExp): Promise<void> =>
  assert.rejects(load(t, { 'config.yaml': text }), message);

const PASSWORD = `scrypt$16384$8$5$${'a'.repeat(22)}$${'b'.repeat(43)}`;

test('the users of a pool are read from its file unless the configuration names another, and it may be missing', async (t) => {
  const file = await files(t, { 'config.yaml': '{}' });
  const usersFile = join(dirname(file), 'users.yaml');
  const load = async () => (await loadConfig(file, { usersFile })).auth;
  assert.deepEqual((await load()).users, []);
  await writeFile(usersFile, JSON.stringify([{ name: 'anna', role: 'viewer', password: PASSWORD }]));
  const auth = await load();
  assert.deepEqual([auth.usersFile, auth.users.map(({ name }) => name)], [usersFile, ['anna']]);
  await writeFile(file, JSON.stringify({ auth: { usersFile: join(dirname(file), 'others.yaml') } }));
  assert.deepEqual((await load()).users, []);
});

test('issuers are read from the file of the pool, and refused when they lack what they need', async (t) => {
  const file = await files(t, { 'config.yaml': '{}' });
  const issuersFile = join(dirname(file), 'issuers.yaml');
  const plant = {
    name: 'plant',
    issuer: 'https://sso.example/realms/plant',
    clientId: 'nvr',
    rules: [{ role: 'viewer' }],
  };
  const load = async () => (await loadConfig(file, { issuersFile })).auth.issuers;
  assert.deepEqual(await load(), []);
  await writeFile(issuersFile, JSON.stringify([plant]));
  const [{ label, sessionMs, scopes, nameClaim } = assert.fail('it is read')] = await load();
  assert.deepEqual(
    [label, sessionMs, scopes, nameClaim],
    ['plant', 12 * 3_600_000, ['openid', 'profile', 'email'], 'preferred_username'],
  );
  const refuse = (change: object, problem: RegExp) =>
    refused(t, JSON.stringify({ auth: { issuers: [{ ...plant, ...change }] } }), problem);
  await refuse({ issuer: 'http://sso.example' }, /auth\.issuers\[0\]\.issuer: expected an address such as https:/);
  await refuse({ rules: [] }, /auth\.issuers\[0\]\.rules: expected at least one rule/);
  await refuse({ rules: [{ claim: 'groups', role: 'viewer' }] }, /rules\[0\]\.value: claim and value belong together/);
  await refuse({ scopes: ['profile'] }, /auth\.issuers\[0\]\.scopes: openid is missing/);
  await refuse(
    { clientSecret: 'x', clientSecretFile: '/x' },
    /clientSecret: expected either clientSecret or clientSecretFile/,
  );
  await refuse({ clientsecret: 'x' }, /auth\.issuers\[0\]\.clientsecret: unknown key, did you mean clientSecret\?/);
  const open = {
    listen: '127.0.0.1:9997',
    playback: { listen: '127.0.0.1:9996' },
    auth: { mode: 'none', issuers: [plant] },
  };
  await refused(t, JSON.stringify(open), /auth\.issuers: nobody signs in with auth\.mode: none/);
});

test('users are refused whose name is taken or whose password is no hash, and zones that are unknown', async (t) => {
  const anna = `{ name: anna, role: viewer, password: ${PASSWORD} }`;
  await refused(t, `auth: { users: [${anna}, ${anna}] }`, /auth\.users: two users have the same name/);
  await refused(
    t,
    'auth: { users: [{ name: anna, role: viewer, password: secret }] }',
    /auth\.users\[0\]\.password: expected a hash that recorder --hash-password printed$/,
  );
  await refused(t, 'console: { timeZone: Europe/Bonn }', /console\.timeZone: expected a time zone such as/);
  await refused(t, 'console: { timeZone: "+01:00" }', /console\.timeZone: expected a time zone such as/);
});

test('every documented key is accepted and arrives in our units', async (t) => {
  const config = await load(t, {
    'config.yaml': `
nodeName: rack-1
listen: "[::]:8997"
record_path: /srv/recordings
workDir: /srv/work
playback: {listen: 127.0.0.1:8996}
metrics: {listen: ":8998", requireToken: true}
health: {listen: ':9994'}
database: {url: postgres://user:pw@db/recorder}
redis: {url: redis://cache}
ffmpeg: {path: /opt/ffmpeg}
log: {level: debug, directory: /var/log/recorder, maxFileSize: 1MiB, maxFiles: 3}
audit:
  directory: /srv/audit
  maxAge: 365d
  maxSize: 5GiB
  views: false
  syslog: {address: '[fd00::7]:6514', ca: /a/ca.pem, certificate: /a/own.pem, key: /a/own.key}
  otlp:
    url: https://otel.example:4318/v1/logs
    headersFile: /a/headers
    ca: /a/ca.pem
    certificate: /a/own.pem
    key: /a/own.key
auth:
  mode: token
  allowAnonymousNetwork: true
  audiences: [kube-nvr]
  allowPlaintext: true
  allowedHosts: [NVR.example]
  tokens:
    - {name: ops, role: admin, sha256: ${'AB'.repeat(32)}}
    - {name: dock, role: viewer, sha256: ${'cd'.repeat(32)}, cameras: [gate, dock-*]}
  users:
    - {name: anna, role: viewer, export: true, cameras: [gate], password: ${PASSWORD}}
console: {site: Plant 7, timeZone: Europe/Berlin}
cors: {origins: ["https://NVR.example:8443", "*"]}
trustedProxies: [10.0.0.1, "fd00::/8"]
cameraNetworks: [10.1.0.0/16, 10.2.0.7]
tls: {certificate: /etc/tls.crt, key: /etc/tls.key}
license: {file: /etc/l.lic, publicKey: ${PUBLIC_KEY}, required: true}
archive:
  segmentDuration: 1m30s
  maxBitrate: 50
  syncInterval: 500ms
  retention: {maxAge: 30d, maxSize: 500GiB, minFree: 5%}
  protectFor: 30d
ptz: {moveTimeout: 30s}
cluster: {mode: kubernetes, pool: shop, renewInterval: 3s, dataDir: /srv/data, advertise: host:9997, peers: ['[::1]:9997', 'https://nvr2:443'], networks: [10.96.0.0/12]}
objectives:
  - { name: insurance, cameras: [gate, dock-*], target: 99.95, window: 7d, excused: [stopped, process-down] }
  - { name: all, target: 99 }
webhooks:
  - { url: 'https://hooks.example/a', secret: whsec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, events: [gap.*, camera.silent], cameras: [gate, dock-*] }
  - { url: 'http://10.0.0.5:8080/b', secretFile: /etc/recorder/hook }
webhooksFile: /etc/recorder/no-such-hooks.yaml
mail:
  server: smtp://mail.example.com:25
  allowPlainText: true
  user: nvr
  passwordFile: /etc/recorder/mail.password
  from: nvr@example.com
  to: [guard@example.com]
  url: https://nvr.example.com/
  escalation:
    after: 30m
    to: [manager@example.com]
cameras:
  - id: gate
    name: Gate
    source: rtsp://user:secret@10.0.0.9/stream1
    transport: tcp
    maxBitrate: 25
    preview: {source: rtsp://10.0.0.9/stream2, recorded: true, retention: {maxAge: 90d}}
    edge: {replay: "rtsp://10.0.0.9/tracks/101?starttime={start}&endtime={end}", timeZone: Asia/Kolkata, maxBitrate: 8}
    snapshot: http://10.0.0.9/snap.jpg
    tls: {fingerprint: 'AB:${'cd'.repeat(31)}', verify: true}
    allowPlaintextLogin: true
    ptz: true
    onvif: http://10.0.0.9/onvif/device_service
    events: never
    activity: true
    enabled: false
    record: {format: mp4, segmentDuration: 10m, retention: {maxAge: 7d}}
  - id: door.2
    source: rtsps://[fe80::1%25eth0]:322/s?x=1
`,
  });
  assert.deepEqual(config, {
    nodeName: 'rack-1',
    listen: { host: '::', port: 8997 },
    recordPath: '/srv/recordings',
    workDir: '/srv/work',
    playback: { listen: { host: '127.0.0.1', port: 8996 }, advertise: '' },
    metrics: { listen: { host: '::', port: 8998 }, requireToken: true },
    health: { listen: { host: '::', port: 9994 } },
    database: { url: 'postgres://user:pw@db/recorder' },
    redis: { url: 'redis://cache' },
    ffmpeg: { path: '/opt/ffmpeg' },
    log: { level: 'debug', directory: '/var/log/recorder', maxFileBytes: 2 ** 20, maxFiles: 3 },
    audit: {
      directory: '/srv/audit',
      maxAgeMs: 365 * 86_400_000,
      maxBytes: 5 * 2 ** 30,
      views: false,
      syslog: {
        address: { host: 'fd00::7', port: 6514 },
        ca: '/a/ca.pem',
        certificate: '/a/own.pem',
        key: '/a/own.key',
      },
      otlp: {
        url: 'https://otel.example:4318/v1/logs',
        headersFile: '/a/headers',
        ca: '/a/ca.pem',
        certificate: '/a/own.pem',
        key: '/a/own.key',
      },
    },
    auth: {
      mode: 'token',
      tokens: [
        { name: 'ops', role: 'admin', sha256: 'ab'.repeat(32) },
        { name: 'dock', role: 'viewer', sha256: 'cd'.repeat(32), cameras: ['gate', 'dock-*'] },
      ],
      tokensFile: undefined,
      users: [{ name: 'anna', role: 'viewer', export: true, cameras: ['gate'], password: PASSWORD }],
      usersFile: undefined,
      issuers: [],
      issuersFile: undefined,
      sessionKeyFile: undefined,
      audiences: ['kube-nvr'],
      allowPlaintext: true,
      allowedHosts: ['nvr.example'],
      allowAnonymousNetwork: true,
    },
    cors: { origins: ['https://nvr.example:8443', '*'] },
    trustedProxies: ['10.0.0.1', 'fd00::/8'],
    cameraNetworks: ['10.1.0.0/16', '10.2.0.7'],
    tls: { certificate: '/etc/tls.crt', key: '/etc/tls.key' },
    license: { file: '/etc/l.lic', publicKey: PUBLIC_KEY, required: true },
    archive: {
      segmentDurationMs: 90_000,
      maxBitrate: 50_000_000,
      syncIntervalMs: 500,
      disks: [],
      retention: { maxAgeMs: 30 * 86_400_000, maxSizeBytes: 500 * 2 ** 30, minFree: { kind: 'percent', percent: 5 } },
      protectForMs: 30 * 86_400_000,
      targets: [],
      copies: [],
    },
    console: { site: 'Plant 7', timeZone: 'Europe/Berlin' },
    ptz: { moveTimeoutMs: 30_000 },
    cluster: {
      mode: 'kubernetes',
      pool: 'shop',
      renewIntervalMs: 3_000,
      dataDir: '/srv/data',
      advertise: 'host:9997',
      peers: ['[::1]:9997', 'https://nvr2:443'],
      networks: ['10.96.0.0/12'],
    },
    objectives: [
      {
        name: 'insurance',
        cameras: ['gate', 'dock-*'],
        target: 99.95,
        windowMs: 7 * 86_400_000,
        excused: ['stopped', 'process-down'],
      },
      { name: 'all', target: 99, windowMs: 30 * 86_400_000, excused: ['stopped', 'unlicensed'] },
    ],
    webhooks: [
      {
        url: 'https://hooks.example/a',
        secret: 'whsec_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
        events: ['gap.*', 'camera.silent'],
        cameras: ['gate', 'dock-*'],
      },
      { url: 'http://10.0.0.5:8080/b', secretFile: '/etc/recorder/hook', events: ['*'] },
    ],
    webhooksFile: '/etc/recorder/no-such-hooks.yaml',
    mail: {
      server: 'smtp://mail.example.com:25',
      allowPlainText: true,
      user: 'nvr',
      passwordFile: '/etc/recorder/mail.password',
      from: 'nvr@example.com',
      to: ['guard@example.com'],
      url: 'https://nvr.example.com',
      escalation: { after: 1_800_000, to: ['manager@example.com'] },
    },
    cameras: [
      {
        id: 'gate',
        name: 'Gate',
        source: 'rtsp://user:secret@10.0.0.9/stream1',
        transport: 'tcp',
        maxBitrate: 25_000_000,
        preview: {
          source: 'rtsp://10.0.0.9/stream2',
          recorded: true,
          retention: { maxAgeMs: 90 * 86_400_000, maxSizeBytes: undefined, minFree: undefined },
        },
        edge: {
          source: {
            kind: 'address',
            replay: 'rtsp://10.0.0.9/tracks/101?starttime={start}&endtime={end}',
            timeZone: 'Asia/Kolkata',
          },
          maxBitrate: 8_000_000,
        },
        snapshot: 'http://10.0.0.9/snap.jpg',
        tls: { verify: true, fingerprint: `ab${'cd'.repeat(31)}` },
        allowPlaintextLogin: true,
        ptz: true,
        onvif: 'http://10.0.0.9/onvif/device_service',
        events: 'never',
        activity: true,
        enabled: false,
        record: {
          format: 'mp4',
          segmentDurationMs: 600_000,
          retention: { maxAgeMs: 7 * 86_400_000, maxSizeBytes: undefined, minFree: undefined },
        },
      },
      {
        id: 'door.2',
        name: 'door.2',
        source: 'rtsps://[fe80::1%25eth0]:322/s?x=1',
        transport: 'auto',
        maxBitrate: 50_000_000,
        preview: undefined,
        edge: undefined,
        snapshot: undefined,
        tls: { verify: false },
        allowPlaintextLogin: false,
        ptz: false,
        onvif: undefined,
        events: 'auto',
        activity: false,
        enabled: true,
        record: {
          format: 'fmp4',
          segmentDurationMs: 90_000,
          retention: { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined },
        },
      },
    ],
  });
});

test('conf.d: cameras add up and settings override, in name order', async (t) => {
  const config = await load(t, {
    'config.yaml': `archive: {segmentDuration: 1m, syncInterval: 2s}\n${GATE}`,
    'conf.d/20-b.yaml': 'archive: {segmentDuration: 3m}\ncameras: [{id: b, source: "rtsp://b/"}]',
    'conf.d/10-a.yaml': 'archive: {segmentDuration: 2m}\ncameras: [{id: a, source: "rtsp://a/"}]',
    'conf.d/.hidden.yaml': 'nonsense: 1',
    'conf.d/notes.txt': 'nonsense: 1',
  });
  assert.deepEqual(
    config.cameras.map((c) => c.id),
    ['gate', 'a', 'b'],
  );
  assert.equal(config.archive.segmentDurationMs, 180_000);
  assert.equal(config.archive.syncIntervalMs, 2_000);
  assert.equal(config.cameras[0]?.record.segmentDurationMs, 180_000);
});

test('cameras may have names of any script, and one name twice', async (t) => {
  const names = ['前门', '后门', 'Вход', 'Gate 1', 'Gate_1', 'Gate 1'];
  const cameras = names.map((name, i) => ({ id: `cam${i}`, name, source: 'rtsp://a' }));
  const config = await load(t, { 'config.yaml': JSON.stringify({ cameras }) });
  assert.deepEqual(
    config.cameras.map(({ name }) => name),
    names,
  );
});

test('a key whose value is commented out counts as not written', async (t) => {
  const config = await load(t, { 'config.yaml': 'cameras:\n#  - id: gate\ndatabase:\nlog:\n  level:\n' });
  assert.deepEqual(config.cameras, []);
  assert.equal(config.database, undefined);
  assert.equal(config.log.level, 'info');
});

test('the audit lies beside the log where the log has files, else in the working directory', async (t) => {
  const directoryOf = async (yaml: string) => (await load(t, { 'config.yaml': yaml })).audit.directory;
  assert.equal(await directoryOf('workDir: /srv/work'), '/srv/work/audit');
  assert.equal(await directoryOf('workDir: /srv/work\nlog: {directory: /srv/log}'), '/srv/log');
  assert.equal(await directoryOf('log: {directory: /srv/log}\naudit: {directory: /srv/audit}'), '/srv/audit');
});

test('an existing etcd is reached with TLS, or on this machine; its certificate is for it alone', async (t) => {
  const tls = 'tls: {ca: ca.crt, certificate: a.crt, key: a.key}';
  await refused(t, 'cluster: {etcd: {endpoints: []}}', /cluster\.etcd\.endpoints: expected at least one address/);
  for (const url of ['http://192.0.2.7:2379', '192.0.2.7:2379', 'https://192.0.2.7:2379/v3', 'https://me@192.0.2.7']) {
    await refused(
      t,
      `cluster: {etcd: {endpoints: ["${url}"]}}`,
      /cluster\.etcd\.endpoints\[0\]: expected https:\/\/HOST:PORT, or http:\/\/ with an address of this machine/,
    );
  }
  await refused(t, `cluster: {${tls}}`, /cluster\.tls: is for cluster\.etcd\.endpoints, which is missing/);
});

test('an empty nodeName becomes the host name, and without one the start is refused', async (t) => {
  const file = await files(t, { 'config.yaml': 'nodeName: ""' });
  assert.equal((await loadConfig(file, { hostName: 'rack-2' })).nodeName, 'rack-2');
  await assert.rejects(loadConfig(file, { hostName: '' }), /config\.yaml:1:11: nodeName: is empty/);
});

const refusals: { name: string; yaml: string; message: string }[] = [
  {
    name: 'unknown setting that several places have',
    yaml: 'maxAge: 30d',
    message: 'config.yaml: maxAge: unknown key, did you mean audit.maxAge or archive.retention.maxAge?',
  },
  {
    name: 'unknown setting that a group within its own has',
    yaml: 'archive: {maxAge: 30d}',
    message: 'config.yaml: archive.maxAge: unknown key, did you mean archive.retention.maxAge?',
  },
  { name: 'unknown setting', yaml: 'lisen: 1', message: 'config.yaml: lisen: unknown key, did you mean listen?' },
  {
    name: 'licence key that is none',
    yaml: 'license: {publicKey: abc}',
    message: 'config.yaml: license.publicKey: expected an Ed25519 key in base64 or PEM',
  },
  {
    name: 'licence required without a key to check it with',
    yaml: 'license: {required: true}',
    message: 'config.yaml: license.publicKey: is missing, but license.required is true',
  },
  {
    name: 'log files too small for a line',
    yaml: 'log: {maxFileSize: 10}',
    message: 'config.yaml: log.maxFileSize: expected at least 4096 bytes',
  },
  {
    name: 'an audit too small for a file',
    yaml: 'audit: {maxSize: 1MiB}',
    message: 'config.yaml: audit.maxSize: expected at least 10MiB',
  },
  {
    name: 'a syslog server without a port',
    yaml: 'audit: {syslog: {address: logs.example}}',
    message: 'config.yaml: audit.syslog.address: expected host:port such as logs.example:6514',
  },
  {
    name: 'a collector without TLS on another machine',
    yaml: 'audit: {otlp: {url: "http://otel.example:4318/v1/logs"}}',
    message:
      'config.yaml: audit.otlp.url: expected an address such as https://otel.example:4318/v1/logs, or http:// with one of this machine',
  },
  {
    name: 'a certificate for a collector without its key',
    yaml: 'audit: {syslog: {address: "logs.example:6514", certificate: /a.pem}}',
    message: 'config.yaml: audit.syslog.key: expected both certificate and key, or neither',
  },
  {
    name: 'unknown key of a camera',
    yaml: 'cameras: [{id: a, source: "rtsp://a"}, {id: b, source: "rtsp://b", sorce: x}]',
    message: 'config.yaml: cameras[1].sorce: unknown key, did you mean source?',
  },
  { name: 'missing source', yaml: 'cameras: [{id: a}]', message: 'config.yaml: cameras[0].source: is missing' },
  {
    name: 'source that is no RTSP address',
    yaml: 'cameras: [{id: a, source: "http://u:secret@a/"}]',
    message:
      'config.yaml: cameras[0].source: expected an address that begins with rtsp://, rtsps://, rtsp+http://, rtsp+https://, rtsp+ws:// or rtsp+wss://',
  },
  {
    name: 'source without host',
    yaml: 'cameras: [{id: a, source: "rtsp://user:secret@/x"}]',
    message:
      'config.yaml: cameras[0].source: expected an address with a host, and a port from 1 to 65535 if it has one',
  },
  {
    name: 'source with an impossible port',
    yaml: 'cameras: [{id: a, source: "rtsp://a:70000/"}]',
    message:
      'config.yaml: cameras[0].source: expected an address with a host, and a port from 1 to 65535 if it has one',
  },
  {
    name: 'source with an IPv6 address without brackets',
    yaml: 'cameras: [{id: a, source: "rtsp://u:secret@fd00::5/stream"}]',
    message: 'config.yaml: cameras[0].source: expected brackets around the IPv6 address, as in rtsp://[fd00::5]/stream',
  },
  {
    name: 'a preview that is no stream',
    yaml: 'cameras: [{id: a, source: "rtsp://a", preview: {source: "http://a/x.jpg"}}]',
    message:
      'config.yaml: cameras[0].preview.source: expected an address that begins with rtsp://, rtsps://, rtsp+http://, rtsp+https://, rtsp+ws:// or rtsp+wss://',
  },
  {
    name: 'a memory of no kind',
    yaml: 'cameras: [{id: a, source: "rtsp://a", edge: {}}]',
    message: 'config.yaml: cameras[0].edge.onvif: expected either onvif: true or replay',
  },
  {
    name: 'a memory of two kinds',
    yaml: 'cameras: [{id: a, source: "rtsp://a", edge: {onvif: true, replay: "rtsp://a/{start}/{end}"}}]',
    message: 'config.yaml: cameras[0].edge.onvif: expected either onvif: true or replay',
  },
  {
    name: 'a replay without an end',
    yaml: 'cameras: [{id: a, source: "rtsp://a", edge: {replay: "rtsp://a/{start}"}}]',
    message: 'config.yaml: cameras[0].edge.replay: expected {end} in the address',
  },
  {
    name: 'a replay with an unknown zone',
    yaml: 'cameras: [{id: a, source: "rtsp://a", edge: {replay: "rtsp://a/{start}/{end}", timeZone: Mars}}]',
    message: 'config.yaml: cameras[0].edge.timeZone: expected a time zone, such as Europe/Berlin',
  },
  {
    name: 'a time zone for ONVIF',
    yaml: 'cameras: [{id: a, source: "rtsp://a", edge: {onvif: true, timeZone: Europe/Berlin}}]',
    message: 'config.yaml: cameras[0].edge.timeZone: is for replay',
  },
  {
    name: 'a preview without an address',
    yaml: 'cameras: [{id: a, source: "rtsp://a", preview: {}}]',
    message: 'config.yaml: cameras[0].preview.source: is missing',
  },
  {
    name: 'snapshot with an impossible port',
    yaml: 'cameras: [{id: a, source: "rtsp://a", snapshot: "http://a:99999/x.jpg"}]',
    message:
      'config.yaml: cameras[0].snapshot: expected an address with a host, and a port from 1 to 65535 if it has one',
  },
  {
    name: 'snapshot at port 0',
    yaml: 'cameras: [{id: a, source: "rtsp://a", snapshot: "http://a:0/x.jpg"}]',
    message:
      'config.yaml: cameras[0].snapshot: expected an address with a host, and a port from 1 to 65535 if it has one',
  },
  {
    name: 'snapshot with an IPv6 address without brackets',
    yaml: 'cameras: [{id: a, source: "rtsp://a", snapshot: "http://fd00::5/x.jpg"}]',
    message:
      'config.yaml: cameras[0].snapshot: expected brackets around the IPv6 address, as in rtsp://[fd00::5]/stream',
  },
  {
    name: 'snapshot that is no HTTP address',
    yaml: 'cameras: [{id: a, source: "rtsp://a", snapshot: "ftp://a/x.jpg"}]',
    message: 'config.yaml: cameras[0].snapshot: expected an address that begins with http:// or https://',
  },
  {
    name: 'onvif with an impossible port',
    yaml: 'cameras: [{id: a, source: "rtsp://a", onvif: "https://a:65536/"}]',
    message: 'config.yaml: cameras[0].onvif: expected an address with a host, and a port from 1 to 65535 if it has one',
  },
  {
    name: 'camera id outside the grammar',
    yaml: 'cameras: [{id: a_b, source: "rtsp://a"}]',
    message:
      'config.yaml: cameras[0].id: expected 1 to 63 letters, digits, "." and "-", of which the first is a letter or digit',
  },
  {
    name: 'camera id that YAML takes for a number',
    yaml: 'cameras: [{id: 12, source: "rtsp://a"}]',
    message: 'config.yaml: cameras[0].id: expected text (put numbers in quotes)',
  },
  {
    name: 'two cameras with one id',
    yaml: 'cameras: [{id: a, source: "rtsp://a"}, {id: a, name: other, source: "rtsp://b"}]',
    message: 'config.yaml: cameras[1].id: "a" is already the id of config.yaml cameras[0]',
  },
  {
    name: 'duration without unit',
    yaml: 'archive: {segmentDuration: "5"}',
    message: 'config.yaml: archive.segmentDuration: expected a duration such as 30s, 5m, 1h30m or 7d',
  },
  {
    name: 'duration out of range',
    yaml: 'archive: {segmentDuration: 2d}',
    message: 'config.yaml: archive.segmentDuration: expected a duration from 1s to 24h',
  },
  {
    name: 'size in unknown units',
    yaml: 'archive: {retention: {maxSize: 5 parsecs}}',
    message: 'config.yaml: archive.retention.maxSize: expected a size such as 500GiB',
  },
  {
    name: 'listen address that is only a port',
    yaml: 'listen: 9997',
    message: 'config.yaml: listen: expected host:port such as 0.0.0.0:9997, [::]:9997 or :9997',
  },
  {
    name: 'listen address with an impossible port',
    yaml: 'metrics: {listen: "0.0.0.0:99999"}',
    message: 'config.yaml: metrics.listen: expected host:port such as 0.0.0.0:9997, [::]:9997 or :9997',
  },
  {
    name: 'wrong choice',
    yaml: 'auth: {mode: magic}',
    message: 'config.yaml: auth.mode: expected one of token, kubernetes, none',
  },
  {
    name: 'a camera whose address is that of jobs',
    yaml: 'cameras: [{id: jobs, source: rtsp://10.0.0.9/}]',
    message: 'config.yaml: cameras[0].id: "jobs" is taken: /api/archive/jobs are exports',
  },
  {
    name: 'nobody is asked for a token, and every address is listened on',
    yaml: 'auth: {mode: none}',
    message:
      'config.yaml: auth.mode: with none, anyone may do everything, but listen is 0.0.0.0:9997: use a loopback address, or set auth.allowAnonymousNetwork: true',
  },
  {
    name: 'nobody is asked for a token, and the network reaches playback',
    yaml: 'auth: {mode: none}\nlisten: "[::1]:1"\nplayback: {listen: 10.0.0.1:9996}',
    message:
      'config.yaml: auth.mode: with none, anyone may do everything, but playback.listen is 10.0.0.1:9996: use a loopback address, or set auth.allowAnonymousNetwork: true',
  },
  {
    name: 'nobody is asked for a token, and every page may',
    yaml: 'auth: {mode: none, allowAnonymousNetwork: true}\ncors: {origins: ["*"]}',
    message: 'config.yaml: cors.origins: * would show every camera to every page',
  },
  {
    name: 'an origin with a path',
    yaml: 'cors: {origins: ["https://nvr.example/"]}',
    message: 'config.yaml: cors.origins[0]: expected an origin such as https://nvr.example:8443, without a path, or *',
  },
  {
    name: 'a proxy without address',
    yaml: 'trustedProxies: [10.0.0.0/33]',
    message: 'config.yaml: trustedProxies[0]: expected an address or a network such as 10.0.0.1 or 10.0.0.0/8',
  },
  {
    name: 'a token for no camera',
    yaml: `auth: {tokens: [{name: a, role: viewer, sha256: ${'ab'.repeat(32)}, cameras: []}]}`,
    message: 'config.yaml: auth.tokens[0].cameras: expected at least one camera; leave the key out for all of them',
  },
  {
    name: 'a token in plain text instead of its digest',
    yaml: 'auth: {tokens: [{name: a, role: admin, sha256: hunter2}]}',
    message: 'config.yaml: auth.tokens[0].sha256: expected the 64 hexadecimal digits of the SHA-256 of the token',
  },
  { name: 'certificate without key', yaml: 'tls: {certificate: a}', message: 'config.yaml: tls.key: is missing' },
  {
    name: 'list instead of mapping',
    yaml: '- a',
    message: 'config.yaml: expected keys and values, as in the configuration reference',
  },
  {
    name: 'a camera entry that is empty',
    yaml: 'cameras:\n  -\n',
    message: 'config.yaml: cameras[0].id: is missing\nconfig.yaml: cameras[0].source: is missing',
  },
];
for (const { name, yaml, message } of refusals) {
  test(`refused: ${name}`, async (t) => {
    assert.equal(withoutPlaces(await refusal(t, { 'config.yaml': yaml })), message);
  });
}

test('refused: a mistake in conf.d names its file and the index within it', async (t) => {
  assert.equal(
    await refusal(t, { 'config.yaml': GATE, 'conf.d/10.yaml': 'cameras: [{id: b, source: "ftp://x"}]' }),
    'conf.d/10.yaml:1:27: cameras[0].source: expected an address that begins with rtsp://, rtsps://, rtsp+http://, rtsp+https://, rtsp+ws:// or rtsp+wss://',
  );
  assert.equal(
    await refusal(t, { 'config.yaml': GATE, 'conf.d/10.yaml': GATE }),
    'conf.d/10.yaml:1:16: cameras[0].id: "gate" is already the id of config.yaml cameras[0]',
  );
});

test('refused: broken YAML is named by line, and the line itself, which may hold a password, is not shown', async (t) => {
  const message = await refusal(t, { 'config.yaml': 'nodeName: a\nsource: "rtsp://u:secret@x\n  - b: : c' });
  assert.match(message, /^config\.yaml:\d+:\d+: not valid YAML: /);
  assert.doesNotMatch(message, /secret/);
});

test('refused: a file that does not exist', async (t) => {
  const file = await files(t, {});
  await assert.rejects(loadConfig(file), { message: `${file}: no such file` });
});

test('accepted: passwords with the characters that addresses use themselves', async (t) => {
  for (const source of ['rtsp://admin:p@ss:/#%41@10.0.0.9/live', 'rtsp://u:p@host/a@b', 'rtsp://[::1]:8554/x']) {
    const config = await load(t, { 'config.yaml': `cameras: [{id: a, source: ${JSON.stringify(source)}}]` });
    assert.equal(config.cameras[0]?.source, source);
  }
});

const TOKENS = `
- {name: guard, role: viewer, sha256: ${'ab'.repeat(32)}, cameras: [gate]}
- {name: chief, role: admin, sha256: ${'cd'.repeat(32)}}
`;

test('tokens of a file of their own add to those of the configuration', async (t) => {
  const file = await files(t, { 'tokens.yaml': TOKENS });
  const tokensFile = join(dirname(file), 'tokens.yaml');
  const own = [{ name: 'ops', role: 'admin', sha256: 'ef'.repeat(32) }];
  await writeFile(file, JSON.stringify({ auth: { tokensFile, tokens: own } }));
  const { auth } = await loadConfig(file);
  assert.deepEqual(
    auth.tokens.map(({ name, cameras }) => [name, cameras]),
    [
      ['ops', undefined],
      ['guard', ['gate']],
      ['chief', undefined],
    ],
  );
  assert.equal(auth.tokensFile, tokensFile);
});

const WRONG_TOKENS: readonly (readonly [name: string, text: string | undefined, message: string])[] = [
  ['that is not there', undefined, 'tokens.yaml: auth.tokensFile: no such file'],
  ['that is empty', '', 'tokens.yaml: auth.tokensFile: expected at least one token'],
  ['that holds no list', 'tokens: []', 'tokens.yaml: auth.tokensFile: expected a list'],
  [
    'with a plain token',
    '- {name: a, role: admin, sha256: sesame}',
    'tokens.yaml: auth.tokensFile[0].sha256: expected the 64 hexadecimal digits of the SHA-256 of the token',
  ],
  [
    'with a role that there is not',
    `- {name: a, role: god, sha256: ${'ab'.repeat(32)}}`,
    'tokens.yaml: auth.tokensFile[0].role: expected one of viewer, operator, admin, reporter',
  ],
  ['that is no YAML', '- {name: "a', 'tokens.yaml: auth.tokensFile: not valid YAML: Missing closing'],
];

for (const [name, text, message] of WRONG_TOKENS) {
  test(`a file of tokens ${name} is refused, with its name and the key`, async (t) => {
    const file = await files(t, text === undefined ? { 'other.yaml': '' } : { 'tokens.yaml': text });
    await writeFile(file, JSON.stringify({ auth: { tokensFile: join(dirname(file), 'tokens.yaml') } }));
    await assert.rejects(loadConfig(file), (err: Error) => {
      assert.equal(withoutPlaces(err.message.replaceAll(`${dirname(file)}/`, '')), message);
      return true;
    });
  });
}

const SECRET = `whsec_${'a'.repeat(32)}`;

async function loadWithHooks(t: TestContext, text: string | undefined, webhooks: readonly object[] = []) {
  const file = await files(t, text === undefined ? { 'other.yaml': '' } : { 'hooks.yaml': text });
  const webhooksFile = join(dirname(file), 'hooks.yaml');
  await writeFile(file, JSON.stringify({ webhooksFile, webhooks }));
  return { directory: dirname(file), loading: loadConfig(file) };
}

test('webhooks of a file of their own add to those of the configuration', async (t) => {
  const own = { url: 'https://own.example/', secret: SECRET };
  const { loading } = await loadWithHooks(t, `- {url: 'https://more.example/', secret: ${SECRET}, events: [gap.*]}`, [
    own,
  ]);
  assert.deepEqual((await loading).webhooks, [
    { ...own, events: ['*'] },
    { url: 'https://more.example/', secret: SECRET, events: ['gap.*'] },
  ]);
});

for (const [name, text] of [
  ['is not there', undefined],
  ['is empty', ''],
] as const) {
  test(`a file of webhooks that ${name} adds none: it may come later`, async (t) => {
    const { loading, directory } = await loadWithHooks(t, text);
    const { webhooks, webhooksFile } = await loading;
    assert.deepEqual([webhooks, webhooksFile], [[], join(directory, 'hooks.yaml')]);
  });
}

test('the example of a Secret with webhooks in docs/events.md is one', async (t) => {
  const text = await readFile(join(import.meta.dirname, '../../docs/events.md'), 'utf8');
  const [, secret = ''] = /```yaml\n(apiVersion: v1\nkind: Secret\n.*?)```/s.exec(text) ?? [];
  const { stringData } = parse(secret) as { readonly stringData: Readonly<Record<string, string>> };
  const { loading } = await loadWithHooks(t, stringData['webhooks.yaml']);
  assert.deepEqual(
    (await loading).webhooks.map(({ url }) => url),
    ['https://hooks.example/nvr'],
  );
});

const WRONG_HOOKS: readonly (readonly [name: string, text: string, message: string])[] = [
  ['with the key of the configuration', 'webhooks: []', 'hooks.yaml:1:1: webhooks: expected a list'],
  [
    'with a secret of another form',
    "- {url: 'https://a.example/', secret: hunter2}",
    'hooks.yaml:1:39: webhooks[0].secret: expected whsec_ and 24 to 64 bytes in base64, as recorder webhook secret makes it',
  ],
  [
    'with a key that is misspelt',
    `- {url: 'https://a.example/', evnets: [gap.*], secret: ${SECRET}}`,
    'hooks.yaml:1:31: webhooks[0].evnets: unknown key, did you mean events?',
  ],
  [
    'with a url that the configuration has',
    `- {url: 'https://b.example/', secret: ${SECRET}}\n- {url: 'https://own.example/', secret: ${SECRET}}`,
    'hooks.yaml:2:9: webhooks[1].url: is already in webhooks of the configuration',
  ],
  [
    'with a url twice',
    `- {url: 'https://b.example/', secret: ${SECRET}}\n- {url: 'https://b.example/', secret: ${SECRET}}`,
    'hooks.yaml:1:1: webhooks: two webhooks have the same url',
  ],
  ['that is no YAML', '- {url: "a', 'hooks.yaml:1:11: webhooksFile: not valid YAML: Missing closing'],
];

for (const [name, text, message] of WRONG_HOOKS) {
  test(`a file of webhooks ${name} is refused, with its name and the key`, async (t) => {
    const { loading, directory } = await loadWithHooks(t, text, [{ url: 'https://own.example/', secret: SECRET }]);
    await assert.rejects(loading, (err: Error) => {
      assert.equal(err.message.replaceAll(`${directory}/`, ''), message);
      return true;
    });
  });
}

test('all mistakes of all files are told at once, each with its place, and what is misspelt with what was meant', async (t) => {
  const message = await refusal(t, {
    'config.yaml': `nodename: a
recordPath: /r
camera: []
listen: 9997
segmentDuration: 5m
archive:
  retention:
    maxAge: 30
  segmentDuration: 300
`,
    'conf.d/yard.yaml': `cameras:
  - id: a
    sorce: rtsp://h/
  - {id: b, source: ftp://user:hunter2@h/, record: {fromat: mp4, zzz: 1}}
`,
  });
  assert.deepEqual(message.split('\n'), [
    'config.yaml:1:1: nodename: unknown key, did you mean nodeName?',
    'config.yaml:2:1: recordPath: unknown key, did you mean record_path?',
    'config.yaml:3:1: camera: unknown key, did you mean cameras?',
    'config.yaml:4:9: listen: expected host:port such as 0.0.0.0:9997, [::]:9997 or :9997',
    'config.yaml:5:1: segmentDuration: unknown key, did you mean archive.segmentDuration?',
    'config.yaml:8:13: archive.retention.maxAge: expected a duration such as 30s, 5m, 1h30m or 7d',
    'config.yaml:9:20: archive.segmentDuration: expected a duration such as 30s, 5m, 1h30m or 7d',
    'conf.d/yard.yaml:3:5: cameras[0].sorce: unknown key, did you mean source?',
    'conf.d/yard.yaml:4:21: cameras[1].source: expected an address that begins with rtsp://, rtsps://, rtsp+http://, rtsp+https://, rtsp+ws:// or rtsp+wss://',
    'conf.d/yard.yaml:4:53: cameras[1].record.fromat: unknown key, did you mean format?',
    'conf.d/yard.yaml:4:66: cameras[1].record.zzz: unknown key',
  ]);
});

test('mistakes between files, and of several kinds, are told at once', async (t) => {
  const message = await refusal(t, {
    'config.yaml': 'auth: {mode: none}\ncors: {origins: ["*"]}\ncameras: [{id: a, source: "rtsp://h/"}]\n',
    'conf.d/b.yaml': 'license: {required: true}\ncameras:\n  - {id: a, source: "rtsp://h/"}\n',
  });
  assert.deepEqual(
    message.split('\n').map((line) => line.slice(0, line.indexOf(': ', line.indexOf(': ') + 2))),
    ['conf.d/b.yaml:3:10: cameras[0].id', 'config.yaml:2:17: cors.origins', 'config.yaml:1:14: auth.mode'].concat(
      'conf.d/b.yaml:1:21: license.publicKey',
    ),
  );
});

test('a second document in a file is refused, in words for people', async (t) => {
  assert.equal(
    await refusal(t, { 'config.yaml': 'nodeName: a\n---\nnodeName: b\n' }),
    'config.yaml:2:1: not valid YAML: Source contains multiple documents',
  );
});

test('an alias of a value that contains it is refused, with its position', async (t) => {
  assert.equal(
    await refusal(t, { 'config.yaml': 'archive: &a\n  retention: *a\n' }),
    'config.yaml:2:14: not valid YAML: an alias refers to a value that contains it',
  );
  const file = await files(t, { 'config.yaml': 'archive: {syncInterval: &d 3s}\nptz: {moveTimeout: *d}\n' });
  assert.equal((await loadConfig(file)).ptz.moveTimeoutMs, 3_000, 'others are fine');
});

test('further disks are directories of their own', async (t) => {
  const { archive } = await load(t, { 'config.yaml': 'archive: {disks: [{path: /mnt/b}, {path: /mnt/c, weight: 2}]}' });
  assert.deepEqual(archive.disks, [
    { path: '/mnt/b', weight: 1 },
    { path: '/mnt/c', weight: 2 },
  ]);
  const apart = /archive\.disks: \/mnt\/a(\/b)? is the directory of another disk, or lies in it: \/mnt\/a/;
  await refused(t, 'record_path: /mnt/a\narchive: {disks: [{path: /mnt/a/b}]}', apart);
  await refused(t, 'record_path: /mnt/a/\narchive: {disks: [{path: /mnt/a}]}', apart);
});
