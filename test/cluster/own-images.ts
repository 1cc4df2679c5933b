// The images of this repository as its checkout: what a cluster's nodes run under their names, whatever the tag.

import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { OPERATOR_NODE_FLAG } from '../../hack/image/layout.ts';
import type { Images } from './kubelet/images.ts';

const ROOT = join(import.meta.dirname, '../..');
const OPERATOR = join(ROOT, 'operator/main.ts');
const RECORDER = join(ROOT, 'recorder/main.ts');

const program = (main: string, { before = [], flags = [] }: { before?: string[]; flags?: string[] } = {}) => ({
  entrypoint: [...before, process.execPath, ...flags, main],
  workingDir: ROOT,
  paths: [ROOT, dirname(process.execPath)],
});

export const OWN_IMAGES: Images = {
  'kube-nvr-operator': program(OPERATOR, { flags: [OPERATOR_NODE_FLAG] }),
  'kube-nvr-recorder': program(RECORDER),
};

/**
 * The same, compiled beforehand: they are there as quickly as from the one file of their image, not a second later
 * because they read hundreds of files of TypeScript.
 */
export function compiledImages(): Images {
  const compiled = join(ROOT, 'node_modules/.cache/kube-nvr/compiled');
  const before = ['/usr/bin/env', `NODE_COMPILE_CACHE=${compiled}`];
  const flags = [OPERATOR_NODE_FLAG];
  const load = (...args: readonly string[]): void => {
    execFileSync(process.execPath, args, { env: { ...process.env, NODE_COMPILE_CACHE: compiled } });
  };
  load(...flags, OPERATOR, '--help');
  load(RECORDER, '--version');
  // What a member of a cluster loads besides.
  const member = JSON.stringify(join(ROOT, 'recorder/cluster-member.ts'));
  load('--input-type=module', '--eval', `await import(${member})`);
  return {
    ...OWN_IMAGES,
    'kube-nvr-operator': program(OPERATOR, { before, flags }),
    'kube-nvr-recorder': program(RECORDER, { before }),
  };
}
