// The other members of the cluster, as requests to them need them, and the footage that they hold.

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

/** A node that reports footage of a camera. Times are milliseconds since 1970, minutes old; undefined: not reported, or up to now. */
export interface FootageHolder {
  readonly nodeId: string;
  readonly oldestMs: number | undefined;
  readonly newestMs: number | undefined;
  /** Whether it has renewed its Lease lately; undefined while the API server cannot be asked. */
  readonly isOnline: boolean | undefined;
}

/** The status of an answer that is not the wanted one, and why: in the words of its node, or in ours if it cannot be read. */
interface Refusal {
  readonly status: number;
  readonly problem: string;
}

export type NoAnswer = { readonly kind: 'away' } | ({ readonly kind: 'refused' } & Refusal);

/**
 * A stretch of time whose footage is on another node. `isOnline`: the node has reported it; otherwise it did not
 * answer, or refused to, and may have footage of this time. Milliseconds since 1970.
 */
export interface Elsewhere {
  readonly nodeId: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly isOnline: boolean;
  readonly refused?: Refusal;
}

/**
 * A node reports the extent of its footage every five minutes, and when something else changes: it may have recorded for so
 * long after its last report.
 */
const REPORT_AGE_MS = 300_000;

/** The holders that may have footage in [fromMs, toMs). */
export const holdersIn = (holders: readonly FootageHolder[], fromMs: number, toMs: number): readonly FootageHolder[] =>
  holders.filter(
    ({ oldestMs = -Infinity, newestMs = Infinity }) => oldestMs < toMs && newestMs + REPORT_AGE_MS > fromMs,
  );

/** What is missing in [fromMs, toMs) as long as `holder` does not answer. */
export const missingAt = (
  { nodeId, oldestMs = -Infinity, newestMs = Infinity, isOnline }: FootageHolder,
  fromMs: number,
  toMs: number,
): Elsewhere => ({
  nodeId,
  fromMs: Math.max(fromMs, oldestMs),
  toMs: Math.min(toMs, newestMs + REPORT_AGE_MS),
  isOnline: isOnline ?? false,
});

/** The same for a holder that was asked in vain, whatever its Lease says. */
export function silentAt(holder: FootageHolder, fromMs: number, toMs: number, reason: NoAnswer): Elsewhere {
  const missing = { ...missingAt(holder, fromMs, toMs), isOnline: false };
  if (reason.kind === 'away') return missing;
  return { ...missing, refused: { status: reason.status, problem: reason.problem } };
}
