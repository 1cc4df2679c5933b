// Ways in which cameras send that are neither plain TCP nor UDP. The numbers are those of docs/cameras.md.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import type { Track } from '../camera/tracks.ts';
import { TunnelFront } from '../camera/tunnel.ts';
import type { TunnelOptions } from '../camera/tunnel.ts';
import { freePorts } from '../support/recorder-process.ts';
import { onlyFile, range, setStage, streamsOf } from './stage.ts';
import type { Stage, StageOptions } from './stage.ts';

type Test = Parameters<typeof setStage>[0];
type Scheme = 'rtsp+http' | 'rtsp+https' | 'rtsp+ws' | 'rtsp+wss';

async function tracks(): Promise<Track[]> {
  return [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))];
}

interface Tunnelled {
  readonly stage: Stage;
  readonly front: TunnelFront;
}

/** A camera that is reached through a front only, at the same path or at `path`. */
async function setTunnel(
  t: Test,
  scheme: Scheme,
  options: StageOptions & { refuse?: TunnelOptions['refuse']; path?: string } = {},
): Promise<Tunnelled> {
  const { refuse, path, ...rest } = options;
  const front = await TunnelFront.start({ tls: /(https|wss)$/.test(scheme), ...(refuse ? { refuse } : {}) });
  t.after(() => front.close());
  const stage = await setStage(t, {
    tracks: await tracks(),
    transport: 'auto',
    ...rest,
    source: ({ port, urlWithLogin }) => {
      front.behindPort = port;
      const address = urlWithLogin.replace('rtsp', scheme).replace(`:${port}/`, `:${front.port}/`);
      return path === undefined ? address : address.replace(/\/stream$/, path);
    },
  });
  return { stage, front };
}

test('92. RTSP inside of HTTP and of WebSockets, with TLS and without', async (t) => {
  for (const scheme of ['rtsp+http', 'rtsp+https', 'rtsp+ws', 'rtsp+wss'] as const) {
    const credentials = { username: 'admin', password: 'p@ss' };
    const { stage, front } = await setTunnel(t, scheme, { credentials });
    await stage.play(60);
    assert.equal(stage.status.transport, 'tcp');
    assert.deepEqual(await streamsOf(onlyFile(await stage.expectPictures(range(0, 60)))), ['video h264', 'audio aac']);
    assert.deepEqual(
      front.asked.map(({ method, path }) => `${method} ${path}`),
      scheme.startsWith('rtsp+http') ? ['GET /stream', 'POST /stream'] : ['GET /stream'],
    );
    assert.ok(!stage.log.text.includes('p@ss') && !stage.log.text.includes('p%40ss'));
  }
});

test('92. the WebSocket is at another path than the stream', async (t) => {
  const { stage, front } = await setTunnel(t, 'rtsp+ws', { path: '/rtsp-over-websocket?v=1#/stream' });
  await stage.play(30);
  await stage.expectPictures(range(0, 30));
  assert.deepEqual(front.asked, [{ method: 'GET', path: '/rtsp-over-websocket?v=1', authorization: undefined }]);
});

const md5 = (text: string): string => createHash('md5').update(text).digest('hex');

/** Demands a Digest login of `admin` and `secret`. */
function demandLogin(request: IncomingMessage, response: ServerResponse): boolean {
  const given = request.headers.authorization ?? '';
  const nonce = 'abc';
  const ha2 = md5(`${request.method}:${request.url}`);
  const [, cnonce = '', nc = ''] = /cnonce="(\w+)"/.exec(given) ?? [];
  const count = /nc=(\w+)/.exec(given)?.[1] ?? nc;
  const right = md5(`${md5('admin:camera:secret')}:${nonce}:${count}:${cnonce}:auth:${ha2}`);
  if (given.includes(`response="${right}"`)) return false;
  response.writeHead(401, { 'www-authenticate': `Digest realm="camera", nonce="${nonce}", qop="auth"` }).end();
  return true;
}

