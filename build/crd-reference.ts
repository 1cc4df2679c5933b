// Generates the reference of our kinds from their schemas: Markdown, a table with one row per field.

import { toCustomResourceDefinition, type Json } from '../crds/custom-resource-definition.ts';
import { KINDS, type KindDefinition } from '../crds/kinds.ts';
import { API_VERSION } from '../crds/names.ts';
import { NAME_FORM, WORD_FORM, type CelRule } from '../crds/schema-parts.ts';

interface Schema extends Json {
  readonly type?: string;
  readonly description?: string;
  readonly default?: string | number | boolean | object | null;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}

/** The introduction and the conditions of each kind. */
const ABOUT: Readonly<Record<string, string>> = {
  Camera:
    'One camera. Users write `spec`, the operator writes `status`. Deleting it stops its recording at once; footage stays.',
  RecorderPool:
    'Which nodes record, how, and the rules of failover. Deleting it ends its recorders; archives stay on their nodes.',
  RecorderNode:
    'One node of a pool. The operator makes it; people change `role` and `drain`. The recorder of that node writes `status`.',
  ArchiveTarget: 'A place in object storage to which recorders copy footage ([copies](copies.md)).',
  RecordingObjective:
    'How much of the time cameras must be recorded, and how it stands ([objectives](gaps.md#objectives-and-reports)).',
};

export const aboutKind = ({ kind }: KindDefinition): string => ABOUT[kind] ?? '';

const INTRODUCTION = `# Resources

<!-- Made by build/generate-crds.ts from crds/*.ts; a test fails when it is stale. -->

The kinds of \`${API_VERSION}\`. All are namespaced. A namespace is a tenant, and references never leave it. \`kubectl get kubenvr\`
lists all objects, and \`kubectl explain camera.spec\` shows these descriptions. Examples are in \`crds/examples/\`.
[design/cluster.md](design/cluster.md) describes how operator and recorders use the fields.

The API server checks objects when they are written, and names a wrong field. An address must not contain a login, because
everybody who may read the Camera could read it. User and password are in the Secret that \`credentialsSecretRef\` names.
Names of objects and nodes have lower-case letters, digits, "-" and ".".
`;

/** Rules of so many fields that the reference explains them once, or of fields that only our programs write. */
const EXPLAINED: ReadonlySet<string> = new Set([NAME_FORM, WORD_FORM]);

export function resourceReference(): string {
  return [INTRODUCTION, ...KINDS.map(kindReference)].join('\n');
}

function kindReference(definition: KindDefinition): string {
  const { kind, shortName, name } = definition;
  const { versions } = toCustomResourceDefinition(definition).spec as unknown as {
    versions: [{ schema: { openAPIV3Schema: Schema } }];
  };
  const schema = versions[0].schema.openAPIV3Schema;
  const { spec, status } = schema.properties as { spec: Schema; status: Schema };
  const rules = rulesOf('', { ...schema, properties: { spec, status } });
  return [
    `## ${kind}`,
    '',
    `${aboutKind(definition)} Short name \`${shortName}\`; names have at most ${name.maxLength} characters.`,
    '',
    table(rowsOf('spec.', spec)),
    '',
    'Rules:',
    '',
    ...rules.map(({ field, message }) => (field === '' ? `- ${message}.` : `- \`${field}\` ${message}.`)),
    '',
    'Status:',
    '',
    table(rowsOf('status.', status)),
    '',
  ].join('\n');
}

interface Row {
  readonly field: string;
  readonly type: string;
  readonly fallback: string;
  readonly meaning: string;
}

function rowsOf(prefix: string, schema: Schema): Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
    const field = prefix + name;
    const isRequired = schema.required?.includes(name) ?? false;
    const inner = value.properties ? rowsOf(`${field}.`, value) : rowsOf(`${field}[].`, value.items ?? {});
    const own: Row = {
      field,
      type: typeOf(value),
      fallback: isRequired ? 'required' : formatDefault(value),
      meaning: value.description ?? '',
    };
    // A group without a description is documented by its fields.
    const isGroup = value.properties !== undefined && !isRequired && value.description === undefined;
    return isGroup ? inner : [own, ...inner];
  });
}

function typeOf(schema: Schema): string {
  if (schema['x-kubernetes-int-or-string'] === true) {
    return JSON.stringify(schema['x-kubernetes-validations']).includes('%') ? 'number or percentage' : 'quantity';
  }
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(', ');
  if (schema.type === 'array') return schema.items?.type === 'object' ? 'list' : 'list of text';
  if (schema.additionalProperties) return 'map';
  if (schema.type === 'integer') return integerType(schema);
  if (schema.format === 'date-time') return 'time';
  return schema.type === 'string' ? 'text' : schema.type === 'object' ? 'group' : (schema.type ?? '');
}

function integerType({ minimum, maximum }: Schema): string {
  if (minimum === undefined || maximum === undefined || maximum >= Number.MAX_SAFE_INTEGER) return 'integer';
  return `${minimum} to ${maximum}`;
}

function formatDefault({ default: value, properties = {} }: Schema): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'object') return `\`${String(value)}\``;
  // Defaults that the fields of a group document themselves are not repeated.
  const isOwn = Object.keys(value).some((name) => properties[name]?.default === undefined);
  return isOwn ? `\`${JSON.stringify(value)}\`` : '';
}

function rulesOf(path: string, schema: Schema): { readonly field: string; readonly message: string }[] {
  const own = (schema['x-kubernetes-validations'] ?? [])
    .filter(({ message }) => !EXPLAINED.has(message))
    .map(({ fieldPath = '', message }) => ({ field: `${path}${fieldPath}`.replace(/^\./, ''), message }));
  const below = Object.entries(schema.properties ?? {}).flatMap(([name, value]) => rulesOf(`${path}.${name}`, value));
  return [...own, ...below, ...(schema.items ? rulesOf(`${path}[]`, schema.items) : [])];
}

function table(rows: readonly Row[]): string {
  const cells = (...values: string[]): string =>
    `| ${values.map((value) => value.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    cells('field', 'type', 'default', 'meaning'),
    cells('---', '---', '---', '---'),
    ...rows.map(({ field, type, fallback, meaning }) => cells(`\`${field}\``, type, fallback, meaning)),
  ].join('\n');
}
