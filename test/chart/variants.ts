// All sorts of values: what every object that the chart makes is looked at with.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Values } from './helm.ts';

export const POOL = { enabled: true, spec: { archive: { hostPath: '/mnt/archive' } } };
const MONITORING_KNOWN = ['PodMonitor', 'ServiceMonitor', 'PrometheusRule'].flatMap((kind) => [
  '--api-versions',
  `monitoring.coreos.com/v1/${kind}`,
]);

interface Variant {
  readonly name: string;
  readonly values: Values;
  readonly args?: readonly string[];
}

/** As docs/fleets.md shows it. */
function siteOf(nodes: string): Values {
  const file = join(import.meta.dirname, `../../docs/fleet/values/${nodes}.yaml`);
  return parse(readFileSync(file, 'utf8')) as Values;
}

export const VARIANTS: readonly Variant[] = [
  { name: 'no values', values: {} },
  { name: 'a pool', values: { pool: POOL } },
  { name: 'a site of one node', values: siteOf('one-node') },
  { name: 'a site of two nodes', values: siteOf('two-nodes') },
  { name: 'all namespaces', values: { watch: { allNamespaces: true, namespaces: ['a', 'b'] } } },
  { name: 'another namespace', values: { watch: { namespace: 'footage' }, pool: POOL } },
  {
    name: 'tokens of the API server',
    values: {
      pool: { ...POOL, spec: { ...POOL.spec, auth: { mode: 'Kubernetes' } } },
      tokenReviews: { pools: [{ namespace: 'other', name: 'north' }] },
      serviceMonitor: { enabled: true },
    },
    args: MONITORING_KNOWN,
  },
  {
    name: 'everything on',
    values: {
      pool: POOL,
      global: { imageRegistry: 'registry.example.com', imagePullSecrets: ['mirror', { name: 'other' }], shared: true },
      commonLabels: { team: 'video' },
      image: { digest: `sha256:${'0'.repeat(64)}`, pullSecrets: [{ name: 'registry' }] },
      operator: {
        antiAffinity: 'Required',
        nodeSelector: { a: 'b' },
        podAnnotations: { a: 'b' },
        podLabels: { a: 'b' },
        priorityClassName: 'system-cluster-critical',
        serviceAccount: {
          create: true,
          name: 'nvr',
          annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/a' },
        },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }],
            },
          },
        },
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
        ],
        podSecurityContext: { fsGroup: 1 },
        securityContext: { seLinuxOptions: { type: 'container_t' } },
        extraArgs: ['--log-level=debug'],
        extraEnv: [{ name: 'TZ', value: 'UTC' }],
      },
      ingress: { enabled: true, host: 'nvr.example.com', playbackHost: 'play.example.com', tlsSecret: 'tls' },
      gateway: {
        enabled: true,
        parentRefs: [{ name: 'public' }],
        hostnames: ['nvr.example.com'],
        playbackHostnames: ['p.example.com'],
      },
      podMonitor: {
        enabled: true,
        labels: { release: 'prometheus' },
        pools: [{ namespace: 'tenant', name: 'north' }],
        tlsConfig: { insecureSkipVerify: true },
      },
      prometheusRule: { enabled: true, runbookBaseUrl: 'https://wiki.example.com/runbooks' },
      consoleUrl: 'https://nvr.example.com',
      alertmanagerConfig: { enabled: true, receivers: [{ name: 'guard' }] },
      dashboards: { enabled: true, annotations: { grafana_folder: 'NVR' } },
      networkPolicy: { clientsFrom: [{ ipBlock: { cidr: '10.0.0.0/8' } }], metricsFrom: [{ namespaceSelector: {} }] },
      userRoles: { aggregate: true },
    },
    args: MONITORING_KNOWN,
  },
  {
    name: 'everything off',
    values: {
      admissionPolicy: { enabled: false },
      networkPolicy: { enabled: false },
      operator: { podDisruptionBudget: { enabled: false }, tolerations: [] },
      userRoles: { enabled: false },
    },
  },
];
