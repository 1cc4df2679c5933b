// The commands `recorder apply`, `recorder get` and `recorder delete`: the objects of a cluster of servers, with the manifests of
// Kubernetes.

import { text as readAll } from 'node:stream/consumers';
import { parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { KINDS } from '../../crds/kinds.ts';
import { AdminClient, AdminError, ADMIN_OPTIONS, ADMIN_USAGE, readNamed } from './admin-client.ts';
import { objectTable } from './object-table.ts';
import { parsedArgs, UsageError, type Command, type CommandContext } from './command.ts';

export const APPLY: Command = {
  run: apply,
  usage: `Usage: recorder apply -f FILE... [--dry-run]

Creates the objects of manifests in the cluster, or changes them to what their manifests say: Camera, RecorderPool, and Secret for the
logins of cameras. The manifests are those of Kubernetes; their namespace is ignored.

  -f FILE            YAML or JSON, with any number of objects; - for standard input
  --dry-run          check the manifests, and change nothing
${ADMIN_USAGE}`,
};

export const GET: Command = {
  run: get,
  usage: `Usage: recorder get KIND [NAME] [-o FORMAT]

Prints objects of the cluster, such as recorder get cameras. Values of Secrets are not shown.

  -o FORMAT          wide: with more columns; yaml, json, or name
${ADMIN_USAGE}`,
};

export const DELETE: Command = {
  run: remove,
  usage: `Usage: recorder delete KIND NAME
       recorder delete -f FILE...

Deletes objects of the cluster, such as recorder delete camera gate. Footage stays.

  -f FILE            YAML or JSON with the objects to delete; - for standard input
${ADMIN_USAGE}`,
};

interface Named {
  readonly plural: string;
  readonly singular: string;
  readonly name: string;
}

interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortName?: string;
}

const ALL_KINDS: readonly Kind[] = [...KINDS, { kind: 'Secret', plural: 'secrets', singular: 'secret' }];

const Items = z.object({ items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })) });
const Applied = z.object({ outcome: z.string() });
const Document = z.looseObject({ kind: z.string(), metadata: z.looseObject({ name: z.string() }) });

/** Resolves to 1 if an object was refused. */
async function apply(args: readonly string[], context: CommandContext): Promise<number> {
  const { values } = parsedArgs(args, {
    options: {
      ...ADMIN_OPTIONS,
      file: { type: 'string', short: 'f', multiple: true, default: [] },
      'dry-run': { type: 'boolean', default: false },
    },
  });
  if (values.file.length === 0) throw new UsageError('-f: expected a file with manifests');
  const wanted = await documentsIn(values.file, context.stdin);
  const client = await AdminClient.open(values, context.load);
  const query = values['dry-run'] ? '?dry_run=true' : '';
  return each(wanted, context, async ({ plural, name, singular, document }) => {
    const answer = await client.call('PUT', `/api/cluster/${plural}/${name}${query}`, document);
    return `${singular}/${name} ${Applied.parse(answer).outcome}${query && ' (dry run)'}`;
  });
}

async function remove(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parsedArgs(args, {
    allowPositionals: true,
    options: {
      ...ADMIN_OPTIONS,
      file: { type: 'string', short: 'f', multiple: true, default: [] },
    },
  });
  const [kind, name, ...more] = positionals;
  const isNamed = kind !== undefined && name !== undefined && more.length === 0 && values.file.length === 0;
  if (!isNamed && (positionals.length > 0 || values.file.length === 0)) {
    throw new UsageError('expected a kind and a name, such as camera gate, or -f');
  }
  const wanted: readonly Named[] = isNamed
    ? [{ ...kindNamed(kind), name }]
    : await documentsIn(values.file, context.stdin);
  const client = await AdminClient.open(values, context.load);
  return each(wanted, context, async ({ plural, name: one, singular }) => {
    await client.call('DELETE', `/api/cluster/${plural}/${encodeURIComponent(one)}`);
    return `${singular}/${one} deleted`;
  });
}

