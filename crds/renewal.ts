// How often a recorder renews its Lease, and how the Lease announces that: by its duration, which is not a time and so does not
// depend on anybody's clock.

/** `leaseDurationSeconds` is this many intervals. */
const RENEWALS_PER_LEASE = 7;
/** The end of `holderIdentity` of a node's Lease, after the name of the node, when its recorder has ended: no process renews it. */
export const NO_PROCESS = '/';

/** The longest interval that a pool may ask for (`failover.renewSeconds`). */
export const MAX_RENEW_SECONDS = 1200;

/**
 * All recorders of a pool together renew this often, if the limits of failover allow it. Kubernetes itself is tested with 500
 * renewals a second, those of 5 000 nodes.
 */
const RENEWALS_PER_SECOND = 100;
/** A node is lost after this many intervals at the earliest (`failover.unavailableAfterSeconds`). */
export const RENEWALS_UNTIL_LOST = 3;

/**
 * The interval of each node of a pool with so many nodes: that of the pool, or longer, but never so long that failover would be
 * later than the pool asks for.
 */
export function renewMsFor(
  nodes: number,
  failover: { readonly renewSeconds: number; readonly unavailableAfterSeconds: number },
): number {
  const longest = failover.unavailableAfterSeconds / RENEWALS_UNTIL_LOST;
  const affordable = Math.min(Math.ceil(nodes / RENEWALS_PER_SECOND), Math.floor(longest));
  return Math.max(failover.renewSeconds, affordable) * 1000;
}

export const leaseSecondsOf = (renewMs: number): number =>
  Math.max(1, Math.round((renewMs * RENEWALS_PER_LEASE) / 1000));

/** Undefined if the Lease does not say it. */
export function renewMsOf(leaseDurationSeconds: unknown): number | undefined {
  if (typeof leaseDurationSeconds !== 'number' || !(leaseDurationSeconds > 0)) return undefined;
  return (Math.min(leaseDurationSeconds, RENEWALS_PER_LEASE * MAX_RENEW_SECONDS) * 1000) / RENEWALS_PER_LEASE;
}
