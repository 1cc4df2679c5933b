// An API server in memory for tests with a virtual clock: resource versions, compare-and-swap, watches, and failures that a test
// injects. Behaviour that matters with a real API server is also tested with one (test/cluster/).

import {
  ApiError,
  keyOf,
  type ApplyOptions,
  type CallOptions,
  type DeleteOptions,
  type KubeApi,
  type KubeObject,
  type ObjectList,
  type ObjectName,
  type Resource,
  type Selection,
  type WatchEvent,
  type WriteOptions,
} from './api.ts';

type Verb = 'get' | 'list' | 'page' | 'watch' | 'create' | 'replace' | 'mergePatch' | 'apply' | 'delete';

interface Watcher {
  readonly resource: Resource;
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  push(event: WatchEvent): void;
  end(err?: Error): void;
}

/** Runs every promise callback that is ready. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}

export class MemoryApi implements KubeApi {
  readonly #objects = new Map<string, KubeObject>();
  readonly #watchers = new Set<Watcher>();
  #version = 100;
  #uids = 0;
  /** All calls so far, such as `replace cameras/home/gate`. */
  readonly calls: string[] = [];
  /** Called before a call is carried out; an error it throws is thrown to the caller. */
  before: (verb: Verb, resource: Resource) => Promise<void> | void = () => {};
  /** Called after a call was carried out and before the response is sent, for example to lose the response. */
  after: (verb: Verb, resource: Resource) => Promise<void> | void = () => {};
  /** Whether watches lose the event. */
  drop: (event: WatchEvent) => boolean = () => false;

  get watches(): number {
    return this.#watchers.size;
  }

  count(verb: Verb): number {
    return this.calls.filter((call) => call.startsWith(`${verb} `)).length;
  }

  /** Ends every watch: with an error, or normally as the server does after some time. */
  endWatches(err?: Error): void {
    for (const watcher of this.#watchers) watcher.end(err);
  }

  bookmark(): void {
    const object = { metadata: { name: '', resourceVersion: String(this.#version) } };
    for (const watcher of this.#watchers) watcher.push({ type: 'BOOKMARK', object });
  }

  async get(resource: Resource, name: ObjectName, _options?: CallOptions): Promise<KubeObject> {
    return this.#call('get', resource, name, () => this.#existing(resource, name));
  }

  async list(resource: Resource, selection: Selection, _options?: CallOptions): Promise<ObjectList> {
    return this.#call('list', resource, { name: '' }, () => ({
      items: [...this.#objects.entries()]
        .filter(([key]) => key.startsWith(`${resource.plural}/${selection.namespace ? `${selection.namespace}/` : ''}`))
        .map(([, object]) => structuredClone(object)),
      resourceVersion: String(this.#version),
    }));
  }

  /** Pages of two objects. */
  async *pages(resource: Resource, selection: Selection, options?: CallOptions): AsyncGenerator<ObjectList> {
    const { items, resourceVersion } = await this.list(resource, selection, options);
    for (let from = 0; from === 0 || from < items.length; from += 2) {
      if (from > 0) await this.before('page', resource);
      yield { items: items.slice(from, from + 2), resourceVersion };
    }
  }

  async *watch(
    resource: Resource,
    { namespace }: Selection & { readonly resourceVersion: string },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent> {
    await this.#call('watch', resource, { name: '' }, () => {});
    const events: WatchEvent[] = [];
    let wake = (): void => {};
    let ended: { readonly err: Error | undefined } | undefined;
    const watcher: Watcher = {
      resource,
      namespace,
      push: (event) => (events.push(event), wake()),
      end: (err) => ((ended = { err }), wake()),
    };
    const abort = (): void => watcher.end();
    signal.addEventListener('abort', abort);
    this.#watchers.add(watcher);
    try {
      for (;;) {
        for (let event = events.shift(); event; event = events.shift()) yield event;
        if (ended?.err) throw ended.err;
        if (ended) return;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.#watchers.delete(watcher);
      signal.removeEventListener('abort', abort);
    }
  }

  async create(resource: Resource, object: KubeObject, _options?: WriteOptions): Promise<KubeObject> {
    return this.#call('create', resource, object.metadata, () => {
      if (this.#objects.has(path(resource, object.metadata))) throw new ApiError(409, 'AlreadyExists', 'exists');
      return this.#store(resource, 'ADDED', {
        ...object,
        metadata: { ...object.metadata, uid: `uid-${++this.#uids}` },
      });
    });
  }

  async replace(resource: Resource, object: KubeObject, _options?: WriteOptions): Promise<KubeObject> {
    return this.#call('replace', resource, object.metadata, () => {
      const { resourceVersion, uid } = this.#existing(resource, object.metadata).metadata;
      const wanted = object.metadata.resourceVersion;
      if (wanted !== undefined && wanted !== resourceVersion) throw new ApiError(409, 'Conflict', 'changed meanwhile');
      return this.#store(resource, 'MODIFIED', { ...object, metadata: { ...object.metadata, uid: uid! } });
    });
  }

  async mergePatch(resource: Resource, name: ObjectName, patch: object, _options?: WriteOptions): Promise<KubeObject> {
    return this.#call('mergePatch', resource, name, () =>
      this.#store(resource, 'MODIFIED', merge(this.#existing(resource, name), patch) as KubeObject),
    );
  }

  async apply(resource: Resource, object: KubeObject, _options: ApplyOptions): Promise<KubeObject> {
    return this.#call('apply', resource, object.metadata, () => {
      const known = this.#objects.get(path(resource, object.metadata));
      const uid = known?.metadata.uid ?? `uid-${++this.#uids}`;
      const merged = merge(known ?? {}, { ...object, metadata: { ...object.metadata, uid } }) as KubeObject;
      return this.#store(resource, known ? 'MODIFIED' : 'ADDED', merged);
    });
  }

  async delete(resource: Resource, name: ObjectName, _options?: DeleteOptions): Promise<void> {
    return this.#call('delete', resource, name, () => {
      const object = this.#existing(resource, name);
      this.#objects.delete(path(resource, name));
      const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
      this.#send(resource, { type: 'DELETED', object: { ...object, metadata } });
    });
  }

  async #call<R>(verb: Verb, resource: Resource, name: ObjectName, act: () => R): Promise<R> {
    this.calls.push(`${verb} ${path(resource, name)}`);
    await this.before(verb, resource);
    const result = act();
    await this.after(verb, resource);
    return structuredClone(result);
  }

  #existing(resource: Resource, name: ObjectName): KubeObject {
    const object = this.#objects.get(path(resource, name));
    if (!object) throw new ApiError(404, 'NotFound', 'not found');
    return object;
  }

  #store(resource: Resource, type: 'ADDED' | 'MODIFIED', object: KubeObject): KubeObject {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
    const stored = structuredClone({ ...object, metadata });
    this.#objects.set(path(resource, metadata), stored);
    this.#send(resource, { type, object: stored });
    return stored;
  }

  #send(resource: Resource, event: WatchEvent): void {
    if (this.drop(event)) return;
    for (const watcher of this.#watchers) {
      const isOther = watcher.namespace !== undefined && watcher.namespace !== event.object.metadata.namespace;
      if (watcher.resource.plural === resource.plural && !isOther) watcher.push(structuredClone(event));
    }
  }
}

const path = (resource: Resource, name: ObjectName): string => `${resource.plural}/${keyOf(name)}`;

/** JSON merge patch, RFC 7396. */
function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = { ...(target as object) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || value === undefined) delete merged[key];
    else merged[key] = merge(merged[key], value);
  }
  return merged;
}
