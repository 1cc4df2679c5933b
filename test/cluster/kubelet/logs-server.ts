// What the API server asks a kubelet for: the output of a container, for `kubectl logs`.

import { createReadStream, existsSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ContainerSupervisor } from './container-supervisor.ts';

interface LogsServerOptions {
  readonly address: string;
  readonly port: number;
  /** PEM. Only who has a certificate of the authority is answered. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  readonly find: (namespace: string, pod: string, container: string) => ContainerSupervisor | undefined;
}

const FOLLOW_MS = 200;
const LINE_FEED = 10;

export async function startLogsServer(options: LogsServerOptions): Promise<Server> {
  const { ca, cert, key, address, port } = options;
  const server = createServer({ ca, cert, key, requestCert: true, rejectUnauthorized: true }, (request, response) => {
    answer(request, response, options).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500);
      response.end(String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, address, resolve);
  });
  return server;
}

/** `/containerLogs/NAMESPACE/POD/CONTAINER?follow=true&tailLines=N&previous=true`; nothing else is known here. */
async function answer(request: IncomingMessage, response: ServerResponse, options: LogsServerOptions): Promise<void> {
  const url = new URL(request.url ?? '/', 'https://kubelet');
  const [kind, namespace = '', pod = '', container = ''] = url.pathname.slice(1).split('/');
  const supervisor = kind === 'containerLogs' ? options.find(namespace, pod, container) : undefined;
  const previous = url.searchParams.get('previous') === 'true';
  const file = supervisor?.logFile(previous);
  if (!supervisor || file === undefined || !existsSync(file)) {
    response.writeHead(404).end(`no ${url.pathname} here\n`);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/plain' });
  const tail = url.searchParams.get('tailLines');
  let offset = tail === null ? 0 : await startOfTail(file, Number(tail));
  for (;;) {
    const { size } = statSync(file);
    for await (const part of size > offset ? createReadStream(file, { start: offset, end: size - 1 }) : []) {
      response.write(part);
    }
    offset = size;
    const over = previous || file !== supervisor.logFile() || supervisor.pid === undefined;
    if (url.searchParams.get('follow') !== 'true' || over || response.destroyed) break;
    await sleep(FOLLOW_MS);
  }
  response.end();
}

/** Where the last `lines` lines of a file begin. */
async function startOfTail(path: string, lines: number): Promise<number> {
  const file = await open(path);
  try {
    const content = await file.readFile();
    let found = 0;
    for (let at = content.length - 2; at >= 0; at--) {
      if (content[at] === LINE_FEED && ++found === lines) return at + 1;
    }
    return lines === 0 ? content.length : 0;
  } finally {
    await file.close();
  }
}
