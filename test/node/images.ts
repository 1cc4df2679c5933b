// Container images without a registry: made here, kept in the cache under what they are made of.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cacheDirectory } from '../cluster/programs.ts';
import { PAUSE_IMAGE } from './config.ts';

/** What a pod's sandbox runs: it waits, and buries what loses its parent. */
const PAUSE_SOURCE = `#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int signal) { _exit(0); }
static void bury(int signal) { while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) { signal(SIGTERM, end); signal(SIGINT, end); signal(SIGCHLD, bury); for (;;) pause(); }
`;

interface ImageConfig {
  readonly Entrypoint: readonly string[];
  readonly Env?: readonly string[];
  readonly WorkingDir?: string;
}

/** The archive of the sandbox's image; built the first time. */
export const pauseImage = (): string =>
  image(PAUSE_IMAGE, PAUSE_SOURCE, { Entrypoint: ['/pause'] }, (root, scratch) => {
    const source = join(scratch, 'pause.c');
    writeFileSync(source, PAUSE_SOURCE);
    execFileSync('gcc', ['-static', '-Os', '-o', join(root, 'pause'), source], { stdio: 'pipe' });
  });

export const MACHINE_IMAGE = 'kube-nvr.test/machine:1';
/** What a pod mounts read-only, with MACHINE_IMAGE, to run programs of this machine. */
export const MACHINE_PATHS: readonly string[] = ['/usr', '/etc/fonts', '/etc/alternatives'];

/** The archive of an image that is empty but for the links of a machine whose programs are all in /usr. */
export const machineImage = (): string =>
  image(MACHINE_IMAGE, 'links', { Entrypoint: ['/bin/sh'], Env: ['PATH=/usr/bin:/bin'] }, (root) => {
    for (const name of ['bin', 'lib', 'lib64', 'sbin']) symlinkSync(`usr/${name}`, join(root, name));
    for (const name of ['usr', 'etc', 'tmp', 'etc/fonts', 'etc/alternatives']) mkdirSync(join(root, name));
  });

/** A docker-archive of one layer, which `fill` makes; the cached one when `source` was seen before. */
function image(
  name: string,
  source: string,
  config: ImageConfig,
  fill: (root: string, scratch: string) => void,
): string {
  const key = createHash('sha256')
    .update(JSON.stringify([name, source, config, process.arch]))
    .digest('hex');
  const file = join(cacheDirectory(), 'test-images', `${key.slice(0, 16)}.tar`);
  if (existsSync(file)) return file;
  mkdirSync(join(file, '..'), { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), 'kube-nvr-image-'));
  try {
    const root = join(scratch, 'root');
    mkdirSync(root);
    fill(root, scratch);
    tar(root, join(scratch, 'layer.tar'), ['.']);
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
    const rootfs = { type: 'layers', diff_ids: [digest(join(scratch, 'layer.tar'))] };
    writeFileSync(join(scratch, 'config.json'), JSON.stringify({ architecture, os: 'linux', config, rootfs }));
    const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }];
    writeFileSync(join(scratch, 'manifest.json'), JSON.stringify(manifest));
    tar(scratch, `${file}.${process.pid}`, ['manifest.json', 'config.json', 'layer.tar']);
    // Another test may have made it meanwhile: both are the same.
    renameSync(`${file}.${process.pid}`, file);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return file;
}

function tar(directory: string, file: string, names: readonly string[]): void {
  const same = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  execFileSync('tar', ['-C', directory, ...same, '-cf', file, ...names], { stdio: 'pipe' });
}

const digest = (file: string): string => `sha256:${createHash('sha256').update(readFileSync(file)).digest('hex')}`;
