import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { selfSignedCertificate } from '../../test/camera/certificate.ts';
import { CameraError, NoConnection, Unanswered } from './error.ts';
import type { CameraErrorCode } from './error.ts';
import { runSession } from './session.ts';
import { UdpStreams } from './udp-transport.ts';
import type { Playing, SessionHandler, SessionMemory, SessionOptions } from './session-options.ts';
import { anywhere } from '../reach/reach.ts';

const SDP =
  'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track1\r\n' +
  'm=audio 0 RTP/AVP 8\r\na=control:track2\r\n';

interface Request {
  readonly method: string;
  readonly text: string;
  /** Answers, adding the CSeq. */
  answer(status: number, lines?: readonly string[], body?: string): void;
  readonly socket: Socket;
}

const defaultAnswer = (request: Request): void => {
  const { method, text } = request;
  if (method === 'DESCRIBE') return request.answer(200, [`Content-Length: ${SDP.length}`], SDP);
  if (method !== 'SETUP') return request.answer(200, ['Public: OPTIONS, GET_PARAMETER', 'Session: s1']);
  const transport = /Transport: (.*)\r/.exec(text)?.[1] ?? '';
  return request.answer(200, ['Session: s1;timeout=60', `Transport: ${transport}`]);
};

/** A minimal camera: `respond` may answer a request itself (true), otherwise the usual answer is sent. */
class TinyCamera {
  readonly server: Server;
  readonly requests: string[] = [];
  readonly texts: string[] = [];
  /** Interleaved packets from the client: the channel, and the packet in hex. */
  readonly clientPackets: (readonly [channel: number, packet: string])[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  respond: (request: Request) => boolean | void = () => {};
  #waiters: (() => void)[] = [];

  constructor(t: TestContext, tls = false) {
    const onSocket = (socket: Socket): void => this.#serve(socket);
    this.server = tls ? createTlsServer(selfSignedCertificate('camera'), onSocket) : createServer(onSocket);
    t.after(() => {
      for (const socket of this.sockets) socket.destroy();
      this.server.close();
    });
  }

  async listen(): Promise<this> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return this;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `rtsp://127.0.0.1:${this.port}/live`;
  }

  get methods(): string {
    return this.requests.join(' ');
  }

  /** The socket of the last connection. */
  get socket(): Socket {
    const socket = [...this.sockets].at(-1);
    assert.ok(socket, 'nobody is connected');
    return socket;
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  notify(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }

  #serve(socket: Socket): void {
    this.connections++;
    this.sockets.add(socket);
    this.notify();
    socket.on('error', () => {});
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.notify();
    });
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (;;) {
        while (text.startsWith('$') && text.length >= 4 + text.charCodeAt(3)) {
          const end = 4 + text.charCodeAt(3);
          this.clientPackets.push([text.charCodeAt(1), Buffer.from(text.slice(4, end), 'latin1').toString('hex')]);
          text = text.slice(end);
          this.notify();
        }
        const end = text.startsWith('$') ? -1 : text.indexOf('\r\n\r\n');
        if (end < 0) break;
        this.#request(text.slice(0, end + 2), socket);
        text = text.slice(end + 4);
      }
    });
  }

  #request(text: string, socket: Socket): void {
    const method = text.split(' ', 1)[0] ?? '';
    const sequence = /CSeq: (\d+)/.exec(text)?.[1];
    const request: Request = {
      method,
      text,
      socket,
      answer: (status, lines = [], body = '') => {
        const head = [`RTSP/1.0 ${status} x`, `CSeq: ${sequence}`, ...lines].join('\r\n');
        socket.write(`${head}\r\n\r\n${body}`);
      },
    };
    this.requests.push(method);
    this.texts.push(text);
    if (this.respond(request) !== true) defaultAnswer(request);
    this.notify();
  }
}

function frame(channel: number, size = 20): Buffer {
  const bytes = Buffer.alloc(4 + size);
  bytes.set([0x24, channel, 0, size, 0x80, channel % 2 === 0 ? (channel === 0 ? 96 : 8) : 200]);
  return bytes;
}

/** One session with one camera, and what it delivered. */
class Run implements SessionHandler {
  readonly clock = new VirtualClock();
  readonly memory: SessionMemory = {};
  readonly delivered: string[] = [];
  readonly outcome: Promise<unknown>;
  readonly #stop = new AbortController();
  #camera: TinyCamera;
  readonly playings: Playing[] = [];
  onRtp: () => void = () => {};

