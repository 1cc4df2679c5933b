// What is in the images, and what is not: programs, their libraries, licences and the list of all parts; no tests, no
// sources, no secrets, no shell.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { FINDINGS, NEVER_CALLED } from '../../build/vex.ts';
import { Image, imagesMissing, PROGRAMS, ROOT, VERSION } from './image.ts';

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly licenses?: readonly { readonly expression: string }[];
}

for (const program of PROGRAMS) {
  suite(`what is in the image of the ${program}`, { skip: imagesMissing() }, () => {
    let image: Image;
    let files: readonly string[];
    let components: readonly Component[];
    let whole: Pick<Component, 'licenses'>;
    const read = (path: string): string => readFileSync(join(image.root, path), 'utf8');

    before(() => {
      image = new Image(program);
      files = image.files();
      const sbom = JSON.parse(read('usr/share/doc/kube-nvr/sbom.cdx.json')) as Record<string, unknown>;
      assert.deepEqual([sbom['bomFormat'], sbom['specVersion']], ['CycloneDX', '1.6']);
      components = sbom['components'] as readonly Component[];
      whole = (sbom['metadata'] as { component: Component }).component;
    });

    after(() => image?.close());

    /** The files of the program with a suffix. */
    const bundle = (suffix: string): readonly string[] =>
      files.filter((file) => dirname(file) === `app/${program}` && file.endsWith(suffix)).map((file) => basename(file));

    test('it has the name and labels of its version', () => {
      // As Kubernetes completes the name.
      assert.ok(image.tags.includes(`docker.io/library/kube-nvr-${program}:${VERSION}`), image.tags.join());
      const labels = image.config.config.Labels;
      assert.equal(labels['org.opencontainers.image.title'], `kube-nvr-${program}`);
      assert.equal(labels['org.opencontainers.image.version'], VERSION);
    });

    test('its label names the licences of all parts, and every part has one', () => {
      for (const { name, licenses } of components) assert.ok(licenses?.[0]?.expression, `${name} has no licence`);
      assert.equal(image.config.config.Labels['org.opencontainers.image.licenses'], whole.licenses![0]!.expression);
      assert.match(read('usr/share/doc/kube-nvr/NOTICE'), /General Public License/);
    });

    test('what is said of vulnerabilities is about parts that it has, and about functions that nothing in it calls', () => {
      const named = new Set(FINDINGS.flatMap(({ parts }) => parts));
      if (program === 'recorder')
        for (const part of named)
          assert.ok(
            components.some(({ name }) => name === part),
            part,
          );
      for (const file of files.filter((file) => /bin\/|\.so/.test(file) && !file.endsWith('/libc.so.6'))) {
        if (lstatSync(join(image.root, file)).isSymbolicLink()) continue;
        const bytes = readFileSync(join(image.root, file));
        for (const name of NEVER_CALLED) assert.ok(!bytes.includes(`\0${name}\0`), `${file} calls ${name}`);
      }
    });

    test('it contains no tests, sources, modules, repository or files of the builder', () => {
      // The page's files keep their names, because they import each other by them; they are JavaScript.
      const own = files.filter((file) => !/^app\/console\/.*\.ts$/.test(file));
      const strange = /\.(ts|test\.js|npmrc|deb|log)$|(^|\/)(\.git|node_modules|test|var\/(cache|log)|root)(\/|$)/;
      assert.deepEqual(
        own.filter((file) => strange.test(file)),
        [],
      );
    });

    test('there is nothing that runs but the programs, and nothing that gives rights', () => {
      const programs = new Set(files.filter((file) => /(^|\/)s?bin\//.test(file)).map((file) => basename(file)));
      const media = program === 'recorder' ? ['ffmpeg', 'pause', 'prlimit', 'redis-check-aof', 'redis-server'] : [];
      assert.deepEqual([...programs].sort(), [...media, 'node', program].sort());
      for (const file of files) {
        const { mode, uid } = lstatSync(join(image.root, file));
        assert.equal(mode & 0o6000, 0, `${file} gives rights`);
        assert.equal(uid, 0, `${file} is somebody’s`);
        if (!lstatSync(join(image.root, file)).isSymbolicLink())
          assert.equal(mode & 0o022, 0, `${file} can be changed`);
      }
    });

    test('it names no secret, and no place of the machine that built it', () => {
      const told = JSON.stringify(image.config);
      assert.doesNotMatch(told, /npmrc|token|password|\/tmp\/|\/home\/|\/root\//i);
      for (const name of bundle('.js.map')) assert.ok(!read(`app/${program}/${name}`).includes(ROOT), name);
    });

    test('every npm package in the bundle is in the list of parts and has its licence with it, and no other is', () => {
      const sources = bundle('.js.map').flatMap(
        (name) => (JSON.parse(read(`app/${program}/${name}`)) as { sources: readonly string[] }).sources,
      );
      const bundled = new Set(
        sources.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
      );
      const listed = components.filter(({ purl }) => purl.startsWith('pkg:npm/'));
      assert.ok(bundled.size > 10);
      // A module of nothing but types or constants leaves no position behind.
      assert.deepEqual(
        [...bundled].filter((name) => !listed.some((one) => one.name === name)),
        [],
      );
      const licences = read('usr/share/doc/kube-nvr/THIRD_PARTY_LICENSES');
      for (const { name, version, licenses } of listed) {
        assert.ok(licences.includes(`${name} ${version} (${licenses![0]!.expression})`), `${name} ${version}`);
      }
    });

    test('every library and program of the distribution is in the list of parts and has its licence with it', () => {
      const owned = new Set(
        files.filter((file) => file.startsWith('var/lib/dpkg/status.d/')).map((file) => basename(file)),
      );
      assert.ok(owned.has('libc6'), [...owned].join());
      for (const name of owned) {
        const [version] = /(?<=^Version: ).*/m.exec(read(`var/lib/dpkg/status.d/${name}`)) ?? [];
        assert.ok(
          components.some((one) => one.name === name && one.version === version && one.purl.startsWith('pkg:deb/')),
          name,
        );
        assert.ok(existsSync(join(image.root, `usr/share/doc/${name}/copyright`)), name);
      }
      assert.ok(
        components.some(({ name }) => name === 'node') && existsSync(join(image.root, 'usr/share/doc/node/LICENSE')),
      );
      if (program === 'operator') return;
      for (const name of ['ffmpeg', 'redis-server']) {
        assert.ok(
          [...components].some((one) => one.name.startsWith(name.split('-')[0]!)),
          name,
        );
      }
    });

    test('a position in the bundle is one in the sources', () => {
      const text = read(`app/${program}/main.js`);
      const usage = `Usage: ${program} [`;
      const before = text.slice(0, text.indexOf(usage)).split('\n');
      const map = new SourceMap(JSON.parse(read(`app/${program}/main.js.map`)) as SourceMapPayload);
      const entry = map.findEntry(before.length - 1, before.at(-1)!.length) as {
        originalSource: string;
        originalLine: number;
      };
      assert.ok(entry.originalSource.endsWith(`${program}/main.ts`), entry.originalSource);
      const lines = readFileSync(join(ROOT, program, 'main.ts'), 'utf8').split('\n');
      assert.ok(lines[entry.originalLine]!.includes(usage), lines[entry.originalLine]);
    });

    test('the files from which threads are started exist', () => {
      const started = [
        ...bundle('.js')
          .map((name) => read(`app/${program}/${name}`))
          .join('')
          .matchAll(/new URL\("([^"]+-worker\.js)",import\.meta\.url\)/g),
      ];
      assert.equal(started.length, program === 'recorder' ? 1 : 0);
      for (const [, name] of started) assert.ok(existsSync(join(image.root, 'app', program, name!)), name);
    });

    test('every file has the time of its source, so that another build gives the same bytes', () => {
      const made = Date.parse(image.config.created);
      for (const file of files) assert.equal(lstatSync(join(image.root, file)).mtimeMs, made, file);
    });

    test('it is small', (t) => {
      const total = files.reduce((sum, file) => sum + lstatSync(join(image.root, file)).size, 0);
      const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
      t.diagnostic(
        `${mebibytes(statSync(image.file).size)}, ${mebibytes(gzipSync(readFileSync(image.file), { level: 1 }).length)} compressed`,
      );
      assert.ok(total < (program === 'operator' ? 140 : 170) * 2 ** 20, mebibytes(total));
    });
  });
}
