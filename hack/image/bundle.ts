// The two programs as they stand in the images: `node hack/image/bundle.ts DIRECTORY` makes one file of each, with what
// must stay beside it (the page, the thread of the archive's lists, package.json).

import * as esbuild from 'esbuild';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
/** Native parts of libraries, which do without them. */
const OPTIONAL = ['msgpackr-extract', 'pg-native', 'bufferutil', 'utf-8-validate'];
/** What libraries of the older kind of module expect to find. */
const COMMONJS = `import { createRequire as createRequire$ } from 'node:module';
const require = createRequire$(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;`;

/** Threads are started by the name of their file, which no longer ends in `.ts`. */
const threads: esbuild.Plugin = {
  name: 'threads',
  setup(build) {
    build.onLoad({ filter: /\/recorder\/archive\/details-reader\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace("'./details-worker.ts'", "'./details-worker.js'"),
      loader: 'ts',
    }));
  },
};

/** Resolves to what is in which of the files. */
export async function bundle(directory: string): Promise<esbuild.Metafile> {
  const { name, version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
    string,
    string
  >;
  const { metafile } = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: {
      'operator/main': 'operator/main.ts',
      'recorder/main': 'recorder/main.ts',
      'recorder/details-worker': 'recorder/archive/details-worker.ts',
    },
    outdir: directory,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    banner: { js: COMMONJS },
    external: OPTIONAL,
    plugins: [threads],
    sourcemap: 'linked',
    sourcesContent: false,
    keepNames: true,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    metafile: true,
  });
  // Each program finds them as it does in the repository: one directory up.
  for (const program of ['operator', 'recorder']) mkdirSync(join(directory, program), { recursive: true });
  const about = JSON.stringify({ name, version, license, type: 'module' });
  writeFileSync(join(directory, 'package.json'), `${about}\n`);
  cpSync(join(ROOT, 'recorder/api/page'), join(directory, 'page'), { recursive: true });
  return metafile;
}

if (import.meta.main) {
  const [directory] = process.argv.slice(2);
  if (directory === undefined) throw new Error('usage: node hack/image/bundle.ts DIRECTORY');
  await bundle(directory);
}
