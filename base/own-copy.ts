/**
 * Copies `bytes` into memory that nothing shares, for data that is kept. A small Buffer made by Node is a slice of its 64 KiB
 * pool, and keeps the whole pool alive.
 */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
