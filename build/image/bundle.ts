// Bundles a program into one file: `node build/image/bundle.ts operator|recorder ROOT DEBIAN`. Writes the program to /app in the
// file system at ROOT, with the files it needs, its licences and its bill of materials (sbom.ts). DEBIAN is the file system of
// the image without the program (collect.sh).

import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isProgram, PROGRAMS, type Program } from './layout.ts';
import { bundledPackages, licencesOf } from './packages.ts';
import { ABOUT, bundleProgram } from './program-bundle.ts';
import { sbomOf } from './sbom.ts';

const ROOT = join(import.meta.dirname, '../..');

async function bundle(program: Program, root: string, debian: string): Promise<void> {
  const app = join(root, 'app');
  const metafile = await bundleProgram(program, app);
  const main = join(app, program, 'main.js');
  // The image has no env. Linux passes everything after the interpreter as one argument.
  const interpreter = ['/usr/local/bin/node', PROGRAMS[program].nodeFlag ?? ''].join(' ').trim();
  writeFileSync(main, readFileSync(main, 'utf8').replace(/^#!.*/, `#!${interpreter}`));
  chmodSync(main, 0o755);

  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
  symlinkSync(`/app/${program}/main.js`, join(root, 'usr/local/bin', program));

  const packages = bundledPackages(metafile, ROOT);
  const doc = 'usr/share/doc/kube-nvr';
  for (const name of ['LICENSE', 'NOTICE']) cpSync(join(ROOT, name), join(root, doc, name));
  cpSync('/usr/local/LICENSE', join(root, 'usr/share/doc/node/LICENSE'));
  write(`${doc}/THIRD_PARTY_LICENSES`, licencesOf(packages));
  write(
    `${doc}/sbom.cdx.json`,
    sbomOf({ ...ABOUT, name: `${ABOUT.name}-${program}`, packages, node: process.version.slice(1), debian }),
  );
}

const [program, root, debian] = process.argv.slice(2);
if (!isProgram(program) || root === undefined || debian === undefined) {
  throw new Error('usage: node build/image/bundle.ts operator|recorder ROOT DEBIAN');
}
await bundle(program, root, debian);
