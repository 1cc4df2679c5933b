// The bill of materials of an image or a package as a CycloneDX 1.6 document: npm packages in the bundle, Node, and what an image
// has besides: Debian packages and ffmpeg.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { allOf, licenceOf } from './licences.ts';
import type { NpmPackage } from './packages.ts';

interface Parts {
  readonly name: string;
  readonly version: string;
  /** Of our own part, as an SPDX expression. */
  readonly license: string;
  readonly packages: readonly NpmPackage[];
  /** Version of Node, such as `24.21.0`. */
  readonly node: string;
  /** File system of the image without the program; undefined: it is no image. */
  readonly debian: string | undefined;
}

interface Component {
  readonly name: string;
  readonly purl: string;
  readonly licenses: readonly { readonly expression: string; readonly acknowledgement: 'declared' | 'concluded' }[];
}

/** JSON without a time, so that the same parts give the same text. Throws if the licence of a part is not known. */
export function sbomOf({ name, version, license, packages, node, debian }: Parts): string {
  const purl = `pkg:generic/${name}@${version}`;
  const components = [
    ...packages.map(npmComponent),
    component('platform', 'node', node, `pkg:generic/node@${node}`),
    ...(debian === undefined ? [] : debianComponents(debian)),
  ];
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: debian === undefined ? 'application' : 'container',
        'bom-ref': purl,
        name,
        version,
        purl,
        licenses: [{ expression: allOf([license, ...components.map(({ licenses: [own] }) => own!.expression)]) }],
      },
    },
    components: components.map((component) => ({ 'bom-ref': component.purl, ...component })),
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** A part whose licence we concluded from its files. */
const component = (type: string, name: string, version: string, purl: string): Component & Record<string, unknown> => ({
  type,
  name,
  version,
  purl,
  licenses: [{ expression: licenceOf(name), acknowledgement: 'concluded' }],
});

function npmComponent({ name, version, license, integrity }: NpmPackage): Component & Record<string, unknown> {
  const [algorithm, hash = ''] = integrity.split('-');
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    licenses: [{ expression: license, acknowledgement: 'declared' }],
    ...(algorithm === 'sha512' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(hash, 'base64').toString('hex') }],
    }),
  };
}

function debianComponents(root: string): readonly Component[] {
  const distribution = /^ID=(.*)$/m.exec(readFileSync(join(root, 'etc/os-release'), 'utf8'))?.[1] ?? 'debian';
  const status = join(root, 'var/lib/dpkg/status.d');
  const components = readdirSync(status)
    .sort()
    .map((file) => {
      const text = readFileSync(join(status, file), 'utf8');
      const field = (name: string): string => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? '';
      return debianComponent(distribution, field('Package'), field('Version'), field('Architecture'));
    });
  // Built from the distribution's source (ffmpeg.sh).
  const ffmpeg = join(root, 'usr/share/doc/ffmpeg/version');
  if (!existsSync(ffmpeg)) return components;
  return [...components, debianComponent(distribution, 'ffmpeg', readFileSync(ffmpeg, 'utf8').trim(), 'source')];
}

function debianComponent(distribution: string, name: string, version: string, architecture: string): Component {
  const escaped = encodeURIComponent(version).replaceAll('%3A', ':');
  return component('library', name, version, `pkg:deb/${distribution}/${name}@${escaped}?arch=${architecture}`);
}
