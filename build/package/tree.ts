// Writes what the packages of the recorder install: `node build/package/tree.ts ROOT NODE`. ROOT is the file system that becomes
// the package; NODE is the directory of the npm package with the Node of its architecture.

import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { COMMANDS } from '../../recorder/commands/table.ts';
import { configurationRows } from '../../recorder/config/reference.ts';
import { bundledPackages, licencesOf } from '../image/packages.ts';
import { ABOUT, bundleProgram } from '../image/program-bundle.ts';
import { sbomOf } from '../image/sbom.ts';
import { commandsPage, completion, settingsPage } from './manual.ts';

const REPOSITORY = join(import.meta.dirname, '../..');
const HOME = 'usr/lib/recorder';
const DOC = 'usr/share/doc/recorder';

async function writeTree(root: string, node: string): Promise<void> {
  const write = (path: string, content: string | Buffer): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const { version: nodeVersion } = JSON.parse(readFileSync(join(node, 'package.json'), 'utf8')) as { version: string };
  const metafile = await bundleProgram('recorder', join(root, HOME));
  const main = join(root, HOME, 'recorder/main.js');
  writeFileSync(main, readFileSync(main, 'utf8').replace(/^#!.*/, `#!/${HOME}/node`));
  chmodSync(main, 0o755);
  cpSync(join(node, 'bin/node'), join(root, HOME, 'node'));
  chmodSync(join(root, HOME, 'node'), 0o755);

  const packages = bundledPackages(metafile, REPOSITORY);
  write(`${DOC}/copyright`, readFileSync(join(REPOSITORY, 'LICENSE')));
  write(`${DOC}/NOTICE`, readFileSync(join(REPOSITORY, 'NOTICE')));
  write(`${DOC}/LICENSE.node`, readFileSync(join(node, 'LICENSE')));
  write(`${DOC}/THIRD_PARTY_LICENSES`, licencesOf(packages));
  write(`${DOC}/changelog.gz`, gzipSync(readFileSync(join(REPOSITORY, 'CHANGELOG.md')), { level: 9 }));
  write(`${DOC}/sbom.cdx.json`, sbomOf({ ...ABOUT, name: 'recorder', packages, node: nodeVersion, debian: undefined }));

  const help = (...command: string[]): string =>
    execFileSync(process.execPath, [main, ...command, '--help'], { encoding: 'utf8' });
  const commands = [...COMMANDS].flatMap(([name, { pages }]) => pages.map((page) => [name, ...page]));
  const usage = help();
  const manual = commandsPage({ ...ABOUT, usage, commands: commands.map((command) => help(...command)) });
  write('usr/share/man/man8/recorder.8.gz', gzipSync(manual, { level: 9 }));
  write(
    'usr/share/man/man5/recorder.5.gz',
    gzipSync(settingsPage({ ...ABOUT, settings: configurationRows() }), { level: 9 }),
  );
  write('usr/share/bash-completion/completions/recorder', completion(usage));
}

const [root, node] = process.argv.slice(2);
if (root === undefined || node === undefined) throw new Error('usage: node build/package/tree.ts ROOT NODE');
await writeTree(root, node);
