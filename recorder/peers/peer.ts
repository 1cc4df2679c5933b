// The other members of the cluster, as requests to them need them.

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

/** The status of an answer that is not the wanted one, and why: in the words of its node, or in ours if it cannot be read. */
export interface Refusal {
  readonly status: number;
  readonly problem: string;
}

export type NoAnswer = { readonly kind: 'away' } | ({ readonly kind: 'refused' } & Refusal);
