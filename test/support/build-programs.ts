// Bundles the programs for the tests, with the page as a recorder serves it from the sources, because tests name its files:
// node test/support/build-programs.ts. Prints the directory, whose name changes with its contents: compiled code is kept by path.

import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { PROGRAMS, type Program } from '../../build/image/layout.ts';
import { bundleProgram } from '../../build/image/program-bundle.ts';
import { readPage } from '../../recorder/api/page-files.ts';
import { cacheDirectory } from '../cluster/programs.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Those of sources that nobody has any more. */
const MAX_AGE_MS = 24 * 3_600_000;

const all = join(cacheDirectory(), 'programs');
mkdirSync(all, { recursive: true });
const building = mkdtempSync(join(all, 'building-'));
// As other directories of programs: pods may run as another user.
chmodSync(building, 0o755);
const hash = createHash('sha256').update(ROOT);
for (const program of Object.keys(PROGRAMS) as Program[]) {
  await bundleProgram(program, building);
  hash.update(readFileSync(join(building, program, 'main.js')));
}
const page = join(building, 'console');
rmSync(page, { recursive: true });
for (const [path, { body }] of (await readPage(join(ROOT, 'console'))).files) {
  hash.update(path).update(body);
  mkdirSync(dirname(join(page, path)), { recursive: true });
  writeFileSync(join(page, path), body);
}
const directory = join(all, hash.digest('hex').slice(0, 16));
if (existsSync(directory)) rmSync(building, { recursive: true });
else renameSync(building, directory);
for (const path of readdirSync(all).map((name) => join(all, name)))
  if (path !== directory && statSync(path).mtimeMs < Date.now() - MAX_AGE_MS) rmSync(path, { recursive: true });
console.log(directory);
