// build/release on a clone of this repository: what it refuses, and what a release is made of.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { helmMissing } from '../chart/helm.ts';
import { imagesMissing, PROGRAMS, ROOT, VERSION } from './image.ts';

const git = (...args: readonly string[]): string => execFileSync('git', args, { encoding: 'utf8' });
const noGit = (): string | false =>
  spawnSync('git', ['-C', ROOT, 'rev-parse']).status !== 0 && 'this is no git checkout';

const PACKAGES = [
  `recorder_${VERSION}_amd64.deb`,
  `recorder_${VERSION}_arm64.deb`,
  `recorder-${VERSION}.x86_64.rpm`,
  `recorder-${VERSION}.aarch64.rpm`,
];

suite('build/release', { skip: imagesMissing() || helmMissing() || noGit() }, () => {
  let directory: string;
  let clone: string;
  let images: string;
  let packages: string;

  const commit = (): string =>
    git('-C', clone, '-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qam', 'x');
  const release = (output: string, env: NodeJS.ProcessEnv = {}) => {
    const { status, stderr } = spawnSync(
      join(clone, 'build/release'),
      ['--images', images, '--packages', packages, '--output', output],
      {
        encoding: 'utf8',
        env: { ...process.env, ...env },
      },
    );
    return { status, stderr };
  };

  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
    clone = join(directory, 'clone');
    images = join(directory, 'images');
    packages = join(directory, 'packages');
    git('clone', '-q', ROOT, clone);
    // As they are now, committed or not.
    for (const path of ['build/release', 'hack/lib.sh', 'charts', 'package.json']) {
      cpSync(join(ROOT, path), join(clone, path), { recursive: true });
    }
    writeFileSync(
      join(clone, 'CHANGELOG.md'),
      '# Changelog\n\n## [Unreleased]\n\n- More.\n\n## [0.0.1] - 2026-01-01\n\n- First.\n',
    );
    git('-C', clone, 'add', '-A');
    commit();
    // What is packed is not what is tried here.
    execFileSync('mkdir', [images, packages]);
    for (const name of [...PACKAGES, 'recorder.cdx.json']) writeFileSync(join(packages, name), name);
    for (const program of PROGRAMS) {
      writeFileSync(join(images, `${program}.tar`), `image of the ${program}`);
      writeFileSync(join(images, `${program}.cdx.json`), '{}');
    }
  });

  after(() => rmSync(directory, { recursive: true, force: true }));

  test('a version without a section in the changelog is refused', () => {
    const { status, stderr } = release(join(directory, 'none'));
    assert.equal(status, 1);
    assert.match(stderr, new RegExp(`^error: CHANGELOG\\.md has no section \\[${VERSION}\\]: .*Unreleased`, 'm'));
  });

  test('a tree with changes is refused, and they are named', () => {
    const text = readFileSync(join(clone, 'CHANGELOG.md'), 'utf8');
    const section = `## [${VERSION}] - 2026-11-21\n\n### Added\n\n- Recording.\n\n`;
    writeFileSync(join(clone, 'CHANGELOG.md'), text.replace('## [0.0.1]', `${section}## [0.0.1]`));
    const { status, stderr } = release(join(directory, 'none'));
    assert.equal(status, 1);
    assert.match(stderr, /CHANGELOG\.md\nerror: the tree has changes that are not committed/);
    commit();
  });

  test('a release is the charts, both images, the packages, their parts, notes and sums, and twice the same', () => {
    const [first, second] = ['first', 'second'].map((name) => join(directory, name)) as [string, string];
    const { status, stderr } = release(first);
    assert.equal(status, 0, stderr);
    const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
    const named = PROGRAMS.map((program) => `kube-nvr-${program}-${VERSION}-${architecture}`);
    assert.deepEqual(
      readdirSync(first).sort(),
      [
        `kube-nvr-${VERSION}.tgz`,
        `kube-nvr-crds-${VERSION}.tgz`,
        'RELEASE_NOTES.md',
        'SHA256SUMS',
        ...PACKAGES,
        `recorder-${VERSION}.cdx.json`,
        ...named.flatMap((name) => [`${name}.cdx.json`, `${name}.tar.gz`]),
      ].sort(),
    );
    execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: first });
    assert.equal(readFileSync(join(first, 'SHA256SUMS'), 'utf8').split('\n').length, 12 + 1);
    assert.equal(readFileSync(join(first, 'RELEASE_NOTES.md'), 'utf8'), '### Added\n\n- Recording.\n');
    const chart = execFileSync('tar', ['-xzOf', join(first, `kube-nvr-${VERSION}.tgz`), 'kube-nvr/Chart.yaml'], {
      encoding: 'utf8',
    });
    assert.match(chart, new RegExp(`^version: ${VERSION}$`, 'm'));
    assert.equal(gunzipSync(readFileSync(join(first, `${named[0]}.tar.gz`))).toString(), 'image of the operator');
    assert.equal(release(second).status, 0);
    assert.equal(readFileSync(join(second, 'SHA256SUMS'), 'utf8'), readFileSync(join(first, 'SHA256SUMS'), 'utf8'));
  });

  test('a chart of another version is refused', () => {
    const text = readFileSync(join(clone, 'charts/kube-nvr/Chart.yaml'), 'utf8');
    writeFileSync(join(clone, 'charts/kube-nvr/Chart.yaml'), text.replace(`version: ${VERSION}`, 'version: 0.0.1'));
    commit();
    const { status, stderr } = release(join(directory, 'none'));
    assert.equal(status, 1);
    assert.match(stderr, /Chart\.yaml is not of version .*generate-chart/);
  });

  test('a directory that is not a checkout is refused', () => {
    rmSync(join(clone, '.git'), { recursive: true });
    appendFileSync(join(clone, 'CHANGELOG.md'), '\n');
    const { status, stderr } = release(join(directory, 'none'), { GIT_CEILING_DIRECTORIES: directory });
    assert.equal(status, 1);
    assert.match(stderr, /this is not a git checkout/);
  });
});
