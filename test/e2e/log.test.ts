// The log of a recorder as a process: its level changed while it runs, its files, and the audit beside them.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const TOKEN = 'admin-token-secret';
const auth = {
  mode: 'token',
  tokens: [{ name: 'root', role: 'admin', sha256: createHash('sha256').update(TOKEN).digest('hex') }],
};
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

type Line = Record<string, unknown>;
const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);

test('with a directory: log files, an audit of every changing call, and a level that changes without a restart', async (t) => {
  const directory = workspace(t);
  const logs = join(directory, 'logs');
  const config = { auth, log: { level: 'warn', directory: logs, maxFileSize: 4096, maxFiles: 3 } };
  await using recorder = await RecorderProcess.start({ directory, config });
  const put = (level: string) =>
    fetch(`${recorder.url}/api/log`, { method: 'PUT', headers, body: JSON.stringify({ level }) });
  const isLogged = (): boolean => readFileSync(join(logs, 'recorder.log'), 'utf8').includes('a request was answered');
  await fetch(`${recorder.url}/api/cameras`, { headers });
  assert.ok(!isLogged());
  assert.ok(!recorder.child.output.includes('recorder started'), 'warn');

  assert.equal((await put('debug')).status, 200);
  await fetch(`${recorder.url}/api/cameras`, { headers });
  await until('the request is logged', isLogged);
  assert.equal((await put('error')).status, 200);

  const state = async (): Promise<unknown> => (await fetch(`${recorder.url}/api/log`, { headers })).json();
  recorder.child.signal('SIGUSR2');
  await until('debug', async () => ((await state()) as Line)['level'] === 'debug');
  recorder.child.signal('SIGUSR2');
  await until('as configured', async () => ((await state()) as Line)['level'] === 'warn');
  recorder.rewriteConfig({ log: { ...config.log, level: 'info' } });
  recorder.child.signal('SIGHUP');
  await until('as configured now', async () => ((await state()) as Line)['level'] === 'info');
  assert.deepEqual(await state(), { level: 'info', configured: 'info' });
  assert.ok(!recorder.child.output.includes('changed settings need a restart'));

  await fetch(`${recorder.url}/cameras/stop`, { method: 'POST', headers, body: '{"id":"nobody"}' });
  await fetch(`${recorder.url}/cameras/stop?access_token=${TOKEN}`, { method: 'POST', body: '{"id":"nobody"}' });
  const audit = (): Line[] => linesOf(readFileSync(join(logs, 'audit.log'), 'utf8'));
  await until('four lines of calls', () => audit().length === 4);
  const about = audit().map(({ caller, role, method, route, camera, status, address }) =>
    [caller, role, method, route, camera, status, address].join(' '),
  );
  assert.deepEqual(about, [
    'root admin PUT /api/log  200 127.0.0.1',
    'root admin PUT /api/log  200 127.0.0.1',
    'root admin POST /cameras/stop nobody 404 127.0.0.1',
    '  POST /cameras/stop  401 127.0.0.1',
  ]);
  assert.ok(audit().every(({ time, requestId }) => typeof time === 'string' && typeof requestId === 'string'));
  assert.ok(!recorder.child.output.includes('"audit"'), 'in its own file only');

  assert.equal((await put('debug')).status, 200);
  await until('files are put aside, and no more than three are kept', async () => {
    await fetch(`${recorder.url}/api/cameras`, { headers });
    const names = readdirSync(logs).filter((name) => name.startsWith('recorder.log'));
    assert.ok(names.length <= 3);
    return names.length === 3;
  });
  const page = await fetch(`${recorder.url}/api/audit?who=root&what=log-level`, { headers });
  const { lines } = (await page.json()) as { lines: Line[] };
  assert.deepEqual(
    lines.map(({ n, status }) => [n, status]),
    [
      [5, 200],
      [2, 200],
      [1, 200],
    ],
  );
  assert.equal((await recorder.stop()).code, 0);
  const verify = (): string => spawnSync(process.execPath, [MAIN, 'audit', logs], { encoding: 'utf8' }).stdout;
  assert.match(verify(), /^\d+ lines, 1 to \d+, the last with SHA-256 [0-9a-f]{64}: every line follows/);
  for (const name of readdirSync(logs)) {
    const text = readFileSync(join(logs, name), 'utf8');
    if (!name.startsWith('audit')) assert.ok(text.length <= 4096, name);
    assert.ok(!text.includes(TOKEN), name);
  }
  const file = join(logs, 'audit.log');
  writeFileSync(file, readFileSync(file, 'utf8').replace('"nobody"', '"gate"'));
  assert.match(verify(), /^audit\.log:\d+: line \d+ was changed after it was written$/m);
});

test('without a directory the audit is in the log, whatever its level, and in files below the working directory', async (t) => {
  const directory = workspace(t);
  await using recorder = await RecorderProcess.start({ directory, config: { auth, log: { level: 'error' } } });
  await fetch(`${recorder.url}/cameras/start`, { method: 'POST', headers, body: '{"id":"nobody"}' });
  await until('the line', () => linesOf(recorder.child.output).length === 1);
  const [line] = linesOf(recorder.child.output);
  assert.deepEqual(
    [line?.['audit'], line?.['caller'], line?.['camera'], line?.['status']],
    [true, 'root', 'nobody', 404],
  );
  assert.ok(!existsSync(join(directory, 'logs')));
  assert.equal((await recorder.stop()).code, 0);
});
