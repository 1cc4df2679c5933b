import assert from 'node:assert/strict';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { TestLog } from '../archive/test-support.ts';
import { Connection, locationOf } from './connection.ts';
import { databaseError, unlessLogged } from './driver-error.ts';

test('a database is named without user, password and options', () => {
  for (const [url, location] of [
    ['postgres://user:hidden@db.example:5433/recorder?sslmode=require', 'db.example:5433/recorder'],
    ['postgresql://user:hidden@db/recorder', 'db/recorder'],
    ['postgres:///recorder?host=/run/postgresql&password=hidden', '/run/postgresql/recorder'],
    ['postgres://[::1]', '[::1]'],
    ['not a url with a hidden word', 'unknown'],
  ] as const) {
    assert.equal(locationOf(url), location);
  }
});

test('only values are to blame for what the database rejects', () => {
  const failure = (code: string | undefined, message = 'failed') => Object.assign(new Error(message), { code });
  for (const [code, expected] of [
    ['22P02', 'REJECTED'],
    ['23505', 'REJECTED'],
    ['57P01', 'UNAVAILABLE'],
    ['53300', 'UNAVAILABLE'],
    ['42P01', 'REFUSED'],
    ['25006', 'REFUSED'],
    ['40001', 'UNAVAILABLE'],
    ['ECONNREFUSED', 'UNAVAILABLE'],
    [undefined, 'UNAVAILABLE'],
  ] as const) {
    assert.equal(databaseError(failure(code))?.code, expected, code);
  }
});

test('a fault of this program is not reported as one of the database', () => {
  const log = new TestLog();
  const fault = new TypeError("Cannot read properties of undefined (reading 'rows')");
  assert.equal(databaseError(fault), undefined);
  unlessLogged(log)(new Error('Connection terminated'));
  unlessLogged(log)(fault);
  assert.deepEqual(
    log.lines.map(({ level, fields }) => [level, fields['err']]),
    [['bug', fault]],
  );
});

test('an error of the driver leaves what it quotes behind', () => {
  const driver = Object.assign(new Error('duplicate key\nDETAIL: rtsp://user:hidden@cam'), {
    code: '23505',
    detail: 'Key (source)=(rtsp://user:hidden@cam) exists',
    query: 'hidden',
  });
  const error = databaseError(driver);
  assert.equal(error?.message, 'duplicate key (23505)');
  assert.equal(error?.cause, undefined);
  const several = new AggregateError([
    Object.assign(new Error('connect ECONNREFUSED ::1:5432'), { code: 'ECONNREFUSED' }),
  ]);
  assert.equal(databaseError(several)?.message, 'failed (ECONNREFUSED)');
});

test('a database that is not there is said once, however often it is asked', async () => {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const log = new TestLog();
  const url = `postgres://user:hidden@127.0.0.1:${port}/recorder`;
  const connection = new Connection({ url, nodeName: 'rack-1', log });
  for (let i = 0; i < 3; i++) assert.equal(await connection.probe(), false);
  await assert.rejects(
    connection.transaction((run) => run('SELECT 1')),
    { name: 'DatabaseError', code: 'UNAVAILABLE' },
  );
  assert.equal(connection.reachable, false);
  assert.deepEqual(
    log.lines.map(({ level, message }) => [level, message]),
    [['warn', 'the database cannot be used']],
  );
  assert.doesNotMatch(JSON.stringify(log.lines), /hidden/);
  await connection.close();
  await new Promise((resolve) => server.close(resolve));
});
