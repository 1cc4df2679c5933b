// The import rules of docs/design/layout.md, tried on a small copy of the house: every room imports every other.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');

/** What each room may import, besides itself and npm packages. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  'recorder/rtsp': ['base'],
  'recorder/rtp': ['base', 'recorder/rtsp'],
  'recorder/codec': ['base', 'recorder/rtsp', 'recorder/rtp'],
  'recorder/mp4': ['base', 'recorder/rtsp', 'recorder/rtp', 'recorder/codec'],
  'recorder/camera': ['base', 'recorder/rtsp', 'recorder/rtp', 'recorder/codec', 'recorder/mp4'],
};
MAY_IMPORT['recorder/archive'] = [...MAY_IMPORT['recorder/camera']!, 'recorder/camera'];
MAY_IMPORT['recorder/live'] = MAY_IMPORT['recorder/archive'];
MAY_IMPORT['recorder/jobs'] = [...MAY_IMPORT['recorder/archive'], 'recorder/archive', 'recorder/live'];
MAY_IMPORT['recorder/database'] = [...MAY_IMPORT['recorder/archive'], 'recorder/archive'];
MAY_IMPORT['recorder/http'] = ['base'];
MAY_IMPORT['recorder/playback'] = [
  ...MAY_IMPORT['recorder/archive'],
  'recorder/archive',
  'recorder/live',
  'recorder/http',
];
MAY_IMPORT['recorder/license'] = ['base'];
MAY_IMPORT['recorder/onvif'] = ['base', 'recorder/rtsp'];
MAY_IMPORT['recorder/still'] = [...MAY_IMPORT['recorder/jobs'], 'recorder/jobs'];
MAY_IMPORT['recorder/api'] = [
  ...MAY_IMPORT['recorder/still'],
  'recorder/still',
  'recorder/onvif',
  'recorder/license',
  'recorder/http',
  'recorder/database',
];

/** The same for the contract and the operator. */
const OPERATOR_MAY_IMPORT: Record<string, readonly string[]> = {
  crds: ['base'],
  'operator/kube': ['base', 'crds'],
  'operator/plan': ['base', 'crds'],
  'operator/manifests': ['base', 'crds'],
};
OPERATOR_MAY_IMPORT['operator/observe'] = Object.keys(OPERATOR_MAY_IMPORT).concat('base');
OPERATOR_MAY_IMPORT['operator/controllers'] = [...OPERATOR_MAY_IMPORT['operator/observe'], 'operator/observe'];

function lint(files: Record<string, string>): { file: string; rule: string }[] {
  const house = mkdtempSync(join(tmpdir(), 'import-rules-'));
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(house, file)), { recursive: true });
      writeFileSync(join(house, file), text);
    }
    copyFileSync(join(ROOT, '.oxlintrc.json'), join(house, '.oxlintrc.json'));
    const run = spawnSync(join(ROOT, 'node_modules/.bin/oxlint'), ['--format', 'json'], {
      cwd: house,
      encoding: 'utf8',
    });
    const report = JSON.parse(run.stdout) as { diagnostics: { filename: string; code: string }[] };
    return report.diagnostics.map(({ filename, code }) => ({
      file: relative(house, join(house, filename)),
      rule: code.replace(/^.*\((.*)\)$/, '$1'),
    }));
  } finally {
    rmSync(house, { recursive: true });
  }
}

test('a room imports only what stands to its left', () => {
  const files: Record<string, string> = {};
  const forbidden: string[] = [];
  for (const [room, allowed] of Object.entries(MAY_IMPORT)) {
    for (const other of [...Object.keys(MAY_IMPORT), 'operator/plan', 'test/support']) {
      if (other === room) continue;
      const file = `${room}/from-${other.replace('/', '-')}.ts`;
      files[file] = `import { a } from '${relative(room, other)}/door.ts';\nexport const b = a;\n`;
      if (!allowed.includes(other)) forbidden.push(file);
    }
    files[`${room}/from-main.ts`] = `import { a } from '${relative(room, 'recorder')}/main.ts';\nexport const b = a;\n`;
    forbidden.push(`${room}/from-main.ts`);
  }
  const refused = lint(files).filter(({ rule }) => rule === 'no-restricted-imports');
  assert.deepEqual(refused.map(({ file }) => file).sort(), forbidden.sort());
});

test('a room of the operator imports only what stands to its left, and never the recorder', () => {
  const files: Record<string, string> = {};
  const forbidden: string[] = [];
  const others = ['base', ...Object.keys(OPERATOR_MAY_IMPORT), 'recorder/cluster', 'recorder/mp4', 'test/support'];
  for (const [room, allowed] of Object.entries(OPERATOR_MAY_IMPORT)) {
    for (const other of others) {
      if (other === room) continue;
      const file = `${room}/from-${other.replace('/', '-')}.ts`;
      files[file] = `import { a } from '${relative(room, other)}/door.ts';\nexport const b = a;\n`;
      if (!allowed.includes(other)) forbidden.push(file);
    }
  }
  const refused = lint(files).filter(({ rule }) => rule === 'no-restricted-imports');
  assert.deepEqual(refused.map(({ file }) => file).sort(), forbidden.sort());
});

test('only operator/kube runs the Kubernetes client; other rooms of the operator may have its types', () => {
  const value = `import { V1Pod } from '@kubernetes/client-node';\nexport const b = V1Pod;\n`;
  const type = `import type { V1Pod } from '@kubernetes/client-node';\nexport type B = V1Pod;\n`;
  const rooms = ['kube', 'plan', 'manifests', 'observe', 'controllers'];
  const found = lint({
    'crds/value.ts': value,
    'recorder/cluster/value.ts': value,
    ...Object.fromEntries(rooms.map((room) => [`operator/${room}/value.ts`, value])),
    ...Object.fromEntries(rooms.map((room) => [`operator/${room}/type.ts`, type])),
  }).filter(({ rule }) => rule === 'no-restricted-imports');
  const expected = ['controllers', 'manifests', 'observe', 'plan'].map((room) => `operator/${room}/value.ts`);
  assert.deepEqual(found.map(({ file }) => file).sort(), ['crds/value.ts', ...expected, 'recorder/cluster/value.ts']);
});

test('the protocol rooms know no sockets, files, timers or loggers', () => {
  const files: Record<string, string> = {};
  for (const room of ['rtsp', 'rtp', 'codec', 'mp4']) {
    for (const module of ['node:net', 'node:fs', 'node:fs/promises', 'node:timers', 'pino', 'fastify']) {
      files[`recorder/${room}/${module.replace(/\W/g, '-')}.ts`] =
        `import * as a from '${module}';\nexport const b = a;\n`;
    }
  }
  const refused = lint(files).filter(({ rule }) => rule === 'no-restricted-imports');
  assert.deepEqual(refused.map(({ file }) => file).sort(), Object.keys(files).sort());
});

test('files that import each other are refused', () => {
  const found = lint({
    'recorder/mp4/a.ts': `import { b } from './b.ts';\nexport const a = (): unknown => b;\n`,
    'recorder/mp4/b.ts': `import { a } from './a.ts';\nexport const b = (): unknown => a;\n`,
  });
  assert.ok(found.some(({ rule }) => rule === 'no-cycle'));
});

test('only a composition root reads the environment', () => {
  const text = `export const a = process.env['A'];\n`;
  const found = lint({ 'recorder/camera/a.ts': text, 'recorder/main.ts': text });
  assert.deepEqual(found, [{ file: 'recorder/camera/a.ts', rule: 'no-process-env' }]);
});
