// The sessions of the other members of a cluster, as the engine has told of them.

import type { ClusterSessions } from '../contract/cluster-sessions.ts';

export class MemberSessions {
  #now: ClusterSessions = { keys: new Map(), ended: [] };
  #changed = (_now: ClusterSessions): void => {};

  readonly are = (now: ClusterSessions): void => {
    this.#now = now;
    this.#changed(now);
  };

  /** Undefined for a node that is no member. */
  readonly keyOf = (nodeId: string): string | undefined => this.#now.keys.get(nodeId);

  /** Calls `changed` now and when they have changed. */
  follow(changed: (now: ClusterSessions) => void): void {
    this.#changed = changed;
    changed(this.#now);
  }
}
