// Rewrites the schemas that zod generates into forms that client generators understand best.

export interface JsonSchema {
  type?: string | readonly string[];
  format?: string;
  minimum?: number;
  maximum?: number;
  readonly $ref?: string;
  readonly description?: string;
  additionalProperties?: unknown;
  pattern?: string;
  anyOf?: readonly JsonSchema[];
  readonly [keyword: string]: unknown;
}

export type JsonSchemas = Record<string, JsonSchema>;

/** The schemas that `paths` refers to, directly or indirectly. Routes that a node does not have leave unused ones. */
export function referredTo(paths: unknown, schemas: JsonSchemas): JsonSchemas {
  const found = new Set<string>();
  const look = (node: unknown): void =>
    walk(node, ({ $ref }) => {
      const name = typeof $ref === 'string' ? $ref.split('/').at(-1) : undefined;
      if (name === undefined || found.has(name)) return;
      found.add(name);
      look(schemas[name]);
    });
  look(paths);
  return Object.fromEntries([...found].sort().flatMap((name) => (schemas[name] ? [[name, schemas[name]]] : [])));
}

/** Changes every schema of a document in place. */
export function tidySchemas({
  paths,
  components,
}: {
  readonly paths?: object;
  readonly components?: { readonly schemas?: JsonSchemas };
}): void {
  walk(paths, tidy);
  walk(components, tidy);
  // Answers may get new fields: a client that refuses unknown fields would break with the next version.
  for (const operations of Object.values(paths ?? {})) {
    for (const { responses } of Object.values(operations as Record<string, { responses?: unknown }>))
      walk(responses, open);
  }
  for (const [name, schema] of Object.entries(components?.schemas ?? {})) {
    if (!name.endsWith('Input')) walk(schema, open);
  }
}

function open(schema: JsonSchema): void {
  if (schema.additionalProperties === false) delete schema.additionalProperties;
  // The limits of safe integers tell nothing about an answer. For a parameter, they tell which values are refused.
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

function tidy(schema: JsonSchema): void {
  tidyNull(schema);
  tidyNumber(schema);
  // The pattern repeats the format, in 300 characters.
  if (schema.format === 'date-time' || schema.format === 'date') delete schema.pattern;
}

/** Writes `anyOf: [value, null]` as a list of types, which more generators support; not for references and enumerations. */
function tidyNull(schema: JsonSchema): void {
  const [value, none, ...more] = schema.anyOf ?? [];
  if (more.length > 0 || !value || none?.type !== 'null' || typeof value.type !== 'string' || value.enum) return;
  delete schema.anyOf;
  Object.assign(schema, { ...value, ...schema, type: [value.type, 'null'] });
}

/** Without a format, generators use 32 bits: too few for milliseconds since 1970, and for fractions of seconds. */
function tidyNumber(schema: JsonSchema): void {
  const types = [schema.type].flat();
  if (schema.format !== undefined || !isSchema(schema)) return;
  if (types.includes('number')) schema.format = 'double';
  if (types.includes('integer')) schema.format = 'int64';
}

/** A property may be called `type`. */
const isSchema = ({ type }: JsonSchema): boolean =>
  typeof type === 'string' || (Array.isArray(type) && type.every((item) => typeof item === 'string'));

function walk(node: unknown, visit: (schema: JsonSchema) => void): void {
  if (typeof node !== 'object' || node === null) return;
  if (Array.isArray(node)) return node.forEach((item) => walk(item, visit));
  visit(node as JsonSchema);
  for (const [key, value] of Object.entries(node)) if (!VALUES.has(key)) walk(value, visit);
}
/** Keywords that contain values, not schemas. */
const VALUES = new Set(['example', 'examples', 'default', 'enum', 'const', 'x-websocket', 'x-events']);
