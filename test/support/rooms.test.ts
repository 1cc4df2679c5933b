// Checks imports: compares the table in rooms.ts with the sources and with docs/design/layout.md.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import {
  circles,
  crossings,
  importsOf,
  readImports,
  refusal,
  type Room,
  ROOMS,
  roomTable,
  sourcesOf,
} from './rooms.ts';

const ROOT = join(import.meta.dirname, '../..');
const SOURCES = sourcesOf(ROOT, [
  'base',
  'build',
  'console',
  'crds',
  'monitoring',
  'operator',
  'recorder',
  'store',
  'tools',
]);

test('every import, except those of tests and demos, is allowed by the table of rooms', () => {
  const imports = readImports(ROOT, SOURCES);
  assert.ok(imports.length > SOURCES.length, 'the sources were read');
  assert.deepEqual(
    imports.flatMap((found) => refusal(found) ?? []),
    [],
  );
});

test('what records and what answers import nothing of each other', () => {
  assert.deepEqual(crossings(), []);
});

test('every name in the table is needed', () => {
  const imports = readImports(ROOT, SOURCES);
  const spare: string[] = [];
  for (const room of ROOMS) {
    const own = imports.filter(({ file }) => file.startsWith(`${room.name}/`));
    const without = (change: Partial<Room>): boolean => {
      const table = ROOMS.map((other) => (other === room ? { ...room, ...change } : other));
      return own.some((found) => refusal(found, table) !== undefined);
    };
    const { rooms, packages } = room;
    for (const name of packages) {
      if (!without({ packages: packages.filter((other) => other !== name) })) spare.push(`${room.name}: ${name}`);
    }
    if (rooms === 'all') continue;
    for (const name of rooms) {
      if (!without({ rooms: rooms.filter((other) => other !== name) })) spare.push(`${room.name}: ${name}`);
    }
  }
  assert.deepEqual(spare, []);
});

test('a room imports only rooms that stand before it', () => {
  for (const [index, { name, rooms }] of ROOMS.entries()) {
    const before = ROOMS.slice(0, index).map((room) => room.name);
    if (rooms !== 'all')
      for (const other of rooms)
        assert.ok(before.includes(other.replace(/^type /, '')), `${name} stands before ${other}`);
  }
});

test('no two files import each other, directly or over others, not even for a type', () => {
  assert.deepEqual(circles(readImports(ROOT, SOURCES)), []);
  const planted = ['base/a.ts', 'base/b.ts', 'base/c.ts'].flatMap((file, i) =>
    importsOf(file, `import type { A } from './${'bca'[i]}.ts';`),
  );
  assert.deepEqual(circles(planted), ['base/a.ts -> base/b.ts -> base/c.ts -> base/a.ts']);
});

test('imports that the table does not name are refused, with file, line and rule', () => {
  const planted: [file: string, text: string][] = [
    ['recorder/config/a.ts', "import { app } from '../api/app.ts';"],
    ['recorder/cluster/a.ts', "import { Jobs } from '../jobs/jobs.ts';"],
    ['recorder/cluster/b.ts', "import type { LiveHub } from '../live/hub.ts';"],
    ['recorder/api/a.ts', "import { CameraSet } from '../run/recorder.ts';"],
    ['recorder/rtsp/a.ts', "import { request } from 'undici';"],
    ['recorder/rtsp/b.ts', "import net from 'node:net';"],
    ['recorder/archive/a.ts', "import { setup } from '../../build/chart/chart.ts';"],
    ['operator/plan/a.ts', "const undici = await import('undici');"],
    ['recorder/mp4/a.ts', "export * from '../cameras/camera-set.ts';"],
    ['operator/kube/a.ts', "import { startOperator } from '../operator.ts';"],
    ['recorder/jobs/a.ts', "import { plan } from '../../operator/plan/plan.ts';"],
    ['recorder/run/b.ts', "import { chartReadme } from '../../build/chart/readme.ts';"],
    ['operator/a.ts', "import { Archive } from '../recorder/archive/archive.ts';"],
    ['operator/observe/a.ts', "import { V1Pod } from '@kubernetes/client-node';"],
    ['recorder/camera/a.ts', "import '../../test/support/child.ts';"],
    ['base/a.ts', "import {\n  a,\n  b,\n} from '../crds/camera.ts';"],
  ];
  for (const [file, text] of planted) {
    const [found, ...more] = importsOf(file, `// A comment.\n${text}\n`);
    assert.ok(found && more.length === 0, text);
    assert.match(refusal(found) ?? 'allowed', new RegExp(`^${file}:2: \\S+ may not import`), text);
  }
  const [allowed] = importsOf('recorder/camera/a.ts', "import { Reach } from '../reach/reach.ts';");
  assert.equal(allowed && refusal(allowed), undefined);
  const [homeless] = importsOf('elsewhere/a.ts', "import { a } from './b.ts';");
  assert.equal(homeless && refusal(homeless), 'elsewhere/a.ts:1: belongs to no room');
});

test('the table of docs/design/layout.md is that of rooms.ts: else put what this prints in its place', async () => {
  const file = join(ROOT, 'docs/design/layout.md');
  const options = { ...(await resolveConfig(file)), parser: 'markdown' };
  const table = await format(roomTable(), options);
  assert.ok(readFileSync(file, 'utf8').includes(table), table);
});

test('the folders and files of the map in docs/design/layout.md are there', () => {
  const page = readFileSync(join(ROOT, 'docs/design/layout.md'), 'utf8');
  const map = page.split('\n## Which file\n')[1]?.split('\n## ')[0] ?? '';
  const rows = map.matchAll(/^\| [^`]*\| `(\S+)\/` +\| `(\S+)` +\| `(\S+)` +\|$/gm);
  const files = [...rows].flatMap(([, folder = '', ...names]) =>
    [folder, ...names].map((name) => (name.includes('/') || name === folder ? name : join(folder, name))),
  );
  assert.ok(files.length > 60);
  assert.deepEqual(
    files.filter((file) => !existsSync(join(ROOT, file))),
    [],
  );
});
