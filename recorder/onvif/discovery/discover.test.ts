// Discovery over the loopback interface, with real datagrams, real devices, and others that only pretend to be devices.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock, type Clock } from '../../../base/clock.ts';
import { Announcer, probeMatches, type Announced } from '../../../test/onvif/announcer.ts';
import { OnvifDevice, type DeviceOptions } from '../../../test/onvif/device.ts';
import { freePorts } from '../../../test/support/recorder-process.ts';
import { discover, type Discovery } from './discover.ts';
import { Answers, MAX_DATAGRAMS, MAX_DEVICES, MAX_DEVICES_AT_ADDRESS } from './answers.ts';
import { addressesOf } from './probe.ts';
import { anywhere } from '../../reach/reach.ts';

const CREDENTIALS = { username: 'admin', password: 'p@ss:word/1' };
const LOOPBACK = '127.0.0.1';

/** What came while this process had no processor is read before time goes on. */
const clock: Clock = {
  ...systemClock,
  async sleep(delayMs) {
    await systemClock.sleep(delayMs);
    for (let i = 0; i < 20; i++) await turn();
  },
};

class Network {
  readonly port: number;
  readonly #t: TestContext;

  private constructor(t: TestContext, port: number) {
    this.#t = t;
    this.port = port;
  }

  static async create(t: TestContext): Promise<Network> {
    const [port = 0] = await freePorts(1);
    return new Network(t, port);
  }

  async announce(address: string, answers: (probeId: string) => readonly (string | Uint8Array)[]): Promise<Announcer> {
    const announcer = await Announcer.start({ address, joinAt: LOOPBACK, port: this.port, answers });
    this.#t.after(() => announcer.close());
    return announcer;
  }

  /** A device and its announcement; its HTTP service is where it announces unless `announced` says otherwise. */
  async device(address: string, options: DeviceOptions = {}, announced: Partial<Announced> = {}): Promise<OnvifDevice> {
    const device = await OnvifDevice.start({ host: address, credentials: CREDENTIALS, ...options });
    this.#t.after(async () => {
      device.release();
      await device.close();
    });
    await this.announce(address, (id) => [probeMatches(id, { addresses: [device.url], ...announced })]);
    return device;
  }

  search(credentials: typeof CREDENTIALS | undefined = CREDENTIALS): Promise<Discovery> {
    return discover({ from: [LOOPBACK], timeoutMs: 500, port: this.port, credentials }, { reach: anywhere(), clock });
  }
}

test('devices are found, asked with the login, and listed by address', async (t) => {
  const network = await Network.create(t);
  const scopes = ['onvif://www.onvif.org/type/video_encoder', 'onvif://www.onvif.org/name/Front%20gate'];
  await network.device('127.0.0.12', { login: 'digest-md5', clockOffsetMs: -86_400_000, media: 'media2' });
  const profiles = [
    { token: 'sub', codec: 'H264', width: 640, height: 360, framesPerSecond: 10 },
    { token: 'main', codec: 'H265', width: 3840, height: 2160, framesPerSecond: 25, ptz: true },
    { token: 'jpeg', codec: 'JPEG', width: 8000, height: 6000 },
  ];
  await network.device('127.0.0.3', { profiles }, { scopes });
  const { reports, problems } = await network.search();
  assert.deepEqual(problems, []);
  assert.deepEqual(
    reports.map(({ device }) => device.address),
    ['127.0.0.3', '127.0.0.12'],
  );
  const [first, second] = reports;
  assert.deepEqual(first!.information, { manufacturer: 'Acme', model: 'Dome 1', firmware: '1.10', serial: '000123' });
  assert.equal(first!.device.name, 'Front gate');
  assert.equal(first!.movable, true);
  assert.deepEqual(
    first!.streams.map(({ source, preview, profile }) => [profile.token, source, preview]),
    [['main', 'rtsp://127.0.0.3:554/main', 'rtsp://127.0.0.3:554/sub']],
  );
  assert.deepEqual(second!.problems, []);
  assert.equal(second!.streams.length, 1);
});

test('every sensor or input is a stream of its own', async (t) => {
  const network = await Network.create(t);
  const profiles = [
    { token: 'a', source: 'input-1', width: 640, height: 480 },
    { token: 'b', source: 'input-1', width: 1920, height: 1080 },
    { token: 'c', source: 'input-2', width: 640, height: 480 },
  ];
  await network.device('127.0.0.3', { profiles });
  const { reports } = await network.search();
  assert.deepEqual(
    reports[0]!.streams.map(({ profile }) => profile.token),
    ['b', 'c'],
  );
});

