// Generates charts/kube-nvr/values.schema.json. Unknown keys are rejected, so that typos are found. The schema of the pool's spec
// is that of RecorderPool.

import { z } from 'zod';
import { schemaOf, type Json } from '../../crds/custom-resource-definition.ts';
import { KINDS } from '../../crds/kinds.ts';

const stringMap = () => z.record(z.string(), z.string());
/** Passed on unchanged; the API server validates them. */
const objects = () => z.array(z.record(z.string(), z.unknown()));
const port = () => z.int().min(1).max(65_535);
/** RFC 1123, or empty for none. */
const nameOrEmpty = () => z.string().regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$/);

const image = () =>
  z.strictObject({
    repository: z.string().regex(/^\S+$/),
    tag: z.string().regex(/^[A-Za-z0-9._-]*$/),
    digest: z.string().regex(/^(sha256:[0-9a-f]{64})?$/),
  });

const poolName = () => ({ namespace: z.string().min(1).max(63), name: z.string().min(1).max(40) });

const monitor = () =>
  z.strictObject({
    enabled: z.boolean(),
    labels: stringMap(),
    interval: z.string().regex(/^[0-9]+(ms|s|m)$/),
    pools: z.array(z.strictObject({ ...poolName(), mode: z.enum(['Token', 'None']).optional() })),
    tlsConfig: z.record(z.string(), z.unknown()),
  });

const values = z.strictObject({
  image: image().extend({
    pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
    pullSecrets: z.array(z.strictObject({ name: z.string().min(1) })),
  }),
  recorderImage: image(),
  recorderPriorityClass: z.strictObject({
    create: z.boolean(),
    name: nameOrEmpty(),
    value: z.int().max(1_000_000_000),
  }),
  commonLabels: stringMap(),
  nameOverride: nameOrEmpty().max(40),
  fullnameOverride: nameOrEmpty().max(40),
  admissionPolicy: z.strictObject({ enabled: z.boolean() }),
  watch: z.strictObject({
    namespace: nameOrEmpty().max(63),
    allNamespaces: z.boolean(),
    namespaces: z.array(z.string().min(1).max(63)),
    databaseRows: z.boolean(),
  }),
  operator: z.strictObject({
    replicas: z.int().min(0).max(9),
    antiAffinity: z.enum(['Required', 'Preferred']),
    logLevel: z.enum(['debug', 'info', 'warn', 'error']),
    resources: z.strictObject({
      requests: z.record(z.string(), z.unknown()).optional(),
      limits: z.record(z.string(), z.unknown()).optional(),
    }),
    serviceAccount: z.strictObject({ create: z.boolean(), name: nameOrEmpty(), annotations: stringMap() }),
    nodeSelector: stringMap(),
    affinity: z.record(z.string(), z.unknown()),
    topologySpreadConstraints: objects(),
    tolerations: objects(),
    priorityClassName: nameOrEmpty(),
    podAnnotations: stringMap(),
    podLabels: stringMap(),
    podSecurityContext: z.record(z.string(), z.unknown()),
    securityContext: z.record(z.string(), z.unknown()),
    extraArgs: z.array(z.string()),
    extraEnv: objects(),
    podDisruptionBudget: z.strictObject({ enabled: z.boolean() }),
  }),
  pool: z.strictObject({
    enabled: z.boolean(),
    name: z
      .string()
      .max(40)
      .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/),
    spec: z.record(z.string(), z.unknown()),
  }),
  tokenReviews: z.strictObject({ pools: z.array(z.strictObject(poolName())) }),
  clusterNetworks: z.array(z.string().regex(/^[0-9A-Fa-f:.]+\/[0-9]{1,3}$/)),
  networkPolicy: z.strictObject({
    enabled: z.boolean(),
    clientsFrom: objects(),
    metricsFrom: objects(),
    apiServerPorts: z.array(port()).min(1),
    databasePorts: z.array(port()).min(1),
  }),
  ingress: z.strictObject({
    enabled: z.boolean(),
    className: nameOrEmpty(),
    annotations: stringMap(),
    host: nameOrEmpty(),
    playbackHost: nameOrEmpty(),
    tlsSecret: nameOrEmpty(),
  }),
  gateway: z.strictObject({
    enabled: z.boolean(),
    parentRefs: objects(),
    hostnames: z.array(z.string().min(1)),
    playbackHostnames: z.array(z.string().min(1)),
  }),
  podMonitor: monitor(),
  serviceMonitor: monitor(),
  prometheusRule: z.strictObject({
    enabled: z.boolean(),
    labels: stringMap(),
    runbookBaseUrl: z.string().regex(/^(https?:\/\/\S+)?$/),
  }),
  consoleUrl: z.string().regex(/^(https?:\/\/\S+)?$/),
  alertmanagerConfig: z.strictObject({
    enabled: z.boolean(),
    labels: stringMap(),
    receivers: z.array(z.looseObject({ name: z.string().min(1) })),
  }),
  dashboards: z.strictObject({
    enabled: z.boolean(),
    namespace: nameOrEmpty().max(63),
    labels: stringMap(),
    annotations: stringMap(),
  }),
  userRoles: z.strictObject({ enabled: z.boolean(), aggregate: z.boolean() }),
  // Charts that include this one share other values, too.
  global: z.looseObject({
    imageRegistry: z.string().regex(/^\S*$/),
    imagePullSecrets: z.array(z.union([z.string().min(1), z.strictObject({ name: z.string().min(1) })])),
  }),
});

export function valuesSchema(): Json {
  const schema = z.toJSONSchema(values, { target: 'draft-7' }) as Json;
  const pool = at(schema, 'properties', 'pool', 'properties');
  pool['spec'] = poolSpec();
  return schema;
}

function poolSpec(): Json {
  const pool = KINDS.find(({ kind }) => kind === 'RecorderPool')!;
  const spec = closed(at(schemaOf(pool), 'properties', 'spec')) as Json;
  // A chart without a pool has neither; the template requires the directory.
  delete spec['required'];
  delete at(spec, 'properties', 'archive')['required'];
  return spec;
}

/** The schema without Kubernetes extensions, and with unknown keys rejected in every object. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  // The API server sets the defaults.
  const entries = Object.entries(schema).filter(([key]) => !key.startsWith('x-kubernetes-') && key !== 'default');
  const copy: Json = Object.fromEntries(entries.map(([key, value]) => [key, closed(value)]));
  if (copy['type'] === 'object' && copy['properties'] !== undefined) copy['additionalProperties'] ??= false;
  return copy;
}

function at(schema: Json, ...path: readonly string[]): Json {
  return path.reduce((inner, key) => inner[key] as Json, schema);
}
