// What is known of vulnerabilities that scanners report in the parts of a release, as an OpenVEX 0.2.0 document:
// `node build/vex.ts TIME SBOM...`. TIME is RFC 3339; SBOM are the lists of parts of the images (build/image/sbom.ts).
// A vulnerability that does affect the product is not argued away here: it gets an advisory and a release with the fix (SECURITY.md).

import { readFileSync } from 'node:fs';

interface Finding {
  readonly vulnerabilities: readonly string[];
  /** Names of components, such as Debian packages. */
  readonly parts: readonly string[];
  /** Why the product is not affected, in the words of OpenVEX. */
  readonly justification: 'vulnerable_code_not_present' | 'vulnerable_code_not_in_execute_path';
  /** For people who have to believe it. */
  readonly because: string;
}

/** Functions of libc that findings below rely on: no program or library of an image calls them (test/image/contents.test.ts). */
export const NEVER_CALLED = ['regcomp', 'regexec'] as const;

export const FINDINGS: readonly Finding[] = [
  {
    vulnerabilities: ['CVE-2018-20796', 'CVE-2019-9192'],
    parts: ['libc6'],
    justification: 'vulnerable_code_not_in_execute_path',
    because:
      'Recursion in regular expressions of the C library. No program or library of the image calls regcomp or regexec.',
  },
  {
    vulnerabilities: ['CVE-2022-27943'],
    parts: ['libgcc-s1', 'libstdc++6', 'libatomic1'],
    justification: 'vulnerable_code_not_present',
    because:
      'The demangler of Rust names in libiberty, which tools such as nm contain. These libraries do not contain it.',
  },
  {
    vulnerabilities: ['CVE-2013-4392', 'CVE-2023-31437', 'CVE-2023-31438', 'CVE-2023-31439'],
    parts: ['libsystemd0'],
    justification: 'vulnerable_code_not_in_execute_path',
    because:
      'Programs of systemd that change files or read sealed journals. The image has only the library, which tells systemd that Redis is ready.',
  },
  {
    vulnerabilities: ['CVE-2018-6829'],
    parts: ['libgcrypt20'],
    justification: 'vulnerable_code_not_in_execute_path',
    because:
      'ElGamal encryption. Only libsystemd0 loads the library, for the hashes of journals, and nothing here reads journals.',
  },
];

interface Sbom {
  readonly metadata: { readonly component: { readonly purl: string } };
  readonly components: readonly { readonly name: string; readonly purl: string }[];
}

/** The document says the same for the same lists. */
function vexOf(time: string, sboms: readonly Sbom[]): string {
  const statements = FINDINGS.flatMap(({ vulnerabilities, parts, justification, because }) => {
    const products = sboms.flatMap(({ metadata, components }) => {
      const subcomponents = components.filter(({ name }) => parts.includes(name)).map(({ purl }) => ({ '@id': purl }));
      return subcomponents.length > 0 ? [{ '@id': metadata.component.purl, subcomponents }] : [];
    });
    if (products.length === 0) return [];
    const said = { products, status: 'not_affected', justification, impact_statement: because };
    return vulnerabilities.map((name) => ({ vulnerability: { name }, ...said }));
  });
  const names = sboms.map(({ metadata }) => metadata.component.purl.replace(/.*\//, ''));
  const document = {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    '@id': `https://kube-nvr.dev/vex/${names.join('+')}`,
    author: 'kube-nvr maintainers',
    timestamp: time,
    version: 1,
    statements,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

if (import.meta.main) {
  const [time, ...files] = process.argv.slice(2);
  if (time === undefined || files.length === 0) throw new Error('usage: node build/vex.ts TIME SBOM...');
  process.stdout.write(
    vexOf(
      time,
      files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as Sbom),
    ),
  );
}
