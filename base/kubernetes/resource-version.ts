// Tells which of two versions of one object is newer. Kubernetes 1.35 and later promise that resource versions are increasing
// decimal numbers (KEP-5504); etcd has always produced such.

const DECIMAL = /^[0-9]+$/;

/** Whether `a` is newer than `b`. If either is not a number, any difference counts as newer. */
export function isNewer(a: string, b: string): boolean {
  if (a === b) return false;
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return true;
  return a.length === b.length ? a > b : a.length > b.length;
}
