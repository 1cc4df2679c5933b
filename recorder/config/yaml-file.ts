// Parses a YAML file into its value and the positions of its keys.

import { readFile } from 'node:fs/promises';
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit, type Document } from 'yaml';
import { ConfigError, type FilePosition } from './error.ts';
import { errorCode, messageOf } from '../../base/error.ts';

export interface YamlFile {
  readonly file: string;
  /** The value of the file, without nulls; undefined for an empty file. */
  readonly value: unknown;
  /** The position of a value or its key; for a missing one, that of the mapping in which it is missing. */
  readonly placeOf: (path: readonly PropertyKey[], what: 'key' | 'value') => FilePosition | undefined;
  /** Whether the file has the key, with a value. */
  readonly has: (path: readonly PropertyKey[]) => boolean;
}

/** Throws ConfigError. */
export async function readYaml(file: string): Promise<YamlFile> {
  return parseYaml(file, await readText(file));
}

/** Throws ConfigError. */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (err) {
    throw new ConfigError(file, '', reasonOf(err));
  }
}

/** Parses `text` as the content of `file`. Throws ConfigError. */
export function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { prettyErrors: true, lineCounter: lines });
  const placeAt = (offset: number | undefined): FilePosition | undefined => {
    if (offset === undefined) return undefined;
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  // Further errors usually follow from the first.
  const [error] = document.errors;
  if (error) throw notYaml(file, error, placeAt);
  const loop = loopIn(document);
  if (loop !== undefined) {
    throw new ConfigError(file, '', 'not valid YAML: an alias refers to a value that contains it', placeAt(loop));
  }
  let value: unknown;
  try {
    value = document.toJS();
  } catch {
    // The message of the library has no line.
    throw new ConfigError(file, '', 'not valid YAML: an alias without anchor, or too many of them');
  }
  return {
    file,
    value: withoutNulls(value),
    placeOf: (path, what) => placeAt(offsetOf(document, path, what).offset),
    has: (path) => offsetOf(document, path, 'value').isThere,
  };
}

function notYaml(
  file: string,
  { message, pos }: { readonly message: string; readonly pos: readonly [number, number] },
  placeAt: (offset: number) => FilePosition | undefined,
): ConfigError {
  // The message of the parser may quote the file, and with it a password: remove the quotation.
  const [first = ''] = message.split('\n', 1);
  const problem = first.split(/ at line |; please use |:? ?"/, 1)[0] as string;
  return new ConfigError(file, '', `not valid YAML: ${problem}`, placeAt(pos[0]));
}

/** The position of the first alias that is inside the value with its anchor. */
function loopIn(document: Document.Parsed): number | undefined {
  let found: number | undefined;
  visit(document, {
    Alias(_key, alias, path) {
      const target = alias.resolve(document);
      if (target === undefined || !path.some((ancestor) => ancestor === target)) return undefined;
      found = alias.range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return found;
}

function offsetOf(document: Document.Parsed, path: readonly PropertyKey[], what: 'key' | 'value') {
  const startOf = (node: unknown): number | undefined => (isNode(node) ? node.range?.[0] : undefined);
  let node: unknown = document.contents;
  let offset = startOf(node);
  for (const [depth, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    const isLast = depth === path.length - 1;
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => (isScalar(key) ? key.value : key) === part);
      if (!pair) return { offset, isThere: false };
      node = pair.value;
      offset = startOf(isLast && what === 'value' && startOf(node) !== undefined ? node : pair.key) ?? offset;
    } else if (isSeq(node) && typeof part === 'number' && part < node.items.length) {
      node = node.items[part];
      offset = startOf(node) ?? offset;
    } else return { offset, isThere: false };
  }
  return { offset, isThere: !(isScalar(node) && node.value === null) };
}

/** A key without value, as `cameras:` with every camera commented out, counts as not written. */
export function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (Array.isArray(value)) return value.map((item) => (item === null ? {} : withoutNulls(item)));
  if (typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, item]) => [key, withoutNulls(item)] as const);
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}

export function reasonOf(err: unknown): string {
  if (errorCode(err) === 'ENOENT') return 'no such file';
  if (errorCode(err) === 'EACCES') return 'may not be read by this user';
  if (errorCode(err) === 'EISDIR') return 'is a directory';
  return messageOf(err);
}