async function get(args: readonly string[], context: CommandContext): Promise<number> {
  const { values, positionals } = parsedArgs(args, {
    allowPositionals: true,
    options: {
      ...ADMIN_OPTIONS,
      output: { type: 'string', short: 'o', default: '' },
    },
  });
  const [kind, name, ...more] = positionals;
  if (kind === undefined || more.length > 0)
    throw new UsageError('expected a kind, such as cameras, and at most one name');
  const { plural, singular } = kindNamed(kind);
  const format = formatNamed(values.output);
  const client = await AdminClient.open(values, context.load);
  const path = `/api/cluster/${plural}`;
  const items =
    name === undefined
      ? Items.parse(await client.call('GET', path)).items
      : Items.parse({ items: [await client.call('GET', `${path}/${encodeURIComponent(name)}`)] }).items;
  if (items.length === 0 && format !== 'json' && format !== 'yaml') {
    context.printError(`no ${plural} in the cluster\n`);
    return 0;
  }
  const whole = name === undefined ? { apiVersion: 'v1', kind: 'List', items } : items[0];
  if (format === 'json') context.print(`${JSON.stringify(whole, undefined, 2)}\n`);
  else if (format === 'yaml') context.print(stringify(whole, { aliasDuplicateObjects: false, lineWidth: 0 }));
  else if (format === 'name') context.print(items.map(({ metadata }) => `${singular}/${metadata.name}\n`).join(''));
  else context.print(objectTable(plural, items, format === 'wide', context.clock.wallMs()));
  return 0;
}

/** One after the other, in the order of the files: a Secret may come before its camera. A refused object does not stop the others. */
async function each<T extends Named>(
  wanted: readonly T[],
  { print, printError }: CommandContext,
  carryOut: (one: T) => Promise<string>,
): Promise<number> {
  let code = 0;
  for (const one of wanted) {
    try {
      print(`${await carryOut(one)}\n`);
    } catch (err) {
      if (!(err instanceof AdminError)) throw err;
      code = 1;
      printError(`recorder: ${one.singular}/${one.name}: ${err.message}\n`);
    }
  }
  return code;
}

const FORMATS = ['', 'wide', 'yaml', 'json', 'name'] as const;

function formatNamed(text: string): (typeof FORMATS)[number] {
  const format = FORMATS.find((one) => one === text);
  if (format === undefined) throw new UsageError('-o: expected wide, yaml, json or name');
  return format;
}

function kindNamed(text: string): Kind {
  const asked = text.toLowerCase();
  const found = ALL_KINDS.find((one) => [one.plural, one.singular, one.shortName].includes(asked));
  if (found) return found;
  throw new UsageError(`there is no kind ${text}: expected ${ALL_KINDS.map(({ plural }) => plural).join(', ')}`);
}

/** The objects in files. An error names the file and the number of the object in it, and shows nothing of a Secret. */
async function documentsIn(
  files: readonly string[],
  stdin: NodeJS.ReadableStream,
): Promise<readonly (Named & { readonly document: unknown })[]> {
  const found: (Named & { readonly document: unknown })[] = [];
  for (const file of files) {
    const text = await textOf(file, stdin);
    const values = parseAllDocuments(text).flatMap((parsed, i) => {
      if (parsed.errors.length > 0) {
        const { linePos } = parsed.errors[0] as { linePos?: readonly { readonly line: number }[] };
        throw new UsageError(
          `${file}: object ${i + 1} is not valid YAML${linePos ? ` (line ${linePos[0]?.line})` : ''}`,
        );
      }
      const value = parsed.toJS() as { readonly kind?: unknown; readonly items?: unknown } | null;
      return value?.kind === 'List' && Array.isArray(value.items) ? (value.items as unknown[]) : [value];
    });
    for (const [i, document] of values.entries()) {
      if (document === null || document === undefined) continue;
      const parsed = Document.safeParse(document);
      if (!parsed.success) throw new UsageError(`${file}: object ${i + 1} needs kind and metadata.name`);
      const { kind, metadata } = parsed.data;
      const known = ALL_KINDS.find((one) => one.kind === kind);
      if (!known) {
        throw new UsageError(
          `${file}: object ${i + 1}: kind: ${kind} is none of ${ALL_KINDS.map((one) => one.kind).join(', ')}`,
        );
      }
      found.push({ plural: known.plural, singular: known.singular, name: metadata.name, document });
    }
  }
  if (found.length === 0) throw new UsageError('-f: no object in these files');
  return found;
}

const textOf = (file: string, stdin: NodeJS.ReadableStream): Promise<string> =>
  file === '-' ? readAll(stdin) : readNamed('-f', file);