test('92. the tunnel wants a login of its own, and a wrong one is said', async (t) => {
  for (const scheme of ['rtsp+http', 'rtsp+ws'] as const) {
    const options = { refuse: demandLogin };
    const right = await setTunnel(t, scheme, { ...options, credentials: { username: 'admin', password: 'secret' } });
    await right.stage.play(30);
    await right.stage.expectPictures(range(0, 30));
    const wrong = await setTunnel(t, scheme, { ...options, credentials: { username: 'admin', password: 'guess' } });
    await wrong.stage.until((status) => status.reason?.code === 'refused-login');
  }
});

test('92. a tunnel that is refused, or breaks, has its reason', async (t) => {
  const answers: [number, string][] = [
    [404, 'not-found'],
    [405, 'transport-refused'],
    [302, 'transport-refused'],
  ];
  for (const scheme of ['rtsp+http', 'rtsp+ws'] as const) {
    for (const [status, code] of answers) {
      const refuse: TunnelOptions['refuse'] = (_request, response) => {
        response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end();
        return true;
      };
      const { stage } = await setTunnel(t, scheme, { refuse });
      await stage.until(({ reason }) => reason?.code === code);
    }
    const broken = await setTunnel(t, scheme);
    await broken.stage.play(30);
    broken.front.drop();
    await broken.stage.until(({ reason }) => reason?.code === 'closed-by-camera');
  }
});

test('92. a tunnel that never opens, and a message without bounds, do not hold the recorder up', async (t) => {
  for (const scheme of ['rtsp+http', 'rtsp+ws'] as const) {
    const { stage, front } = await setTunnel(t, scheme, { refuse: () => true });
    await stage.passUntil(() => front.asked.length > 0, 'a request');
    await stage.pass(10_000);
    await stage.until(({ reason }) => reason?.code === 'unreachable');
  }
  const { stage, front } = await setTunnel(t, 'rtsp+ws');
  await stage.play(30);
  front.flood(2 * 1024 * 1024);
  await stage.until(({ reason }) => reason?.code === 'closed-by-camera');
  await stage.expectPictures(range(0, 30));
});

/** Free for groups, with the three above it: kernels choose none of these. */
const groupPort = async (): Promise<number> => ((await freePorts(1))[0] ?? 0) & ~7;

test('93. media go to a multicast group: it is joined, and only the camera is heard', async (t) => {
  const multicast = { group: '239.255.77.1', port: await groupPort() };
  const stage = await setStage(t, {
    tracks: await tracks(),
    transports: ['multicast'],
    transport: 'multicast',
    multicast,
  });
  await stage.play(60);
  assert.equal(stage.status.transport, 'multicast');
  const before = stage.status.counters.bytesReceived;
  // Somebody else in the group.
  const stranger = createSocket('udp4').bind(0, '127.0.0.2');
  await once(stranger, 'listening');
  stranger.setMulticastInterface('127.0.0.2');
  stranger.setMulticastTTL(0);
  await new Promise((resolve) => stranger.send(Buffer.alloc(40, 0x80), multicast.port, multicast.group, resolve));
  stranger.close();
  await stage.pass(500);
  assert.equal(stage.status.counters.bytesReceived, before);
  assert.deepEqual(await streamsOf(onlyFile(await stage.expectPictures(range(0, 60)))), ['video h264', 'audio aac']);
});

test('93. a camera that names no group, or an address that is none, is not followed there', async (t) => {
  const port = await groupPort();
  for (const destination of ['', ';destination=127.0.0.1', ';destination=10.0.0.9', ';destination=camera']) {
    const stage = await setStage(t, {
      tracks: await tracks(),
      transports: ['multicast'],
      transport: 'multicast',
      multicast: { group: '239.255.77.2', port },
      onReply: (reply, request) =>
        request.method === 'SETUP'
          ? {
              ...reply,
              headers: [
                ['Transport', `RTP/AVP;multicast${destination};port=${port}-${port + 1}`],
                ['Session', '1'],
              ],
            }
          : reply,
    });
    await stage.until(({ reason }) => reason !== undefined);
    assert.match(stage.status.reason?.message ?? '', /names no group/, destination);
  }
});

test('93. asked for multicast, a camera that answers with unicast is refused', async (t) => {
  const stage = await setStage(t, { tracks: await tracks(), transports: ['tcp'], transport: 'multicast' });
  await stage.until(({ reason }) => reason?.code === 'transport-refused');
});
