// Requests to the recorder and to a bare server in turns. On a machine that others use, a p99 is mostly theirs: the bare
// server, which answers with as many bytes at the same time, shows how much of it.

import { Agent, get } from 'node:http';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { start } from './processes.ts';
import { summarize, type Figure, type Summary } from './report.ts';

/** Where the bare server needs more than an eighth of the bound, the recorder may take so many times its p99. */
const MAX_RATIO = 8;
const BARE_SERVER = join(import.meta.dirname, 'bare-server.ts');

export interface Answer {
  /** From the request to the last byte. */
  readonly ms: number;
  readonly status: number;
  readonly body: string;
}

export interface Pair {
  readonly own: Summary;
  readonly bare: Summary;
}

/** One request on a persistent connection, as browsers and proxies use. */
export function request(agent: Agent, url: string): Promise<Answer> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          ms: performance.now() - startMs,
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      );
    }).on('error', reject);
  });
}

/** Asks for each address once, and the bare server after each. `check` throws for an answer that must not count. */
export async function askInTurns(
  bench: Bench,
  urls: readonly string[],
  check: (answer: Answer) => void,
): Promise<Pair & { readonly first: Answer }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const bareAgent = new Agent({ keepAlive: true, maxSockets: 1 });
  const [firstUrl = '', ...others] = urls;
  const first = await request(agent, firstUrl);
  check(first);
  const args = [BARE_SERVER, String(Buffer.byteLength(first.body))];
  const server = start(process.execPath, args, join(bench.directory, 'bare.log'));
  try {
    const [, port = ''] = await server.line(/^listening (\d+)/);
    const bareUrl = `http://127.0.0.1:${port}/`;
    await request(bareAgent, bareUrl);
    const own: number[] = [];
    const bare: number[] = [];
    for (const url of others) {
      const answer = await request(agent, url);
      check(answer);
      own.push(answer.ms);
      bare.push((await request(bareAgent, bareUrl)).ms);
    }
    return { first, own: summarize(own), bare: summarize(bare) };
  } finally {
    agent.destroy();
    bareAgent.destroy();
    await server.stop();
  }
}

/** The p99 in relation to that of the bare server: a figure that other load on the machine leaves alone, as far as it slows down both. */
export const ratioFigure = (figure: string, { own, bare }: Pair, note: string): Figure => ({
  figure: `${figure} / a bare server's`,
  unit: 'ratio',
  measured: own.p99 / bare.p99,
  must: MAX_RATIO,
  note: `${own.p99.toFixed(1)} ms, p50 ${own.p50.toFixed(2)} ms of ${own.count}; the bare server in turns ${bare.p99.toFixed(2)} ms; ${note}`,
});

/** The p99 with its bound: `mustMs`, or MAX_RATIO times the p99 of the bare server where that is more. */
export const pairedFigure = (
  figure: string,
  { own, bare }: Pair,
  mustMs: number,
  more: Partial<Figure> = {},
): Figure => ({
  figure,
  unit: 'ms',
  measured: own.p99,
  must: Math.max(mustMs, MAX_RATIO * bare.p99),
  ...more,
  note:
    `p50 ${own.p50.toFixed(2)} ms, worst ${own.max.toFixed(1)} ms of ${own.count}; ${(own.p99 / bare.p99).toFixed(1)} ` +
    `times a bare server's p99 of ${bare.p99.toFixed(2)} ms in turns${more.note === undefined ? '' : `; ${more.note}`}`,
});
