// Serves files in memory over HTTP with ranges, for a browser in a test: a <video> can seek only if the server supports ranges.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export interface RangeServer {
  readonly url: string;
  /** The file at each path; changes affect the next request. */
  readonly files: Map<string, Buffer>;
}

/** Serves `files` as video/mp4 and every other path as an empty page; closed after the test. */
export async function serveRanges(t: Pick<TestContext, 'after'>): Promise<RangeServer> {
  const files = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    const bytes = files.get(request.url ?? '');
    if (!bytes) {
      response.setHeader('content-type', 'text/html');
      response.end('<!doctype html><title>files</title>');
      return;
    }
    const [, first = '0', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const start = Number(first);
    const end = last === '' ? bytes.length - 1 : Math.min(Number(last), bytes.length - 1);
    if (start > end) {
      response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end();
      return;
    }
    response.writeHead(request.headers.range === undefined ? 200 : 206, {
      'content-type': 'video/mp4',
      'accept-ranges': 'bytes',
      'cache-control': 'no-store',
      'content-length': end - start + 1,
      ...(request.headers.range !== undefined && { 'content-range': `bytes ${start}-${end}/${bytes.length}` }),
    });
    response.end(bytes.subarray(start, end + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, files };
}
