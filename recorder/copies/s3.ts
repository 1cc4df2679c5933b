// A client of object storage: the five requests of S3 that copies need. Buckets are addressed by path.

import type { Readable } from 'node:stream';
import { Agent, request, type Dispatcher } from 'undici';
import type { Clock } from '../../base/clock.ts';
import { CodedError, messageOf } from '../../base/error.ts';
import { HTTP_1, readBody } from '../../base/http-answer.ts';
import { printable } from '../../base/printable.ts';
import { childrenOf, parseXml, textAt, XmlError, type XmlElement } from '../../base/xml.ts';
import { escapedKey, NO_BODY, signed, type SigningKey } from './sign.ts';

export interface Bucket {
  /** `https://s3.example`; a path is not part of it. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Asked for each request, so that a changed key is used at once. */
  readonly accessKey: () => Promise<Omit<SigningKey, 'region'>>;
  /** PEM; undefined: the authorities of the system. */
  readonly ca?: string | undefined;
}

export type S3Code =
  | 'unreachable'
  | 'wrong-credentials'
  | 'no-bucket'
  | 'forbidden'
  | 'not-found'
  | 'exists'
  | 'bad-digest'
  | 'full'
  | 'refused';

/** Why a request failed. The message is for people and names neither secrets nor addresses. */
export class S3Error extends CodedError<S3Code> {}

interface ListedObject {
  readonly key: string;
  readonly sizeBytes: number;
}

/** A part of a list; `folders` with a delimiter. */
interface ListPage {
  readonly objects: readonly ListedObject[];
  readonly folders: readonly string[];
}

interface Head {
  readonly sizeBytes: number;
  /** SHA-256 in base64 as the server has computed it; undefined if it does not tell. */
  readonly checksum: string | undefined;
  /** In a bucket with versions. */
  readonly versionId: string | undefined;
}

interface Asked {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly sha256?: string;
  readonly body?: Dispatcher.DispatchOptions['body'];
  readonly signal?: AbortSignal | undefined;
}

const CONNECT_MS = 5_000;
/** Between two pieces of an answer, and until it begins: the server reads a whole file again before it answers. */
const ANSWER_MS = 30_000;
/** Of a page: with the longest keys it is well below what the parser of XML takes. */
const MAX_KEYS = '500';
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_SMALL_BYTES = 8 * 1024 * 1024;

export class S3 {
  readonly #bucket: Bucket;
  readonly #clock: Pick<Clock, 'wallMs'>;
  readonly #agent: Agent;
  /** Clock of the server minus ours, as of its last answer. */
  #aheadMs = 0;

  constructor(bucket: Bucket, clock: Pick<Clock, 'wallMs'>) {
    this.#bucket = bucket;
    this.#clock = clock;
    const connect = { timeout: CONNECT_MS, ...(bucket.ca !== undefined && { ca: bucket.ca }) };
    this.#agent = new Agent({ ...HTTP_1, connect, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS });
  }

