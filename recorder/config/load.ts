// Loads configuration files into one checked `Config`. Every error becomes one line with the file, the position and the
// key.

import { readdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { inScope } from '../../base/camera-scope.ts';
import { errorCode } from '../../base/error.ts';
import { issueWords, MISSING } from '../../base/issue-words.ts';
import { exists } from '../../base/file-calls.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { KeySuggestions } from './did-you-mean.ts';
import { ConfigError, formatKey, parseKey } from './error.ts';
import { CameraFile, ConfigFile, IssuerList, TokenFile, toConfig, UserList, WebhookList } from './schema.ts';
import { formatListen, isLoopback } from './values.ts';
import { parseYaml, readText, readYaml, reasonOf, type YamlFile } from './yaml-file.ts';
import type { Config, NamedLists, TokenConfig, WebhookConfig } from './schema.ts';

export { ConfigError };

type Mapping = Record<string, unknown>;

/** One file as it was read, before it is merged with the others. */
interface RawFile extends YamlFile {
  readonly value: Mapping;
}

interface LoadOptions {
  /** Replaces an empty `nodeName`; the host name of the system by default. */
  readonly hostName?: string;
  /** Replaces a missing `auth.usersFile`. */
  readonly usersFile?: string | undefined;
  /** Replaces a missing `auth.issuersFile`. */
  readonly issuersFile?: string | undefined;
  /**
   * A planned change of a file in `conf.d`; undefined text removes it. It is read last, so that conflicts are reported as
   * errors of this file.
   */
  readonly change?: { readonly file: string; readonly text: string | undefined };
}

/**
 * Reads `file` and the `conf.d/*.yaml` next to it, in the order of their names: cameras are added, other settings override.
 */
export async function loadConfig(file: string, options: LoadOptions = {}): Promise<Config> {
  const raw = await readFiles(file, options.change);
  const wrong = raw.flatMap((one) => mistakesIn(one, ConfigFile.safeParse(one.value)));
  if (wrong.length > 0) throw ConfigError.all(wrong);
  let merged: Mapping = {};
  for (const { value } of raw) merged = mergeMappings(merged, value);
  const cameras = raw.flatMap(({ value }) => (value['cameras'] as unknown[] | undefined) ?? []);
  const parsed = ConfigFile.safeParse({ ...merged, cameras });
  // Each file is valid by itself, so the last one caused the error.
  if (!parsed.success) throw ConfigError.all(mistakesIn(raw.at(-1) as RawFile, parsed));
  const { data } = parsed;
  data.auth.usersFile ??= options.usersFile;
  data.auth.issuersFile ??= options.issuersFile;
  const mistakes = [...mistakesInCameras(raw), ...mistakesInAccess(data, raw), ...mistakesInCopies(data, raw)];
  const nodeName = data.nodeName || (options.hostName ?? hostname()).trim();
  if (nodeName === '') mistakes.push(mistakeAt(raw, 'nodeName', 'is empty, but the system has no host name'));
  const apart = nestedDisk([data.record_path, ...data.archive.disks.map(({ path }) => path)]);
  if (apart !== undefined) mistakes.push(mistakeAt(raw, 'archive.disks', apart));
  const { required, publicKey } = data.license;
  if (required && publicKey === '') {
    mistakes.push(mistakeAt(raw, 'license.publicKey', 'is missing, but license.required is true', 'license.required'));
  }
  const orMistakes = (err: unknown): [] => {
    if (!(err instanceof ConfigError)) throw err;
    mistakes.push(...err.mistakes);
    return [];
  };
  const named: NamedLists = {
    tokens: await readTokens(data.auth.tokensFile).catch(orMistakes),
    users: await readNamed('auth.users', UserList, data.auth.users, data.auth.usersFile).catch(orMistakes),
    issuers: await readNamed('auth.issuers', IssuerList, data.auth.issuers, data.auth.issuersFile).catch(orMistakes),
    webhooks: await readWebhooks(data).catch(orMistakes),
  };
  if (mistakes.length > 0) throw ConfigError.all(mistakes);
  return toConfig(data, nodeName, named);
}

/** Why disks are not apart from each other; undefined if they are. */
function nestedDisk(paths: readonly string[]): string | undefined {
  const roots = paths.map((path) => `${withoutTrailingSlash(path)}/`);
  for (const [i, root] of roots.entries()) {
    const other = roots.find((one, j) => j !== i && one.startsWith(root));
    if (other !== undefined)
      return `${other.slice(0, -1)} is the directory of another disk, or lies in it: ${root.slice(0, -1)}`;
  }
  return undefined;
}

/** Errors that are found at the start, with the positions of their keys in the files. */
export async function located(mistakes: readonly ConfigError[], file: string): Promise<ConfigError> {
  const raw = await readFiles(file);
  return ConfigError.all(mistakes.map(({ key, problem }) => mistakeAt(raw, key, problem)));
}

/** Reads all files; throws their errors together. */
async function readFiles(file: string, change?: LoadOptions['change']): Promise<RawFile[]> {
  const there = (await configFiles(file)).filter((name) => name !== change?.file);
  const files = change?.text === undefined ? there : [...there, change.file];
  const read = await Promise.allSettled(
    files.map(async (name) => mappingIn(name, (name === change?.file && change.text) || (await readText(name)))),
  );
  const mistakes = read.flatMap((result) => {
    if (result.status === 'fulfilled') return [];
    if (!(result.reason instanceof ConfigError)) throw result.reason;
    return result.reason.mistakes;
  });
  if (mistakes.length > 0) throw ConfigError.all(mistakes);
  return read.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
}

/** An error at the position of the key, or of `beside`, in the last file that has it; in the first file if none has. */
function mistakeAt(raw: readonly RawFile[], key: string, problem: string, beside = key): ConfigError {
  const path = parseKey(beside);
  const found = raw.findLast((one) => one.has(path));
  const file = found?.file ?? (raw[0] as RawFile).file;
  return new ConfigError(file, key, problem, found?.placeOf(path, 'value'));
}

const byPlace = ({ place: a }: ConfigError, { place: b }: ConfigError): number =>
  (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);

/** The errors with their positions, for the user who edits the file. */
function mistakesIn(file: YamlFile, { error }: z.ZodSafeParseResult<unknown>, prefix = ''): ConfigError[] {
  const meantKeys = new Set<string>();
  const suggestions = new KeySuggestions();
  const mistakes = (error?.issues ?? []).flatMap((issue): ConfigError[] => {
    if (issue.code !== 'unrecognized_keys') return [];
    return issue.keys.map((name) => {
      const path = [...issue.path, name];
      const meant = suggestions.for(formatKey([...parseKey(prefix), ...path]));
      if (meant !== undefined) meantKeys.add(formatKey([...issue.path, meant]));
      const problem = meant === undefined ? 'unknown key' : `unknown key, did you mean ${meant}?`;
      return new ConfigError(file.file, `${prefix}${formatKey(path)}`, problem, file.placeOf(path, 'key'));
    });
  });
  for (const issue of error?.issues ?? []) {
    // A misspelt key is not reported as missing too.
    const problem = issueWords(issue, 'YAML');
    if (issue.code === 'unrecognized_keys' || (problem === MISSING && meantKeys.has(formatKey(issue.path)))) continue;
    const key = `${prefix}${formatKey(issue.path)}`;
    mistakes.push(new ConfigError(file.file, key, problem, file.placeOf(issue.path, 'value')));
  }
  return mistakes.sort(byPlace);
}

const Tokens = z.array(TokenFile).min(1, 'expected at least one token');

/** Reads a list like `auth.tokens`. */
async function readTokens(file: string | undefined): Promise<readonly TokenConfig[]> {
  return file === undefined ? [] : readList(file, 'auth.tokensFile', Tokens);
}

/** Reads a list like `auth.users` or `auth.issuers`. The Secret may be created after the pods that read it, so the file may be missing. */
async function readNamed<T extends { readonly name: string }>(
  key: 'auth.users' | 'auth.issuers',
  list: z.ZodType<T[]>,
  others: readonly T[],
  file: string | undefined,
): Promise<readonly T[]> {
  if (file === undefined || !(await exists(file))) return [];
  return readList(file, `${key}File`, list.superRefine(unlike('name', others, key)), key);
}

/** Refuses items of a file that share their identity with one of the configuration, under `key` of it. */
const unlike =
  <K extends string>(identity: K, others: readonly Readonly<Record<K, string>>[], key: string) =>
  (list: readonly Readonly<Record<K, string>>[], context: z.core.$RefinementCtx): void => {
    const taken = new Set(others.map((other) => other[identity]));
    for (const [index, item] of list.entries()) {
      if (!taken.has(item[identity])) continue;
      context.addIssue({
        code: 'custom',
        path: [index, identity],
        message: `is already in ${key} of the configuration`,
      });
    }
  };

/** Reads a list like `webhooks`. The Secret may be created after the pods that read it, so the file may be missing. */
async function readWebhooks({
  webhooks,
  webhooksFile: file,
}: Pick<z.output<typeof ConfigFile>, 'webhooks' | 'webhooksFile'>): Promise<readonly WebhookConfig[]> {
  if (file === undefined || !(await exists(file))) return [];
  // The position of a webhook in the journal is stored by its URL, so URLs must be unique.
  const schema = WebhookList.superRefine(unlike('url', webhooks, 'webhooks'));
  return readList(file, 'webhooksFile', schema, 'webhooks');
}

/** Reads a list from the file that `key` names. `itemsKey`: the key of its entries in errors. */
async function readList<T>(file: string, key: string, schema: z.ZodType<T>, itemsKey = key): Promise<T> {
  let list: YamlFile;
  try {
    list = await readYaml(file);
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    throw ConfigError.all(err.mistakes.map(({ problem, place }) => new ConfigError(file, key, problem, place)));
  }
  const parsed = schema.safeParse(list.value ?? []);
  if (parsed.success) return parsed.data;
  throw ConfigError.all(mistakesIn(list, parsed, itemsKey));
}

/** The errors of a camera from another source than a file, as for an entry of `cameras`; keys such as `source`. */
export function mistakesInCamera(camera: unknown): readonly ConfigError[] {
  const nowhere: YamlFile = { file: '', value: camera, placeOf: () => undefined, has: () => false };
  const mistakes = mistakesIn(nowhere, CameraFile.safeParse(camera), CAMERA_KEY);
  return mistakes.map(({ key, problem }) => new ConfigError('', key.slice(CAMERA_KEY.length), problem));
}

const CAMERA_KEY = 'cameras[0].';

/** A camera as written in a file, not validated by itself. */
export interface WrittenCamera {
  readonly file: string;
  readonly text: string;
  readonly camera: Mapping;
}

/** Finds a camera in the files. Throws ConfigError when one of them cannot be read. */
export async function findCamera(file: string, cameraId: string): Promise<WrittenCamera | undefined> {
  for (const name of await configFiles(file)) {
    const text = await readText(name);
    const { value } = mappingIn(name, text);
    const cameras = Array.isArray(value['cameras']) ? (value['cameras'] as unknown[]) : [];
    const camera = cameras.find((one): one is Mapping => isMapping(one) && one['id'] === cameraId);
    if (camera) return { file: name, text, camera };
  }
  return undefined;
}

/** The files of a configuration, in the order in which they are read. Hidden files are ignored. */
export async function configFiles(file: string): Promise<string[]> {
  const directory = join(dirname(file), 'conf.d');
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (err) {
    if (errorCode(err) === 'ENOENT' || errorCode(err) === 'ENOTDIR') return [file];
    throw new ConfigError(directory, '', reasonOf(err));
  }
  const chosen = names.filter((name) => name.endsWith('.yaml') && !name.startsWith('.')).sort();
  return [file, ...chosen.map((name) => join(directory, name))];
}

function mappingIn(file: string, text: string): RawFile {
  const read = parseYaml(file, text);
  const { value } = read;
  if (isMapping(value)) return { ...read, value };
  // Editors, and programs on a full disk, leave a file empty.
  const problem =
    value === undefined
      ? 'is empty: write {} for a file without settings, or remove the file'
      : 'expected keys and values, as in the configuration reference';
  throw new ConfigError(file, '', problem);
}

const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Settings of `over` take precedence; mappings are merged key by key, lists are replaced. */
function mergeMappings(under: Mapping, over: Mapping): Mapping {
  const merged = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const before = merged[key];
    merged[key] = isMapping(before) && isMapping(value) ? mergeMappings(before, value) : value;
  }
  return merged;
}

