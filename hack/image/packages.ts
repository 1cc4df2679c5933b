// What esbuild says that it took in, the npm packages of it out, with their licences.

import type { Metafile } from 'esbuild';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** An expression of SPDX, as the package has it. */
  readonly license: string;
  /** Of its archive, as package-lock.json has it: `sha512-` and base64. */
  readonly integrity: string;
  /** Texts of its licence and notice files. */
  readonly licenceTexts: readonly string[];
}

/** By name and version. Throws when one has no licence at all. */
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

/** One text of all, as their licences ask for. */
export function licencesOf(packages: readonly NpmPackage[]): string {
  const parts = packages.map(({ name, version, license, licenceTexts }) =>
    [`${name} ${version} (${license})`, ...licenceTexts].join('\n\n'),
  );
  return `What this program holds of others.\n\n${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

/** The same on every machine, whatever its language. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
