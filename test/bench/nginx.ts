// nginx with the same files, to show how fast files can be served on this machine.

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sleep, start } from './processes.ts';
import { freePort } from './recorder.ts';

interface Nginx {
  readonly address: string;
  stop(): Promise<void>;
}

/** Debian installs it outside the PATH of ordinary users. */
const PLACES = ['nginx', '/usr/sbin/nginx'];

/** One worker with sendfile and without a log, comparable to one recorder; undefined if it is not installed. */
export async function startNginx(root: string, directory: string): Promise<Nginx | undefined> {
  const nginx = PLACES.find((place) => spawnSync(place, ['-v']).status === 0);
  if (nginx === undefined) return undefined;
  const home = join(directory, 'nginx');
  mkdirSync(home, { recursive: true });
  const address = `127.0.0.1:${await freePort()}`;
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${home}/${kind};`,
  );
  const config = [
    'daemon off; worker_processes 1; pid nginx.pid; error_log error.log;',
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'events { worker_connections 1024; }',
    `http { access_log off; sendfile on; tcp_nopush on; ${temporary.join(' ')}`,
    `server { listen ${address}; root ${root}; } }`,
  ];
  writeFileSync(join(home, 'nginx.conf'), config.join('\n'));
  const child = start(nginx, ['-p', home, '-c', 'nginx.conf'], join(home, 'nginx.log'));
  for (let tries = 0; ; tries++) {
    try {
      await (await fetch(`http://${address}/`)).body?.cancel();
      break;
    } catch (err) {
      if (tries === 100) throw new Error(`nginx does not answer; see ${home}`, { cause: err });
      await sleep(50);
    }
  }
  return {
    address,
    stop: async () => {
      await child.stop();
    },
  };
}