/** Finds cameras with the same id. */
function* mistakesInCameras(files: readonly RawFile[]): Generator<ConfigError> {
  const ids = new Map<string, string>();
  for (const { file, value, placeOf } of files) {
    const cameras = (value['cameras'] as { id: string }[] | undefined) ?? [];
    for (const [index, { id }] of cameras.entries()) {
      const sameId = ids.get(id);
      if (sameId !== undefined) {
        const path = ['cameras', index, 'id'];
        yield new ConfigError(file, formatKey(path), `"${id}" is already the id of ${sameId}`, placeOf(path, 'value'));
      } else ids.set(id, `${file} cameras[${index}]`);
    }
  }
}

/** Refuses a configuration that lets anyone on the network do everything, unless it allows that explicitly. */
function* mistakesInAccess(config: z.output<typeof ConfigFile>, files: readonly RawFile[]): Generator<ConfigError> {
  const { auth, cors, listen, playback } = config;
  if (auth.mode !== 'none') return;
  if (auth.issuers.length > 0) yield mistakeAt(files, 'auth.issuers', 'nobody signs in with auth.mode: none');
  if (cors.origins.includes('*')) yield mistakeAt(files, 'cors.origins', '* would show every camera to every page');
  if (auth.allowAnonymousNetwork) return;
  for (const [key, address] of [
    ['listen', listen],
    ['playback.listen', playback.listen],
  ] as const) {
    if (isLoopback(address)) continue;
    yield mistakeAt(
      files,
      'auth.mode',
      `with none, anyone may do everything, but ${key} is ${formatListen(address)}: use a loopback address, or set auth.allowAnonymousNetwork: true`,
    );
    return;
  }
}

