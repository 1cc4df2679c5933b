// The corresponding sources of an image, for its parts under GPL or LGPL: `node build/image/sources.ts ROOT DIRECTORY`. Downloads the
// distribution's source packages of what collect.sh copied into ROOT, and of ffmpeg, into DIRECTORY. Runs where that was installed, and
// fails if a mirror no longer has a source package of the installed version.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { licenceOf, needsSource } from './licences.ts';

const [root, directory] = process.argv.slice(2);
if (root === undefined || directory === undefined) throw new Error('usage: node build/image/sources.ts ROOT DIRECTORY');

const sources = new Set([`ffmpeg=${readFileSync(join(root, 'usr/share/doc/ffmpeg/version'), 'utf8').trim()}`]);
for (const part of readdirSync(join(root, 'var/lib/dpkg/status.d')).sort()) {
  if (!needsSource(licenceOf(part))) continue;
  sources.add(
    execFileSync('dpkg-query', ['--show', '--showformat', '${source:Package}=${source:Version}', part], {
      encoding: 'utf8',
    }),
  );
}
mkdirSync(directory, { recursive: true });
// Its user may not write to directories of root.
const asRoot = ['-o', 'APT::Sandbox::User=root'];
execFileSync('apt-get', ['-q', ...asRoot, 'source', '--download-only', '--only-source', ...sources], {
  cwd: directory,
  stdio: ['ignore', 'inherit', 'inherit'],
});