  constructor(camera: TinyCamera, options: Partial<SessionOptions> = {}) {
    this.#camera = camera;
    this.outcome = runSession(
      {
        source: camera.url,
        transport: 'tcp',
        handler: this,
        deps: { reach: anywhere(), clock: this.clock, log: silentLog },
        memory: this.memory,
        ...options,
      },
      this.#stop.signal,
    ).then(
      () => 'stopped',
      (error: unknown) => error,
    );
  }

  select(): number[] {
    return [0, 1];
  }

  playing(playing: Playing): void {
    this.playings.push(playing);
    this.#camera.notify();
  }

  rtp(streamIndex: number, _buffer: Buffer, start: number, end: number): void {
    this.delivered.push(`rtp ${streamIndex} ${end - start}`);
    this.onRtp();
    this.#camera.notify();
  }

  rtcp(streamIndex: number, _buffer: Buffer, start: number, end: number): void {
    this.delivered.push(`rtcp ${streamIndex} ${end - start}`);
    this.#camera.notify();
  }

  untilPlaying(times = 1): Promise<void> {
    return this.#camera.until(() => this.playings.length === times);
  }

  /** Advances time in small steps and lets sockets work in between. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      this.clock.advance(250);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  stop(): Promise<unknown> {
    this.#stop.abort();
    return this.outcome;
  }

  async failsWith(code: CameraErrorCode): Promise<CameraError> {
    const outcome = await this.outcome;
    assert.ok(outcome instanceof CameraError, String(outcome));
    assert.equal(outcome.code, code);
    return outcome;
  }
}

test('TCP: packets are delivered by stream, also before the reply to PLAY, and TEARDOWN ends it', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = ({ method, socket }) => {
    if (method === 'PLAY') socket.write(Buffer.concat([frame(1, 28), frame(0)]));
  };
  const run = new Run(camera);
  await run.untilPlaying();
  camera.socket.write(Buffer.concat([frame(0), frame(2, 30), frame(9), frame(3, 28)]));
  await camera.until(() => run.delivered.length === 5);
  assert.deepEqual(run.delivered, ['rtcp 0 28', 'rtp 0 20', 'rtp 0 20', 'rtp 1 30', 'rtcp 1 28']);
  assert.deepEqual(
    run.playings[0]?.streams.map(({ streamIndex, media }) => [streamIndex, media.encodingName]),
    [
      [0, 'H264'],
      [1, 'PCMA'],
    ],
  );
  assert.equal(await run.stop(), 'stopped');
  assert.equal(camera.methods, 'OPTIONS DESCRIBE SETUP SETUP PLAY TEARDOWN');
  await camera.until(() => camera.sockets.size === 0);
});

test('stop waits half a second for the answer to TEARDOWN, not longer, and delivers nothing meanwhile', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = ({ method, socket }) => {
    if (method === 'TEARDOWN') socket.write(frame(0));
    return method === 'TEARDOWN';
  };
  const run = new Run(camera);
  await run.untilPlaying();
  const stopped = run.stop();
  await camera.until(() => camera.requests.at(-1) === 'TEARDOWN');
  await run.pass(500);
  assert.equal(await stopped, 'stopped');
  assert.deepEqual(run.delivered, []);
  await camera.until(() => camera.sockets.size === 0);
});

test('stop in the middle of the dialogue resolves at once', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = ({ method }) => method === 'DESCRIBE';
  const run = new Run(camera);
  await camera.until(() => camera.requests.at(-1) === 'DESCRIBE');
  assert.equal(await run.stop(), 'stopped');
  await camera.until(() => camera.sockets.size === 0);
});

test('stop before the start connects to nobody', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const handler: SessionHandler = { select: () => [0], playing: () => {}, rtp: () => {}, rtcp: () => {} };
  const deps = { reach: anywhere(), clock: new VirtualClock(), log: silentLog };
  await runSession({ source: camera.url, transport: 'auto', handler, deps }, AbortSignal.abort());
  assert.equal(camera.connections, 0);
});

test('audio without video is silence: after 10 s the session is torn down', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  camera.socket.write(frame(0));
  await camera.until(() => run.delivered.length === 1);
  for (let second = 0; second < 11; second++) {
    camera.socket.write(frame(2));
    await run.pass(1_000);
  }
  await run.failsWith('stream-silent');
  assert.equal(camera.requests.at(-1), 'TEARDOWN');
});

test('a process that stood still for longer than any limit keeps its connection, and says so at once', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  camera.socket.write(frame(0));
  await camera.until(() => run.delivered.length === 1);
  await run.pass(5_000);
  for (const seconds of [8, 12, 25, 600]) {
    run.clock.standStill(seconds * 1_000);
    // What the camera sent meanwhile is read after the timers that are due.
    const delivered = run.delivered.length;
    const keepalives = camera.requests.length;
    run.clock.advance(500);
    camera.socket.write(Buffer.concat([frame(0), frame(0)]));
    await camera.until(() => run.delivered.length === delivered + 2 && camera.requests.length === keepalives + 1);
    assert.equal(camera.requests.at(-1), 'GET_PARAMETER');
  }
  assert.equal(camera.connections, 1);
  assert.equal(await run.stop(), 'stopped');
});

test('a camera that ends the session while this process stands still teaches nothing about keepalives', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  camera.socket.write(frame(0));
  await camera.until(() => run.delivered.length === 1);
  run.clock.standStill(60_000);
  run.clock.advance(500);
  await camera.until(() => camera.requests.at(-1) === 'GET_PARAMETER');
  camera.socket.destroy();
  await run.failsWith('closed-by-camera');
  assert.deepEqual(run.memory.lessons?.keepalive, { failed: new Set() });
});

test('video that comes every nine seconds is no silence', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  for (let n = 1; n <= 4; n++) {
    camera.socket.write(frame(0));
    await camera.until(() => run.delivered.length === n);
    await run.pass(9_000);
  }
  assert.equal(await run.stop(), 'stopped');
});

test('a camera that does not answer is given up after 30 s, and has twice as long the next time', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = () => true;
  const memory: SessionMemory = {};
  for (const [connection, seconds] of [
    [1, 30],
    [2, 60],
  ] as const) {
    const run = new Run(camera, { memory });
    await camera.until(() => camera.requests.length === 2 * connection - 1);
    await run.pass(3_500);
    await camera.until(() => camera.requests.length === 2 * connection);
    await run.pass(seconds * 1000 + 500);
    assert.match((await run.failsWith('no-answer')).message, new RegExp(`DESCRIBE within ${seconds} s`));
  }
});

test('a camera that hangs when it is asked for its sound is asked for its video alone the next time', async (t) => {
  const camera = await new TinyCamera(t).listen();
  let hangs = false;
  camera.respond = ({ method, text }) => {
    if (method === 'SETUP' && text.includes('track2')) hangs = true;
    return hangs;
  };
  const memory: SessionMemory = {};
  const run = new Run(camera, { memory });
  await camera.until(() => camera.requests.at(-1) === 'SETUP' && camera.requests.length === 4);
  await run.pass(5_500);
  await camera.until(() => camera.requests.at(-1) === 'PLAY');
  await run.pass(30_500);
  await run.failsWith('no-answer');
  hangs = false;
  const clock = run.clock;
  const next = new Run(camera, { memory, deps: { reach: anywhere(), clock, log: silentLog } });
  await next.untilPlaying();
  assert.deepEqual(
    next.playings[0]?.streams.map(({ media }) => media.kind),
    ['video'],
  );
  assert.match(next.playings[0]?.soundRefused ?? '', /hung/);
  assert.equal(await next.stop(), 'stopped');
  assert.equal(camera.methods, 'OPTIONS DESCRIBE SETUP SETUP PLAY TEARDOWN OPTIONS DESCRIBE SETUP PLAY TEARDOWN');
});

test('a camera that fails without its sound as well has its sound asked for again', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = ({ method, socket }) => {
    if (method === 'PLAY') socket.destroy();
    return method === 'PLAY';
  };
  const memory: SessionMemory = {};
  for (const _ of [1, 2, 3]) await new Run(camera, { memory }).failsWith('closed-by-camera');
  const setups = camera.methods.split('OPTIONS').map((connection) => connection.split('SETUP').length - 1);
  assert.deepEqual(setups, [0, 2, 1, 2]);
});

test('a port that is open, and closes each connection before anything is said, is no camera that answers', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = ({ socket }) => {
    socket.destroy();
    return true;
  };
  assert.ok((await new Run(camera).failsWith('closed-by-camera')) instanceof Unanswered);
  camera.respond = ({ method, socket }) => {
    if (method === 'DESCRIBE') socket.destroy();
    return method === 'DESCRIBE';
  };
  assert.ok(!((await new Run(camera).failsWith('closed-by-camera')) instanceof Unanswered));
});

test('nobody listens: unreachable', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera, { source: 'rtsp://u:secret@127.0.0.1:1/x' });
  const error = await run.failsWith('unreachable');
  assert.equal(error.message, 'the camera cannot be reached at 127.0.0.1, port 1: ECONNREFUSED');
  assert.ok(error instanceof NoConnection);
});

test('an unknown name is reported, unless it may be a part of the password', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const named = await new Run(camera, { source: 'rtsp://u:secret@camera.invalid/x' }).failsWith('unreachable');
  assert.match(named.message, /camera\.invalid, port 554: E/);
  const split = await new Run(camera, { source: 'rtsp://u:p@ss.invalid/#word@10.0.0.9/x' }).failsWith('unreachable');
  assert.doesNotMatch(split.message, /ss\.invalid/);
});

test('a peer that never speaks TLS: unreachable after 10 s', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera, { source: camera.url.replace('rtsp', 'rtsps') });
  await camera.until(() => camera.connections === 1);
  await run.pass(10_000);
  await run.failsWith('unreachable');
});

test('RTSPS: a self-signed certificate is taken, unless it is to be verified', async (t) => {
  const camera = await new TinyCamera(t, true).listen();
  const source = camera.url.replace('rtsp', 'rtsps');
  const run = new Run(camera, { source });
  await run.untilPlaying();
  camera.socket.write(Buffer.concat([frame(0), frame(1, 28)]));
  await camera.until(() => run.delivered.length === 2);
  assert.equal(await run.stop(), 'stopped');
  const strict = new Run(camera, { source, tls: { verify: true } });
  assert.match((await strict.failsWith('unreachable')).message, /SELF_SIGNED/);
});

test('two cameras share one receive buffer', async (t) => {
  const receiveBuffer = Buffer.alloc(64 * 1024);
  const cameras = [await new TinyCamera(t).listen(), await new TinyCamera(t).listen()];
  const runs = cameras.map((camera) => {
    const run: Run = new Run(camera, {
      deps: { reach: anywhere(), clock: new VirtualClock(), log: silentLog, receiveBuffer },
    });
    return run;
  });
  await Promise.all(runs.map((run) => run.untilPlaying()));
  // Halves of packets, so that both sides carry a part over when the other's bytes overwrite the buffer.
  for (const part of [0, 1]) {
    for (const camera of cameras)
      camera.socket.write(frame(0, 200).subarray(part * 100, part * 100 + 104 - 4 * (1 - part)));
  }
  await Promise.all(cameras.map((camera, index) => camera.until(() => runs[index]?.delivered.length === 1)));
  for (const run of runs) assert.equal(await run.stop(), 'stopped');
});

test('the camera closes: closed-by-camera; right after GET_PARAMETER, the next session keeps alive by OPTIONS', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = ({ method, socket }) => {
    if (method === 'GET_PARAMETER') socket.destroy();
    return method === 'GET_PARAMETER';
  };
  const memory: SessionMemory = {};
  const run = new Run(camera, { memory });
  await run.untilPlaying();
  await feedUntil(camera, run, 30_000);
  await run.failsWith('closed-by-camera');
  assert.deepEqual(memory.lessons?.keepalive, { failed: new Set(['GET_PARAMETER']) });
  const next = new Run(camera, { memory });
  await next.untilPlaying();
  await feedUntil(camera, next, 31_000);
  assert.equal(camera.requests.at(-1), 'OPTIONS');
  assert.equal(await next.stop(), 'stopped');
});

/** Advances time while video arrives every second. */
async function feedUntil(camera: TinyCamera, run: Run, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    const count = run.delivered.length;
    camera.socket.write(frame(0));
    await camera.until(() => run.delivered.length > count);
    await run.pass(1_000);
  }
}

