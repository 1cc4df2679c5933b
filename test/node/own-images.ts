// The images of this checkout, as build/images builds them; kept in the cache under what goes into them.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../cluster/programs.ts';

const ROOT = join(import.meta.dirname, '../..');
export const VERSION = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
export const OPERATOR_IMAGE = 'kube-nvr-operator';
export const RECORDER_IMAGE = 'kube-nvr-recorder';

/**
 * docker-archives of both, built when sources changed (minutes the first time, then a quarter of one). KUBE_NVR_IMAGES
 * names a directory that has them already, built from whatever sources.
 */
export function ownImages(): readonly string[] {
  const directory = process.env['KUBE_NVR_IMAGES'] ?? builtDirectory();
  return ['operator', 'recorder'].map((name) => join(directory, `${name}.tar`));
}

function builtDirectory(): string {
  const all = join(cacheDirectory(), 'own-images');
  const directory = join(all, sourcesHash());
  if (existsSync(directory)) return directory;
  const building = `${directory}.${process.pid}`;
  mkdirSync(building, { recursive: true });
  execFileSync(join(ROOT, 'build/images'), ['--output', building], { stdio: ['ignore', 'pipe', 'pipe'] });
  // Those of other sources are hundreds of megabytes.
  for (const name of readdirSync(all)) {
    if (join(all, name) !== building) rmSync(join(all, name), { recursive: true, force: true });
  }
  renameSync(building, directory);
  return directory;
}

/** Of all that the builder sees, and of what says how. */
function sourcesHash(): string {
  const seen = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  const hash = createHash('sha256').update(process.arch);
  for (const path of ['.dockerignore', 'Dockerfile', 'build/images', ...seen].flatMap(filesOf)) {
    hash.update(`\n${path} ${statSync(join(ROOT, path)).mode}\n`).update(readFileSync(join(ROOT, path)));
  }
  return hash.digest('hex').slice(0, 16);
}

function filesOf(path: string): readonly string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path];
  return (readdirSync(join(ROOT, path), { recursive: true }) as string[])
    .map((name) => join(path, name))
    .filter((name) => !name.endsWith('.test.ts') && statSync(join(ROOT, name)).isFile())
    .sort();
}
