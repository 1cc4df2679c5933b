// A program as one file, with what must stay beside it: `node hack/image/bundle.ts operator|recorder ROOT DEBIAN` writes
// into the file system at ROOT the program at /app, its licences and its list of parts (sbom.ts). DEBIAN is the file system
// of the image without it (collect.sh).

import * as esbuild from 'esbuild';
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isProgram, PROGRAMS, type Program } from './layout.ts';
import { bundledPackages, licencesOf } from './packages.ts';
import { sbomOf } from './sbom.ts';

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
      contents: readFileSync(path, 'utf8').replace("new URL('./details-worker.ts'", "new URL('./details-worker.js'"),
      loader: 'ts',
    }));
  },
};

async function bundle(program: Program, root: string, debian: string): Promise<void> {
  const app = join(root, 'app');
  const { metafile } = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: { ...PROGRAMS[program].entryPoints },
    outdir: join(app, program),
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    banner: { js: COMMONJS },
    external: OPTIONAL,
    plugins: [threads],
    // For `node --enable-source-maps`, which is not on by itself: it costs a recorder 60 MB of memory.
    sourcemap: 'linked',
    sourcesContent: false,
    keepNames: true,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    metafile: true,
  });
  const main = join(app, program, 'main.js');
  // There is no env in the image. Linux passes what follows the program on as one argument.
  const interpreter = ['/usr/local/bin/node', PROGRAMS[program].nodeFlag ?? ''].join(' ').trim();
  writeFileSync(main, readFileSync(main, 'utf8').replace(/^#!.*/, `#!${interpreter}`));
  chmodSync(main, 0o755);

  const { name, version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
    'name' | 'version' | 'license',
    string
  >;
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  // Each program finds it as it does in the repository: one directory up.
  write('app/package.json', `${JSON.stringify({ name, version, license, type: 'module' })}\n`);
  for (const [from, to] of Object.entries(PROGRAMS[program].files))
    cpSync(join(ROOT, from), join(app, to), { recursive: true });
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  symlinkSync(`/app/${program}/main.js`, join(root, 'usr/local/bin', program));

  const packages = bundledPackages(metafile, ROOT);
  const doc = 'usr/share/doc/kube-nvr';
  cpSync(join(ROOT, 'LICENSE'), join(root, doc, 'LICENSE'));
  cpSync('/usr/local/LICENSE', join(root, 'usr/share/doc/node/LICENSE'));
  write(`${doc}/THIRD_PARTY_LICENSES`, licencesOf(packages));
  write(`${doc}/sbom.cdx.json`, sbomOf({ name: `${name}-${program}`, version, license, packages, debian }));
}

const [program, root, debian] = process.argv.slice(2);
if (!isProgram(program) || root === undefined || debian === undefined) {
  throw new Error('usage: node hack/image/bundle.ts operator|recorder ROOT DEBIAN');
}
await bundle(program, root, debian);
