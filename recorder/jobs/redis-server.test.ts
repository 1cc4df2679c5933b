// Jobs and the Redis under them: one with password and TLS, one that refuses, one that an earlier recorder left behind.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { pino } from 'pino';
import { LevelSwitch } from '../../base/log-level.ts';
import type { Log } from '../../base/log.ts';
import { selfSignedCertificate } from '../../test/camera/certificate.ts';
import { freePorts } from '../../test/support/recorder-process.ts';
import { startRedis } from '../../test/support/redis.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import type { Jobs } from './jobs.ts';
import { ended, request, stage } from '../../test/support/jobs-stage.ts';

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;
const PASSWORD = 'a-secret-of-redis';

interface Server {
  readonly port: number;
  /** What its certificate is trusted by. */
  readonly ca: string;
}

/** A Redis as an administrator runs it, with a password; listens on `localhost`. */
async function startGuarded(t: TestContext, { tls }: { tls: boolean }): Promise<Server> {
  const directory = workspace(t);
  const { key, cert } = selfSignedCertificate('localhost');
  const files = { key: join(directory, 'key.pem'), cert: join(directory, 'cert.pem') };
  writeFileSync(files.key, key);
  writeFileSync(files.cert, cert);
  const [port] = (await freePorts(1)) as [number];
  const encrypted = ['--tls-port', `${port}`, '--tls-cert-file', files.cert, '--tls-key-file', files.key];
  const settings = tls ? [...encrypted, '--tls-auth-clients', 'no'] : [];
  const server = startRedis(tls ? 0 : port, directory, ['--requirepass', PASSWORD, ...settings]);
  t.after(() => server[Symbol.asyncDispose]());
  await until('redis listens', () => {
    if (server.ended) throw new Error(`redis-server ended: ${server.output}`);
    return listens(port);
  });
  return { port, ca: cert };
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** A log, and all that was written to it. */
function writtenLog(): { readonly log: Log; readonly text: () => string } {
  let text = '';
  const log = new LevelSwitch('debug').apply(
    pino({ level: 'debug' }, { write: (line: string) => void (text += line) }),
  );
  return { log, text: () => text };
}

async function works(jobs: Jobs): Promise<void> {
  const done = await ended(jobs, (await jobs.submit(request(0, 1_000))).id);
  assert.equal(done.state, 'done', done.reason);
  assert.deepEqual(jobs.warnings(), []);
}

test('a Redis with a password is used, and one with TLS whose certificate is trusted', { skip }, async (t) => {
  const { open } = await stage(t);
  const plain = await startGuarded(t, { tls: false });
  await works(await open({}, { url: `redis://:${PASSWORD}@localhost:${plain.port}` }));
  const { port, ca } = await startGuarded(t, { tls: true });
  await works(await open({}, { url: `rediss://default:${PASSWORD}@localhost:${port}/1`, ca }));
});

for (const [name, tls, url, reason] of [
  [
    'a wrong password',
    false,
    'redis://:not-the-secret@localhost',
    'redis refuses the user or the password in redis.url',
  ],
  ['no password', false, 'redis://localhost', 'redis asks for a password: write it into redis.url'],
  [
    'a certificate of nobody',
    true,
    `rediss://:${PASSWORD}@localhost`,
    'the certificate of redis is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT): set redis.ca to the certificate of its CA',
  ],
] as const) {
  test(
    `${name}: a warning says so before anyone asks, jobs are refused with it, no line of the log has the secret`,
    { skip },
    async (t) => {
      const { open } = await stage(t);
      const { port } = await startGuarded(t, { tls });
      const { log, text } = writtenLog();
      const jobs = await open({ log }, { url: `${url}:${port}`, log });
      const [warning, ...others] = jobs.warnings();
      assert.deepEqual(others, []);
      assert.equal(warning?.code, 'jobs-unavailable');
      const said = warning?.message.replace('exports and time-lapses are refused: ', '') ?? '';
      assert.equal(said, reason);
      await assert.rejects(jobs.submit(request(0, 1_000)), { name: 'JobsUnavailable', message: said });
      const lines = text().split('\n');
      assert.equal(lines.filter((line) => line.includes('jobs are not available')).length, 1, 'it is said once');
      assert.doesNotMatch(text(), /secret/);
    },
  );
}

test('a Redis that is away when the recorder starts is used when it is there', { skip }, async (t) => {
  const { open, directory } = await stage(t);
  const [port] = (await freePorts(1)) as [number];
  const jobs = await open({}, { url: `redis://localhost:${port}` });
  assert.match(jobs.warnings()[0]?.message ?? '', /redis cannot be reached \(ECONNREFUSED\)/);
  const server = startRedis(port, directory);
  t.after(() => server[Symbol.asyncDispose]());
  await until('redis listens', () => listens(port));
  await works(jobs);
});

test(
  'names that no job can have are not asked of Redis, which keeps keys of its own under some',
  { skip },
  async (t) => {
    const { open } = await stage(t);
    const jobs = await open();
    const job = await jobs.submit(request(0, 2_000));
    for (const id of [
      'meta',
      'id',
      'completed',
      'events',
      'stalled-check',
      '',
      `${job.id}:logs`,
      `e${'0'.repeat(24)}`,
    ]) {
      assert.equal(await jobs.get(id), undefined, id);
      assert.equal(await jobs.remove(id), false, id);
    }
    assert.equal((await ended(jobs, job.id)).state, 'done');
  },
);

test('a directory whose path is too long for a socket is no hindrance', { skip }, async (t) => {
  const { open, directory } = await stage(t);
  const long = join(directory, 'a-directory-with-a-long-name'.repeat(4), 'another-one'.repeat(4));
  mkdirSync(long, { recursive: true });
  const before = await open({}, { directory: long });
  const done = await ended(before, (await before.submit(request(0, 1_000))).id);
  assert.equal(done.state, 'done', done.reason);
  await before.close();
  const after = await open({}, { directory: long });
  assert.deepEqual(await after.get(done.id), done);
});

test(
  'a redis-server that an earlier recorder left behind is ended, also one that does not listen yet',
  { skip },
  async (t) => {
    const { open, directory } = await stage(t);
    const before = await open();
    const done = await ended(before, (await before.submit(request(0, 1_000))).id);
    await before.close();
    const redis = join(directory, 'redis');
    // As after kill -9 of the recorder; and one whose socket was taken away.
    const left = ['left.sock', 'redis.sock'].map((socket) =>
      spawn(
        'redis-server',
        ['--port', '0', '--unixsocket', join(redis, socket), '--dir', redis, '--appendonly', 'yes'],
        {
          cwd: redis,
          stdio: 'ignore',
        },
      ),
    );
    const exits = left.map((server) => once(server, 'exit'));
    t.after(() => left.map((server) => server.kill('SIGKILL')));
    const after = await open();
    assert.deepEqual(await after.get(done.id), done);
    await Promise.all(exits);
  },
);

test(
  'a file of jobs that is damaged in its middle is repaired: the jobs before the damage stay',
  { skip },
  async (t) => {
    const { open, directory } = await stage(t);
    const before = await open();
    const first = await ended(before, (await before.submit(request(0, 1_000))).id);
    const files = join(directory, 'redis/appendonlydir');
    const [name = ''] = readdirSync(files).filter((file) => file.endsWith('.incr.aof'));
    const damagedAt = statSync(join(files, name)).size;
    const second = await ended(before, (await before.submit(request(0, 2_000))).id);
    await before.close();
    const bytes = readFileSync(join(files, name)).fill('x', damagedAt, damagedAt + 20);
    writeFileSync(join(files, name), bytes);
    const { log, text } = writtenLog();
    const after = await open({}, { log });
    assert.deepEqual(await after.get(first.id), first);
    assert.equal(await after.get(second.id), undefined);
    await works(after);
    assert.match(text(), /Bad file format reading the append only file/, 'its own words are logged');
    assert.match(text(), /the file of jobs was damaged: jobs before the damage stay/);
    assert.deepEqual(readFileSync(join(directory, 'redis/appendonlydir.damaged', name)), bytes, 'a copy is kept');
  },
);

test('a file of jobs that cannot be repaired is moved aside, and jobs go on', { skip }, async (t) => {
  const { open, directory } = await stage(t);
  const before = await open();
  const { id } = await ended(before, (await before.submit(request(0, 1_000))).id);
  await before.close();
  const files = join(directory, 'redis/appendonlydir');
  for (const file of readdirSync(files)) writeFileSync(join(files, file), 'not a file of Redis');
  const after = await open();
  assert.equal(await after.get(id), undefined);
  await works(after);
});

test(
  'a job that was interrupted continues at the next start, without waiting for its lock to expire',
  { skip },
  async (t) => {
    const { open } = await stage(t);
    let release = (): void => {};
    const released = new Promise<number>((resolve) => (release = () => resolve(Infinity)));
    const before = await open({ spareBytes: () => released });
    const { id } = await before.submit(request(0, 1_000));
    await until('it runs', async () => (await before.get(id))?.state === 'running');
    const closed = before.close();
    release();
    await closed;
    const after = await open();
    // Locks last fifteen seconds.
    await until('it is done', async () => (await after.get(id))?.state === 'done');
  },
);
