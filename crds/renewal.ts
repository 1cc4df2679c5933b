// How the Lease of a recorder announces the interval at which it is renewed: by its duration, which is not a time and so does not
// depend on anybody's clock.

/** `leaseDurationSeconds` is this many intervals. */
const RENEWALS_PER_LEASE = 7;
/** The longest interval that a pool may ask for (`failover.renewSeconds`). */
export const MAX_RENEW_SECONDS = 1200;

export const leaseSecondsOf = (renewMs: number): number =>
  Math.max(1, Math.round((renewMs * RENEWALS_PER_LEASE) / 1000));

/** Undefined if the Lease does not say it. */
export function renewMsOf(leaseDurationSeconds: unknown): number | undefined {
  if (typeof leaseDurationSeconds !== 'number' || !(leaseDurationSeconds > 0)) return undefined;
  return (Math.min(leaseDurationSeconds, RENEWALS_PER_LEASE * MAX_RENEW_SECONDS) * 1000) / RENEWALS_PER_LEASE;
}
