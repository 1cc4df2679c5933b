import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { NO_CAMERA_THERE } from '../../base/networks.ts';
import { connectCamera } from './connect.ts';
import { AddressRefused, CameraNetworks } from './networks.ts';

const ours = new CameraNetworks({ refused: NO_CAMERA_THERE });

const ELSEWHERE = `
  127.0.0.1 127.8.9.10 ::1 0:0:0:0:0:0:0:1 0.0.0.0 ::
  ::ffff:127.0.0.1 ::FFFF:7f00:1 0:0:0:0:0:ffff:7f00:0001 ::127.0.0.1 64:ff9b::7f00:1
  169.254.169.254 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 fe80::1 FE80::1%eth0
  100.100.100.200 168.63.129.16 fd00:ec2::254 fd20:ce:0::254
  224.0.0.1 239.255.255.250 255.255.255.255 ff02::1`;

for (const address of ELSEWHERE.trim().split(/\s+/)) {
  test(`in a cluster no camera is at ${address}`, () => {
    assert.equal(ours.allows(address), false);
    assert.throws(() => ours.check(address), AddressRefused);
  });
}

test('in a cluster cameras are at every other address', () => {
  for (const address of [
    '10.0.0.1',
    '192.168.1.7',
    '203.0.113.9',
    '2001:db8::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
  ]) {
    assert.equal(ours.allows(address), true, address);
  }
});

test('without rules cameras are anywhere, on this machine too', () => {
  const anywhere = new CameraNetworks();
  for (const address of ['127.0.0.1', '::1', '169.254.7.7', '10.0.0.1']) assert.equal(anywhere.allows(address), true);
});

test('of two networks that hold an address the narrower one decides, of two equal ones the one that allows', () => {
  const networks = new CameraNetworks({
    only: ['10.0.0.0/8', '10.96.7.0/24', '127.0.0.0/8', '0.0.0.0/0', 'fd00::/8'],
    refused: [...NO_CAMERA_THERE, '10.96.0.0/12'],
  });
  const allowed = ['10.1.1.1', '10.96.7.9', '127.0.0.1', '203.0.113.9', 'fd00:1::1', '::ffff:10.96.7.9'];
  const refused = ['10.96.8.9', '::ffff:10.96.8.9', '169.254.169.254', '::1', '2001:db8::1', 'fd00:ec2::254'];
  for (const address of allowed) assert.equal(networks.allows(address), true, address);
  for (const address of refused) assert.equal(networks.allows(address), false, address);
});

test('networks of IPv4 may be written as those of IPv6', () => {
  const networks = new CameraNetworks({ only: ['::ffff:192.168.0.0/112'], refused: ['::ffff:192.168.7.7'] });
  assert.deepEqual(
    ['192.168.0.1', '::ffff:192.168.0.1', '192.168.7.7', '192.169.0.1'].map((address) => networks.allows(address)),
    [true, true, false, false],
  );
});

/** Connects to `host`; `answers` are the results of its successive DNS lookups. */
async function connectTo(t: TestContext, host: string, answers: readonly (readonly string[])[], only = ['127.0.0.1']) {
  const server = createServer((socket) => socket.on('error', () => {}).end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  let questions = 0;
  const networks = new CameraNetworks(
    { only },
    {
      lookup(_host, _options, callback) {
        const addresses = answers[questions++] ?? [];
        callback(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        );
      },
    },
  );
  const { port } = server.address() as AddressInfo;
  const socket = connectCamera({ host, port, secure: false, tls: { verify: false } }, networks);
  const outcome = await new Promise<unknown>((resolve) => {
    socket.once('connect', () => resolve(socket.remoteAddress)).once('error', resolve);
  });
  socket.destroy();
  return { outcome, questions };
}

test('a name is looked up once, and the address that was judged is the one that is connected to', async (t) => {
  const { outcome, questions } = await connectTo(t, 'camera.example', [['127.0.0.1'], ['169.254.169.254']]);
  assert.deepEqual([outcome, questions], ['127.0.0.1', 1]);
});

test('of the addresses of a name only those are connected to that are allowed', async (t) => {
  const { outcome } = await connectTo(t, 'camera.example', [['127.0.0.2', '::1', '127.0.0.1']]);
  assert.equal(outcome, '127.0.0.1');
});

test('a name without an allowed address, and a refused address, are not connected to and say why', async (t) => {
  const byName = await connectTo(t, 'evil.example', [['127.0.0.2', '::1']]);
  assert.ok(byName.outcome instanceof AddressRefused);
  assert.equal(byName.outcome.message, 'cameraNetworks does not allow 127.0.0.2, which evil.example stands for');
  const byAddress = await connectTo(t, '127.0.0.1', [], ['10.0.0.0/8']);
  assert.ok(byAddress.outcome instanceof AddressRefused);
  assert.equal(byAddress.outcome.message, 'cameraNetworks does not allow 127.0.0.1');
});

test('spellings of an address that only the system knows are judged by what it makes of them', async (t) => {
  const networks = new CameraNetworks({ refused: NO_CAMERA_THERE });
  for (const host of ['localhost', '127.1', '2130706433', '0x7f.1', '0177.0.0.1', '0']) {
    const socket = connectCamera({ host, port: 9, secure: false, tls: { verify: false } }, networks);
    const [error] = (await once(socket, 'error')) as [Error];
    assert.ok(error instanceof AddressRefused || /ENOTFOUND|EAI_/.test(String(error)), `${host}: ${error}`);
    t.diagnostic(`${host}: ${error.message}`);
  }
});