test('what the handler throws ends the session and comes out as it is', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  const error = new CameraError('no-key-frame', 'x');
  run.onRtp = () => {
    throw error;
  };
  camera.socket.write(Buffer.concat([frame(0), frame(0)]));
  assert.equal(await run.outcome, error);
  assert.deepEqual(run.delivered, ['rtp 0 20']);
  assert.equal(camera.requests.at(-1), 'TEARDOWN');
});

test('garbage without end is a protocol error, not a crash', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  camera.socket.write(Buffer.alloc(600_000, 0x55));
  await run.failsWith('protocol');
});

test('a camera that asks and never reads the answers is left', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  const { socket } = camera;
  socket.pause();
  const questions = Buffer.from('OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n'.repeat(2_000));
  const left = { now: false };
  void run.outcome.then(() => (left.now = true));
  while (!left.now && !socket.destroyed) {
    if (!socket.write(questions)) await Promise.race([once(socket, 'drain'), run.outcome]);
  }
  await run.failsWith('protocol');
});

for (const [status, code] of [
  [404, 'not-found'],
  [401, 'refused-login'],
  [453, 'too-many-streams'],
  [500, 'protocol'],
] as const) {
  test(`DESCRIBE answered with ${status} is ${code}`, async (t) => {
    const camera = await new TinyCamera(t).listen();
    camera.respond = (request) => {
      if (request.method !== 'DESCRIBE') return false;
      request.answer(status);
      return true;
    };
    await new Run(camera).failsWith(code);
    await camera.until(() => camera.sockets.size === 0);
  });
}

