// The objects of a cluster for admins, who read and change them as Kubernetes kinds in the cluster's store. Secret values can be
// written but never read.

import { isDeepStrictEqual } from 'node:util';
import { ApiError, hasStatus } from '../../base/kubernetes/api-error.ts';
import { MERGE_PATCH, type KubernetesClient, type KubernetesObject } from '../../base/kubernetes/client.ts';
import { KINDS } from '../../crds/kinds.ts';
import { API_VERSION, LOGINS_SECRET, RECORDER_NODES } from '../../crds/names.ts';

/** Plural names, as in the paths of the API. */
const SECRETS = 'secrets';
export const OBJECT_KINDS: readonly string[] = [...KINDS.map(({ plural }) => plural), SECRETS];

/** A manifest, as `kubectl` takes it. */
type Manifest = Readonly<Record<string, unknown>>;
type Outcome = 'created' | 'configured' | 'unchanged';

/** A merge patch (RFC 7396) of what people decide: null removes a field. */
interface ObjectChange {
  readonly spec?: Manifest | undefined;
  readonly metadata?: { readonly annotations?: Manifest | undefined } | undefined;
}

interface ObjectsOptions {
  readonly api: Pick<KubernetesClient, 'get' | 'list' | 'call' | 'apply'>;
  readonly namespace: string;
}

/** A manifest that cannot be applied; the message names the field. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

const FIELD_MANAGER = 'kube-nvr-recorder-apply';
/** Types of Secrets that people make. The others belong to the cluster, and cannot be read or changed here. */
const SECRET_TYPES: readonly unknown[] = ['Opaque', 'kubernetes.io/basic-auth'];
/** This annotation contains the whole manifest, and so the values of a Secret. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const MAX_MANIFEST_NAME = 253;

export class ClusterObjects {
  readonly #options: ObjectsOptions;

  constructor(options: ObjectsOptions) {
    this.#options = options;
  }

  /** By name. Throws ApiError, as all methods do. */
  async list(plural: string): Promise<readonly Manifest[]> {
    const { items } = await this.#options.api.list(this.#path(plural));
    return items
      .filter((item) => isOpen(plural, item))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      .map((item) => shown(plural, item));
  }

  async get(plural: string, name: string): Promise<Manifest> {
    return shown(plural, await this.#get(plural, name));
  }

  /** Throws ManifestError, too. `isTried`: nothing is changed. */
  async apply(
    plural: string,
    name: string,
    manifest: Manifest,
    { isTried }: { readonly isTried: boolean },
  ): Promise<{ readonly object: Manifest; readonly outcome: Outcome }> {
    const { api, namespace } = this.#options;
    const wanted = appliedOf(plural, name, manifest, namespace);
    const before = await this.#find(plural, name);
    const path = `${this.#path(plural)}/${name}`;
    const query = { fieldManager: FIELD_MANAGER, force: 'true', ...(isTried && { dryRun: 'All' }) };
    const object = (await api.call('PATCH', path, wanted, {
      query,
      contentType: 'application/apply-patch+yaml',
    })) as KubernetesObject;
    const isSame = before !== undefined && isDeepStrictEqual(contentOf(before), contentOf(object));
    return { object: shown(plural, object), outcome: before ? (isSame ? 'unchanged' : 'configured') : 'created' };
  }

  /** Changes only the given fields of the spec and the given annotations. Throws ManifestError, too. */
  async patch(plural: string, name: string, { spec, metadata = {} }: ObjectChange): Promise<Manifest> {
    if (plural === SECRETS) throw new ManifestError('a Secret is changed with its whole manifest');
    const { annotations } = metadata;
    const change = { ...(spec && { spec }), ...(annotations && { metadata: { annotations } }) };
    const options = { query: { fieldManager: FIELD_MANAGER }, contentType: MERGE_PATCH };
    return shown(
      plural,
      (await this.#options.api.call('PATCH', `${this.#path(plural)}/${name}`, change, options)) as Manifest,
    );
  }

  async delete(plural: string, name: string): Promise<void> {
    if (plural === RECORDER_NODES) {
      throw new ManifestError('a node is removed with POST /cluster/remove-node, or leaves by itself');
    }
    // Users who were made on the page are removed with this one; each server writes its own logins again.
    if (plural !== SECRETS || name !== LOGINS_SECRET) await this.#get(plural, name);
    await this.#options.api.call('DELETE', `${this.#path(plural)}/${name}`);
  }

  async #get(plural: string, name: string): Promise<KubernetesObject> {
    const found = await this.#options.api.get(`${this.#path(plural)}/${name}`);
    if (!isOpen(plural, found)) throw new ApiError(403, 'Forbidden', `the Secret ${name} belongs to the cluster`);
    return found;
  }

  async #find(plural: string, name: string): Promise<KubernetesObject | undefined> {
    try {
      return await this.#get(plural, name);
    } catch (err) {
      if (hasStatus(err, 404)) return undefined;
      throw err;
    }
  }

  #path(plural: string): string {
    const { namespace } = this.#options;
    const group = plural === SECRETS ? '/api/v1' : `/apis/${API_VERSION}`;
    return `${group}/namespaces/${namespace}/${plural}`;
  }
}

