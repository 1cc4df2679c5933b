// The volumes of a pod as directories and files of its node: host paths under the node's own disk, secrets, config maps,
// downward API and service-account tokens as files that are kept fresh.

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import type { ApiClient } from '../api-client.ts';
import { fieldValue, type PodPlace } from './environment.ts';
import { keyedValues, type Keyed } from './keyed-values.ts';
import type { DownwardItem, KeyToPath, Pod, Volume, VolumeSource } from './types.ts';

/** What keeps a pod from starting; the reason is that of the event. */
class MountError extends Error {}

interface VolumeDeps {
  readonly api: ApiClient;
  /** The node's disk: `/a` of a host path is `<root>/a`. */
  readonly root: string;
  /** Of this pod. */
  readonly directory: string;
}

type Files = Map<string, string | Buffer>;

interface TokenRequest {
  readonly status: { readonly token: string; readonly expirationTimestamp: string };
}

const DEFAULT_TOKEN_SECONDS = 3_600;
/** Of its life, as the kubelet does. */
const RENEW_TOKEN_AT = 0.8;

/** All volumes of one pod. */
export class PodVolumes {
  readonly #deps: VolumeDeps;
  readonly #tokens = new Map<string, { readonly token: string; readonly renewAtMs: number }>();

  constructor(deps: VolumeDeps) {
    this.#deps = deps;
  }

  /** The path of a volume's content on this machine. */
  path(volume: Volume): string {
    return volume.hostPath
      ? join(this.#deps.root, normalize(volume.hostPath.path))
      : join(this.#deps.directory, 'volumes', volume.name);
  }

  /** Makes what is missing and renews what has changed; throws `MountError` for what cannot be had. */
  async refresh(pod: Pod, place: PodPlace): Promise<void> {
    for (const volume of pod.spec.volumes ?? []) {
      try {
        await this.#refresh(volume, pod, place);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new MountError(`MountVolume.SetUp failed for volume "${volume.name}": ${message}`, { cause: error });
      }
    }
  }

  async #refresh(volume: Volume, pod: Pod, place: PodPlace): Promise<void> {
    const path = this.path(volume);
    if (volume.hostPath) return checkHostPath(path, volume.hostPath);
    mkdirSync(path, { recursive: true });
    if (volume.emptyDir !== undefined) return;
    const files: Files = new Map();
    for (const source of sources(volume)) await this.#collect(source, pod, place, files, volume.name);
    writeAll(path, files);
  }

  async #collect(source: ProjectedSource, pod: Pod, place: PodPlace, files: Files, volume: string): Promise<void> {
    const { secret, configMap, downwardAPI, serviceAccountToken } = source;
    if (secret) await this.#keys('secrets', secret, pod, files);
    if (configMap) await this.#keys('configmaps', configMap, pod, files);
    for (const item of downwardAPI?.items ?? []) files.set(item.path, downward(item, pod, place));
    if (serviceAccountToken) {
      files.set(serviceAccountToken.path, await this.#token(serviceAccountToken, pod, volume));
    }
  }

  async #keys(
    resource: Keyed,
    { name, items, optional = false }: NamedKeys,
    { metadata }: Pod,
    files: Files,
  ): Promise<void> {
    const values = await keyedValues(this.#deps.api, resource, metadata.namespace, { name, optional });
    for (const { key, path } of items ?? [...values.keys()].map((key) => ({ key, path: key }))) {
      const value = values.get(key);
      if (value !== undefined) files.set(path, value);
      else if (!optional) throw new Error(`references non-existent key: ${key}`);
    }
  }

  /** A token bound to the pod, and so to its node. */
  async #token(
    { path, audience, expirationSeconds = DEFAULT_TOKEN_SECONDS }: TokenSource,
    pod: Pod,
    volume: string,
  ): Promise<string> {
    const key = `${volume}/${path}`;
    const known = this.#tokens.get(key);
    if (known && performance.now() < known.renewAtMs) return known.token;
    const { name, namespace, uid } = pod.metadata;
    const account = pod.spec.serviceAccountName ?? 'default';
    const { status } = await this.#deps.api.create<TokenRequest>(
      `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
      {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          audiences: audience === undefined ? [] : [audience],
          expirationSeconds,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
        },
      },
    );
    const lifeMs = Date.parse(status.expirationTimestamp) - Date.now();
    // The API server extends the tokens of careless clients to a year; a kubelet renews by what was asked for.
    const renewAtMs = performance.now() + RENEW_TOKEN_AT * Math.min(lifeMs, expirationSeconds * 1000);
    this.#tokens.set(key, { token: status.token, renewAtMs });
    return status.token;
  }
}

interface NamedKeys {
  readonly name: string;
  readonly items?: readonly KeyToPath[];
  readonly optional?: boolean;
}

type ProjectedSource = NonNullable<NonNullable<VolumeSource['projected']>['sources']>[number];
type TokenSource = NonNullable<ProjectedSource['serviceAccountToken']>;

/** Every kind of volume made of files, as sources of a projected one. */
function sources({ name, projected, secret, configMap, downwardAPI }: Volume): readonly ProjectedSource[] {
  if (projected) return projected.sources ?? [];
  if (secret) return [{ secret: { ...secret, name: secret.secretName } }];
  if (configMap) return [{ configMap }];
  if (downwardAPI) return [{ downwardAPI }];
  throw new Error(`process kubelets have no volumes of the kind of ${name}`);
}

function downward({ path, fieldRef }: DownwardItem, pod: Pod, place: PodPlace): string {
  if (!fieldRef) throw new Error(`only fieldRef items are known, not that of ${path}`);
  return fieldValue(fieldRef.fieldPath, pod, place);
}

function checkHostPath(path: string, { path: wanted, type = '' }: { path: string; type?: string }): void {
  const kind = (): 'file' | 'directory' | 'nothing' => {
    if (!existsSync(path)) return 'nothing';
    return statSync(path).isDirectory() ? 'directory' : 'file';
  };
  // Without a type, container engines make a directory.
  if (type === 'DirectoryOrCreate' || (type === '' && kind() === 'nothing')) mkdirSync(path, { recursive: true });
  if (type === 'FileOrCreate' && kind() === 'nothing') writeFileSync(path, '');
  if (type.startsWith('Directory') && kind() !== 'directory') {
    throw new Error(`hostPath type check failed: ${wanted} is not a directory`);
  }
  if (type.startsWith('File') && kind() !== 'file') {
    throw new Error(`hostPath type check failed: ${wanted} is not a file`);
  }
}

/** Each file changes at once or not at all, and what is not named goes away. */
function writeAll(directory: string, files: Files): void {
  for (const [path, content] of files) {
    const file = join(directory, normalize(join('/', path)));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}..new`, content);
    renameSync(`${file}..new`, file);
  }
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile() && !files.has(file.slice(directory.length + 1))) rmSync(file);
  }
}
