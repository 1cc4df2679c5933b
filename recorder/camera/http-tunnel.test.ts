// RTSP over HTTP to cameras whose HTTP is right, and to one that ends its lines as it likes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { until } from '../../test/support/until.ts';
import { anywhere } from '../reach/reach.ts';
import { Login } from '../rtsp/login.ts';
import { openHttpTunnel } from './http-tunnel.ts';

/** A camera that answers each GET with this text. `asked` gets the first line of each request. */
async function cameraThatAnswers(t: TestContext, text: string) {
  const asked: string[] = [];
  const server = createServer((socket: Socket) => {
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    socket.once('data', (data: Buffer) => {
      const [line = ''] = data.toString('latin1').split('\r\n', 1);
      asked.push(line);
      if (line.startsWith('GET')) socket.write(text);
    });
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const target = {
    host: '127.0.0.1',
    port,
    secure: false,
    tls: { verify: true },
    shownHost: 'camera',
    authority: 'camera',
    path: '/stream',
  };
  const login = new Login({ credentials: undefined, secure: false });
  let got = '';
  const handler = { data: (buffer: Buffer, size: number) => (got += buffer.toString('latin1', 0, size)), closed() {} };
  const open = () =>
    openHttpTunnel(
      { ...target, login: () => login },
      handler,
      { clock: systemClock, reach: anywhere() },
      new AbortController().signal,
    );
  return { asked, open, got: () => got };
}

const GET = 'GET /stream HTTP/1.1';
const POST = 'POST /stream HTTP/1.1';

test('a camera whose HTTP is right is read by the strict rules, and asked once', async (t) => {
  const camera = await cameraThatAnswers(
    t,
    'HTTP/1.0 200 OK\r\nContent-Type: application/x-rtsp-tunnelled\r\n\r\nRTSP',
  );
  const tunnel = await camera.open();
  t.after(() => tunnel.destroy());
  await until('the body', () => camera.got() === 'RTSP');
  await until('both requests', () => camera.asked.length === 2);
  assert.deepEqual(camera.asked, [GET, POST]);
});

test('a camera that ends its lines without CR is asked again, and read by looser rules', async (t) => {
  const camera = await cameraThatAnswers(t, 'HTTP/1.0 200 OK\nContent-Type: application/x-rtsp-tunnelled\n\nRTSP');
  const tunnel = await camera.open();
  t.after(() => tunnel.destroy());
  await until('the body', () => camera.got() === 'RTSP');
  await until('all requests', () => camera.asked.length === 3);
  assert.deepEqual(camera.asked, [GET, GET, POST]);
});

test('an answer that is no HTTP by any rules is a refusal after two requests', async (t) => {
  const camera = await cameraThatAnswers(t, 'nonsense\r\n\r\n');
  await assert.rejects(camera.open(), /^CameraError: the camera cannot be reached at camera, port \d+: HPE_/);
  assert.deepEqual(camera.asked, [GET, GET]);
});
