import { test } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allOf, needsSource } from './licences.ts';
import { sbomOf } from './sbom.ts';

const ABOUT = { name: 'recorder', version: '1', license: 'Apache-2.0', node: '24.21.0' };
const NPM = { name: 'ws', version: '8.0.0', license: '(MIT OR CC0-1.0)', integrity: '', licenceTexts: [] };

interface Component {
  readonly name: string;
  readonly licenses: readonly [{ readonly expression: string }];
}

/** The list of an image with these packages of Debian. */
function listOf(...debian: readonly string[]): { components: readonly Component[]; whole: string } {
  const root = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
  try {
    mkdirSync(join(root, 'var/lib/dpkg/status.d'), { recursive: true });
    mkdirSync(join(root, 'etc'));
    writeFileSync(join(root, 'etc/os-release'), 'ID=debian\n');
    for (const name of debian) {
      const status = `Package: ${name}\nVersion: 1:2-3+b1\nArchitecture: amd64\n`;
      writeFileSync(join(root, 'var/lib/dpkg/status.d', name), status);
    }
    const { components, metadata } = JSON.parse(sbomOf({ ...ABOUT, packages: [NPM], debian: root })) as {
      components: readonly Component[];
      metadata: { component: Component };
    };
    return { components, whole: metadata.component.licenses[0].expression };
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('every part of a list has a licence, and the whole has those of all parts', () => {
  const { components, whole } = listOf('libc6', 'libcap2');
  assert.deepEqual(
    components.map(({ name, licenses }) => [name, licenses[0].expression]),
    [
      ['ws', '(MIT OR CC0-1.0)'],
      ['node', 'MIT AND Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND ISC AND Unicode-3.0 AND Zlib'],
      ['libc6', 'LGPL-2.1-or-later AND BSD-3-Clause AND ISC'],
      ['libcap2', 'BSD-3-Clause OR GPL-2.0-only'],
    ],
  );
  assert.equal(
    whole,
    'Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND (BSD-3-Clause OR GPL-2.0-only) AND ISC AND LGPL-2.1-or-later AND MIT AND (MIT OR CC0-1.0) AND Unicode-3.0 AND Zlib',
  );
});

test('there is no list with a part whose licence is not known: the part is named', () => {
  assert.throws(
    () => listOf('libc6', 'libnew1'),
    /no licence is known of libnew1: add it to build\/image\/licences\.ts/,
  );
});

test('a choice within a larger expression stays a choice', () => {
  assert.equal(allOf(['MIT AND (ISC OR GPL-2.0-only)', 'MIT']), '(ISC OR GPL-2.0-only) AND MIT');
});

test('the source is passed on of what is under GPL or LGPL, and not of what is under another licence by choice', () => {
  assert.ok(needsSource('GPL-3.0-or-later WITH GCC-exception-3.1') && needsSource('LGPL-2.1-or-later AND MIT'));
  assert.ok(!needsSource('BSD-3-Clause OR GPL-2.0-only') && !needsSource('Apache-2.0'));
});
