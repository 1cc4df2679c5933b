// A client of etcd: its v3 API as JSON over HTTP (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/). Keys are text, values
// are bytes, revisions are decimal text, because they are 64-bit numbers.

import { Agent, request, type Dispatcher } from 'undici';
import { errorCode, messageOf, quietly } from '../error.ts';
import { HTTP_1, linesOf, readBody } from '../http-answer.ts';
import { promptly } from '../promptly.ts';
import { EtcdError } from './etcd-error.ts';

export { EtcdError };

/** PEM texts: the CA to trust, and the certificate and key that this client presents. */
interface EtcdTls {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

interface EtcdClientOptions {
  /**
   * Base URLs of members, such as `https://10.0.0.7:2379`. Read before each call. The first one is asked, or while it does not answer
   * another one.
   */
  readonly endpoints: () => readonly string[];
  /** Undefined: the endpoints are asked without TLS. When it returns another object, new connections are made with it. */
  readonly tls?: () => EtcdTls | undefined;
  /** How long a member may take to answer. Default 5 s. */
  readonly callTimeoutMs?: number;
  /** After this time with another member, the first one is asked again. Default 10 s. */
  readonly awayMs?: number;
}

export interface KeyValue {
  readonly key: string;
  readonly value: Buffer;
  readonly createRevision: string;
  readonly modRevision: string;
}

interface RangeRequest {
  readonly key: string;
  /** All keys from `key` up to this one, without it. Undefined: only `key`. */
  readonly rangeEnd?: string | undefined;
  readonly limit?: number | undefined;
  /** The revision of the store to read. Undefined: the newest. */
  readonly revision?: string | undefined;
  /** The member answers from its own copy, which may be out of date. */
  readonly serializable?: boolean | undefined;
}

interface RangeAnswer {
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  /** The revision of the store at the time of the answer. */
  readonly revision: string;
}

export type TxnOperation =
  | { readonly put: { readonly key: string; readonly value: string | Buffer } }
  | { readonly delete: { readonly key: string } };

interface TxnRequest {
  /** The transaction is carried out if each key was last changed at this revision; `0`: there is no such key. */
  readonly compare: readonly { readonly key: string; readonly modRevision: string }[];
  readonly success: readonly TxnOperation[];
}

interface TxnAnswer {
  readonly succeeded: boolean;
  readonly revision: string;
}

/** A change of a key, with its previous value. */
export interface EtcdEvent {
  readonly type: 'PUT' | 'DELETE';
  /** For a deletion it has only key and revision. */
  readonly kv: KeyValue;
  /** Undefined: the key is new, or the previous revision was compacted. */
  readonly previous: KeyValue | undefined;
}

interface WatchAnswer {
  /** All changes up to this revision have been delivered. */
  readonly revision: string;
  /** Empty: nothing has changed since the last answer. */
  readonly events: readonly EtcdEvent[];
}

interface EtcdMember {
  readonly id: string;
  /** Empty until the member has started for the first time. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
}

interface EtcdStatus {
  readonly memberId: string;
  readonly version: string;
  /** Undefined without a leader. */
  readonly leaderId: string | undefined;
  readonly isLearner: boolean;
  readonly databaseBytes: number;
}

const CALL_TIMEOUT_MS = 5_000;
/** After this time another member is asked what may be asked twice: a request that went to a leader that died is never answered. */
const PATIENCE_MS = 1_000;
/** Shorter than the time that a renewal may take, so that another member is asked in time when a server is dead. */
const CONNECT_TIMEOUT_MS = 1_500;
const AWAY_MS = 10_000;
/** Longer than the time after which an idle watch ends by itself. */
const IDLE_MS = 120_000;
/** The longest answer: a page of large objects, in base64. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_EVENT_BYTES = 16 * 1024 * 1024;

export class EtcdClient {
  readonly #options: EtcdClientOptions;
  #agent: Agent | undefined;
  #tls: EtcdTls | undefined;
  /** The endpoint that is asked instead of the first one, and since when. */
  #preferred: string | undefined;
  #preferredMs = 0;

  constructor(options: EtcdClientOptions) {
    this.#options = options;
  }

