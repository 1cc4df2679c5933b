// What the chart gives to Prometheus and Grafana.

import { after, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { metricsTokenName } from '../../crds/names.ts';
import { METRICS_SCHEME_ANNOTATION } from '../../operator/manifests/recorder.ts';
import { CHART, Helm, helmMissing, ofKind, one, type Manifest, type Values } from './helm.ts';

const known = (...kinds: readonly string[]): readonly string[] =>
  kinds.flatMap((kind) => {
    const version = kind === 'AlertmanagerConfig' ? 'v1alpha1' : 'v1';
    return ['--api-versions', `monitoring.coreos.com/${version}/${kind}`];
  });

/** A plain rule file of Prometheus. */
const ruleFile = (name: string): Manifest => parse(readFileSync(join(CHART, `files/rules/${name}.yaml`), 'utf8'));

suite('what the chart gives to Prometheus and Grafana', { skip: helmMissing() }, () => {
  const helm = new Helm();
  after(() => helm.close());

  for (const [kind, value, count] of [
    ['PodMonitor', 'podMonitor', 2],
    ['ServiceMonitor', 'serviceMonitor', 2],
    ['PrometheusRule', 'prometheusRule', 1],
    ['AlertmanagerConfig', 'alertmanagerConfig', 1],
  ] as const) {
    test(`${kind}: off by default, left out where the cluster does not know it, and labelled as asked for`, async () => {
      const enabled = { [value]: { enabled: true, labels: { release: 'prometheus' } } };
      const found = async (values: Values, ...args: readonly string[]): Promise<readonly Manifest[]> =>
        ofKind(await helm.template(values, ...args), kind);
      assert.deepEqual(await found({}, ...known(kind)), []);
      assert.deepEqual(await found(enabled), []);
      const made = await found(enabled, ...known(kind));
      assert.deepEqual(
        made.map(({ metadata }) => metadata.labels.release),
        Array(count).fill('prometheus'),
      );
    });
  }

  test('by pod and by Service the same is scraped, under the same job and labels; both at once are refused', async () => {
    const pods = ofKind(await helm.template({ podMonitor: { enabled: true } }, ...known('PodMonitor')), 'PodMonitor');
    const services = ofKind(
      await helm.template({ serviceMonitor: { enabled: true } }, ...known('ServiceMonitor')),
      'ServiceMonitor',
    );
    assert.deepEqual(
      pods.map(({ metadata, spec }) => [metadata.name, spec.selector]),
      services.map(({ metadata, spec }) => [metadata.name, spec.selector]),
    );
    const targets = (endpoint: Manifest) => {
      const labels = endpoint.relabelings.filter(({ targetLabel }: Manifest) => targetLabel !== undefined);
      return { ...endpoint, relabelings: labels };
    };
    const [operator, recorders] = pods.map(({ spec }) => targets(spec.podMetricsEndpoints[0]));
    assert.deepEqual(
      services.map(({ spec }) => targets(spec.endpoints[0])),
      [operator, recorders],
    );
    assert.deepEqual(
      [operator, recorders].map(({ port, honorLabels, relabelings }) => [port, honorLabels, relabelings[0]]),
      [
        ['http', true, { targetLabel: 'job', replacement: 'kube-nvr-operator' }],
        ['metrics', true, recorders.relabelings[0]],
      ],
    );
    assert.deepEqual(
      recorders.relabelings.map(({ targetLabel }: Manifest) => targetLabel),
      ['__scheme__', 'job', 'node', 'pool'],
    );
    const both = { podMonitor: { enabled: true }, serviceMonitor: { enabled: true } };
    await assert.rejects(helm.template(both), /serviceMonitor\.enabled: leave it off when podMonitor\.enabled is true/);
  });

  for (const [kind, value, endpointsOf] of [
    ['PodMonitor', 'podMonitor', ({ spec }: Manifest) => spec.podMetricsEndpoints],
    ['ServiceMonitor', 'serviceMonitor', ({ spec }: Manifest) => spec.endpoints],
  ] as const) {
    test(`${kind}: each pool is scraped with its own token, beside its Secret, and trusted by its own CA`, async () => {
      const made = async (values: Values, monitor: Values = {}): Promise<readonly Manifest[]> =>
        ofKind(await helm.template({ ...values, [value]: { enabled: true, ...monitor } }, ...known(kind)), kind).slice(
          1,
        );
      const pools = [
        { namespace: 'video', name: 'north' },
        { namespace: 'dock', name: 'south', mode: 'None' },
      ];
      const monitors = await made({}, { pools });
      assert.deepEqual(
        monitors.map(({ metadata, spec }) => [metadata.namespace, spec.selector.matchLabels['kube-nvr.dev/pool']]),
        [
          ['video', 'default'],
          ['video', 'north'],
          ['dock', 'south'],
        ],
      );
      assert.equal(new Set(monitors.map(({ metadata }) => metadata.name)).size, 3);
      const [, { authorization, tlsConfig, relabelings }] = monitors.map((monitor) => endpointsOf(monitor)[0]);
      assert.deepEqual(authorization, { credentials: { name: metricsTokenName('north'), key: 'token' } });
      assert.deepEqual(tlsConfig, {
        ca: { configMap: { name: 'north-recorder-ca', key: 'ca.crt' } },
        serverName: 'north-recorder',
      });
      const annotation = METRICS_SCHEME_ANNOTATION.replaceAll(/[^a-z]/g, '_');
      assert.deepEqual(relabelings[0], {
        sourceLabels: [`__meta_kubernetes_pod_annotation_${annotation}`],
        regex: 'https',
        targetLabel: '__scheme__',
        replacement: 'https',
      });
      const open = endpointsOf(monitors[2])[0];
      assert.deepEqual(
        [open.authorization, open.tlsConfig, open.relabelings[0].targetLabel],
        [undefined, undefined, 'job'],
      );

      const spec = { archive: { hostPath: '/mnt' }, auth: { mode: 'None' } };
      const [own] = await made({ pool: { enabled: true, spec: { ...spec, metrics: { mode: 'None' } } } });
      assert.equal(endpointsOf(own)[0].authorization, undefined);
      const certificate = { pool: { enabled: true, spec: { ...spec, tls: { secretRef: { name: 'tls' } } } } };
      await assert.rejects(made(certificate), new RegExp(`${value}\\.tlsConfig: say how`));
      const [told] = await made(certificate, { tlsConfig: { insecureSkipVerify: true } });
      assert.deepEqual(endpointsOf(told)[0].tlsConfig, { insecureSkipVerify: true });
    });
  }

  test('the PrometheusRule is the rule files, and its runbooks are where one says they are', async () => {
    const files = ['recorder', 'operator'].flatMap((name) => ruleFile(name).groups);
    const made = async (prometheusRule: Values): Promise<Manifest> => {
      const objects = await helm.template(
        { prometheusRule: { enabled: true, ...prometheusRule } },
        ...known('PrometheusRule'),
      );
      return one(objects, 'PrometheusRule').spec.groups;
    };
    assert.deepEqual(await made({}), files);
    const moved: Manifest = JSON.parse(
      JSON.stringify(files).replaceAll('"docs/runbooks/', '"https://wiki.example.com/nvr/'),
    );
    assert.notDeepEqual(moved, files);
    assert.deepEqual(await made({ runbookBaseUrl: 'https://wiki.example.com/nvr/' }), moved);
    await assert.rejects(made({ runbookBaseUrl: 'wiki' }), /runbookBaseUrl/);
  });

  test('with the address of the console, alerts and dashboards link to it, those of one camera to its footage', async () => {
    const consoleUrl = 'https://nvr.example.com/';
    const values = { consoleUrl, prometheusRule: { enabled: true }, dashboards: { enabled: true } };
    const objects = await helm.template(values, ...known('PrometheusRule'));
    const ofFile = ['recorder', 'operator'].flatMap((name) => ruleFile(name).groups);
    const made = one(objects, 'PrometheusRule').spec.groups;
    for (const [g, { rules }] of made.entries()) {
      for (const [r, { annotations, ...rule }] of rules.entries()) {
        const { console_url, ...others } = annotations;
        assert.deepEqual({ ...rule, annotations: others }, ofFile[g].rules[r]);
        const ofCamera = annotations.summary.includes('$labels.camera');
        assert.equal(console_url, ofCamera ? `${consoleUrl}#/playback?c={{ $labels.camera }}` : consoleUrl);
      }
    }
    const linksOf = (name: string): Manifest => {
      const found = ofKind(objects, 'ConfigMap').find(({ metadata }) => metadata.name.endsWith(`-dashboard-${name}`));
      const { links, ...rest } = JSON.parse(found?.data[`kube-nvr-${name}.json`]);
      const { links: before, ...file } = JSON.parse(readFileSync(join(CHART, `files/dashboards/${name}.json`), 'utf8'));
      assert.deepEqual(rest, file);
      assert.deepEqual(links.slice(1), before);
      return links[0].url;
    };
    assert.equal(linksOf('fleet'), consoleUrl);
    assert.equal(linksOf('camera'), `${consoleUrl}#/playback?c=\${camera}&t=\${__from:date:iso}`);
    await assert.rejects(helm.template({ consoleUrl: 'nvr' }), /consoleUrl/);
  });

  test('the AlertmanagerConfig says what the file for an Alertmanager says, and has a route once there is a receiver', async () => {
    const file = parse(readFileSync(join(CHART, 'files/alertmanager.yaml'), 'utf8'));
    const made = async (receivers: readonly Values[]): Promise<Manifest> => {
      const values = { alertmanagerConfig: { enabled: true, receivers } };
      return one(await helm.template(values, ...known('AlertmanagerConfig')), 'AlertmanagerConfig').spec;
    };
    const texts = (matchers: readonly { name: string; matchType: string; value: string }[]): readonly string[] =>
      matchers.map(({ name, matchType, value }) => `${name}${matchType}"${value}"`);
    const rulesOf = ({ inhibitRules }: Manifest) =>
      inhibitRules.map(({ sourceMatch, targetMatch, equal }: Manifest) => ({
        source_matchers: texts(sourceMatch),
        target_matchers: texts(targetMatch),
        equal,
      }));
    const without = await made([]);
    assert.deepEqual(rulesOf(without), file.inhibit_rules);
    assert.deepEqual(Object.keys(without), ['inhibitRules']);
    const guard = { name: 'guard', webhookConfigs: [{ url: 'https://pager.example/' }] };
    const { route, receivers, ...rest } = await made([guard, { name: 'other' }]);
    assert.deepEqual(rulesOf(rest), file.inhibit_rules);
    assert.deepEqual(receivers, [guard, { name: 'other' }]);
    assert.deepEqual(
      {
        receiver: route.receiver,
        matchers: texts(route.matchers),
        group_by: route.groupBy,
        group_wait: route.groupWait,
        group_interval: route.groupInterval,
        repeat_interval: route.repeatInterval,
      },
      { receiver: 'guard', ...file.route },
    );
    await assert.rejects(made([{ webhookConfigs: [] }]), /name/);
  });

  test('dashboards are ConfigMaps that Grafana’s sidecar finds, where it looks; off by default', async () => {
    const dashboards = async (values: Values): Promise<readonly Manifest[]> =>
      ofKind(await helm.template({ dashboards: values }), 'ConfigMap').filter(({ metadata }) =>
        metadata.name.includes('-dashboard-'),
      );
    assert.deepEqual(await dashboards({}), []);
    const made = await dashboards({ enabled: true });
    for (const [index, name] of ['fleet', 'camera'].entries()) {
      const { metadata, data } = made[index];
      assert.deepEqual([metadata.namespace, metadata.labels.grafana_dashboard], ['video', '1']);
      assert.equal(
        data[`kube-nvr-${name}.json`],
        readFileSync(join(CHART, `files/dashboards/${name}.json`), 'utf8').trimEnd(),
      );
    }
    assert.equal(made.length, 2);
    const elsewhere = {
      enabled: true,
      namespace: 'grafana',
      labels: { found: 'by' },
      annotations: { grafana_folder: 'NVR' },
    };
    const { metadata } = (await dashboards(elsewhere))[0];
    assert.deepEqual(
      [metadata.namespace, metadata.labels.found, metadata.annotations],
      ['grafana', 'by', { grafana_folder: 'NVR' }],
    );
  });
});
