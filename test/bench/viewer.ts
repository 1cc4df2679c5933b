// Viewers of the recorder's live stream, in a separate process. Prints the result as one JSON line.
//
//   node viewer.ts latency ADDRESS SECONDS CAMERA...   one viewer per camera; age of each picture when it arrives
//   node viewer.ts first ADDRESS COUNT CAMERA...       COUNT connections in turn; time to the first complete picture
//   node viewer.ts events ADDRESS COUNT                COUNT clients follow all events until standard input says `stop`
//   node viewer.ts crowd ADDRESS COUNT CAMERA          COUNT viewers, spread over the cameras, until standard input says `stop`;
//                                                      ADDRESS may have a path, such as that of another node

import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';
import { sleep } from './processes.ts';
import { summarize } from './report.ts';
import { readMark } from './verify.ts';

const url = (address: string, camera: string): string => `ws://${address}/websocket/${camera}`;

function open(address: string, camera: string): WebSocket {
  const socket = new WebSocket(url(address, camera), { perMessageDeflate: false });
  socket.binaryType = 'nodebuffer';
  socket.on('error', (error) => {
    throw error;
  });
  return socket;
}

/** Latency counts from this long after connecting; before that, cached pictures arrive. */
const SETTLE_MS = 2_500;

async function latency(address: string, seconds: number, cameras: readonly string[]): Promise<unknown> {
  const agesMs: number[] = [];
  const startMs = performance.now();
  let messages = 0;
  let missing = 0;
  const sockets = cameras.map((camera) => {
    const socket = open(address, camera);
    let last = -1;
    socket.on('message', (message: Buffer) => {
      const nowNs = process.hrtime.bigint();
      const settled = performance.now() - startMs > SETTLE_MS;
      if (settled) messages++;
      for (let mark = readMark(message); mark; mark = readMark(message, mark.at + 16)) {
        if (settled) agesMs.push(Number(nowNs - mark.sentNs) / 1e6);
        if (last >= 0 && mark.frame !== last + 1) missing++;
        last = mark.frame;
      }
    });
    return socket;
  });
  await sleep(SETTLE_MS + seconds * 1000);
  for (const socket of sockets) socket.terminate();
  return { ages: summarize(agesMs), missing, messagesPerSecond: messages / seconds / cameras.length };
}

async function first(address: string, count: number, cameras: readonly string[]): Promise<unknown> {
  const timesMs: number[] = [];
  for (let i = 0; i < count; i++) {
    const startMs = performance.now();
    const socket = open(address, cameras[i % cameras.length] as string);
    await new Promise<void>((resolve) => {
      // A complete picture has arrived when a message has a mark: pictures have marks, initialization segments do not.
      socket.on('message', (message: Buffer) => {
        if (readMark(message)) resolve();
      });
    });
    timesMs.push(performance.now() - startMs);
    socket.terminate();
    // Not a multiple of the pictures' interval, so that connections start at every phase of it.
    await sleep(67);
  }
  return { times: summarize(timesMs) };
}

/** A crowd counts as connected when each has received something, or after this time. */
const FIRST_BYTES_MS = 120_000;
const AGAIN_MS = 1_000;

/**
 * Sockets that read into one buffer and ignore the data: two hundred of them must not use up the machine. Viewers that are refused
 * try again, as pages do.
 */
async function crowd(address: string, count: number, cameras: readonly string[]): Promise<unknown> {
  const { host, hostname, port, pathname } = new URL(`http://${address}`);
  const prefix = pathname.replace(/\/$/, '');
  const buffer = Buffer.allocUnsafeSlow(256 * 1024);
  const received = new Float64Array(count);
  let closed = 0;
  let refused = 0;
  const watch = (i: number): void => {
    const socket = connect({
      host: hostname,
      port: Number(port),
      onread: {
        buffer,
        callback(size) {
          if (received[i] === 0 && buffer.toString('latin1', 9, 12) !== '101') {
            refused++;
            socket.removeAllListeners('close').destroy();
            setTimeout(() => watch(i), AGAIN_MS);
            return false;
          }
          received[i] = (received[i] as number) + size;
          return true;
        },
      },
    });
    socket.on('close', () => closed++);
    socket.write(
      `GET ${prefix}/websocket/${cameras[i % cameras.length]} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    );
  };
  for (let i = 0; i < count; i++) {
    watch(i);
    await sleep(5);
  }
  const deadlineMs = performance.now() + FIRST_BYTES_MS;
  while (received.includes(0) && performance.now() < deadlineMs) await sleep(100);
  process.stdout.write('connected\n');
  const start = Float64Array.from(received);
  const startMs = performance.now();
  await untilStop();
  const seconds = (performance.now() - startMs) / 1000;
  const rates = Array.from(received, (bytes, i) => ((bytes - (start[i] as number)) * 8) / seconds / 1e6);
  return { closed, refused, megabitsPerSecond: summarize(rates) };
}

const untilStop = (): Promise<void> =>
  new Promise((resolve) => {
    createInterface({ input: process.stdin }).on('line', (line) => {
      if (line === 'stop') resolve();
    });
  });

async function follow(address: string, count: number): Promise<unknown> {
  const [host = '', port = ''] = address.split(':');
  const told: number[][] = [];
  let closed = 0;
  const begun = new Set<number>();
  for (let i = 0; i < count; i++) {
    const ids: number[] = [];
    told.push(ids);
    let rest = '';
    const socket = connect({ host, port: Number(port) });
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (rest === '' && ids.length === 0 && text.startsWith('HTTP/1.1 200')) begun.add(i);
      rest += text;
      const end = rest.lastIndexOf('\n\n');
      for (const [, id] of rest.slice(0, Math.max(0, end)).matchAll(/^id: (\d+)\nevent: /gm)) ids.push(Number(id));
      rest = rest.slice(end + 1);
    });
    socket.on('close', () => closed++).on('error', () => {});
    socket.write(`GET /api/events HTTP/1.1\r\nHost: ${address}\r\n\r\n`);
    await sleep(2);
  }
  while (begun.size < count) await sleep(50);
  for (const ids of told) ids.length = 0;
  process.stdout.write('connected\n');
  await untilStop();
  const all = new Set(told.flat());
  let lost = 0;
  let disordered = 0;
  for (const ids of told) {
    lost += all.size - new Set(ids).size;
    disordered += ids.filter((id, i) => i > 0 && id <= (ids[i - 1] as number)).length;
  }
  return { closed, events: all.size, lost, disordered };
}

const [mode, address = '', number = '0', ...cameras] = process.argv.slice(2);
const run = mode === 'latency' ? latency : mode === 'first' ? first : undefined;
const result = run
  ? await run(address, Number(number), cameras)
  : mode === 'events'
    ? await follow(address, Number(number))
    : await crowd(address, Number(number), cameras);
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
