// What the nodes of a cluster say that they have, of something that is replaced while they work: each says the ids of its keys, or of the
// CAs that it trusts, or its certificate, in an annotation of its RecorderNode. None of that is secret.

import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../base/kubernetes/api-error.ts';
import { mergePatch, type KubernetesObject } from '../../base/kubernetes/client.ts';
import { patiently } from '../../base/patiently.ts';
import { nodesPath, type StoreApi } from './secrets.ts';

const WAIT_MS = 12_000;
const LOOK_MS = 250;

interface StatementsOptions {
  readonly api: StoreApi;
  readonly namespace: string;
  readonly annotation: string;
  /** How long to wait for nodes of which none says anything new; nodes look every two seconds. */
  readonly waitMs?: number | undefined;
  readonly clock: Clock;
}

interface Statement {
  readonly nodeId: string;
  readonly ids: readonly string[];
}

export class Statements {
  readonly #options: StatementsOptions;

  constructor(options: StatementsOptions) {
    this.#options = options;
  }

  /** What the object at this path says, such as a pool. Throws ApiError, as all methods do. */
  async at(path: string): Promise<readonly string[]> {
    return this.#idsOf(await this.#options.api.get(path));
  }

  async say(path: string, ids: readonly string[]): Promise<void> {
    const { api, annotation } = this.#options;
    await mergePatch(api, path, { metadata: { annotations: { [annotation]: ids.join(',') } } });
  }

  /** Says it unless it was said already. */
  async keepSaid(nodeId: string, ids: readonly string[]): Promise<void> {
    const path = `${nodesPath(this.#options.namespace)}/${nodeId}`;
    if ((await this.at(path)).join() !== ids.join()) await this.say(path, ids);
  }

  /** Of all members. */
  async all(): Promise<readonly Statement[]> {
    const { api, namespace } = this.#options;
    const { items } = await api.list(nodesPath(namespace));
    return items
      .filter(({ spec }) => !isRemoved(spec))
      .map((node) => ({ nodeId: node.metadata.name, ids: this.#idsOf(node) }));
  }

  /** Waits for the members that are meant and not known to be away. */
  async untilAll(
    isDone: (ids: readonly string[]) => boolean,
    { isMeant = () => true, knownAway = [] }: AwaitedNodes = {},
  ): Promise<{ readonly away: readonly string[]; readonly having: readonly string[] }> {
    const { waitMs = WAIT_MS, clock } = this.#options;
    let untilMs = clock.monotonicMs() + waitMs;
    let missing: string | undefined;
    for (;;) {
      const forMs = untilMs - clock.monotonicMs();
      const all = await patiently(() => this.all(), { mayPass, forMs, everyMs: LOOK_MS, clock });
      const members = all.filter(({ nodeId }) => isMeant(nodeId));
      const away = members.filter(({ ids }) => !isDone(ids)).map(({ nodeId }) => nodeId);
      const having = members.map(({ nodeId }) => nodeId).filter((name) => !away.includes(name));
      if (missing !== (missing = away.join())) untilMs = clock.monotonicMs() + waitMs;
      if (away.every((name) => knownAway.includes(name)) || clock.monotonicMs() > untilMs) return { away, having };
      await clock.sleep(LOOK_MS);
    }
  }

  #idsOf(object: KubernetesObject): readonly string[] {
    return saidBy(object, this.#options.annotation);
  }
}

/** What an object says in this annotation. */
export function saidBy({ metadata }: KubernetesObject, annotation: string): readonly string[] {
  const { [annotation]: text = '' } = (metadata['annotations'] ?? {}) as Readonly<Record<string, string>>;
  return text.split(',').filter((id) => id !== '');
}

/** etcd may not answer for a moment, because a member of it is started again. */
const mayPass = (err: unknown): boolean => err instanceof ApiError;

interface AwaitedNodes {
  readonly isMeant?: (nodeId: string) => boolean;
  readonly knownAway?: readonly string[];
}

export const isRemoved = (spec: unknown): boolean =>
  (spec as { readonly role?: string } | undefined)?.role === 'Removed';