test('the preview is the largest stream of the same input that is small, in H.264 where there is one', async (t) => {
  const network = await Network.create(t);
  const small = (token: string, height: number, codec = 'H264', source = 'input-1') => ({
    token,
    codec,
    source,
    width: (height * 16) / 9,
    height,
  });
  const previewOf = async (address: string, ...profiles: ReturnType<typeof small>[]) => {
    await network.device(address, { profiles: [small('main', 2160, 'H265'), ...profiles] });
    const { reports } = await network.search();
    return reports.find(({ device }) => device.address === address)?.streams[0]?.preview?.replace(/.*\//, '');
  };
  assert.equal(await previewOf('127.0.0.3', small('a', 180), small('b', 720), small('c', 1080)), 'b');
  assert.equal(await previewOf('127.0.0.4', small('a', 180), small('b', 720, 'H265')), 'a');
  assert.equal(await previewOf('127.0.0.5', small('a', 180, 'H265'), small('b', 360, 'JPEG')), 'a');
  assert.equal(await previewOf('127.0.0.6', small('a', 1440), small('b', 360, 'H264', 'input-2')), undefined);
});

test('a device that answers for both kinds, twice, is one device', async (t) => {
  const network = await Network.create(t);
  const announcer = await network.announce('127.0.0.3', (id) => {
    const answer = probeMatches(id, { addresses: ['http://127.0.0.3:9/'] });
    return [answer, answer];
  });
  const { reports } = await network.search();
  assert.equal(reports.length, 1);
  assert.deepEqual([...new Set(announcer.probes)].sort(), ['dp0:Device', 'dp0:NetworkVideoTransmitter']);
  assert.equal(announcer.probes.length, 4, 'each Probe is sent twice');
});

test('a device that refuses the login is listed with its refusal, and asked once', async (t) => {
  const network = await Network.create(t);
  const device = await network.device('127.0.0.3');
  const { reports } = await network.search({ username: 'admin', password: 'wrong' });
  assert.match(reports[0]!.problems.join(), /refuses the login/);
  assert.deepEqual(reports[0]!.streams, []);
  assert.equal(device.refusedLogins, 1);
});

test('an address of another host in the answer of a device is asked for at the device itself', async (t) => {
  const network = await Network.create(t);
  const elsewhere = await OnvifDevice.start({ host: '127.0.0.66' });
  t.after(() => elsewhere.close());
  const device = await OnvifDevice.start({
    host: '127.0.0.3',
    believes: 'http://127.0.0.66:80',
    port: elsewhere.port,
    streamUri: () => 'rtsp://user:pw@127.0.0.66:8554/stream?channel=1',
    snapshotUri: () => 'http://user:pw@127.0.0.66:8080/snap.jpg#x',
  });
  t.after(() => device.close());
  await network.announce('127.0.0.3', (id) => [probeMatches(id, { addresses: [elsewhere.url] })]);
  const { reports } = await network.search(undefined);
  assert.deepEqual(elsewhere.calls, []);
  assert.equal(reports[0]!.device.url, device.url);
  const [stream] = reports[0]!.streams;
  assert.equal(stream!.source, 'rtsp://127.0.0.3:8554/stream?channel=1');
  assert.equal(stream!.snapshot, 'http://127.0.0.3:8080/snap.jpg');
  assert.match(reports[0]!.problems.join(), /another address/);
});

for (const [name, options] of [
  ['no RTSP', { streamUri: () => 'http://127.0.0.3/video' }],
  ['a file', { streamUri: () => 'file:///etc/passwd' }],
  ['very long', { streamUri: () => `rtsp://127.0.0.3/${'a'.repeat(5000)}` }],
] as [string, DeviceOptions][]) {
  test(`a stream address that is not valid makes no stream: ${name}`, async (t) => {
    const network = await Network.create(t);
    await network.device('127.0.0.3', options);
    const { reports } = await network.search();
    assert.deepEqual(reports[0]!.streams, []);
    assert.match(reports[0]!.problems.join(), /a stream address that is not valid/);
  });
}

test('a snapshot address that is no address is left out', async (t) => {
  const network = await Network.create(t);
  await network.device('127.0.0.3', { snapshotUri: () => 'javascript:alert(1)' });
  const { reports } = await network.search();
  assert.equal(reports[0]!.streams[0]!.snapshot, undefined);
});

test('answers that are none are no devices, and do not hide the others', async (t) => {
  const network = await Network.create(t);
  await network.device('127.0.0.3');
  await network.announce('127.0.0.4', (id) => [
    'garbage',
    new Uint8Array(65_000),
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    `<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><a>&b;</a>`,
    '<a>'.repeat(20_000),
    probeMatches('urn:uuid:of-somebody-else', { addresses: ['http://127.0.0.4/'] }),
    probeMatches(id, { addresses: ['http://127.0.0.4:9/'] }).replace('ProbeMatches>', 'Hello>'),
  ]);
  const { reports } = await network.search();
  assert.deepEqual(
    reports.map(({ device }) => device.address),
    ['127.0.0.3'],
  );
});

for (const [name, announced, found] of [
  ['a camera', { types: 'tdn:NetworkVideoTransmitter' }, true],
  ['a camera of another type that says its scopes', { types: '', scopes: ['onvif://www.onvif.org/type/ptz'] }, true],
  ['a file server', { types: 'wsdiscovery:Device pub:Computer' }, false],
  ['a printer', { types: 'wsdp:Device wprt:PrintDeviceType', scopes: ['ldap:///ou=eng'] }, false],
] as const) {
  test(`${name} is ${found ? 'found' : 'none of ours'}`, () => {
    const answers = new Answers(['urn:uuid:1']);
    answers.take(
      Buffer.from(probeMatches('urn:uuid:1', { addresses: ['http://10.0.0.1/'], ...announced })),
      '10.0.0.1',
    );
    assert.equal(answers.devices().length, found ? 1 : 0);
  });
}

test('a flood of answers ends at a bound that is said', () => {
  const answers = new Answers(['urn:uuid:probe']);
  for (let i = 0; i < MAX_DEVICES + 5; i++) {
    const match = probeMatches('urn:uuid:probe', { addresses: [`http://10.0.0.1/${i}`] });
    answers.take(Buffer.from(match), `10.0.${i >> 8}.${i & 255}`);
  }
  assert.equal(answers.devices().length, MAX_DEVICES);
  assert.deepEqual(answers.problems, ['more than 1024 devices answered, the rest is left out']);
  for (let i = 0; i < MAX_DATAGRAMS; i++) answers.take(Buffer.from('x'), '10.0.0.1');
  assert.match(answers.problems.join(), /too many answers came/);
});

test('a device that pretends to be forty does not hide another', { timeout: 60_000 }, async (t) => {
  const network = await Network.create(t);
  await network.announce('127.0.0.4', (id) =>
    // Nothing listens there: each query fails at once.
    Array.from({ length: 40 }, (_, i) => probeMatches(id, { addresses: [`http://127.0.0.4:${1 + i}/`] })),
  );
  await network.device('127.0.0.3');
  const { reports, problems } = await network.search();
  const [first, ...others] = reports;
  assert.deepEqual([first!.device.address, first!.streams.length], ['127.0.0.3', 1]);
  assert.equal(others.length, MAX_DEVICES_AT_ADDRESS);
  assert.deepEqual(problems, ['127.0.0.4 answered as 16 devices, more of it are left out']);
  assert.ok(others.every(({ problems }) => /cannot be reached/.test(problems.join())));
});

test('names are fit for a terminal', async (t) => {
  const network = await Network.create(t);
  const information = { Manufacturer: 'A\u0085B\u200fC', Model: 'x'.repeat(5000), FirmwareVersion: 'a\nb\tc' };
  const scopes = ['onvif://www.onvif.org/name/%1b%5b2Jevil%0a%e2%80%ae', 'onvif://www.onvif.org/hardware/%ff'];
  await network.device('127.0.0.3', { information }, { scopes });
  const { reports } = await network.search();
  assert.equal(reports[0]!.device.name, '[2Jevil');
  assert.equal(reports[0]!.device.hardware, '%ff');
  assert.equal(reports[0]!.information!.manufacturer, 'A B C');
  assert.equal(reports[0]!.information!.firmware, 'a b c');
  assert.ok(reports[0]!.information!.model.length <= 64);
});

test('interfaces: all but the loopback one, or those that are named', () => {
  const info = (address: string, internal = false, family: 'IPv4' | 'IPv6' = 'IPv4') =>
    ({ address, internal, family, netmask: '', mac: '', cidr: null, scopeid: 0 }) as never;
  const interfaces = {
    lo: [info('127.0.0.1', true)],
    eth0: [info('10.0.0.1'), info('10.1.0.1'), info('fe80::1', false, 'IPv6')],
    eth1: [info('10.2.0.1')],
  };
  assert.deepEqual(addressesOf(interfaces, []).addresses, ['10.0.0.1', '10.1.0.1', '10.2.0.1']);
  assert.deepEqual(addressesOf(interfaces, ['eth0', 'lo']).addresses, ['127.0.0.1', '10.0.0.1', '10.1.0.1']);
  assert.deepEqual(addressesOf(interfaces, ['10.1.0.1', 'eth7']), { addresses: ['10.1.0.1'], unknown: ['eth7'] });
});

test('an address from which nothing can be sent is said', async () => {
  const { problems } = await discover(
    { from: ['192.0.2.1'], timeoutMs: 50, port: 9, credentials: undefined },
    { reach: anywhere(), clock: systemClock },
  );
  assert.match(problems.join(), /192\.0\.2\.1: .*EADDRNOTAVAIL/);
});
