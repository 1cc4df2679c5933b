// Checks the format of all files with Prettier: node test/support/check-format.ts CACHE. Prettier's own cache knows files by their path,
// so that a new clone is checked from nothing; this one knows them by their content.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import * as prettier from 'prettier';

const ROOT = join(import.meta.dirname, '../..');
const IGNORE = ['.gitignore', '.prettierignore'].map((name) => join(ROOT, name));
/** Of some versions of all files. */
const MAX_KNOWN = 20_000;
/** As Prettier's command leaves out. */
const LEFT_OUT = new Set(['.git', 'node_modules']);

async function* filesIn(directory: string): AsyncGenerator<string> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isFile()) yield path;
    if (entry.isDirectory() && !LEFT_OUT.has(entry.name)) yield* filesIn(path);
  }
}

/** Whether all files are well formed; names those that are not, and remembers the others in the file `cache`. */
async function check(cache: string): Promise<boolean> {
  const known = new Set(existsSync(cache) ? readFileSync(cache, 'utf8').split('\n') : []);
  const good = new Set<string>();
  let isGood = true;
  for await (const path of filesIn(ROOT)) {
    const { ignored, inferredParser } = await prettier.getFileInfo(path, { ignorePath: IGNORE });
    if (ignored || inferredParser === null) continue;
    const source = await readFile(path, 'utf8');
    const options = { ...(await prettier.resolveConfig(path, { editorconfig: true })), filepath: relative(ROOT, path) };
    const key = createHash('sha256')
      .update(JSON.stringify([prettier.version, options, source]))
      .digest('base64url');
    if (known.has(key) || (await prettier.check(source, options))) good.add(key);
    else {
      console.error(`${relative(ROOT, path)} is not as npm run format:write makes it`);
      isGood = false;
    }
  }
  writeFileSync(cache, [...new Set([...good, ...known])].slice(0, MAX_KNOWN).join('\n'));
  return isGood;
}

const [cache] = process.argv.slice(2);
if (cache === undefined) throw new Error('usage: node test/support/check-format.ts CACHE');
if (!(await check(cache))) process.exitCode = 1;
