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
const signingMissing = (): string | false =>
  spawnSync('minisign', ['-v']).error !== undefined && 'minisign missing: hack/setup signing';
const noGit = (): string | false =>
  spawnSync('git', ['-C', ROOT, 'rev-parse']).status !== 0 && 'this is no git checkout';

const PACKAGES = [
  `recorder_${VERSION}_amd64.deb`,
  `recorder_${VERSION}_arm64.deb`,
  `recorder-${VERSION}.x86_64.rpm`,
  `recorder-${VERSION}.aarch64.rpm`,
];

suite('build/release', { skip: imagesMissing() || helmMissing() || signingMissing() || noGit() }, () => {
  let directory: string;
  let clone: string;
  let images: string;
  let packages: string;

  const commit = (): string =>
    git('-C', clone, '-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qam', 'x');
  const release = (output: string, { key, env }: { key?: string; env?: NodeJS.ProcessEnv } = {}) => {
    const { status, stderr } = spawnSync(
      join(clone, 'build/release'),
      ['--images', images, '--packages', packages, '--output', output, ...(key === undefined ? [] : ['--key', key])],
      {
        encoding: 'utf8',
        env: { ...process.env, ...env },
      },
    );
    return { status, stderr };
  };
  const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
    clone = join(directory, 'clone');
    images = join(directory, 'images');
    packages = join(directory, 'packages');
    git('clone', '-q', ROOT, clone);
    // As they are now, committed or not.
    const paths = ['build/release', 'build/vex.ts', 'build/provenance.ts', 'hack/lib.sh', 'charts', 'package.json'];
    for (const path of paths) {
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
      const part = { name: 'libc6', purl: 'pkg:deb/debian/libc6@2.36?arch=amd64' };
      writeFileSync(
        join(images, `${program}.cdx.json`),
        JSON.stringify({ metadata: { component: { purl: `pkg:generic/${program}@1` } }, components: [part] }),
      );
    }
    writeFileSync(join(images, 'sources.tar'), 'sources');
    writeFileSync(join(images, 'inputs.json'), JSON.stringify({ base: 'sha256:12ab', builder: 'sha256:34cd' }));
    for (const name of ['ours', 'other']) {
      const [public_, secret] = [join(directory, `${name}.pub`), join(directory, `${name}.key`)];
      execFileSync('minisign', ['-G', '-W', '-p', public_, '-s', secret], { stdio: ['ignore', 'ignore', 'pipe'] });
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

  test('a release is the charts, images, packages, sources, parts, statements, notes and sums, and twice the same', () => {
    const [first, second] = ['first', 'second'].map((name) => join(directory, name)) as [string, string];
    const { status, stderr } = release(first);
    assert.equal(status, 0, stderr);
    assert.match(stderr, /^not signed: users cannot check who made this release/m);
    const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
    const named = PROGRAMS.map((program) => `kube-nvr-${program}-${VERSION}-${architecture}`);
    assert.deepEqual(
      readdirSync(first).sort(),
      [
        `kube-nvr-${VERSION}.tgz`,
        `kube-nvr-crds-${VERSION}.tgz`,
        `kube-nvr-${VERSION}.intoto.json`,
        `kube-nvr-${VERSION}.openvex.json`,
        `kube-nvr-sources-${VERSION}-${architecture}.tar`,
        'RELEASE_NOTES.md',
        'SHA256SUMS',
        ...PACKAGES,
        `recorder-${VERSION}.cdx.json`,
        ...named.flatMap((name) => [`${name}.cdx.json`, `${name}.tar.gz`]),
      ].sort(),
    );
    execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: first });
    assert.equal(readFileSync(join(first, 'SHA256SUMS'), 'utf8').split('\n').length, 15 + 1);
    assert.equal(readFileSync(join(first, 'RELEASE_NOTES.md'), 'utf8'), '### Added\n\n- Recording.\n');
    const chart = execFileSync('tar', ['-xzOf', join(first, `kube-nvr-${VERSION}.tgz`), 'kube-nvr/Chart.yaml'], {
      encoding: 'utf8',
    });
    assert.match(chart, new RegExp(`^version: ${VERSION}$`, 'm'));
    assert.equal(gunzipSync(readFileSync(join(first, `${named[0]}.tar.gz`))).toString(), 'image of the operator');
    assert.equal(release(second).status, 0);
    assert.equal(readFileSync(join(second, 'SHA256SUMS'), 'utf8'), readFileSync(join(first, 'SHA256SUMS'), 'utf8'));
  });

  test('the provenance names every file but the sums, the commit, and what the images were made from', () => {
    const release = join(directory, 'first');
    const name = `kube-nvr-${VERSION}.intoto.json`;
    const { subject, predicate } = read(join(release, name)) as {
      subject: readonly { name: string; digest: { sha256: string } }[];
      predicate: { buildDefinition: { resolvedDependencies: readonly { name: string; digest: object }[] } };
    };
    assert.deepEqual(
      subject.map((one) => `${one.digest.sha256}  ${one.name}`),
      readFileSync(join(release, 'SHA256SUMS'), 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.endsWith(name)),
    );
    const [source, , ...inputs] = predicate.buildDefinition.resolvedDependencies;
    assert.deepEqual(source!.digest, { gitCommit: git('-C', clone, 'rev-parse', 'HEAD').trim() });
    assert.deepEqual(inputs, [
      { name: 'base', digest: { sha256: '12ab' } },
      { name: 'builder', digest: { sha256: '34cd' } },
    ]);
  });

  test('what is said of vulnerabilities names the images and their parts, as their lists do', () => {
    const { statements } = read(join(directory, `first/kube-nvr-${VERSION}.openvex.json`)) as {
      statements: readonly { vulnerability: { name: string }; products: unknown; status: string }[];
    };
    assert.deepEqual(
      statements.map(({ vulnerability }) => vulnerability.name),
      ['CVE-2018-20796', 'CVE-2019-9192'],
    );
    const subcomponents = [{ '@id': 'pkg:deb/debian/libc6@2.36?arch=amd64' }];
    for (const { status, products } of statements) {
      assert.equal(status, 'not_affected');
      assert.deepEqual(
        products,
        PROGRAMS.map((program) => ({ '@id': `pkg:generic/${program}@1`, subcomponents })),
      );
    }
  });

  test('a release is signed with a key whose public half is in the commit, and with no other', () => {
    const key = join(directory, 'ours.key');
    const without = release(join(directory, 'none'), { key });
    assert.equal(without.status, 1);
    assert.match(without.stderr, /^error: build\/release\.pub is missing/m);
    cpSync(join(directory, 'ours.pub'), join(clone, 'build/release.pub'));
    git('-C', clone, 'add', 'build/release.pub');
    commit();
    const other = release(join(directory, 'none'), { key: join(directory, 'other.key') });
    assert.equal(other.status, 1);
    assert.match(other.stderr, /^error: build\/release\.pub is not the public key of .*other\.key$/m);
    const signed = join(directory, 'signed');
    const { status, stderr } = release(signed, { key });
    assert.equal(status, 0, stderr);
    // As docs/install-server.md tells users.
    const check = ['-V', '-q', '-p', join(directory, 'ours.pub'), '-m', 'SHA256SUMS'];
    execFileSync('minisign', check, { cwd: signed });
    execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: signed });
    appendFileSync(join(signed, 'SHA256SUMS'), '0'.repeat(64) + '  another\n');
    assert.notEqual(spawnSync('minisign', check, { cwd: signed }).status, 0);
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
    const { status, stderr } = release(join(directory, 'none'), { env: { GIT_CEILING_DIRECTORIES: directory } });
    assert.equal(status, 1);
    assert.match(stderr, /this is not a git checkout/);
  });
});