  /** The clock of the server. Requests are signed by it: a server refuses those that are 15 minutes old. */
  serverMs(): number {
    return this.#clock.wallMs() + this.#aheadMs;
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** Stores an object; `sha256` in hexadecimal digits. Resolves to the digest of the server. Rejects with S3Error. */
  async put(
    key: string,
    body: Buffer | AsyncIterable<Buffer>,
    {
      sizeBytes,
      sha256,
      headers,
      signal,
    }: Pick<Asked, 'signal'> & {
      readonly sizeBytes: number;
      readonly sha256: string;
      readonly headers?: Readonly<Record<string, string>>;
    },
  ): Promise<string | undefined> {
    const checksum = Buffer.from(sha256, 'hex').toString('base64');
    let unread: { readonly err: unknown } | undefined;
    const sent = Buffer.isBuffer(body) ? body : watched(body, (err) => (unread = { err }));
    const asked = {
      headers: { ...headers, 'content-length': String(sizeBytes), 'x-amz-checksum-sha256': checksum },
      sha256,
      body: sent as Buffer,
      signal,
    };
    const answer = await this.#ask('PUT', key, asked).catch((err: unknown) => {
      throw unread ? unread.err : err;
    });
    await small(answer);
    return wordOf(answer, 'x-amz-checksum-sha256');
  }

  /** Bytes of an object without the one at `to`, or all of it. Rejects with S3Error. */
  async get(
    key: string,
    range?: { readonly from: number; readonly to: number },
    signal?: AbortSignal,
  ): Promise<Readable> {
    const headers = range && { range: `bytes=${range.from}-${range.to - 1}` };
    const answer = await this.#ask('GET', key, { ...(headers && { headers }), signal });
    if (!range || answer.statusCode === 206) return answer.body;
    answer.body.on('error', () => {}).destroy();
    throw new S3Error('refused', 'it sends whole objects instead of the range that was asked for');
  }

  /** A small object as a whole; undefined if there is none. Rejects with S3Error. */
  async read(key: string): Promise<Buffer | undefined> {
    try {
      return await small(await this.#ask('GET', key, {}));
    } catch (err) {
      return notThere(err);
    }
  }

  /** Undefined if there is no such object. Rejects with S3Error. */
  async head(key: string): Promise<Head | undefined> {
    try {
      const answer = await this.#ask('HEAD', key, { headers: { 'x-amz-checksum-mode': 'ENABLED' } });
      await small(answer);
      return {
        sizeBytes: Number(wordOf(answer, 'content-length')),
        checksum: wordOf(answer, 'x-amz-checksum-sha256'),
        versionId: wordOf(answer, 'x-amz-version-id'),
      };
    } catch (err) {
      return notThere(err);
    }
  }

  /** Removes an object with all its versions; nothing remains that retention has removed. Rejects with S3Error. */
  async remove(key: string): Promise<void> {
    // The version before the one that is removed becomes the current one.
    for (let head = await this.head(key); head; head = await this.head(key)) {
      const { versionId } = head;
      await small(await this.#ask('DELETE', key, versionId === undefined ? {} : { query: { versionId } }));
      if (versionId === undefined) return;
    }
  }

  /** Objects whose keys begin with `prefix`, in the order of their keys, page by page. Rejects with S3Error. */
  async *list(prefix: string, delimiter?: string): AsyncGenerator<ListPage> {
    for (let token: string | undefined = ''; token !== undefined;) {
      const query = {
        'list-type': '2',
        'max-keys': MAX_KEYS,
        prefix,
        ...(delimiter !== undefined && { delimiter }),
        ...(token !== '' && { 'continuation-token': token }),
      };
      const list = parsed(await small(await this.#ask('GET', '', { query }), MAX_LIST_BYTES));
      if (list?.name !== 'ListBucketResult') throw new S3Error('refused', 'its answer is not a list of S3');
      yield {
        objects: childrenOf(list, 'Contents').map((one) => ({
          key: textAt(one, 'Key') ?? '',
          sizeBytes: Number(textAt(one, 'Size')),
        })),
        folders: childrenOf(list, 'CommonPrefixes').map((one) => textAt(one, 'Prefix') ?? ''),
      };
      token = textAt(list, 'IsTruncated') === 'true' ? textAt(list, 'NextContinuationToken') : undefined;
    }
  }

  /** Rejects with S3Error unless the server answers with success; an answer without a body of ours is asked for again by its clock. */
  async #ask(method: Dispatcher.HttpMethod, key: string, asked: Asked): Promise<Dispatcher.ResponseData> {
    const before = this.#aheadMs;
    try {
      return await this.#send(method, key, asked);
    } catch (err) {
      const isLate = err instanceof S3Error && err.code === 'wrong-credentials' && this.#aheadMs !== before;
      if (isLate && !asked.body) return this.#send(method, key, asked);
      throw err;
    }
  }

  async #send(method: Dispatcher.HttpMethod, key: string, asked: Asked): Promise<Dispatcher.ResponseData> {
    const { endpoint, bucket, region, accessKey } = this.#bucket;
    const { query = {}, headers = {}, sha256 = NO_BODY, body = null, signal } = asked;
    const url = new URL(`${endpoint}/${escapedKey(key === '' ? bucket : `${bucket}/${key}`)}`);
    // The form of a signature, which has no `+`.
    url.search = Object.entries(query)
      .map(([name, value]) => `${name}=${escapedKey(value).replaceAll('/', '%2F')}`)
      .join('&');
    const timeMs = this.serverMs();
    const signing = { ...(await accessKey()), region };
    let answer: Dispatcher.ResponseData;
    try {
      answer = await request(url, {
        method,
        headers: signed({ method, url, headers, sha256, timeMs }, signing),
        body,
        dispatcher: this.#agent,
        ...(signal && { signal }),
      });
    } catch (err) {
      signal?.throwIfAborted();
      if (err instanceof S3Error) throw err;
      throw new S3Error('unreachable', `it cannot be reached: ${messageOf(err)}`, { cause: err });
    }
    const dateMs = Date.parse(wordOf(answer, 'date') ?? '');
    if (answer.statusCode < 300) {
      if (!Number.isNaN(dateMs)) this.#aheadMs = dateMs - this.#clock.wallMs();
      return answer;
    }
    // Without a body that can be read, the status says why.
    const error = parsed(await small(answer).catch(() => Buffer.alloc(0)));
    const code = textAt(error, 'Code') ?? '';
    if (code === 'RequestTimeTooSkewed' && !Number.isNaN(dateMs)) this.#aheadMs = dateMs - this.#clock.wallMs();
    throw failure(answer.statusCode, code, textAt(error, 'Message'));
  }
}

const CODES: Readonly<Record<string, S3Code>> = {
  InvalidAccessKeyId: 'wrong-credentials',
  SignatureDoesNotMatch: 'wrong-credentials',
  InvalidToken: 'wrong-credentials',
  ExpiredToken: 'wrong-credentials',
  RequestTimeTooSkewed: 'wrong-credentials',
  AccessDenied: 'forbidden',
  NoSuchBucket: 'no-bucket',
  NoSuchKey: 'not-found',
  PreconditionFailed: 'exists',
  BadDigest: 'bad-digest',
  InvalidDigest: 'bad-digest',
  XAmzContentSHA256Mismatch: 'bad-digest',
  QuotaExceeded: 'full',
  XMinioStorageFull: 'full',
};
const STATUSES: Readonly<Record<number, S3Code>> = {
  403: 'forbidden',
  404: 'not-found',
  412: 'exists',
  416: 'not-found',
  429: 'unreachable',
  503: 'unreachable',
  507: 'full',
};

function failure(status: number, code: string, message: string | undefined): S3Error {
  const words = code === '' ? `it answers ${status}` : `it answers ${status} (${code})`;
  const told = message === undefined ? words : `${words}: ${message.slice(0, 200)}`;
  return new S3Error(CODES[code] ?? STATUSES[status] ?? 'refused', printable(told));
}

function notThere(err: unknown): undefined {
  if (!(err instanceof S3Error && err.code === 'not-found')) throw err;
}

/** The same pieces; `failed` gets the error with which they end: a client hides it behind its own. */
async function* watched(pieces: AsyncIterable<Buffer>, failed: (err: unknown) => void): AsyncGenerator<Buffer> {
  try {
    yield* pieces;
  } catch (err) {
    failed(err);
    throw err;
  }
}

async function small({ body }: Dispatcher.ResponseData, maxBytes = MAX_SMALL_BYTES): Promise<Buffer> {
  try {
    return await readBody(body, maxBytes, () => new S3Error('refused', `its answer has more than ${maxBytes} bytes`));
  } catch (err) {
    if (err instanceof S3Error) throw err;
    throw new S3Error('unreachable', `its answer ends early: ${messageOf(err)}`, { cause: err });
  }
}

/** Undefined if it is not XML. */
function parsed(body: Buffer): XmlElement | undefined {
  try {
    return parseXml(body.toString());
  } catch (err) {
    if (!(err instanceof XmlError)) throw err;
    return undefined;
  }
}

function wordOf({ headers }: Dispatcher.ResponseData, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