  async range(asked: RangeRequest, signal?: AbortSignal): Promise<RangeAnswer> {
    const { key, rangeEnd, limit, revision, serializable } = asked;
    const answer = await this.#call(
      'kv/range',
      {
        key: base64(key),
        ...(rangeEnd !== undefined && { range_end: base64(rangeEnd) }),
        ...(limit !== undefined && { limit: String(limit) }),
        ...(revision !== undefined && { revision }),
        ...(serializable && { serializable: true }),
      },
      { signal, repeats: true },
    );
    return { kvs: arrayOf(answer['kvs']).map(keyValueOf), more: answer['more'] === true, revision: revisionOf(answer) };
  }

  /** Throws EtcdError; after UNREACHABLE it is not known whether the transaction was carried out. */
  async txn({ compare, success }: TxnRequest, signal?: AbortSignal): Promise<TxnAnswer> {
    const answer = await this.#call(
      'kv/txn',
      {
        compare: compare.map(({ key, modRevision }) => ({
          key: base64(key),
          target: 'MOD',
          result: 'EQUAL',
          mod_revision: modRevision,
        })),
        success: success.map((one) =>
          'put' in one
            ? {
                request_put: {
                  key: base64(one.put.key),
                  value: base64(one.put.value),
                },
              }
            : { request_delete_range: { key: base64(one.delete.key) } },
        ),
      },
      { signal, repeats: false },
    );
    return { succeeded: answer['succeeded'] === true, revision: revisionOf(answer) };
  }

  /**
   * Changes of the keys from `key` up to `rangeEnd` after the revision, until `signal` aborts or the member ends the watch. With
   * another member than the first one it ends after `awayMs`, because the other server may die without a word. Throws EtcdError, with
   * the code COMPACTED if the revision is too old.
   */
  async *watch(
    {
      key,
      rangeEnd,
      afterRevision,
    }: { readonly key: string; readonly rangeEnd: string; readonly afterRevision: string },
    signal: AbortSignal,
  ): AsyncGenerator<WatchAnswer> {
    const create_request = {
      key: base64(key),
      range_end: base64(rangeEnd),
      start_revision: String(BigInt(afterRevision) + 1n),
      prev_kv: true,
      progress_notify: true,
    };
    const { body, endpoint } = await this.#send('watch', { create_request }, { signal, repeats: true });
    const isAway = endpoint !== this.#options.endpoints()[0];
    const back = isAway ? AbortSignal.timeout(this.#awayMs) : undefined;
    back?.addEventListener('abort', () => body.destroy(), { once: true });
    try {
      for await (const line of linesOf(body, MAX_EVENT_BYTES, tooLong)) {
        const { result, error } = jsonOf(line);
        if (error !== undefined) throw refusalOf({ error }, 0);
        const answer = objectOf(result);
        if (answer['compact_revision'] !== undefined) throw new EtcdError('COMPACTED', 'the revision is compacted');
        if (answer['canceled'] === true) throw new EtcdError('UNREACHABLE', 'the member ended the watch');
        // The revision of this first answer does not say that all changes up to it were delivered.
        if (answer['created'] === true) continue;
        yield { revision: revisionOf(answer), events: arrayOf(answer['events']).map(eventOf) };
      }
    } catch (cause) {
      if (cause instanceof EtcdError) throw cause;
      if (!back?.aborted) throw unreachable(cause);
    }
  }

  /** A member that has not started yet, or has no majority, answers from its own copy. */
  async members(): Promise<readonly EtcdMember[]> {
    const { members } = await this.#call('cluster/member/list', {}, { repeats: true });
    return arrayOf(members).map(memberOf);
  }

  async addMember(peerUrls: readonly string[], isLearner: boolean): Promise<EtcdMember> {
    const { member } = await this.#call('cluster/member/add', { peerURLs: peerUrls, isLearner }, { repeats: false });
    return memberOf(objectOf(member));
  }

  /** Refused until the learner has received what the leader has. */
  async promoteMember(id: string): Promise<void> {
    await this.#call('cluster/member/promote', { ID: id }, { repeats: false });
  }

  async removeMember(id: string): Promise<void> {
    await this.#call('cluster/member/remove', { ID: id }, { repeats: false });
  }

  async status(endpoint: string): Promise<EtcdStatus> {
    const answer = await this.#call('maintenance/status', {}, { repeats: true, endpoint });
    const { member_id: memberId } = objectOf(answer['header']);
    const { version, leader, isLearner, dbSize } = answer;
    if (typeof memberId !== 'string' || typeof version !== 'string') throw invalid('a status');
    return {
      memberId,
      version,
      leaderId: typeof leader === 'string' && leader !== '0' ? leader : undefined,
      isLearner: isLearner === true,
      databaseBytes: Number(dbSize ?? 0),
    };
  }

  /** Drops all connections, and asks another member next: a member that is cut off may seem to be alive. Calls in flight fail. */
  reconnect(): void {
    this.#next();
    void quietly(this.#agent?.destroy());
    this.#agent = undefined;
  }

  async close(): Promise<void> {
    await this.#agent?.destroy();
    this.#agent = undefined;
  }

  get #timeoutMs(): number {
    return this.#options.callTimeoutMs ?? CALL_TIMEOUT_MS;
  }

  get #awayMs(): number {
    return this.#options.awayMs ?? AWAY_MS;
  }

  async #call(path: string, body: object, options: SendOptions): Promise<Json> {
    const signal = AbortSignal.timeout(this.#timeoutMs);
    const answer = await this.#send(path, body, {
      ...options,
      signal: options.signal ? AbortSignal.any([signal, options.signal]) : signal,
    });
    try {
      return jsonOf((await readBody(answer.body, MAX_ANSWER_BYTES, tooLong)).toString('utf8'));
    } catch (cause) {
      if (cause instanceof EtcdError) throw cause;
      throw unreachable(cause);
    }
  }

  /**
   * Asks one member after the other: the next one if the last did not get the request, or if the request may be sent twice. Those that were
   * only slow are asked again while there is time.
   */
  async #send(path: string, body: object, options: SendOptions): Promise<SentAnswer> {
    const left = options.endpoint === undefined ? [...this.#endpoints] : [options.endpoint];
    const deadlineMs = performance.now() + this.#timeoutMs;
    let failure: unknown = new EtcdError('UNREACHABLE', 'etcd has no endpoint');
    for (const endpoint of left) {
      try {
        const response = await this.#ask(endpoint, path, body, options);
        this.#prefer(endpoint);
        return { body: response.body, endpoint };
      } catch (err) {
        failure = err;
        const isLost = !(err instanceof EtcdError) || err.code === 'UNREACHABLE';
        const isUnsent = UNSENT.has(errorCode(err) ?? '') || (err instanceof EtcdError && LEARNER.test(err.message));
        if (options.signal?.aborted || !isLost || !(options.repeats || isUnsent)) break;
        // After the others.
        if (errorCode(err) === SLOW && performance.now() < deadlineMs) left.push(endpoint);
      }
    }
    if (failure instanceof EtcdError && failure.code !== 'UNREACHABLE') throw failure;
    this.#next();
    throw failure instanceof EtcdError ? failure : unreachable(failure);
  }

  async #ask(endpoint: string, path: string, body: object, { signal, repeats }: SendOptions) {
    const answer = request(new URL(`/v3/${path}`, endpoint), {
      method: 'POST',
      dispatcher: this.#connected(),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      headersTimeout: repeats ? Math.min(PATIENCE_MS, this.#timeoutMs) : this.#timeoutMs,
      bodyTimeout: IDLE_MS,
      ...(signal && { signal }),
    });
    const response = await promptly(answer, signal);
    if (response.statusCode < 300) return response;
    const text = (await readBody(response.body, MAX_ANSWER_BYTES, tooLong)).toString('utf8');
    let said: Json = {};
    try {
      said = jsonOf(text);
    } catch {
      // A proxy in front of the member answers in another format.
    }
    throw refusalOf(said, response.statusCode);
  }

  get #endpoints(): readonly string[] {
    const all = this.#options.endpoints();
    const isBack = performance.now() - this.#preferredMs > this.#awayMs;
    const first = isBack ? 0 : all.indexOf(this.#preferred ?? '');
    return first <= 0 ? all : [...all.slice(first), ...all.slice(0, first)];
  }

  #prefer(endpoint: string): void {
    if (endpoint === this.#preferred && performance.now() - this.#preferredMs <= this.#awayMs) return;
    this.#preferred = endpoint;
    this.#preferredMs = performance.now();
  }

  #next(): void {
    const all = this.#options.endpoints();
    const next = all[(all.indexOf(this.#preferred ?? '') + 1) % all.length];
    if (next !== undefined) this.#prefer(next);
  }

  #connected(): Agent {
    const tls = this.#options.tls?.();
    if (this.#agent && this.#tls !== tls) {
      // Requests in flight continue with the old certificate.
      void quietly(this.#agent.close());
      this.#agent = undefined;
    }
    this.#tls = tls;
    this.#agent ??= new Agent({
      ...HTTP_1,
      connect: {
        timeout: CONNECT_TIMEOUT_MS,
        ...(tls && { ca: tls.ca, cert: tls.certificate, key: tls.key }),
      },
    });
    return this.#agent;
  }
}

interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether the request may be carried out twice, as a read may. */
  readonly repeats: boolean;
  readonly endpoint?: string;
}

/** An answer, and the endpoint that gave it. */
interface SentAnswer {
  readonly body: Dispatcher.ResponseData['body'];
  readonly endpoint: string;
}

type Json = Readonly<Record<string, unknown>>;

/** Codes of errors that occur before a request is sent. */
const UNSENT: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);

/** Code of the error after `headersTimeout`. */
const SLOW = 'UND_ERR_HEADERS_TIMEOUT';

/** A member without a vote answers hardly anything, and has not carried out what it refused. */
const LEARNER = /not supported for learner/;

const invalid = (what: string): EtcdError => new EtcdError('INVALID_ANSWER', `the answer of etcd is not ${what}`);
const tooLong = (): EtcdError => new EtcdError('INVALID_ANSWER', 'an answer of etcd is too long');

/** The address is left out, because the message ends up in statuses. */
function unreachable(cause: unknown): EtcdError {
  const name = cause instanceof Error ? cause.name : String(cause);
  const why = name === 'TimeoutError' ? 'it did not answer in time' : (errorCode(cause) ?? name);
  return new EtcdError('UNREACHABLE', `etcd cannot be reached: ${why}`, { cause });
}

/** gRPC codes (https://grpc.github.io/grpc/core/md_doc_statuscodes.html) after which it is unknown whether the call was carried out. */
const UNKNOWN_OUTCOME: ReadonlySet<unknown> = new Set([1, 2, 4, 13, 14]);
const OUT_OF_RANGE = 11;

