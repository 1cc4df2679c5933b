// Determines the media type of an image from its first bytes. The camera's Content-Type is not trusted: it often calls a login
// page with status 200 an image.

/** The number of bytes needed. */
export const MAGIC_BYTES = 12;

const ascii = (bytes: Buffer, from: number, to: number): string => bytes.toString('latin1', from, to);

/** Undefined if it is not an image that browsers show. */
export function imageTypeOf(bytes: Buffer): string | undefined {
  if (bytes.length < MAGIC_BYTES) return undefined;
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return 'image/jpeg';
  if (ascii(bytes, 0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png';
  if (ascii(bytes, 0, 6) === 'GIF87a' || ascii(bytes, 0, 6) === 'GIF89a') return 'image/gif';
  if (ascii(bytes, 0, 4) === 'RIFF' && ascii(bytes, 8, 12) === 'WEBP') return 'image/webp';
  if (ascii(bytes, 4, 12) === 'ftypavif') return 'image/avif';
  return undefined;
}
