// Configuration files in, one checked `Config` out. Every mistake becomes one line that names the file and the key.

import { readdir, readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { fileNameOf } from '../archive/names.ts';
import { ConfigFile, TokenFile, toConfig } from './schema.ts';
import { formatListen, isLoopback } from './values.ts';
import type { Config, TokenConfig } from './schema.ts';

/** A configuration that the recorder refuses to start with. The message is one line and holds no secret. */
export class ConfigError extends Error {
  /** The file with the mistake. */
  readonly file: string;
  /** As `cameras[2].source`; empty when the file as a whole is wrong. */
  readonly key: string;
  /** The message without file and key. */
  readonly problem: string;

  constructor(file: string, key: string, problem: string) {
    super(key === '' ? `${file}: ${problem}` : `${file}: ${key}: ${problem}`);
    this.name = 'ConfigError';
    this.file = file;
    this.key = key;
    this.problem = problem;
  }
}

type Mapping = Record<string, unknown>;

/** One file as it was read, before it is merged with the others. */
interface RawFile {
  readonly file: string;
  readonly document: Mapping;
}

export interface LoadOptions {
  /** What an empty `nodeName` becomes; the system's host name unless given. */
  readonly hostName?: string;
}

/** Reads `file` and the `conf.d/*.yaml` beside it, in name order: cameras add up, settings override. */
export async function loadConfig(file: string, options: LoadOptions = {}): Promise<Config> {
  const raw: RawFile[] = [];
  for (const path of await configFiles(file)) raw.push({ file: path, document: await readMapping(path) });
  for (const { file: path, document } of raw) {
    const parsed = ConfigFile.safeParse(document);
    if (!parsed.success) throw configError(path, parsed.error);
  }
  checkCameras(raw);
  let merged: Mapping = {};
  for (const { document } of raw) merged = mergeMappings(merged, document);
  const cameras = raw.flatMap(({ document }) => (document['cameras'] as unknown[] | undefined) ?? []);
  const parsed = ConfigFile.safeParse({ ...merged, cameras });
  // Each file was right by itself; whatever is wrong now came with the last one.
  if (!parsed.success) throw configError(raw.at(-1)?.file ?? file, parsed.error);
  checkAnonymous(parsed.data, raw, file);
  const nodeName = parsed.data.nodeName || (options.hostName ?? hostname()).trim();
  if (nodeName === '') throw new ConfigError(file, 'nodeName', 'is empty, and the system has no host name to use');
  const { required, publicKey } = parsed.data.license;
  if (required && publicKey === '') {
    throw new ConfigError(raw.at(-1)?.file ?? file, 'license.publicKey', 'is missing, and license.required is true');
  }
  const { tokensFile } = parsed.data.auth;
  return toConfig(parsed.data, nodeName, tokensFile === undefined ? [] : await readTokens(tokensFile));
}

const Tokens = z.array(TokenFile).min(1, 'expected at least one token');

/** A list as `auth.tokens`. */
async function readTokens(file: string): Promise<readonly TokenConfig[]> {
  let value: unknown;
  try {
    value = await readYaml(file);
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    throw new ConfigError(err.file, 'auth.tokensFile', err.problem);
  }
  const parsed = Tokens.safeParse(value ?? []);
  if (parsed.success) return parsed.data;
  const { key, problem } = firstProblem(parsed.error);
  throw new ConfigError(file, `auth.tokensFile${key}`, problem);
}

/** The files that make up a configuration, in the order in which they are read. Hidden files are not among them. */
export async function configFiles(file: string): Promise<string[]> {
  const directory = join(dirname(file), 'conf.d');
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (err) {
    if (isCode(err, 'ENOENT') || isCode(err, 'ENOTDIR')) return [file];
    throw new ConfigError(directory, '', reasonOf(err));
  }
  const chosen = names.filter((name) => name.endsWith('.yaml') && !name.startsWith('.')).sort();
  return [file, ...chosen.map((name) => join(directory, name))];
}

async function readMapping(file: string): Promise<Mapping> {
  const document = (await readYaml(file)) ?? {};
  if (isMapping(document)) return document;
  throw new ConfigError(file, '', 'expected keys and values, as in the configuration reference');
}

/** What stands in a file, without its nulls; undefined when nothing does. */
async function readYaml(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (err) {
    throw new ConfigError(file, '', reasonOf(err));
  }
  const document = parseDocument(text, { prettyErrors: true });
  const error = document.errors[0];
  if (error) {
    const at = error.linePos?.[0];
    // The parser's message may quote the file, which may be a password: keep its words, not its quotations.
    const problem = (error.message.split('\n')[0] as string).replace(/ at line .*$/, '').replace(/:? ?".*$/, '');
    throw new ConfigError(file, '', `${at ? `line ${at.line}, column ${at.col}: ` : ''}not valid YAML: ${problem}`);
  }
  let value: unknown;
  try {
    value = document.toJS();
  } catch {
    throw new ConfigError(file, '', 'not valid YAML: an alias without anchor, or too many of them');
  }
  return withoutNulls(value);
}

/** A key without value, as `cameras:` with every camera commented out, counts as not written. */
function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (Array.isArray(value)) return value.map((item) => (item === null ? {} : withoutNulls(item)));
  if (typeof value !== 'object') return value;
  const entries = Object.entries(value).map(([key, item]) => [key, withoutNulls(item)] as const);
  return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
}

const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Settings of `over` win; mappings are merged key by key, lists replaced. */
function mergeMappings(under: Mapping, over: Mapping): Mapping {
  const merged = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const before = merged[key];
    merged[key] = isMapping(before) && isMapping(value) ? mergeMappings(before, value) : value;
  }
  return merged;
}

