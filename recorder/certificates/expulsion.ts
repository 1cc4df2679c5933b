// Takes every right back from a server that was stolen or taken over, while the others go on: it is no member any more, the key of Secrets
// and the CA are replaced, and nothing that it has opens a door. It can be repeated after a failure.

import type { Clock } from '../../base/clock.ts';
import { CodedError, isExpected, messageOf } from '../../base/error.ts';
import { EtcdError } from '../../base/etcd/etcd-error.ts';
import { ApiError, hasStatus } from '../../base/kubernetes/api-error.ts';
import { mergePatch } from '../../base/kubernetes/client.ts';
import type { Log } from '../../base/log.ts';
import { patiently } from '../../base/patiently.ts';
import type { AuthorityRotation } from './authority-rotation.ts';
import { IssueError, NoKeyError } from './issuer.ts';
import type { JoinTokens } from './join-tokens.ts';
import { RotationError, type KeyRotation } from './key-rotation.ts';
import { nodesPath, type StoreApi } from './secrets.ts';

/** `unknown-node`: the cluster has no such node. `refused`: it cannot be expelled here, or now. */
export class ExpulsionError extends CodedError<'unknown-node' | 'refused'> {
  override readonly name = 'ExpulsionError';
}

/**
 * `remove`: its member of etcd, its logins, and the tokens for joining go. `keys`: the key of Secrets is replaced. The others are those of the
 * CA: members trust the new one, have its certificate, trust no other one.
 */
export const EXPULSION_STEPS = ['remove', 'keys', 'trust', 'certificate', 'drop', 'done'] as const;
type ExpulsionStep = (typeof EXPULSION_STEPS)[number];

export interface ExpulsionState {
  readonly nodeId: string;
  readonly step: ExpulsionStep;
  /** Why it has ended before it was done; for people. */
  readonly problem: string | undefined;
  /** Nodes that were away, and have to join again. */
  readonly away: readonly string[];
  /** Secrets whose passwords the server knows; empty until it is done. */
  readonly secrets: readonly string[];
}

interface ExpulsionOptions {
  readonly api: StoreApi;
  readonly namespace: string;
  readonly nodeId: string;
  /** Removes the member of a node from etcd, if it has one. */
  readonly etcd: { expel(nodeId: string): Promise<void> };
  readonly tokens: Pick<JoinTokens, 'removeAll'>;
  /** Removes the users and tokens that the configuration of a server has. */
  readonly logins: { forget(nodeId: string): Promise<void> };
  readonly keys: Pick<KeyRotation, 'rotate'>;
  readonly authorities: Pick<AuthorityRotation, 'requireKey' | 'replace'>;
  /** The names of the Secrets that people made. */
  readonly secrets: () => Promise<readonly string[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** etcd refuses changes for some seconds after the last one, and does not answer while it chooses a leader. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 500;

export class Expulsion {
  readonly #options: ExpulsionOptions;
  #state: ExpulsionState | undefined;

  constructor(options: ExpulsionOptions) {
    this.#options = options;
  }

  /** The last one that this server began. */
  get state(): ExpulsionState | undefined {
    return this.#state;
  }

  /** Resolves when it has begun, or if it is under way. `force`: also while other nodes are away. Throws ExpulsionError and ApiError. */
  async begin(nodeId: string, { force }: { readonly force: boolean }): Promise<ExpulsionState> {
    const { api, namespace, nodeId: own, authorities } = this.#options;
    const running = this.#running;
    if (running?.nodeId === nodeId) return running;
    if (running) throw new ExpulsionError('refused', `${running.nodeId} is being expelled: wait until that is done`);
    if (nodeId === own) throw new ExpulsionError('refused', `${nodeId} is this server: expel it from another one`);
    try {
      await api.get(`${nodesPath(namespace)}/${nodeId}`);
    } catch (err) {
      if (hasStatus(err, 404)) throw new ExpulsionError('unknown-node', `the cluster has no node ${nodeId}`);
      throw err;
    }
    await authorities.requireKey().catch((err: unknown) => {
      throw err instanceof NoKeyError ? new ExpulsionError('refused', err.message) : err;
    });
    const state: ExpulsionState = { nodeId, step: 'remove', problem: undefined, away: [], secrets: [] };
    // Another request may have begun meanwhile.
    if (this.#running) return this.begin(nodeId, { force });
    this.#state = state;
    void this.#expel(nodeId, force).catch((err: unknown) => this.#failed(err));
    return state;
  }

  get #running(): ExpulsionState | undefined {
    const state = this.#state;
    return state?.step === 'done' || state?.problem !== undefined ? undefined : state;
  }

  #is(change: Partial<ExpulsionState>): void {
    this.#state = { ...(this.#state as ExpulsionState), ...change };
    const { nodeId: node, step } = this.#state;
    this.#options.log.info({ node, step }, 'a server is being expelled from the cluster');
  }

  #failed(err: unknown): void {
    const { log } = this.#options;
    const { nodeId: node, step } = this.#state as ExpulsionState;
    if (!isExpected(err, ApiError, EtcdError, IssueError, RotationError)) log.bug({ err, node, step }, NOT_EXPELLED);
    else log.error({ problem: messageOf(err), node, step }, NOT_EXPELLED);
    this.#state = { ...(this.#state as ExpulsionState), problem: messageOf(err) };
  }

  async #expel(nodeId: string, force: boolean): Promise<void> {
    const { api, namespace, etcd, tokens, logins, keys, authorities, secrets } = this.#options;
    const path = `${nodesPath(namespace)}/${nodeId}`;
    // First: with it the listeners for members and the logins of this server are closed to it.
    await this.#patiently(() => mergePatch(api, path, { spec: { role: 'Removed' } }));
    await this.#patiently(() => etcd.expel(nodeId));
    await this.#patiently(() => tokens.removeAll());
    await this.#patiently(() => logins.forget(nodeId));
    // Before there is another CA, so that the key of that one is never sealed with a key that the server has.
    this.#is({ step: 'keys' });
    await this.#patiently(() => keys.rotate({ force }));
    const away = await authorities.replace({ force, began: (step) => this.#is({ step }) });
    // Last: until now it could have made its node again. Another server of this name starts without the past of this one.
    await this.#patiently(() => api.call('DELETE', path));
    this.#is({ step: 'done', away, secrets: await this.#patiently(secrets) });
  }

  #patiently<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const mayPass = (err: unknown): boolean => isExpected(err, ApiError, EtcdError);
    return patiently(work, { mayPass, forMs: PATIENCE_MS, everyMs: RETRY_MS, clock });
  }
}

const NOT_EXPELLED = 'a server could not be expelled from the cluster: repeat it';
