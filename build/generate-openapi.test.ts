import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { ERROR_CODES } from '../recorder/http/error-codes.ts';
import { wholeDocument } from './generate-openapi.ts';

type Schema = Readonly<Record<string, unknown>> & {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
};
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly schema: Schema }[];
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Readonly<Record<string, { schema: Schema }>> }>
  >;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/**
 * Names that have two types nevertheless. Specified: `from` and `to` of jobs are numbers and `reason` is text; `status` is text,
 * but a number in problems (RFC 9457). `elsewhere` lists footage on other nodes, and `cameras` and `expires_at` of a session are
 * named as in most programs; a job's `expires_at` is specified in seconds. The others are older than this rule; new names must obey
 * it. `from_ms` and `to_ms` are the same everywhere.
 */
const TWO_TYPES: Readonly<Record<string, readonly string[]>> = {
  audio: ['integer', 'object'],
  cameras: ['array of object', 'array of string', 'integer'],
  configured: ['boolean', 'string'],
  days: ['array of object', 'array of string'],
  elsewhere: ['array of object', 'integer'],
  end: ['object', 'string'],
  events: ['array of object', 'string'],
  expires_at: ['integer', 'string'],
  frames: ['integer', 'object'],
  from: ['integer', 'string'],
  node: ['object', 'string'],
  onvif: ['boolean', 'string'],
  preview: ['array of object', 'object', 'string'],
  reason: ['object', 'string'],
  recorded: ['boolean', 'object'],
  speed: ['integer', 'number'],
  status: ['integer', 'string'],
  to: ['integer', 'string'],
  video: ['integer', 'object'],
};

let document: Document;
let operations: { readonly name: string; readonly operation: Operation }[];

before(async () => {
  document = (await wholeDocument()) as unknown as Document;
  operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== 'servers')
      .map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  );
});

/** All schemas of responses, with their location. */
function* answered(): Generator<{ readonly at: string; readonly schema: Schema }> {
  for (const { name, operation } of operations) {
    for (const [status, { content = {} }] of Object.entries(operation.responses)) {
      for (const { schema } of Object.values(content)) yield* within(`${name} ${status}`, schema);
    }
  }
  for (const [name, schema] of Object.entries(document.components.schemas)) yield* within(name, schema);
}

function* within(at: string, schema: unknown): Generator<{ readonly at: string; readonly schema: Schema }> {
  if (typeof schema !== 'object' || schema === null) return;
  if (!Array.isArray(schema)) yield { at, schema: schema as Schema };
  for (const [key, value] of Object.entries(schema)) if (key !== 'examples') yield* within(`${at}.${key}`, value);
}

/** A type such as `array of object`; references are resolved, null is left out. */
function typeOf(schema: Schema): string {
  const { $ref, anyOf, items } = schema as { $ref?: string; anyOf?: Schema[]; items?: Schema };
  if ($ref) return typeOf(document.components.schemas[$ref.split('/').at(-1) as string] as Schema);
  if (anyOf) return [...new Set(anyOf.map(typeOf))].filter((type) => type !== 'null').join(' or ');
  if (schema.type === 'null') return 'null';
  const types = [schema.type].flat().filter((type) => type !== 'null');
  if (types[0] === 'array') return `array of ${items ? typeOf(items) : 'anything'}`;
  return types.join(' or ') || typeof schema['const'];
}

