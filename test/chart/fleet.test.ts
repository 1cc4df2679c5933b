// The examples for many sites (docs/fleet): what they name exists, and what a site gets from them is what the page says.

import { after, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { Helm, helmMissing, type Manifest, type Values } from './helm.ts';

const FLEET = join(import.meta.dirname, '../../docs/fleet');
const read = (name: string): string => readFileSync(join(FLEET, name), 'utf8');
const valuesOf = (nodes: string): Values => parse(read(`values/${nodes}.yaml`)) as Values;
const NODES = readdirSync(join(FLEET, 'values')).map((file) => file.replace('.yaml', ''));
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  readonly version: string;
};

/** As Argo CD does with the labels of a cluster; everything that stays is not filled in. */
function applicationOf(site: string, labels: Readonly<Record<string, string>>): Manifest {
  const { spec } = parse(read('argocd.yaml'));
  const text = JSON.stringify(spec.template)
    .replaceAll('{{.name}}', site)
    .replaceAll(/\{\{index \.metadata\.labels \\"([^"\\]+)\\"\}\}/g, (_, label: string) => labels[label] ?? '?');
  assert.doesNotMatch(text, /\{\{|\?/);
  return JSON.parse(text);
}

/** As Flux does with `postBuild.substitute`. */
function releasesOf(site: string, nodes: string): Manifest[] {
  const text = read('flux.yaml').replaceAll('${site}', site).replaceAll('${nodes}', nodes);
  return parseAllDocuments(text).map((document) => document.toJS());
}

suite('many sites', { skip: helmMissing() }, () => {
  const helm = new Helm();
  after(() => helm.close());
  const poolOf = async (values: Values, ...args: string[]): Promise<Manifest> =>
    (await helm.template(values, ...args)).find(({ kind }: Manifest) => kind === 'RecorderPool');

  for (const nodes of NODES) {
    test(`a site of ${nodes}: Argo CD renders both charts, with values that there are and the name of the site`, async () => {
      const labels = { 'kube-nvr.dev/nodes': nodes, 'kube-nvr.dev/wave': '2' };
      const { metadata, spec } = applicationOf('shop-17', labels);
      assert.deepEqual([metadata.name, metadata.labels], ['kube-nvr-shop-17', { 'kube-nvr.dev/wave': '2' }]);
      const charts = spec.sources.filter(({ chart }: Manifest) => chart);
      assert.deepEqual(
        charts.map(({ chart, targetRevision }: Manifest) => `${chart} ${targetRevision}`),
        [`kube-nvr-crds ${version}`, `kube-nvr ${version}`],
      );
      const { valueFiles, parameters } = charts[1].helm;
      assert.ok(existsSync(join(FLEET, valueFiles[0].replace('$fleet/', ''))), valueFiles[0]);
      const set = parameters.flatMap(({ name, value }: Manifest) => ['--set-string', `${name}=${value}`]);
      const pool = await poolOf(valuesOf(nodes), ...set);
      assert.equal(pool.spec.site, 'shop-17');
      assert.deepEqual(pool.spec.archive.retention, { minFree: '15%' });
    });

    test(`a site of ${nodes}: Flux installs the kinds first, with values that there are and the name of the site`, async () => {
      const objects = releasesOf('shop-17', nodes);
      const [kinds, chart] = objects.filter(({ kind }) => kind === 'HelmRelease').map(({ spec }) => spec);
      assert.deepEqual(
        [kinds.chart.spec, chart.chart.spec].map((one) => `${one.chart} ${one.version}`),
        [`kube-nvr-crds ${version}`, `kube-nvr ${version}`],
      );
      assert.deepEqual(chart.dependsOn, [{ name: 'kube-nvr-crds' }]);
      const made = parse(read('kustomization.yaml')).configMapGenerator.find(
        ({ name }: Manifest) => name === chart.valuesFrom[0].name,
      );
      assert.deepEqual(made.files, [`values.yaml=values/${nodes}.yaml`]);
      const { site } = chart.values.pool.spec;
      assert.equal((await poolOf(valuesOf(nodes), '--set-string', `pool.spec.site=${site}`)).spec.site, 'shop-17');
    });
  }

  test('a site of one node has one replica of the operator, that of two nodes has two', async () => {
    const replicas = await Promise.all(
      ['one-node', 'two-nodes'].map(async (nodes) => {
        const objects = await helm.template(valuesOf(nodes));
        return objects.find(({ kind }: Manifest) => kind === 'Deployment').spec.replicas;
      }),
    );
    assert.deepEqual(replicas, [1, 2]);
  });
});
