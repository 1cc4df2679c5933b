// A small program for the pods of tests, which tells what it sees of its container: node witness.ts PORT [DISK]
//   GET /          its hostname, process id, environment and the mark that it left on the disk
//   GET /file?path=  a file of its container
//   GET /reach?url=  whether it can reach an address: `answers`, or why not
//   GET /health    200, until /unwell
//   GET /stubborn  from now on it does not end on SIGTERM
//   GET /crash     ends with 7
// Every start and SIGTERM is a line in DISK/witness.log.

import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';

const REACH_TIMEOUT_MS = 1_500;
const [port = '8080', disk] = process.argv.slice(2);
let isWell = true;
let isStubborn = false;

function note(line: string): void {
  process.stdout.write(`${line}\n`);
  if (disk !== undefined) appendFileSync(join(disk, 'witness.log'), `${line}\n`);
}

/** By TCP: what is dropped is `silence`; a refusal is an answer, too. */
function reach(address: string): Promise<string> {
  const { hostname: host, port } = new URL(address);
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    const late = setTimeout(() => done('silence'), REACH_TIMEOUT_MS);
    const done = (what: string): void => {
      clearTimeout(late);
      socket.destroy();
      resolve(what);
    };
    socket.once('connect', () => done('answers'));
    socket.once('error', (error: NodeJS.ErrnoException) =>
      done(error.code === 'ECONNREFUSED' ? 'answers' : String(error)),
    );
  });
}

async function answer(url: URL): Promise<{ status?: number; body: string }> {
  switch (url.pathname) {
    case '/':
      return { body: JSON.stringify({ hostname: hostname(), pid: process.pid, env: process.env }) };
    case '/file':
      return { body: readFileSync(url.searchParams.get('path') ?? '', 'utf8') };
    case '/reach':
      return { body: await reach(url.searchParams.get('url') ?? '') };
    case '/health':
      return { status: isWell ? 200 : 500, body: '' };
    case '/unwell':
      isWell = false;
      return { body: '' };
    case '/stubborn':
      isStubborn = true;
      return { body: '' };
    case '/crash':
      process.exit(7);
    default:
      return { status: 404, body: '' };
  }
}

process.on('SIGTERM', () => {
  note('asked to end');
  if (!isStubborn) process.exit(0);
});
note('started');
createServer((request, response) => {
  answer(new URL(request.url ?? '/', 'http://witness')).then(
    ({ status = 200, body }) => response.writeHead(status).end(body),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
}).listen(Number(port));
