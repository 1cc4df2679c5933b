// Players that read files as fast as they are served, in a separate process, without examining them. Prints the result as one
// JSON line.
//
//   node reader.ts ADDRESS COUNT SECONDS PATH...   COUNT connections, each reading one file after another

import { connect } from 'node:net';
import { sleep } from './processes.ts';
import { summarize, type Summary } from './report.ts';

export interface ReadResult {
  readonly megabytesPerSecond: number;
  /** Per client. */
  readonly shares: Summary;
  /** Connections that ended before their response was complete. */
  readonly broken: number;
}

const BUFFER_BYTES = 1024 * 1024;
/** Time until every client has its first bytes. */
const SETTLE_MS = 1_000;

async function read(address: string, count: number, seconds: number, paths: readonly string[]): Promise<ReadResult> {
  const [host = '', port = ''] = address.split(':');
  const buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  const received = new Float64Array(count);
  let stopped = false;
  let broken = 0;
  const client = (i: number, turn: number): void => {
    let length = NaN;
    let got = 0;
    const socket = connect({
      host,
      port: Number(port),
      onread: {
        buffer,
        callback(size) {
          // The head arrives with the first bytes.
          if (got === 0) length = wholeLength(buffer.toString('latin1', 0, Math.min(size, 4096)));
          got += size;
          received[i] = (received[i] as number) + size;
          return !stopped;
        },
      },
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (stopped) return;
      if (got !== length) broken++;
      client(i, turn + 1);
    });
    const path = paths[(i + turn) % paths.length] as string;
    socket.write(`GET /${path} HTTP/1.1\r\nHost: ${address}\r\nConnection: close\r\n\r\n`);
  };
  for (let i = 0; i < count; i++) client(i, 0);
  await sleep(SETTLE_MS);
  const start = Float64Array.from(received);
  const startMs = performance.now();
  await sleep(seconds * 1000);
  const elapsed = (performance.now() - startMs) / 1000;
  stopped = true;
  const rates = Array.from(received, (bytes, i) => (bytes - (start[i] as number)) / elapsed / 1e6);
  return { megabytesPerSecond: rates.reduce((sum, rate) => sum + rate, 0), shares: summarize(rates), broken };
}

/** Size of head and body; NaN for a response other than a file. */
function wholeLength(head: string): number {
  const end = head.indexOf('\r\n\r\n');
  const length = /^HTTP\/1\.1 200 [^]*\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1];
  return end < 0 || length === undefined ? NaN : end + 4 + Number(length);
}

const [address = '', count = '0', seconds = '0', ...paths] = process.argv.slice(2);
process.stdout.write(`${JSON.stringify(await read(address, Number(count), Number(seconds), paths))}\n`);
process.exit(0);
