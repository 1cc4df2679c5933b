// What a purge removes, whatever the recorder's user has put into the directory of state: the script of the package, in a directory
// of its own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from '../support/workspace.ts';

const SCRIPT = join(import.meta.dirname, '../../build/package/files/postremove.sh');

test('a purge removes nothing outside the state, whatever the names there, and keeps an archive', (t) => {
  const root = workspace(t);
  const state = join(root, 'state');
  // dpkg and rpm run the script in /: what follows the line break would be /etc.
  for (const name of [
    'etc',
    'state/x\netc',
    'state/ blank ',
    'state/-rf',
    'state/node_rack-1',
    'state/old/.kube-nvr',
  ]) {
    mkdirSync(join(root, name), { recursive: true });
  }
  writeFileSync(join(state, 'old/.kube-nvr/archive.json'), '{}');
  const script = readFileSync(SCRIPT, 'utf8').replace('/var/lib/recorder', state);
  const own = script.replace(/^rm -rf \/etc.*$/m, ':').replace(/^if \[ -d \/run.*$/m, ':');
  assert.ok(!own.includes('/var/') && !own.includes(' /etc'), 'it touches only this directory');
  execFileSync('sh', ['-s', 'purge'], { cwd: root, input: own });
  assert.ok(existsSync(join(root, 'etc')));
  assert.ok(existsSync(join(state, 'old/.kube-nvr/archive.json')));
  for (const name of ['x\netc', ' blank ', '-rf', 'node_rack-1']) assert.ok(!existsSync(join(state, name)), name);
});
