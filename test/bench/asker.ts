// Clients that repeat the same request, in a separate process: each sends its next request when it has the complete response to
// the last one. Prints the result as one JSON line.
//
//   node asker.ts ADDRESS COUNT SECONDS PATH TOKEN

import { connect } from 'node:net';
import { sleep } from './processes.ts';
import { summarize, type Summary } from './report.ts';

export interface AskResult {
  readonly requestsPerSecond: number;
  /** All responses, including those before the measured window. */
  readonly all: number;
  /** Milliseconds from the first byte of a request to the last byte of its response. */
  readonly times: Summary;
  /** Responses other than 200, and connections that ended. */
  readonly failed: number;
  /** Size of the last response: head and body. */
  readonly answerBytes: number;
}

async function ask(address: string, count: number, seconds: number, requests: readonly string[]): Promise<AskResult> {
  const [host = '', port = ''] = address.split(':');
  let times: number[] = [];
  let failed = 0;
  let all = 0;
  let answerBytes = 0;
  let stopped = false;
  let waiting = count;
  const everyClientAnswered = Promise.withResolvers<void>();
  const client = (request: string): void => {
    let isFirst = true;
    let startMs = 0;
    let whole = NaN;
    let got = 0;
    const socket = connect({ host, port: Number(port), noDelay: true });
    const send = (): void => {
      startMs = performance.now();
      got = 0;
      socket.write(request);
    };
    socket.on('connect', send);
    socket.on('data', (bytes: Buffer) => {
      if (got === 0) whole = wholeLength(bytes);
      got += bytes.length;
      if (got < whole) return;
      times.push(performance.now() - startMs);
      all++;
      answerBytes = got;
      if (isFirst && --waiting === 0) everyClientAnswered.resolve();
      isFirst = false;
      if (!stopped) send();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (!stopped) failed++;
    });
  };
  /** The length of a response, from its first bytes. */
  function wholeLength(bytes: Buffer): number {
    const end = bytes.indexOf('\r\n\r\n');
    const head = bytes.toString('latin1', 0, end);
    const length = /^content-length: (\d+)/im.exec(head)?.[1];
    if (!head.startsWith('HTTP/1.1 200')) failed++;
    return end + 4 + Number(length);
  }
  for (let i = 0; i < count; i++) client(requests[i % requests.length] as string);
  await everyClientAnswered.promise;
  times = [];
  const startMs = performance.now();
  await sleep(seconds * 1000);
  const elapsed = (performance.now() - startMs) / 1000;
  stopped = true;
  return { requestsPerSecond: times.length / elapsed, all, times: summarize(times), failed, answerBytes };
}

const [address = '', count = '', seconds = '', path = '', ...tokens] = process.argv.slice(2);
const requests = tokens.map(
  (token) => `GET ${path} HTTP/1.1\r\nHost: ${address}\r\nAuthorization: Bearer ${token}\r\n\r\n`,
);
process.stdout.write(`${JSON.stringify(await ask(address, Number(count), Number(seconds), requests))}\n`);
process.exit();
