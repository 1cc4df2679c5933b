// The kinds that the store keeps: ours, with the schemas of their CRDs, and those of Kubernetes that operator and recorders use.

import { toCustomResourceDefinition } from '../crds/custom-resource-definition.ts';
import { KINDS, type KindDefinition } from '../crds/kinds.ts';
import { GROUP, VERSION } from '../crds/names.ts';
import type { Schema } from './schema.ts';

export interface StoredKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  /** Of the whole object. */
  readonly schema: Schema;
  /** Whether the status is a subresource, and `metadata.generation` counts changes of the spec. */
  readonly hasStatus: boolean;
  /** Whether its fields have managers, so that it can be applied. */
  readonly isManaged: boolean;
  /** Whether a replace must name the version that it replaces. */
  readonly selectableFields: readonly string[];
  /** Whether it is encrypted in etcd. */
  readonly isSealed: boolean;
}

const TEXT: Schema = { type: 'string', maxLength: 1024 };
const TEXTS: Schema = { type: 'object', additionalProperties: { type: 'string' } };

/** https://kubernetes.io/docs/reference/kubernetes-api/definitions/object-meta-v1-meta/: the fields that are managed one by one. */
const METADATA: Schema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    name: TEXT,
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { type: 'array', items: TEXT, 'x-kubernetes-list-type': 'set' },
    ownerReferences: {
      type: 'array',
      items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
    },
  },
};

function ours(definition: KindDefinition): StoredKind {
  const { spec } = toCustomResourceDefinition(definition) as unknown as {
    spec: { versions: readonly [{ schema: { openAPIV3Schema: Schema } }] };
  };
  const { openAPIV3Schema: schema } = spec.versions[0].schema;
  const name = schema.properties?.['metadata']?.properties?.['name'] ?? TEXT;
  const metadata = { ...METADATA, properties: { ...METADATA.properties, name } };
  return {
    group: GROUP,
    version: VERSION,
    kind: definition.kind,
    plural: definition.plural,
    schema: { ...schema, properties: { ...schema.properties, metadata } },
    hasStatus: true,
    isManaged: true,
    selectableFields: definition.selectableFields,
    isSealed: false,
  };
}

/** https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/lease-v1/ */
const LEASE: StoredKind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  schema: {
    type: 'object',
    properties: {
      apiVersion: TEXT,
      kind: TEXT,
      metadata: METADATA,
      spec: {
        type: 'object',
        properties: {
          holderIdentity: TEXT,
          leaseDurationSeconds: { type: 'integer', minimum: 1 },
          leaseTransitions: { type: 'integer', minimum: 0 },
          acquireTime: { type: 'string', format: 'date-time' },
          renewTime: { type: 'string', format: 'date-time' },
        },
      },
    },
  },
  hasStatus: false,
  // It is renewed all the time, and never applied.
  isManaged: false,
  selectableFields: [],
  isSealed: false,
};

/** https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1/ */
const SECRET: StoredKind = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  schema: {
    type: 'object',
    properties: { apiVersion: TEXT, kind: TEXT, metadata: METADATA, type: TEXT, data: TEXTS, stringData: TEXTS },
  },
  hasStatus: false,
  isManaged: true,
  selectableFields: [],
  isSealed: true,
};

export const STORED_KINDS: readonly StoredKind[] = [...KINDS.map(ours), LEASE, SECRET];

export const apiVersionOf = ({ group, version }: StoredKind): string =>
  group === '' ? version : `${group}/${version}`;

/** `cameras.kube-nvr.dev` */
export const resourceOf = ({ group, plural }: StoredKind): string => (group === '' ? plural : `${plural}.${group}`);
