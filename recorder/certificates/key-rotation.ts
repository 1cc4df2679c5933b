// Replaces the key that encrypts Secrets. The pool names the keys of the cluster in order, and each node follows that and says on its
// RecorderNode which keys it has. A new key is the last one until all nodes have it; then it becomes the first one, and all Secrets are
// encrypted with it. So an end at any moment leaves Secrets that every node can read, and the next rotation completes what is missing.

import type { Clock } from '../../base/clock.ts';
import { API_VERSION, RECORDER_POOLS } from '../../crds/names.ts';
import type { ClusterKeys } from './cluster-keys.ts';
import type { StoreApi } from './secrets.ts';
import { Statements } from './statements.ts';

/** On the pool: ids of the keys, in order. On a node: those that it has. The ids are no secret. */
const KEYS_ANNOTATION = 'kube-nvr.dev/keys';

/** The key was not replaced, or not everywhere. The message is for the client. */
export class RotationError extends Error {
  override readonly name = 'RotationError';
}

interface KeyRotationOptions {
  readonly api: StoreApi;
  readonly namespace: string;
  readonly pool: string;
  readonly nodeId: string;
  readonly keys: Pick<ClusterKeys, 'ids' | 'grow' | 'follow'>;
  /** Encrypts all Secrets again; resolves to their number. */
  readonly reseal: () => Promise<number>;
  readonly clock: Clock;
}

interface Rotated {
  readonly key: string;
  readonly secrets: number;
  /** Nodes that do not have it yet. */
  readonly away: readonly string[];
}

export class KeyRotation {
  readonly #options: KeyRotationOptions;
  readonly #statements: Statements;
  #isRunning = false;

  constructor(options: KeyRotationOptions) {
    this.#options = options;
    this.#statements = new Statements({ ...options, annotation: KEYS_ANNOTATION });
  }

  /** To be called every few seconds: this node has the keys of the cluster, and says so. Throws ApiError, and errors of the file system. */
  async follow(): Promise<void> {
    const { nodeId, keys } = this.#options;
    const wanted = await this.#statements.at(this.#poolPath);
    // No key was replaced yet.
    if (wanted.length === 0) return;
    await keys.follow(wanted);
    await this.#statements.keepSaid(nodeId, keys.ids);
  }

  /** `force`: also while nodes are away, which get the key when they return. Throws RotationError and ApiError. */
  async rotate({ force }: { readonly force: boolean }): Promise<Rotated> {
    if (this.#isRunning) throw new RotationError('the key is being replaced already');
    this.#isRunning = true;
    try {
      return await this.#rotate(force);
    } finally {
      this.#isRunning = false;
    }
  }

  async #rotate(force: boolean): Promise<Rotated> {
    const { nodeId, keys, reseal } = this.#options;
    const key = await keys.grow();
    await this.#statements.say(this.#poolPath, keys.ids);
    const isMeant = (other: string): boolean => other !== nodeId;
    const { away, having } = await this.#statements.untilAll((ids) => ids.includes(key), { isMeant });
    if (away.length > 0 && (!force || having.length === 0)) {
      throw new RotationError(
        `the key was not replaced, because ${away.join(', ')} ${away.length > 1 ? 'do' : 'does'} not have the new one: ` +
          (having.length === 0
            ? 'at least one other node must have it'
            : 'away, or of an older version. With force it is replaced anyway, and nodes that are away get it when they return'),
      );
    }
    const order = [key, ...keys.ids.filter((id) => id !== key)];
    await this.#statements.say(this.#poolPath, order);
    await keys.follow(order);
    const used = await this.#statements.untilAll((ids) => ids[0] === key, { isMeant, knownAway: away });
    return { key, secrets: await reseal(), away: used.away };
  }

  get #poolPath(): string {
    const { namespace, pool } = this.#options;
    return `/apis/${API_VERSION}/namespaces/${namespace}/${RECORDER_POOLS}/${pool}`;
  }
}