/** Of a stream, the gateway answers with the error as an object. */
function refusalOf(said: Json, status: number): EtcdError {
  const { error } = said;
  const { code: own, grpc_code: code = own, message } = typeof error === 'object' ? objectOf(error) : said;
  const text = typeof message === 'string' ? message : typeof error === 'string' ? error : `it answered ${status}`;
  const short = text.slice(0, 1_000);
  if (code === OUT_OF_RANGE || text.includes('compacted')) return new EtcdError('COMPACTED', short);
  const isUnknown = UNKNOWN_OUTCOME.has(code) || (code === undefined && status >= 500);
  return new EtcdError(isUnknown ? 'UNREACHABLE' : 'REFUSED', short);
}

const base64 = (data: string | Buffer): string => Buffer.from(data as string).toString('base64');
const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
const arrayOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(objectOf) : []);

function jsonOf(text: string): Json {
  try {
    return objectOf(JSON.parse(text));
  } catch (cause) {
    throw new EtcdError('INVALID_ANSWER', `an answer of etcd is not JSON: ${messageOf(cause).slice(0, 100)}`);
  }
}

function revisionOf(answer: Json): string {
  const { revision } = objectOf(answer['header']);
  if (typeof revision !== 'string') throw invalid('one with a revision');
  return revision;
}

/** The JSON of etcd leaves out zero values. */
function keyValueOf({ key, value, create_revision: created, mod_revision: modified }: Json): KeyValue {
  if (typeof key !== 'string') throw invalid('a key');
  return {
    key: Buffer.from(key, 'base64').toString('utf8'),
    value: Buffer.from(typeof value === 'string' ? value : '', 'base64'),
    createRevision: typeof created === 'string' ? created : '0',
    modRevision: typeof modified === 'string' ? modified : '0',
  };
}

const eventOf = ({ type, kv, prev_kv: previous }: Json): EtcdEvent => ({
  type: type === 'DELETE' ? 'DELETE' : 'PUT',
  kv: keyValueOf(objectOf(kv)),
  previous: previous === undefined ? undefined : keyValueOf(objectOf(previous)),
});

function memberOf({ ID: id, name, peerURLs, clientURLs, isLearner }: Json): EtcdMember {
  if (typeof id !== 'string') throw invalid('a member');
  const urls = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);
  return {
    id,
    name: typeof name === 'string' ? name : '',
    peerUrls: urls(peerURLs),
    clientUrls: urls(clientURLs),
    isLearner: isLearner === true,
  };
}
