// Helpers of the HTTP clients of this program.

/**
 * For undici. In HTTP/2, Node 24.21 was seen to fill the memory of the machine within seconds: a session queued frames without
 * end after an answer of etcd on a busy machine.
 */
export const HTTP_1 = { allowH2: false } as const;

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

/**
 * The lines of a body, without empty ones, as they come. Throws the error of `tooLong` when one has more than about `maxBytes`.
 */
export async function* linesOf(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLong: () => Error,
): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...rest, chunk.subarray(start, end)]).toString('utf8');
      rest = [];
      restBytes = 0;
      start = end + 1;
      if (line.trim() !== '') yield line;
    }
    if (start === chunk.length) continue;
    rest.push(chunk.subarray(start));
    restBytes += chunk.length - start;
    if (restBytes > maxBytes) throw tooLong();
  }
}

const REDIRECTS: ReadonlySet<number | undefined> = new Set([301, 302, 303, 307, 308]);

/** Whether the answer is a redirect to its `Location` (RFC 9110 §15.4). */
export const isRedirect = (status: number | undefined): boolean => REDIRECTS.has(status);
