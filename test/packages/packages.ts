// The packages of this checkout as build/packages makes them, and those of the next version, which has another configuration
// file; kept in the cache under what goes into them.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { cacheDirectory } from '../cluster/programs.ts';
import { builtFromSources } from '../support/built-from-sources.ts';

export const ROOT = join(import.meta.dirname, '../..');
export const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
export const NEXT_VERSION = '99.0.0';
/** Its name in Debian packages, and in RPM packages. */
export const ARCHITECTURES = [
  ['amd64', 'x86_64'],
  ['arm64', 'aarch64'],
] as const;
const [DEB_ARCH, RPM_ARCH] = process.arch === 'arm64' ? ARCHITECTURES[1] : ARCHITECTURES[0];

interface Packages {
  /** What build/packages writes. */
  readonly directory: string;
  /** For this machine. */
  readonly deb: string;
  readonly rpm: string;
  readonly nextDeb: string;
  readonly nextRpm: string;
}

/** Built when sources changed, which takes a minute. */
export function ownPackages(): Packages {
  const directory = builtFromSources('own-packages', ['build/packages', 'build/package'], (output) => {
    execFileSync(join(ROOT, 'build/packages'), ['--output', join(output, 'own')], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    buildNext(join(output, 'own', debOf(VERSION)), output);
  });
  return {
    directory: join(directory, 'own'),
    deb: join(directory, 'own', debOf(VERSION)),
    rpm: join(directory, 'own', rpmOf(VERSION)),
    nextDeb: join(directory, debOf(NEXT_VERSION)),
    nextRpm: join(directory, rpmOf(NEXT_VERSION)),
  };
}

const debOf = (version: string): string => `recorder_${version}_${DEB_ARCH}.deb`;
const rpmOf = (version: string): string => `recorder-${version}.${RPM_ARCH}.rpm`;

/** What this version installs, but for its number and its configuration file. */
function buildNext(deb: string, output: string): void {
  const scratch = mkdtempSync(join(tmpdir(), 'kube-nvr-packages-'));
  try {
    const tree = join(scratch, 'tree');
    execFileSync('dpkg-deb', ['-x', deb, tree]);
    rmSync(join(tree, 'etc'), { recursive: true });
    writeFileSync(
      join(tree, 'usr/lib/recorder/package.json'),
      JSON.stringify({ type: 'module', version: NEXT_VERSION }),
    );
    cpSync(join(ROOT, 'build/package'), scratch, { recursive: true });
    const config = join(scratch, 'files/config.yaml');
    writeFileSync(config, `${readFileSync(config, 'utf8')}\n# Of the next version.\n`);
    const description = parse(readFileSync(join(scratch, 'nfpm.yaml'), 'utf8')) as { contents: { dst: string }[] };
    const contents = description.contents.filter(({ dst }) => dst === '/' || dst.startsWith('/etc/'));
    // Nobody downloads it: it need not be small.
    const fast = { deb: { compression: 'none' }, rpm: { compression: 'gzip:1' } };
    writeFileSync(join(scratch, 'nfpm.yaml'), stringify({ ...description, ...fast, contents }));
    for (const name of [debOf(NEXT_VERSION), rpmOf(NEXT_VERSION)]) {
      execFileSync(nfpm(), ['package', '--packager', name.slice(-3), '--target', join(output, name)], {
        cwd: scratch,
        env: { ...process.env, ARCH: DEB_ARCH, VERSION: NEXT_VERSION, TREE: tree },
      });
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function nfpm(): string {
  const module = readFileSync(join(ROOT, 'build/package/go.mod'), 'utf8');
  const [, version] = /goreleaser\/nfpm\/v2 (\S+)/.exec(module)!;
  return join(cacheDirectory(), 'nfpm', version!, 'nfpm');
}