/** Refuses two cameras with one id, and two names that look the same in file names. */
function checkCameras(files: readonly RawFile[]): void {
  const ids = new Map<string, string>();
  const names = new Map<string, string>();
  for (const { file, document } of files) {
    const cameras = (document['cameras'] as { id: string; name?: string }[] | undefined) ?? [];
    for (const [index, camera] of cameras.entries()) {
      const place = `${file} cameras[${index}]`;
      const sameId = ids.get(camera.id);
      if (sameId !== undefined) {
        throw new ConfigError(file, `cameras[${index}].id`, `"${camera.id}" is already the id of ${sameId}`);
      }
      ids.set(camera.id, place);
      const part = fileNameOf(camera.name ?? camera.id);
      const sameName = names.get(part);
      if (sameName !== undefined) {
        const key = camera.name === undefined ? 'id' : 'name';
        throw new ConfigError(
          file,
          `cameras[${index}].${key}`,
          `becomes "${part}" in file names, as the name of ${sameName} does; give one of them another name`,
        );
      }
      names.set(part, place);
    }
  }
}

/** Refuses to let anyone on the network do everything, unless the configuration says in so many words that it may be. */
function checkAnonymous(config: z.output<typeof ConfigFile>, files: readonly RawFile[], file: string): void {
  const { auth, cors, listen, playback } = config;
  if (auth.mode !== 'none') return;
  const fileOf = (key: string, name: string): string =>
    files.findLast(({ document }) => (document[key] as Mapping | undefined)?.[name] !== undefined)?.file ?? file;
  if (cors.origins.includes('*')) {
    throw new ConfigError(fileOf('cors', 'origins'), 'cors.origins', '* would show every camera to every page');
  }
  if (auth.allowAnonymousNetwork) return;
  for (const [key, address] of [
    ['listen', listen],
    ['playback.listen', playback.listen],
  ] as const) {
    if (isLoopback(address)) continue;
    throw new ConfigError(
      fileOf('auth', 'mode'),
      'auth.mode',
      `none lets anyone do everything, and ${key} is ${formatListen(address)}: take a loopback address, or set auth.allowAnonymousNetwork: true`,
    );
  }
}

/** `['cameras', 2, 'source']` as `cameras[2].source`. */
function formatKey(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}

function configError(file: string, error: z.ZodError): ConfigError {
  const { key, problem } = firstProblem(error);
  return new ConfigError(file, key, problem);
}

/** The first thing that is wrong, without the value: it may be a secret. */
export function firstProblem(error: z.ZodError): { readonly key: string; readonly problem: string } {
  const issue = error.issues[0] as z.core.$ZodIssue;
  if (issue.code === 'unrecognized_keys') {
    return { key: formatKey([...issue.path, issue.keys[0] as string]), problem: 'unknown key' };
  }
  return { key: formatKey(issue.path), problem: describe(issue) };
}

/** zod's issue in words for someone who edits a file. The value itself is left out: it may be a secret. */
function describe(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `expected one of ${issue.values.map(String).join(', ')}`;
  if (issue.code !== 'invalid_type') return issue.message;
  if (issue.message.endsWith('received undefined')) return 'is missing';
  const words: Readonly<Record<string, string>> = {
    string: 'expected text (put numbers in quotes)',
    boolean: 'expected true or false',
    array: 'expected a list',
    object: 'expected keys and values',
    number: 'expected a number',
    int: 'expected a whole number',
  };
  return words[issue.expected] ?? issue.message;
}

const isCode = (err: unknown, code: string): boolean => err instanceof Error && 'code' in err && err.code === code;

function reasonOf(err: unknown): string {
  if (isCode(err, 'ENOENT')) return 'no such file';
  if (isCode(err, 'EACCES')) return 'may not be read by this user';
  if (isCode(err, 'EISDIR')) return 'is a directory';
  return err instanceof Error ? err.message : String(err);
}
