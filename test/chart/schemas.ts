// JSON Schemas of the kinds that the chart makes, for kubeconform: of Kubernetes from its OpenAPI document, of others from
// their CRDs. Fields that a kind does not have are refused, as the API server refuses or drops them.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { toCustomResourceDefinition } from '../../crds/custom-resource-definition.ts';
import { KINDS } from '../../crds/kinds.ts';
import { cacheDirectory, kubernetesVersion, requiredVersion } from '../cluster/programs.ts';

/** Of OpenAPI and of CRDs: what of them is looked at here. */
interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-group-version-kind'?: readonly Kind[];
}

interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface CustomResourceDefinition {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

/** As `hack/setup helm` names them. */
const FILES = {
  kubernetes: () => `kubernetes-${kubernetesVersion()}.json`,
  gatewayApi: () => `gateway-api-${requiredVersion('schemas', 'sigs.k8s.io/gateway-api')}.yaml`,
  prometheusOperator: () =>
    `prometheus-operator-${requiredVersion('schemas', 'github.com/prometheus-operator/prometheus-operator')}.yaml`,
};
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';

const pathOf = (source: keyof typeof FILES): string => join(cacheDirectory(), 'schemas', FILES[source]());

/** Why tests that need the schemas are left out; false when they are not. */
export const schemasMissing = (): string | false => {
  const missing = (Object.keys(FILES) as (keyof typeof FILES)[]).filter((source) => !existsSync(pathOf(source)));
  return missing.length > 0 && `not here: schemas of ${missing.join(', ')}; hack/setup helm brings them`;
};

/** Writes them into the directory; returns where they are, as kubeconform wants it. */
export function writeSchemas(directory: string): string {
  const definitionsFile = join(directory, 'definitions.json');
  const write = ({ group, version, kind }: Kind, schema: Schema): void => {
    // kubeconform takes what stands before the first slash of apiVersion for the group: of the oldest kinds, the version.
    const home = join(directory, group === '' ? version : group);
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, `${kind.toLowerCase()}-${version}.json`), JSON.stringify(schema));
  };
  const reference = (name: string): Schema => ({ $ref: `${pathToFileURL(definitionsFile).href}#/definitions/${name}` });

  const { definitions } = JSON.parse(readFileSync(pathOf('kubernetes'), 'utf8')) as {
    definitions: Readonly<Record<string, Schema>>;
  };
  const strict = Object.entries(definitions).map(([name, schema]) => [name, closed(schema)] as const);
  writeFileSync(definitionsFile, JSON.stringify({ definitions: Object.fromEntries(strict) }));
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of strict) {
    for (const kind of kinds) write(kind, reference(name));
  }

  const others = (['gatewayApi', 'prometheusOperator'] as const).flatMap((source) =>
    parseAllDocuments(readFileSync(pathOf(source), 'utf8')).map((document) => document.toJS() as unknown),
  );
  const own = KINDS.map(toCustomResourceDefinition);
  for (const { spec } of [...others, ...own] as readonly CustomResourceDefinition[]) {
    for (const { name, schema } of spec.versions) {
      const { properties, ...rest } = closed(schema.openAPIV3Schema);
      write(
        { group: spec.group, version: name, kind: spec.names.kind },
        { ...rest, properties: { ...properties, metadata: reference(OBJECT_META) } },
      );
    }
  }
  return join(directory, '{{.Group}}/{{.ResourceKind}}-{{.ResourceAPIVersion}}.json');
}

/** The schema, where objects have no other fields than those that it names. */
function closed(schema: Schema): Schema {
  // A port, say, is a number or a name; a quantity is a number or text.
  const { description = '', properties, items, additionalProperties, ...rest } = schema;
  if (schema.format === 'int-or-string' || description.startsWith('Quantity is')) return {};
  const isOpen = properties === undefined || schema['x-kubernetes-preserve-unknown-fields'] === true;
  return {
    ...rest,
    ...(properties && { properties: mapValues(properties, closed) }),
    ...(items && { items: closed(items) }),
    ...(typeof additionalProperties === 'object'
      ? { additionalProperties: closed(additionalProperties) }
      : !isOpen && { additionalProperties: false }),
  };
}

const mapValues = <T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