test('a redirect is followed on another connection', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = (request) => {
    if (request.method !== 'DESCRIBE' || request.text.includes('/moved')) return false;
    request.answer(302, [`Location: ${camera.url}/moved`]);
    return true;
  };
  const run = new Run(camera);
  await run.untilPlaying();
  assert.equal(camera.connections, 2);
  assert.equal(camera.methods, 'OPTIONS DESCRIBE OPTIONS DESCRIBE SETUP SETUP PLAY');
  await camera.until(() => camera.sockets.size === 1);
  assert.equal(await run.stop(), 'stopped');
});

/** The camera's side of UDP: two ports, and what arrived at them. */
async function udpPorts(
  t: TestContext,
  camera: TinyCamera,
  address = '127.0.0.1',
  numbers: readonly number[] = [0, 0],
) {
  const sockets: UdpSocket[] = [];
  const received: [string[], string[]] = [[], []];
  for (const index of [0, 1] as const) {
    const socket = createSocket('udp4');
    socket.bind(numbers[index], address);
    await once(socket, 'listening');
    socket.on('message', (packet) => {
      received[index].push(packet.toString('hex'));
      camera.notify();
    });
    t.after(() => socket.close());
    sockets.push(socket);
  }
  const [rtp, rtcp] = sockets as [UdpSocket, UdpSocket];
  const [one, two] = [rtp.address().port, rtcp.address().port];
  return { rtp, rtcp, received, numbers: [one, two], ports: `${one}-${two}` };
}