/** Refuses rules for targets that are missing, and copies that would be kept for longer than footage may be. */
function* mistakesInCopies(
  { archive, cameras }: z.output<typeof ConfigFile>,
  files: readonly RawFile[],
): Generator<ConfigError> {
  const { targets, copies } = archive;
  const agesOf = (patterns: readonly string[] | undefined): [key: string, maxAgeMs: number][] =>
    [
      ['archive.retention.maxAge', archive.retention.maxAgeMs] as const,
      ...cameras
        .filter(({ id }) => !patterns || inScope(patterns, id))
        .flatMap(({ id, record, preview }) => [
          [`maxAge of the camera ${id}`, record.retention.maxAgeMs] as const,
          [`maxAge of the preview of ${id}`, preview?.retention.maxAgeMs] as const,
        ]),
    ].flatMap(([key, ms]): [string, number][] => (ms === undefined ? [] : [[key, ms]]));
  for (const [i, rule] of copies.entries()) {
    const key = `archive.copies[${i}]`;
    const ages = agesOf(rule.cameras);
    const keep = ages.find(([, maxAgeMs]) => (rule.keepMs ?? 0) > maxAgeMs);
    if (keep)
      yield mistakeAt(
        files,
        `${key}.keep`,
        `is longer than ${keep[0]}, which holds for copies, too: limit the disk with maxSize or minFree instead`,
      );
    for (const name of rule.targets) {
      const at = targets.findIndex((target) => target.name === name);
      if (at < 0) yield mistakeAt(files, `${key}.targets`, `archive.targets has no target "${name}"`);
      const { forMs = 0 } = targets[at]?.objectLock ?? {};
      const kept: [string, number][] = rule.keepMs === undefined ? ages : [...ages, [`${key}.keep`, rule.keepMs]];
      const shorter = kept.find(([, ms]) => forMs > ms);
      if (shorter)
        yield mistakeAt(
          files,
          `archive.targets[${at}].objectLock.for`,
          `is longer than ${shorter[0]}: such copies could not be removed in time`,
        );
    }
  }
}

/** The first error, without the value, which may be a secret. */
export function firstProblem(error: z.ZodError): { readonly key: string; readonly problem: string } {
  const issue = error.issues[0] as z.core.$ZodIssue;
  if (issue.code === 'unrecognized_keys') {
    return { key: formatKey([...issue.path, issue.keys[0] as string]), problem: 'unknown key' };
  }
  return { key: formatKey(issue.path), problem: issueWords(issue, 'YAML') };
}
