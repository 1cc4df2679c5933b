// `recorder discover` as users run it, in a network of its own: two namespaces and a cable, devices at the other end.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../recorder/config/load.ts';
import { Child } from '../support/child.ts';
import { streetMissing, street } from '../onvif/street.ts';
import { MAIN } from '../support/recorder-process.ts';
import { workspace } from '../support/workspace.ts';

const skip = streetMissing();

test('recorder discover finds the cameras of a network, and prints what can be used', { skip }, async (t) => {
  const namespace = await street(t);
  const directory = workspace(t);
  const passwordFile = join(directory, 'password');
  writeFileSync(passwordFile, 'the password\n');
  const discover = (...args: readonly string[]) => {
    const all = ['netns', 'exec', namespace, process.execPath, MAIN, 'discover', '--timeout', '5s', ...args];
    const { status, stdout, stderr } = spawnSync('ip', all, { encoding: 'utf8', input: 'the password\nnot this' });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const login = ['--user', 'admin', '--password-file'];

  const table = discover(...login, passwordFile).split('\n');
  assert.match(table[0]!, /^ADDRESS +MAKER +MODEL +FIRMWARE +PTZ +MEMORY +PROFILES$/);
  assert.match(table[1]!, /^10\.77\.0\.11 +Acme +Dome 1 +1\.10 +yes +yes +main: H264 1920x1080 25 fps$/);
  assert.match(table[2]!, /^10\.77\.0\.12 +- .*refuses the login: Sender not authorized/);
  assert.match(table[3]!, /^10\.77\.0\.13 +Acme +\[2J: "# .*the device reports another address/);
  assert.equal(table.length, 5);
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(table.join(''), /[\u0000-\u001f\u007f]/);

  const yaml = discover('--interface', 'cam0', '--output', 'yaml', ...login, '-');
  const file = join(directory, 'config.yaml');
  writeFileSync(file, yaml);
  const { cameras } = await loadConfig(file);
  assert.deepEqual(
    cameras.map(({ id, name, source, ptz }) => ({ id, name, source, ptz })),
    [
      {
        id: 'dome-1-10-77-0-11',
        name: 'Front gate',
        source: 'rtsp://admin:the%20password@10.77.0.11:554/main',
        ptz: true,
      },
      {
        id: '2j-10-77-0-13',
        name: '[31m- x: y',
        source: 'rtsp://admin:the%20password@10.77.0.13/main',
        ptz: true,
      },
    ],
  );

  const manifests = parseAllDocuments(discover('--output', 'kubernetes', ...login, passwordFile)).map(
    (document) => document.toJS() as { kind: string; metadata: { name: string } },
  );
  assert.deepEqual(
    manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    [
      'Secret dome-1-10-77-0-11-login',
      'Camera dome-1-10-77-0-11',
      'Secret 2j-10-77-0-13-login',
      'Camera 2j-10-77-0-13',
    ],
  );
});

test('a password as an argument is no option, and wrong arguments say how it is used', async () => {
  await using child = new Child(process.execPath, [MAIN, 'discover', '--password', 'hunter2']);
  const { code } = await child.exit();
  assert.equal(code, 2);
  assert.match(child.output, /--password/);
  assert.match(child.output, /Usage: recorder discover/);
  assert.ok(!child.output.includes('hunter2'));
});
