// The npm packages in a bundle with their licences, from esbuild's list of inputs.

import type { Metafile } from 'esbuild';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression, as stated by the package. */
  readonly license: string;
  /** Integrity of its archive, as in package-lock.json: `sha512-` and base64. */
  readonly integrity: string;
  /** Texts of its licence and notice files. */
  readonly licenceTexts: readonly string[];
}

/** Sorted by name and version. Throws if a package has no licence. */
export function bundledPackages({ inputs }: Metafile, root: string): readonly NpmPackage[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { integrity?: string }>>;
  };
  const directories = new Set(
    Object.keys(inputs).flatMap((path) => /^(.*node_modules\/(@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
  );
  return [...directories]
    .map((directory) => packageIn(join(root, directory), lock.packages[directory]?.integrity ?? ''))
    .sort((a, b) => compare(`${a.name} ${a.version}`, `${b.name} ${b.version}`));
}

function packageIn(directory: string, integrity: string): NpmPackage {
  const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as {
    name: string;
    version: string;
    license?: string;
  };
  const files = readdirSync(directory).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  if (license === undefined) throw new Error(`${name}: package.json names no license`);
  const licenceTexts = files.sort(compare).map((file) => readFileSync(join(directory, file), 'utf8').trim());
  return { name, version, license, integrity, licenceTexts };
}

/** One text with all licences, as they require. */
export function licencesOf(packages: readonly NpmPackage[]): string {
  const parts = packages.map(({ name, version, license, licenceTexts }) =>
    [`${name} ${version} (${license})`, ...licenceTexts].join('\n\n'),
  );
  return `Third-party software in this program.\n\n${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

/** The same order on every machine, whatever its locale. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