describe('OpenAPI: the document of a recorder that has everything', () => {
  test('API and playback are in one document', () => {
    const paths = Object.keys(document.paths);
    assert.deepEqual(
      ['/api/cameras', '/cluster/cameras', '/websocket/{camera_id}', '/{filename}', '/window/{file}'].filter(
        (path) => !paths.includes(path),
      ),
      [],
    );
    assert.ok(document.paths['/{filename}']?.['servers'], 'playback has a server of its own');
  });

  test('what clients work with has a name', () => {
    const names = Object.keys(document.components.schemas);
    const wanted = ['Camera', 'Segment', 'SegmentList', 'Gap', 'Job', 'Node', 'Protection', 'Problem', 'ErrorCode'];
    assert.deepEqual(
      wanted.filter((name) => !names.includes(name)),
      [],
    );
    // JSON responses are named, so that generated types are too.
    const bare = operations.flatMap(({ name, operation }) =>
      Object.entries(operation.responses).flatMap(([status, { content = {} }]) =>
        Object.entries(content).flatMap(([type, { schema }]) =>
          type.endsWith('json') && schema['$ref'] === undefined ? [`${name} ${status}`] : [],
        ),
      ),
    );
    assert.deepEqual(bare, [], 'give its schema an id with .meta');
  });

  test('every operation has a name of its own, and says what it answers when all is well', () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    assert.deepEqual(
      ids.filter((id, i) => ids.indexOf(id) !== i || /By[A-Z]/.test(id)),
      [],
      'name it by operationId in its schema',
    );
    const silent = operations.flatMap(({ name, operation }) => {
      const answers = Object.entries(operation.responses).filter(([status]) => /^[12]/.test(status));
      if (answers.length === 0) return [`${name}: no success`];
      return answers.flatMap(([status, { description, content }]) => {
        if (description === 'Default Response') return [`${name} ${status}: no description`];
        return content || status === '101' || status === '204' ? [] : [`${name} ${status}: no content`];
      });
    });
    assert.deepEqual(silent, []);
  });

  test('answers may grow: no schema of an answer refuses other fields', () => {
    const closed = [...answered()].filter(({ schema }) => schema['additionalProperties'] === false);
    assert.deepEqual(
      closed.map(({ at }) => at),
      [],
    );
  });

  test('codes of errors are those of the table in the code', () => {
    assert.deepEqual(document.components.schemas['ErrorCode']?.['enum'], ERROR_CODES);
    assert.equal(
      document.components.schemas['Problem']?.properties?.['code']?.['$ref'],
      '#/components/schemas/ErrorCode',
    );
  });

  test('patterns mean the same in every language and version of Unicode: classes are given by code points', () => {
    const patterns = new Set<string>();
    JSON.stringify(document, (key, value: unknown) => {
      if (key === 'pattern' && typeof value === 'string') patterns.add(value);
      return value;
    });
    assert.ok(patterns.size > 5);
    const PORTABLE = /^(?:[^\\]|\\x[0-9a-f]{2}|\\[^A-Za-z0-9])*$/u;
    assert.deepEqual(
      [...patterns].filter((pattern) => !PORTABLE.test(pattern) || /\(\?[^:]/.test(pattern)),
      [],
      'Go, Java, JavaScript and Python differ in \\d, \\s, \\w, \\p and \\u, and in what looks around',
    );
  });

  test('numbers are numbers that are wide enough, in parameters and answers', () => {
    const known = new Map([
      ['from', 'number'],
      ['to', 'number'],
      ['tz_offset_minutes', 'integer'],
      ['speed', 'integer'],
      ['limit', 'integer'],
      ['part', 'integer'],
      ['size', 'integer'],
    ]);
    const parameters = operations.flatMap(({ name, operation }) =>
      (operation.parameters ?? []).map((parameter) => ({ at: `${name} ${parameter.name}`, ...parameter })),
    );
    assert.deepEqual(
      parameters
        .filter(({ name, schema }) => known.has(name) && schema.type !== known.get(name))
        .map(({ at, schema }) => `${at}: ${String(schema.type)}`),
      [],
    );
    const schemas = [...answered(), ...parameters];
    const narrow = schemas.filter(({ schema: { type, format } }) => {
      const types = typeof type === 'string' ? [type] : Array.isArray(type) ? type : [];
      if (types.includes('number')) return format !== 'double';
      return types.includes('integer') && format !== 'int64';
    });
    assert.deepEqual(
      narrow.map(({ at }) => at),
      [],
    );
  });

  test('one name has one type over all answers', () => {
    const types = new Map<string, Map<string, string>>();
    for (const { at, schema } of answered()) {
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        const known = types.get(name) ?? new Map<string, string>();
        types.set(name, known.set(typeOf(property), `${at}.${name}`));
      }
    }
    const several = [...types].filter(([, known]) => known.size > 1);
    const found = several.map(([name, known]) => [name, [...known.keys()].sort()] as const);
    assert.deepEqual(Object.fromEntries(found), TWO_TYPES, several.map(([, known]) => [...known.values()]).join('\n'));
  });

  test('the stream of events says which there are, and what they hold', () => {
    const events = document.paths['/api/events']?.['get'] as unknown as { readonly 'x-events': { types: string[] } };
    assert.ok(events['x-events'].types.includes('camera.silent'));
  });

  test('the live stream says what its messages and close codes are', () => {
    const socket = document.paths['/websocket/{camera_id}']?.['get'] as unknown as {
      readonly 'x-websocket': { readonly close_codes: Readonly<Record<string, string>> };
    };
    assert.match(socket['x-websocket'].close_codes['4404'] ?? '', /does not know this camera/);
  });
});
