/**
 * A copy in memory of its own, for what is kept. A small Buffer that Node makes is a piece of its pool, and keeps all
 * 64 KiB of that for as long as it lives.
 */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
