// Helpers for answers that the HTTP clients of this program receive.

/** The whole body. Throws the error of `tooLong` when it has more than `maxBytes`; the rest is not read. */
export async function readBody(body: AsyncIterable<Buffer>, maxBytes: number, tooLong: () => Error): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

/** Whether the answer is a redirect to its `Location` (RFC 9110 §15.4). */
export const isRedirect = (status: number | undefined): boolean => REDIRECTS.has(status);
