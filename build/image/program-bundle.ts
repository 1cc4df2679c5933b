// Bundles a program into one JavaScript file, so that it has no tree of modules to read at its start.

import * as esbuild from 'esbuild';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { libraryFiles, readPage } from '../../recorder/api/page-files.ts';
import { PROGRAMS, type Program } from './layout.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Optional native parts of libraries. */
const OPTIONAL = ['msgpackr-extract', 'pg-native', 'bufferutil', 'utf-8-validate'];
/** What libraries in CommonJS format expect to exist. */
const COMMONJS = `import { createRequire as createRequire$ } from 'node:module';
const require = createRequire$(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname;`;

const { name, version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
  'name' | 'version' | 'license',
  string
>;
export const ABOUT = { name, version, license };

/**
 * A thread is started by the name of its file, which no longer ends in `.ts`. Fails the build if the source does not start
 * it in the expected way: otherwise the program would start, and fail when it needs the thread.
 */
function threadsOf(program: Program): esbuild.Plugin {
  const waiting = new Map(PROGRAMS[program].threads.map(({ startedBy, name }) => [join(ROOT, startedBy), name]));
  return {
    name: 'threads',
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const name = waiting.get(path);
        if (name === undefined) return undefined;
        const source = readFileSync(path, 'utf8');
        const contents = source.replace(`new URL('./${name}.ts'`, `new URL('./${name}.js'`);
        if (contents !== source) waiting.delete(path);
        return { contents, loader: 'ts' };
      });
      build.onEnd(() => ({
        errors: Array.from(waiting, ([path, name]) => ({ text: `${path} does not start the thread ${name}` })),
      }));
    },
  };
}

/** Writes `<directory>/<program>/main.js` and the files that it reads at run time; returns esbuild's list of inputs. */
export async function bundleProgram(program: Program, directory: string): Promise<esbuild.Metafile> {
  const { metafile } = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: { ...PROGRAMS[program].entryPoints },
    outdir: join(directory, program),
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    banner: { js: COMMONJS },
    external: OPTIONAL,
    plugins: [threadsOf(program)],
    // For `node --enable-source-maps`, which is off by default because it costs a recorder 60 MB of memory.
    sourcemap: 'linked',
    sourcesContent: false,
    keepNames: true,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    metafile: true,
    // What is imported when it is needed costs no memory before.
    splitting: true,
  });
  writeAscii(Object.keys(metafile.outputs));
  // Each program finds it where it is in the repository: one directory up.
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify({ ...ABOUT, type: 'module' })}\n`);
  const { page } = PROGRAMS[program];
  if (page) {
    await writePage(join(ROOT, page), join(directory, page));
    // The licences of the libraries are shipped with the program.
    for (const { path } of libraryFiles()) metafile.inputs[relative(ROOT, path)] = { bytes: 0, imports: [] };
  }
  return metafile;
}

/**
 * esbuild escapes all other characters but those in regular expressions. With one of them, Node keeps the text of a whole file with two
 * bytes for each character.
 */
function writeAscii(outputs: readonly string[]): void {
  for (const path of outputs.filter((output) => output.endsWith('.js')).map((output) => join(ROOT, output))) {
    const text = readFileSync(path, 'utf8');
    const ascii = text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
    if (ascii !== text) writeFileSync(path, ascii);
  }
}

/** Scripts without types and the libraries beside them, as the recorder serves them. */
async function writePage(from: string, to: string): Promise<void> {
  const withoutTypes = (source: string): string =>
    esbuild.transformSync(source, { loader: 'ts', target: 'es2022', minifySyntax: true, minifyWhitespace: true }).code;
  const { files } = await readPage(from, withoutTypes);
  for (const [path, { body }] of files) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    writeFileSync(join(to, path), body);
  }
  await joinPage(to);
}

/** Loaded only for playback. */
const LATER = '../vendor/hls.js';
const STYLE = /[ \t]*<link rel="stylesheet" href="\/page\/([\w./-]+)" \/>\n/g;

/**
 * The modules of the console as three files (what is needed at first, what is loaded later, and what both need), and its style
 * sheets as one: over a slow link, each request costs a browser more time than its bytes.
 */
async function joinPage(page: string): Promise<void> {
  await esbuild.build({
    entryPoints: ['app/main.ts', 'app/later.ts'].map((path) => join(page, path)),
    outdir: page,
    outbase: page,
    outExtension: { '.js': '.ts' },
    chunkNames: 'app/both-[hash]',
    splitting: true,
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    // Its types are gone.
    loader: { '.ts': 'js' },
    plugins: [
      {
        name: 'later',
        setup: (build) => build.onResolve({ filter: /\/vendor\/hls\.js$/ }, () => ({ path: LATER, external: true })),
      },
    ],
    minify: true,
    legalComments: 'none',
  });
  const document = join(page, 'index.html');
  const html = readFileSync(document, 'utf8');
  const sheets = Array.from(html.matchAll(STYLE), ([, path = '']) => path);
  const css = sheets.map((path) => readFileSync(join(page, path), 'utf8')).join('\n');
  const { code } = await esbuild.transform(css, { loader: 'css', minify: true });
  const [first = '', ...others] = sheets;
  writeFileSync(join(page, first), code);
  writeFileSync(
    document,
    html.replace(STYLE, (link, path: string) => (others.includes(path) ? '' : link)),
  );
}
