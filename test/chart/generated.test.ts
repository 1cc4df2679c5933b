// The files of the chart that follow from the rest of the repository are up to date.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { CHARTS, generatedFiles } from '../../build/chart/chart.ts';
import { chartReadme } from '../../build/chart/readme.ts';
import { valuesSchema } from '../../build/chart/values-schema.ts';

const CHART = join(CHARTS, 'kube-nvr');

type Json = Record<string, unknown>;

test('kinds, rights, policy, version, schema and README are those of their sources: else run node build/generate-chart.ts', async () => {
  const files = await generatedFiles();
  assert.ok(files.size >= 6);
  for (const [name, text] of files) assert.equal(readFileSync(join(CHARTS, name), 'utf8'), text, name);
});

test('the version is in one place: that of package.json is that of chart and image', () => {
  const { version } = JSON.parse(readFileSync(join(CHART, '../../package.json'), 'utf8')) as { version: string };
  for (const name of ['kube-nvr', 'kube-nvr-crds']) {
    const chart = parse(readFileSync(join(CHARTS, name, 'Chart.yaml'), 'utf8')) as Json;
    assert.deepEqual([chart['version'], chart['appVersion']], [version, version], name);
  }
});

test('a value without a comment is no value: the README describes all of them', () => {
  assert.throws(() => chartReadme('# A.\na: 1\nb:\n  # C.\n  c: 2\n  d: 3\n'), /values\.yaml: b\.d has no comment/);
  const readme = chartReadme('# A | B.\na: 1\n# G.\nb:\n  # C.\n  # D.\n  c: text\n');
  assert.ok(readme.includes('| `a` | `1` | A \\| B. |\n| `b` |  | G. |\n| `b.c` | `text` | C. D. |\n'), readme);
});

test('values.yaml and the schema have the same keys', () => {
  const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Json;
  const check = (schema: Json, value: Json, path: string): void => {
    const known = Object.keys(schema['properties'] as Json);
    assert.deepEqual(known.sort(), Object.keys(value).sort(), path);
    for (const key of known) {
      const inner = (schema['properties'] as Json)[key] as Json;
      // The pool's spec is the CRD's, of which values.yaml has a part.
      if (inner['properties'] !== undefined && `${path}${key}` !== 'pool.spec') {
        check(inner, value[key] as Json, `${path}${key}.`);
      }
    }
  };
  check(valuesSchema(), values, '');
});
