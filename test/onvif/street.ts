// A network of its own for tests: a namespace for a recorder, with a cable to another one that is full of ONVIF devices.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Child } from '../support/child.ts';
import { until } from '../support/until.ts';

const DEVICES = join(import.meta.dirname, 'run-devices.ts');
const ADDRESSES = ['10.77.0.11', '10.77.0.12', '10.77.0.13', '10.77.0.14'];

const run = (...args: readonly string[]): void => void execFileSync('ip', args, { stdio: 'pipe' });

/** Why no namespaces can be made here. */
export function streetMissing(): string | false {
  const name = `kube-nvr-${randomBytes(3).toString('hex')}`;
  const made = spawnSync('ip', ['netns', 'add', name]);
  if (made.error) return 'ip (iproute2) is not installed';
  if (made.status !== 0) return 'network namespaces need root';
  spawnSync('ip', ['netns', 'delete', name]);
  return false;
}

/** The namespace of the recorder. `still`: the image of the first device, which then streams as well. */
export async function street(t: Pick<TestContext, 'after'>, still?: string): Promise<string> {
  const id = randomBytes(3).toString('hex');
  const [here, there] = [`nvr-${id}`, `cams-${id}`];
  for (const name of [here, there]) {
    run('netns', 'add', name);
    t.after(() => run('netns', 'delete', name));
    run('-n', name, 'link', 'set', 'lo', 'up');
  }
  run('-n', here, 'link', 'add', 'cam0', 'type', 'veth', 'peer', 'name', 'nvr0', 'netns', there);
  run('-n', here, 'address', 'add', '10.77.0.1/24', 'dev', 'cam0');
  run('-n', here, 'link', 'set', 'cam0', 'up');
  for (const address of ADDRESSES) run('-n', there, 'address', 'add', `${address}/24`, 'dev', 'nvr0');
  run('-n', there, 'link', 'set', 'nvr0', 'up');
  const devices = new Child('ip', [
    'netns',
    'exec',
    there,
    process.execPath,
    DEVICES,
    ...ADDRESSES,
    ...(still === undefined ? [] : [still]),
  ]);
  t.after(() => devices[Symbol.asyncDispose]());
  await until('the devices listen', () => devices.output.includes('ready') || devices.ended);
  assert.ok(!devices.ended, devices.output);
  return here;
}
