// Secrets and RecorderNodes in memory, as the store of a cluster answers for them.

import { ApiError } from '../../base/kubernetes/api-error.ts';
import type { KubernetesObject } from '../../base/kubernetes/client.ts';
import type { StoreApi } from './secrets.ts';

interface Stored {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly [field: string]: unknown;
}

export class MemoryStore implements StoreApi {
  /** By path. */
  readonly objects = new Map<string, Stored>();
  #version = 0;
  /** Whether it answers. */
  isReachable = true;

  async get(path: string): Promise<KubernetesObject> {
    this.#requireReachable();
    const found = this.objects.get(path);
    if (!found) throw new ApiError(404, 'NotFound', `${path} not found`);
    return found;
  }

  async list(path: string) {
    this.#requireReachable();
    const items = [...this.objects].flatMap(([at, one]) =>
      at.startsWith(`${path}/`) ? [one as KubernetesObject] : [],
    );
    return { items, resourceVersion: String(this.#version) };
  }

  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    // Others get their turn, as with a real store.
    await Promise.resolve();
    this.#requireReachable();
    if (method === 'POST') {
      const object = body as Stored;
      const place = `${path}/${object.metadata.name}`;
      if (this.objects.has(place)) throw new ApiError(409, 'AlreadyExists', 'it exists');
      return this.#put(place, object, `uid-${++this.#version}`);
    }
    const found = this.objects.get(path);
    if (!found) throw new ApiError(404, 'NotFound', `${path} not found`);
    if (method === 'DELETE') {
      const { preconditions } = (body ?? {}) as { preconditions?: { uid?: string; resourceVersion?: string } };
      this.#require(found, preconditions);
      this.objects.delete(path);
      return {};
    }
    const object = body as Stored;
    this.#require(found, object.metadata);
    return this.#put(path, object, found.metadata.uid);
  }

  #put(place: string, object: Stored, uid: string): Stored {
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(++this.#version) } };
    this.objects.set(place, stored);
    return stored;
  }

  #require({ metadata }: Stored, wanted: { readonly uid?: string; readonly resourceVersion?: string } = {}): void {
    const { uid = metadata.uid, resourceVersion = metadata.resourceVersion } = wanted;
    if (uid === metadata.uid && resourceVersion === metadata.resourceVersion) return;
    throw new ApiError(409, 'Conflict', 'it was changed');
  }

  #requireReachable(): void {
    if (!this.isReachable) throw new ApiError(0, 'UNREACHABLE', 'the store cannot be reached');
  }
}
