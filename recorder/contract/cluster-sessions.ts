// What a node knows of the sessions of the other members of its cluster.

export interface ClusterSessions {
  /** By which the sessions of a member are known, by its node. */
  readonly keys: ReadonlyMap<string, string>;
  /** Sessions that were ended at any member. */
  readonly ended: readonly { readonly of: string; readonly atMs: number }[];
}
