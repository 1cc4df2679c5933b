// Schemas as zod writes them in, as generators of clients read them best out.

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

/** Those that are named in `paths`, or in what is named there: routes that a node has not leave theirs behind. */
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
  // Bodies are checked, but answers may grow: a client that refuses unknown fields would break with the next version.
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
  // What every integer of JavaScript keeps to says nothing of an answer. Of a parameter it says what is refused.
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}

function tidy(schema: JsonSchema): void {
  tidyNull(schema);
  tidyNumber(schema);
  // It says what the format says, in 300 characters.
  if (schema.format === 'date-time' || schema.format === 'date') delete schema.pattern;
}

/** A value or null as generators know it best, unless it is named elsewhere or one of a few. */
function tidyNull(schema: JsonSchema): void {
  const [value, none, ...more] = schema.anyOf ?? [];
  if (more.length > 0 || !value || none?.type !== 'null' || typeof value.type !== 'string' || value.enum) return;
  delete schema.anyOf;
  Object.assign(schema, { ...value, ...schema, type: [value.type, 'null'] });
}

/** Generators that are told no format take 32 bits: too few for milliseconds since 1970, and for fractions of seconds. */
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
/** They hold values, and no schemas. */
const VALUES = new Set(['example', 'examples', 'default', 'enum', 'const', 'x-websocket', 'x-events']);