/** Makes the camera agree to UDP; returns the client's video ports once SETUP has come. */
function agreeToUdp(camera: TinyCamera, serverPorts: string, source = ''): { clientPort: number } {
  const agreed = { clientPort: 0 };
  camera.respond = (request) => {
    if (request.method !== 'SETUP') return false;
    const ports = /client_port=(\d+)-(\d+)/.exec(request.text);
    if (!ports) request.answer(461);
    else {
      if (request.text.includes('track1')) agreed.clientPort = Number(ports[1]);
      const server = serverPorts && `;server_port=${serverPorts}`;
      request.answer(200, ['Session: s1', `Transport: RTP/AVP;unicast;${ports[0]}${server}${source}`]);
    }
    return true;
  };
  return agreed;
}

const packet = (payloadType: number): Buffer => frame(payloadType === 96 ? 0 : 1).subarray(4);

test('auto: 461 to TCP means UDP; only the camera is listened to, and reports go out every 5 s', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const ports = await udpPorts(t, camera);
  const agreed = agreeToUdp(camera, ports.ports);
  const run = new Run(camera, { transport: 'auto' });
  await run.untilPlaying();
  assert.equal(run.playings[0]?.transport, 'udp');
  assert.equal(agreed.clientPort % 2, 0);
  // A first outgoing packet opens firewalls.
  await camera.until(() => ports.received[0].length > 0 && ports.received[1].length > 0);
  const stranger = await udpPorts(t, camera, '127.0.0.2');
  stranger.rtp.send(packet(96), agreed.clientPort, '127.0.0.1');
  ports.rtp.send(packet(96), agreed.clientPort, '127.0.0.1');
  ports.rtcp.send(packet(200), agreed.clientPort + 1, '127.0.0.1');
  await camera.until(() => run.delivered.length === 2);
  assert.deepEqual([...run.delivered].sort(), ['rtcp 0 20', 'rtp 0 20']);
  const before = ports.received[1].length;
  await run.pass(5_500);
  await camera.until(() => ports.received[1].length > before);
  assert.match(ports.received[1].at(-1) ?? '', /^80c90001.{8}81ca/);
  assert.equal(run.memory.transport, 'udp');
  assert.equal(await run.stop(), 'stopped');
  assert.equal(camera.requests.at(-1), 'TEARDOWN');
});

