// A recorder as its peers see it, with responses to jobs and downloads that a test chooses, including wrong ones.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export class PeerServer {
  readonly #server: Server;
  /** By path, such as `/api/archive/jobs/e1`. */
  readonly routes = new Map<string, Answer>();
  /** `METHOD path` of each request, with its range. */
  readonly asked: string[] = [];
  readonly credentials = new Set<string | undefined>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(t: TestContext): Promise<PeerServer> {
    const server = createServer((request, response) => {
      const { method, url = '', headers } = request;
      peer.asked.push([method, url, headers.range].filter(Boolean).join(' '));
      peer.credentials.add(headers.authorization);
      const answer = peer.routes.get(url);
      if (answer) answer(request, response);
      else response.writeHead(404).end();
    });
    const peer = new PeerServer(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => peer.stop());
    return peer;
  }

  /** `host:port`. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A job that is done, with its result. */
  serve(id: string, job: Readonly<Record<string, unknown>>, bytes: Buffer): void {
    this.routes.set(`/api/archive/jobs/${id}`, json({ ...job, job_id: id }));
    this.routes.set(`/api/archive/jobs/${id}/download`, file(bytes));
  }

  /** Answers with `first` once, and as before from then on. */
  once(path: string, first: Answer): void {
    const usual = this.routes.get(path);
    this.routes.set(path, (request, response) => {
      if (usual) this.routes.set(path, usual);
      first(request, response);
    });
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

export const json =
  (body: unknown, status = 200): Answer =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_request, response) =>
    void response.writeHead(code, headers).end();

/** A file with range support, as a recorder sends results. `cutAt`: the connection breaks at this offset. */
export const file =
  (bytes: Buffer, { etag = '"one"', cutAt = Infinity }: { etag?: string; cutAt?: number } = {}): Answer =>
  ({ headers }, response) => {
    const range = /^bytes=(\d+)-$/.exec(headers.range ?? '');
    const from = range && (headers['if-range'] ?? etag) === etag ? Number(range[1]) : 0;
    response.writeHead(from > 0 ? 206 : 200, {
      etag,
      'content-length': bytes.length - from,
      ...(from > 0 ? { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {}),
    });
    if (cutAt >= bytes.length) response.end(bytes.subarray(from));
    else response.write(bytes.subarray(from, cutAt), () => response.destroy());
  };
