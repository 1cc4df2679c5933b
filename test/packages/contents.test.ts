// What build/packages writes, read with dpkg-deb and rpm: for both architectures, of which one cannot run here.

import { before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { configurationRows } from '../../recorder/config/reference.ts';
import { LONG } from '../support/variant.ts';
import { ARCHITECTURES, ownPackages, ROOT, VERSION } from './packages.ts';
import { serverMissing } from './server.ts';

/** As ELF files name processors. */
const MACHINES = { amd64: 62, arm64: 183 } as const;
const NODE = 'usr/lib/recorder/node';

const output = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
const lines = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '');

suite('the packages', { skip: serverMissing() }, () => {
  let directory: string;

  before(() => {
    ({ directory } = ownPackages());
  });

  test('there are both kinds for both architectures, a bill of materials, and the sums of all', () => {
    const names = ARCHITECTURES.flatMap(([deb, rpm]) => [
      `recorder_${VERSION}_${deb}.deb`,
      `recorder-${VERSION}.${rpm}.rpm`,
    ]);
    assert.deepEqual(readdirSync(directory).sort(), [...names, 'SHA256SUMS', 'recorder.cdx.json'].sort());
    execFileSync('sha256sum', ['--check', '--quiet', '--strict', 'SHA256SUMS'], { cwd: directory });
    assert.equal(lines(readFileSync(join(directory, 'SHA256SUMS'), 'utf8')).length, names.length + 1);
  });

  for (const [arch, rpmArch] of ARCHITECTURES) {
    suite(`for ${arch}`, () => {
      const deb = (): string => join(directory, `recorder_${VERSION}_${arch}.deb`);
      const rpm = (): string => join(directory, `recorder-${VERSION}.${rpmArch}.rpm`);

      test('they need libraries and systemd, and recommend ffmpeg and Redis', () => {
        const field = (name: string): string => output('dpkg-deb', '--field', deb(), name).trim();
        assert.equal(field('Architecture'), arch);
        assert.equal(field('Depends'), 'libc6 (>= 2.28), libstdc++6, systemd');
        assert.equal(field('Recommends'), 'ffmpeg, redis-server');
        assert.equal(output('rpm', '--query', '--package', '--queryformat', '%{ARCH}', rpm()), rpmArch);
        assert.deepEqual(lines(output('rpm', '--query', '--package', '--recommends', rpm())), [
          '/usr/bin/ffmpeg',
          'redis',
        ]);
      });

      test('both install the same files, which belong to root and which only root can change', () => {
        const listed = lines(output('dpkg-deb', '--contents', deb())).map((line) => line.split(/\s+/));
        for (const [mode = '', owner, , , , path = ''] of listed) {
          assert.equal(owner, 'root/root', path);
          if (!mode.startsWith('l')) assert.match(mode, /^[d-]rw[x-]r-[x-][r-]-[x-]$/, path);
        }
        const files = listed
          .filter(([mode = '']) => !mode.startsWith('d'))
          .map(([, , , , , path = '']) => path.slice(1));
        const places =
          /^\/(etc\/recorder\/config\.yaml|usr\/bin\/(recorder|kubectl-nvr)|usr\/lib\/(recorder|sysctl\.d|systemd|sysusers\.d|tmpfiles\.d)\/|usr\/share\/(bash-completion|doc|man)\/)/;
        assert.deepEqual(
          files.filter((file) => !places.test(file) || /\.test\.|node_modules/.test(file)),
          [],
        );
        const inRpm = lines(output('rpm', '--query', '--package', '--list', rpm()));
        assert.deepEqual(
          files.filter((file) => !inRpm.includes(file)),
          [],
        );
      });

      test('config.yaml is a file of configuration to both', (t) => {
        const control = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
        t.after(() => rmSync(control, { recursive: true }));
        execFileSync('dpkg-deb', ['--control', deb(), control]);
        assert.equal(readFileSync(join(control, 'conffiles'), 'utf8').trim(), '/etc/recorder/config.yaml');
        assert.equal(output('rpm', '--query', '--package', '--configfiles', rpm()).trim(), '/etc/recorder/config.yaml');
      });

      test('Node is that of the images, for this architecture; pages and parts describe what is inside', (t) => {
        const root = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
        t.after(() => rmSync(root, { recursive: true }));
        execFileSync('dpkg-deb', ['--extract', deb(), root]);
        const header = Buffer.alloc(20);
        readSync(openSync(join(root, NODE), 'r'), header);
        assert.equal(header.readUInt16LE(18), MACHINES[arch]);

        const [, node] = /^ARG NODE_VERSION=(.+)$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))!;
        const { components, metadata } = JSON.parse(
          readFileSync(join(root, 'usr/share/doc/recorder/sbom.cdx.json'), 'utf8'),
        ) as {
          metadata: { component: { licenses: readonly [{ expression: string }] } };
          components: readonly { name: string; version: string }[];
        };
        assert.equal(
          output('rpm', '--query', '--package', '--queryformat', '%{LICENSE}', rpm()),
          metadata.component.licenses[0].expression,
        );
        assert.equal(components.find(({ name }) => name === 'node')?.version, node);
        const program = join(root, 'usr/lib/recorder/recorder');
        const bundled = readdirSync(program)
          .filter((name) => name.endsWith('.js.map'))
          .flatMap((name) => (JSON.parse(readFileSync(join(program, name), 'utf8')) as { sources: string[] }).sources)
          .flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
        assert.ok(bundled.length > 100);
        const listed = new Set(components.map(({ name }) => name));
        assert.deepEqual(
          bundled.filter((name) => !listed.has(name)),
          [],
        );

        const page = (path: string): string =>
          gunzipSync(readFileSync(join(root, 'usr/share/man', path)))
            .toString()
            .replaceAll('\\-', '-');
        const settings = page('man5/recorder.5.gz');
        for (const { key } of configurationRows()) assert.ok(settings.includes(`.B ${key.replaceAll('`', '')}\n`), key);
        assert.match(page('man8/recorder.8.gz'), /--check-config[^]*\.SH RECORDER PROBE\n/);
      });
    });
  }

  const short = !LONG && 'two builds take a minute; LONG=1 runs them';
  test('two builds are the same, byte by byte', { skip: short }, (t) => {
    const again = mkdtempSync(join(tmpdir(), 'kube-nvr-test-'));
    t.after(() => rmSync(again, { recursive: true }));
    const sums = ['first', 'second'].map((name) => {
      execFileSync(join(ROOT, 'build/packages'), ['--output', join(again, name)], {
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      return readFileSync(join(again, name, 'SHA256SUMS'), 'utf8');
    });
    assert.equal(sums[1], sums[0]);
  });
});
