// Which of two versions of one object is the newer. Since Kubernetes 1.35 the API promises that resource versions are
// decimal numbers that grow (KEP-5504); etcd has always made them so.

const DECIMAL = /^[0-9]+$/;

/** `a` is newer than `b`. Of versions that are not numbers every other one is taken for newer. */
export function isNewer(a: string, b: string): boolean {
  if (a === b) return false;
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return true;
  return a.length === b.length ? a > b : a.length > b.length;
}