test('UDP: ports that were opened while the session ended are closed', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera, { transport: 'udp' });
  const open = UdpStreams.open.bind(UdpStreams);
  const opened = Promise.withResolvers<{ readonly closed: () => number }>();
  t.mock.method(UdpStreams, 'open', async (...args: Parameters<typeof open>) => {
    const streams = await open(...args);
    const close = t.mock.method(streams, 'close');
    await run.stop();
    opened.resolve({ closed: () => close.mock.callCount() });
    return streams;
  });
  const { closed } = await opened.promise;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([await run.outcome, closed()], ['stopped', 1]);
});

test('auto: nothing over UDP for 3 s means TCP', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera, { transport: 'auto', memory: { transport: 'udp' } });
  await run.untilPlaying();
  assert.equal(run.playings[0]?.transport, 'udp');
  await run.pass(3_500);
  await run.untilPlaying(2);
  assert.equal(run.playings[1]?.transport, 'tcp');
  assert.equal(await run.stop(), 'stopped');
  assert.equal(camera.methods, 'OPTIONS DESCRIBE SETUP SETUP PLAY TEARDOWN OPTIONS DESCRIBE SETUP SETUP PLAY TEARDOWN');
});

test('auto: refused both ways is said so; TCP alone is not replaced by UDP', async (t) => {
  const camera = await new TinyCamera(t).listen();
  camera.respond = (request) => {
    if (request.method === 'SETUP') request.answer(461);
    return request.method === 'SETUP';
  };
  await new Run(camera, { transport: 'auto' }).failsWith('transport-refused');
  assert.equal(camera.connections, 3);
  await new Run(camera, { transport: 'tcp' }).failsWith('transport-refused');
  assert.equal(camera.connections, 4);
});

test('TCP: receiver reports go out every 5 s on the channel of each stream', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const run = new Run(camera);
  await run.untilPlaying();
  await feedUntil(camera, run, 11_000);
  await camera.until(() => camera.clientPackets.length === 4);
  assert.deepEqual(
    camera.clientPackets.map(([channel]) => channel),
    [1, 3, 1, 3],
  );
  for (const [, packet] of camera.clientPackets) assert.match(packet, /^80c90001.{8}81ca/);
  assert.equal(await run.stop(), 'stopped');
});

test('UDP: media may come from the address that source= names, and nothing is ever sent there', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const named = await udpPorts(t, camera, '127.0.0.2');
  const own = await udpPorts(t, camera, '127.0.0.1', named.numbers);
  const agreed = agreeToUdp(camera, named.ports, ';source=127.0.0.2');
  const run = new Run(camera, { transport: 'udp' });
  await run.untilPlaying();
  await camera.until(() => own.received[0].length > 0 || named.received[0].length > 0);
  assert.deepEqual(named.received, [[], []]);
  named.rtp.send(packet(96), agreed.clientPort, '127.0.0.1');
  await camera.until(() => run.delivered.length === 1);
  const before = own.received[1].length;
  await run.pass(5_500);
  await camera.until(() => own.received[1].length > before);
  assert.deepEqual(named.received, [[], []]);
  assert.equal(await run.stop(), 'stopped');
});

test('UDP: a camera that names no server ports is played anyway (OpenIPC)', async (t) => {
  const camera = await new TinyCamera(t).listen();
  const ports = await udpPorts(t, camera);
  const agreed = agreeToUdp(camera, '');
  const run = new Run(camera, { transport: 'udp' });
  await run.untilPlaying();
  ports.rtp.send(packet(96), agreed.clientPort, '127.0.0.1');
  await camera.until(() => run.delivered.length === 1);
  await run.pass(6_000);
  assert.equal(await run.stop(), 'stopped');
});