const isOpen = (plural: string, { type = 'Opaque' }: Manifest): boolean =>
  plural !== SECRETS || SECRET_TYPES.includes(type);

/** What is sent to the store. Throws ManifestError. */
function appliedOf(plural: string, name: string, manifest: Manifest, namespace: string): Manifest {
  const kind = KINDS.find((one) => one.plural === plural)?.kind ?? 'Secret';
  const apiVersion = plural === SECRETS ? 'v1' : API_VERSION;
  if (manifest['apiVersion'] !== apiVersion) throw new ManifestError(`apiVersion: must be ${apiVersion}`);
  if (manifest['kind'] !== kind) throw new ManifestError(`kind: must be ${kind}`);
  const metadata = objectIn(manifest, 'metadata', 'metadata');
  if (metadata['name'] !== name || name.length > MAX_MANIFEST_NAME)
    throw new ManifestError(`metadata.name: must be ${name}`);
  const { status: _status, stringData: _text, data: _data, ...rest } = manifest;
  const annotations = objectIn(metadata, 'annotations', 'metadata.annotations');
  return {
    ...rest,
    metadata: {
      name,
      namespace,
      labels: objectIn(metadata, 'labels', 'metadata.labels'),
      annotations: Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== LAST_APPLIED)),
    },
    ...(plural === SECRETS && { type: typeOf(manifest), data: dataOf(manifest) }),
  };
}

function typeOf({ type = 'Opaque' }: Manifest): unknown {
  if (SECRET_TYPES.includes(type)) return type;
  throw new ManifestError(`type: must be ${SECRET_TYPES.join(' or ')}`);
}

/** `data` and `stringData` as the API server joins them: values in base64. */
function dataOf(manifest: Manifest): Manifest {
  const data = objectIn(manifest, 'data', 'data');
  const text = objectIn(manifest, 'stringData', 'stringData');
  for (const [key, value] of Object.entries({ ...data, ...text })) {
    if (typeof value !== 'string')
      throw new ManifestError(`${key in text ? 'stringData' : 'data'}.${key}: must be a string`);
  }
  const encoded = Object.entries(text).map(([key, value]) => [key, Buffer.from(value as string).toString('base64')]);
  return { ...data, ...Object.fromEntries(encoded) };
}

function objectIn(manifest: Manifest, key: string, path: string): Manifest {
  const value = manifest[key] ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new ManifestError(`${path}: must be an object`);
  return value as Manifest;
}

/** Without the fields that change when another manager sets the same values. */
function contentOf({ metadata, ...rest }: KubernetesObject): object {
  const { managedFields: _fields, resourceVersion: _version, ...named } = metadata;
  return { ...rest, named };
}

/** Without secret values and without the managers of fields. `data` of a Secret has only the keys. */
function shown(plural: string, object: Manifest): Manifest {
  const { managedFields: _fields, ...metadata } = object['metadata'] as Manifest;
  const annotations = Object.entries((metadata['annotations'] ?? {}) as Manifest).filter(
    ([key]) => key !== LAST_APPLIED,
  );
  const { data, stringData: _text, ...rest } = object;
  const keys = Object.keys((data ?? {}) as Manifest).map((key) => [key, null]);
  return {
    ...rest,
    metadata: { ...metadata, ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }) },
    ...(plural === SECRETS && { data: Object.fromEntries(keys) }),
  };
}
