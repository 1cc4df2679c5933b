// Makes the CustomResourceDefinition of a kind, with a structural schema, from its zod schema. Used by build/generate-crds.ts.
// (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/)

import { stringify } from 'yaml';
import { z } from 'zod';
import type { KindDefinition, PrinterColumn } from './kinds.ts';
import { APP_NAME, CATEGORY, GROUP, NAME_LABEL, VERSION } from './names.ts';

export type Json = { [key: string]: unknown };

interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: Json;
}

export function toCustomResourceDefinition(definition: KindDefinition): CustomResourceDefinition {
  const { kind, plural, singular, shortName } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}`, labels: { [NAME_LABEL]: APP_NAME } },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { kind, listKind: `${kind}List`, plural, singular, shortNames: [shortName], categories: [CATEGORY] },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: removePatterns(schemaOf(definition)) },
          subresources: { status: {} },
          additionalPrinterColumns: definition.columns.map(printerColumn),
          ...(definition.selectableFields.length > 0 && {
            selectableFields: definition.selectableFields.map((field) => ({ jsonPath: `.${field}` })),
          }),
        },
      ],
    },
  };
}

export function toYaml(crd: CustomResourceDefinition): string {
  return `# Made by build/generate-crds.ts from crds/*.ts; do not edit.\n${stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false, singleQuote: true })}`;
}

/** The API server does not store a priority of 0, and a GitOps tool would find a difference for ever. */
function printerColumn({ wide, ...column }: PrinterColumn): Json {
  return { ...column, ...(wide && { priority: 1 }) };
}

/** The schema of a kind, with the patterns that Helm checks. */
export function schemaOf(definition: KindDefinition): Json {
  const schema = z.toJSONSchema(definition.schema, {
    target: 'openapi-3.0',
    // The schema of what users write: fields with a default are optional.
    io: 'input',
    override: ({ jsonSchema }) => makeStructural(jsonSchema),
  }) as Json & { properties: Json };
  const { $schema: _, ...root } = schema;
  fillDefaults(schema);
  return {
    ...root,
    required: ['spec'],
    properties: {
      ...schema.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      // The API server knows the metadata schema itself and accepts only restrictions of the name here.
      metadata: { type: 'object', properties: { name: { type: 'string', ...definition.name } } },
    },
  };
}

/** Removes what a structural schema must not contain, and replaces our own metadata (`crdEnum`, `crdIntOrString`) by schemas. */
function makeStructural(schema: Json): void {
  if (schema['crdEnum'] !== undefined) {
    replaceUnion(schema, { type: 'string', enum: schema['crdEnum'] });
  } else if (schema['crdIntOrString'] !== undefined) {
    replaceUnion(schema, {
      'x-kubernetes-int-or-string': true,
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      ...(schema['crdIntOrString'] as Json),
      maxLength: 32,
    });
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === true) delete schema['additionalProperties'];
  // The API server prunes unknown fields, and rejects `additionalProperties` beside `properties`.
  if (schema['properties'] !== undefined) delete schema['additionalProperties'];
  if (schema['type'] === 'integer') schema['format'] = 'int64';
}

/** The API server would show the pattern to the user; the rule beside it has a readable message. */
function removePatterns(schema: Json): Json {
  const { properties = {}, items, additionalProperties } = schema as { [key: string]: Json | undefined };
  const inner = [...Object.values(properties), items, additionalProperties];
  for (const one of inner) if (typeof one === 'object' && one !== null) removePatterns(one as Json);
  if (schema['pattern'] === undefined) return schema;
  if (schema['x-kubernetes-validations'] === undefined) throw new Error(`no rule: ${JSON.stringify(schema)}`);
  delete schema['pattern'];
  return schema;
}

/**
 * Completes the default of each object with the defaults of its fields: the API server validates a default before it fills in
 * those of the fields.
 */
function fillDefaults(schema: Json): void {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Json>);
  for (const [, property] of properties) fillDefaults(property);
  const value = schema['default'];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  const inner = properties.filter(([, property]) => property['default'] !== undefined);
  schema['default'] = { ...Object.fromEntries(inner.map(([name, property]) => [name, property['default']])), ...value };
}

function replaceUnion(schema: Json, by: Json): void {
  for (const key of ['anyOf', 'crdEnum', 'crdIntOrString']) delete schema[key];
  Object.assign(schema, by);
}
