// The other nodes of the cluster, as the reports of this one tell of them: where they are reached, and what footage they hold.

/** The listeners of a recorder that its peers may use. */
export type PeerListener = 'api' | 'playback';

/** The listener that accepts members only, and the identity in its certificate. */
interface MutualAddress {
  readonly address: string;
  readonly identity: string;
}

/** Another recorder of the cluster. Its addresses are those that the operator wrote. */
export interface PeerNode {
  readonly nodeId: string;
  /** Base URLs of its listeners for clients; undefined until the operator has set them. */
  readonly urls: Readonly<Record<PeerListener, string | undefined>>;
  /** Undefined for a recorder of an older version, or without a certificate of the pool. */
  readonly mutual?: MutualAddress | undefined;
}

/** What is known of a holder without asking it. Times are milliseconds since 1970, minutes old; undefined: not reported, or up to now. */
export interface FootageHolder {
  /** As answers name it. */
  readonly nodeId: string;
  readonly oldestMs: number | undefined;
  readonly newestMs: number | undefined;
  /** Whether it has renewed its Lease lately; undefined while the API server cannot be asked. */
  readonly isOnline: boolean | undefined;
}

/** A recorder of the cluster, from the configuration or the membership. */
export interface Member {
  /** `host:port`, or `https://host:port` if its scheme differs from that of this node. */
  readonly address: string;
  /** Undefined for a member that only the configuration names. */
  readonly nodeId?: string;
  /** The listener that accepts members only, and its identity there: a URI in its certificate. */
  readonly mutual?: { readonly address: string; readonly identity: string };
}
