// What takes long to build, kept in the cache under a digest of the sources that go into it.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../cluster/programs.ts';

const ROOT = join(import.meta.dirname, '../..');

/**
 * A directory that `build` filled from these sources: files or folders of the repository, besides what the images are made of.
 * Those of other sources are removed, because they are hundreds of megabytes, but not those that another process is filling.
 */
export function builtFromSources(name: string, sources: readonly string[], build: (output: string) => void): string {
  const all = join(cacheDirectory(), name);
  const directory = join(all, sourcesHash(sources));
  if (existsSync(directory)) return directory;
  const building = `${directory}.${process.pid}`;
  mkdirSync(building, { recursive: true });
  build(building);
  for (const other of readdirSync(all)) {
    if (!isBeingFilled(other) && join(all, other) !== directory)
      rmSync(join(all, other), { recursive: true, force: true });
  }
  // Another process may have been faster.
  if (existsSync(directory)) rmSync(building, { recursive: true });
  else renameSync(building, directory);
  return directory;
}

/** Its name ends in the number of a process that runs. */
const isBeingFilled = (name: string): boolean => existsSync(`/proc/${/\.(\d+)$/.exec(name)?.[1] ?? 'none'}`);

/** Of all that the builder of images sees, and of what says how. */
function sourcesHash(sources: readonly string[]): string {
  const seen = readFileSync(join(ROOT, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  const hash = createHash('sha256').update(process.arch);
  for (const path of ['.dockerignore', 'Dockerfile', ...sources, ...seen].flatMap(filesOf)) {
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
