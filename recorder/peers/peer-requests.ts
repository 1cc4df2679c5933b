// Requests to the other members of the cluster, by the name of the node and never by an address that a caller chose.
// Between members of a pool they use mutual TLS; a member without a listener for that is asked at its address for
// clients, with the caller's own credential. Each peer has a bounded number of connections and requests, and each
// answer must begin within a time limit: a peer that hangs or is dead delays nothing else.

import { Pool, type Dispatcher } from 'undici';
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { getCACertificates } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import { CodedError, errorCode } from '../../base/error.ts';
import { HTTP_1 } from '../../base/http-answer.ts';
import { promptly } from '../../base/promptly.ts';
import { memberTls, type MutualTls } from './identity.ts';
import type { PeerListener, PeerNode } from '../contract/other-node.ts';

/**
 * On whose behalf a node asks. `viewer`: this node has checked the caller, and states its name and what it may see; the peer
 * allows reads of these cameras, and what `may` says, but nothing else. `itself`: the peer decides what the caller may do, as if it had
 * been asked directly.
 */
export type PeerCaller =
  | {
      readonly kind: 'viewer';
      /** For the audit of the peer. */
      readonly name: string;
      /** Camera ids, or patterns as in the scope of a token. */
      readonly cameras: readonly string[];
      /** What it may do besides reading: request exports, or remove jobs. */
      readonly may?: 'export' | 'remove-jobs' | undefined;
      /** The `Authorization` of the caller, for a peer that cannot be asked as a member. */
      readonly credential?: string | undefined;
    }
  | {
      readonly kind: 'itself';
      /** The `Authorization` of the caller, for a peer that is told nothing of it. */
      readonly credential: string | undefined;
      /** What this node states of a caller that it has checked. A peer that is asked as a member gets this instead of a credential. */
      readonly vouched?: Vouched | undefined;
    };

/** A caller whom the peer has in its own list, or can ask the API server about: that decides what the caller may do there. */
export interface Vouched {
  readonly name: string;
  /** For a peer of an older version, which lets the caller read these cameras. */
  readonly cameras: readonly string[];
  /**
   * The entry of the list: `user`, and for a person of an issuer `rule`, the digest of all that is in it; `token`, that of the token;
   * `kubernetes`, whom the API server knows.
   */
  readonly of:
    | { readonly user: string }
    | { readonly rule: string }
    | { readonly token: string }
    | { readonly kubernetes: object };
  /** The id of the caller's session. */
  readonly session?: string | undefined;
}

/** Who asks for footage that may be on other nodes. */
export interface Asker {
  readonly name: string;
  /** `Authorization`, for peers that cannot be asked as members. */
  readonly credential: string | undefined;
}

export interface PeerRequest {
  readonly listener: PeerListener;
  readonly caller: PeerCaller;
  /** Path and query, from `/` on. */
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Readable | undefined;
  /** Ends the request, also while the answer is read. */
  readonly signal?: AbortSignal | undefined;
  /** Time until the head of the answer; by default `HEAD_MS`. */
  readonly headMs?: number;
}

export interface PeerAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The caller must read or destroy it. It is read from the network only as fast as the caller reads. */
  readonly body: Readable;
}

interface PeerUpgrade {
  readonly headers: IncomingHttpHeaders;
  readonly socket: Duplex;
}

/** `unknown`: no such member, or without an address. `busy`: too many requests to this node. `away`: no answer in time. */
type PeerProblem = 'unknown' | 'busy' | 'away';

export class PeerUnavailable extends CodedError<PeerProblem> {
  override readonly name = 'PeerUnavailable';
  readonly nodeId: string;

  constructor(nodeId: string, code: PeerProblem, message: string, options?: ErrorOptions) {
    super(code, message, options);
    this.nodeId = nodeId;
  }
}

/** To send requests to peers: what other rooms need of this one. */
export interface PeerSender {
  /** Rejects with PeerUnavailable, or the reason of the signal. Every status is an answer; redirects are not followed. */
  request(nodeId: string, request: PeerRequest): Promise<PeerAnswer>;
  /** Opens a WebSocket; its bytes are for the caller to pass on. Rejects as `request`. */
  upgrade(nodeId: string, request: PeerRequest): Promise<PeerUpgrade>;
  /** Whether the node answers now, on any of its addresses; a result is kept for two seconds, or until the next one. Never rejects. */
  answers(nodeId: string): Promise<boolean>;
}

interface PeerRequestsOptions {
  readonly nodeId: string;
  readonly find: (nodeId: string) => PeerNode | undefined;
  /** The certificate that this node presents to members, and the CA of the pool; undefined before there is one. */
  readonly own: () => MutualTls | undefined;
  /** CA certificates in addition to those of the system for addresses for clients; PEM. */
  readonly ca?: string | undefined;
  readonly clock: Clock;
}

/** States the caller of a request; believed on the listener for members only. */
export const CALLER_HEADER = 'kube-nvr-caller';
/** The node that passes a request on. A request with this header is not passed on again. */
export const RELAYED_HEADER = 'kube-nvr-relayed-by';

const CONNECT_MS = 4_000;
const HEAD_MS = 10_000;
/** Longest pause within an answer, while its reader waits for it. */
const PAUSE_MS = 60_000;
const IDLE_MS = 4_000;
/** For each listener and kind of caller of each peer: enough for downloads by slow clients, and below what the peer accepts from one member. */
const MAX_CONNECTIONS = 48;
const MAX_REQUESTS = 96;
/** After a failure, further requests fail at once for the first time, and after each further one for twice as long. */
const REST = { firstMs: 2_000, maxMs: 16_000 };
/** How long the result of a check whether a node answers is kept, and how long a node has to answer it. */
const PROBE_MS = 2_000;
const PROBE_HEAD_MS = 1_000;
/** For so long after a result that a node is away, it counts until the next probe has its own. */
const AWAY_MS = 10_000;

/** Passing data on to slow clients can take long, so it does not share connections with this node's own requests. */
type Destination = Pick<PeerRequest, 'listener' | 'caller'>;

interface Channel {
  readonly key: string;
  readonly origin: string;
  /** Put before the path. */
  readonly prefix: string;
  readonly isMutual: boolean;
  readonly connect: object;
}

function statementOf(caller: PeerCaller): object | undefined {
  if (caller.kind === 'itself') return caller.vouched;
  const { name, cameras, may } = caller;
  return { name, cameras, may };
}

/** Stands for the credential in an address that a peer gets. */
export const NOT_PASSED_ON = 'not-passed-on';
const CREDENTIALS: ReadonlySet<string> = new Set(['access_token', 'access_link']);

/** The address at the peer. A peer that is asked as a member gets no credential in it. */
function pathAt({ isMutual, prefix }: Channel, path: string): string {
  const [before, ...query] = path.split('?');
  if (!isMutual || query.length === 0) return `${prefix}${path}`;
  const pairs = query.join('?').split('&');
  const passed = pairs.map((pair) => {
    const [name = ''] = new URLSearchParams(pair).keys();
    return CREDENTIALS.has(name) ? `${name}=${NOT_PASSED_ON}` : pair;
  });
  return `${prefix}${before}?${passed.join('&')}`;
}

export class PeerRequests implements PeerSender {
  readonly #options: PeerRequestsOptions;
  /** By node, listener, and kind of caller. */
  readonly #pools = new Map<string, { readonly key: string; readonly pool: Pool }>();
  readonly #active = new Map<string, number>();
  readonly #resting = new Map<string, { readonly untilMs: number; readonly restMs: number }>();
  readonly #probes = new Map<string, { untilMs: number; isAway: boolean; answer: Promise<boolean> }>();

  constructor(options: PeerRequestsOptions) {
    this.#options = options;
  }

  async request(nodeId: string, request: PeerRequest): Promise<PeerAnswer> {
    const channel = this.#channelTo(nodeId, request.listener);
    return this.#answered(nodeId, request, async (signal) => {
      const { method = 'GET', path, body } = request;
      const send = (): Promise<Dispatcher.ResponseData> =>
        this.#poolFor(nodeId, request, channel).request({
          method,
          path: pathAt(channel, path),
          headers: this.#headersOf(request, channel),
          body: body ?? null,
          signal,
          headersTimeout: 0,
          bodyTimeout: PAUSE_MS,
        });
      const repeatable = body === undefined && (method === 'GET' || method === 'HEAD');
      const answer = await send().catch((err: unknown) => {
        // The peer closed an idle connection at the moment at which it was used.
        if (repeatable && errorCode(err) === 'UND_ERR_SOCKET' && !signal.aborted) return send();
        throw err;
      });
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    }).then(({ answer, release }) => {
      answer.body.once('close', release);
      return answer;
    });
  }

  async upgrade(nodeId: string, request: PeerRequest): Promise<PeerUpgrade> {
    const channel = this.#channelTo(nodeId, request.listener);
    const open = (signal: AbortSignal): Promise<Dispatcher.UpgradeData> =>
      this.#poolFor(nodeId, request, channel).upgrade({
        path: pathAt(channel, request.path),
        headers: this.#headersOf(request, channel),
        protocol: 'websocket',
        signal,
      });
    // A refused upgrade is a failure here, but not one of the node.
    const { answer, release } = await this.#answered(nodeId, request, open, { rests: false });
    // From here on the socket has a connection of its own. Those of a thousand viewers must not keep requests waiting; the
    // listener at which they came limits their number.
    release();
    return { headers: answer.headers, socket: answer.socket };
  }

  answers(nodeId: string): Promise<boolean> {
    const nowMs = this.#options.clock.monotonicMs();
    const known = this.#probes.get(nodeId);
    if (known && nowMs < known.untilMs) return known.answer;
    const answer = this.#probe(nodeId);
    // Asking a node that was away just now may take a second, for which no caller waits: the last result counts meanwhile.
    const isAway = known !== undefined && known.isAway && nowMs < known.untilMs + AWAY_MS;
    const probe = { untilMs: nowMs + PROBE_MS, isAway, answer: isAway ? known.answer : answer };
    this.#probes.set(nodeId, probe);
    void answer.then((answers) => Object.assign(probe, { isAway: !answers, answer }));
    return probe.answer;
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map(({ pool }) => pool.destroy()));
  }

  async #probe(nodeId: string): Promise<boolean> {
    const node = this.#options.find(nodeId);
    if (!node) return false;
    const ask = async (channel: Channel): Promise<void> => {
      const live = {
        listener: 'api',
        caller: { kind: 'itself', credential: undefined },
        path: '/api/health/live',
        headMs: PROBE_HEAD_MS,
      } as const;
      const { answer, release } = await this.#answered(
        nodeId,
        live,
        (signal) =>
          this.#poolFor(nodeId, live, channel).request({
            method: 'GET',
            path: `${channel.prefix}${live.path}`,
            headers: this.#headersOf(live, channel),
            signal,
            headersTimeout: 0,
          }),
        { rests: false },
      );
      await answer.body.dump().finally(release);
    };
    // A network may let members reach one of the listeners only.
    const channels = [this.#mutual(node, 'api'), this.#plain(node, 'api')].filter((one) => one !== undefined);
    return Promise.any(channels.map(ask)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Calls `send` with the time limit for the head of the answer. `release`: to be called when the answer is complete. `rests`:
   * after a failure, the node is left alone for a while.
   */
  async #answered<T>(
    nodeId: string,
    { signal, headMs = HEAD_MS, caller }: PeerRequest,
    send: (signal: AbortSignal) => Promise<T>,
    { rests = true } = {},
  ): Promise<{ answer: T; release: () => void }> {
    const { clock } = this.#options;
    signal?.throwIfAborted();
    if (rests && clock.monotonicMs() < (this.#resting.get(nodeId)?.untilMs ?? -Infinity)) {
      throw new PeerUnavailable(nodeId, 'away', `the node ${nodeId} did not answer just now`);
    }
    const place = `${nodeId} ${caller.kind}`;
    const active = this.#active.get(place) ?? 0;
    if (active >= MAX_REQUESTS)
      throw new PeerUnavailable(nodeId, 'busy', `too many requests wait for the node ${nodeId}`);
    this.#active.set(place, active + 1);
    const ending = new AbortController();
    const end = (): void => ending.abort(signal?.reason);
    signal?.addEventListener('abort', end, { once: true });
    const release = (): void => {
      signal?.removeEventListener('abort', end);
      this.#active.set(place, (this.#active.get(place) ?? 1) - 1);
    };
    const silent = new PeerUnavailable(nodeId, 'away', `the node ${nodeId} does not answer`);
    const timer = clock.after(headMs, () => ending.abort(silent));
    try {
      // A request that waits for a connection notices an abort only when it has one.
      const answer = await promptly(send(ending.signal), ending.signal);
      this.#resting.delete(nodeId);
      return { answer, release };
    } catch (err) {
      release();
      if (signal?.aborted) throw signal.reason;
      if (rests && !(err === silent && headMs > HEAD_MS)) {
        this.#rest(nodeId);
      }
      if (err === silent) throw silent;
      const code = errorCode(err) ?? (err as Error).message;
      throw new PeerUnavailable(nodeId, 'away', `the node ${nodeId} cannot be reached (${code})`, { cause: err });
    } finally {
      timer.cancel();
    }
  }

  #rest(nodeId: string): void {
    const nowMs = this.#options.clock.monotonicMs();
    const before = this.#resting.get(nodeId);
    // Requests that fail together count as one failure.
    if (before && nowMs < before.untilMs) return;
    const restMs = before ? Math.min(REST.maxMs, 2 * before.restMs) : REST.firstMs;
    this.#resting.set(nodeId, { untilMs: nowMs + restMs, restMs });
  }

  #headersOf({ caller, headers = {} }: PeerRequest, { isMutual }: Channel): Record<string, string | string[]> {
    const sent: Record<string, string | string[]> = { [RELAYED_HEADER]: this.#options.nodeId };
    for (const [name, value] of Object.entries(headers)) sent[name] = typeof value === 'string' ? value : [...value];
    if (!isMutual) {
      if (caller.credential !== undefined) sent['authorization'] = caller.credential;
      return sent;
    }
    // The peer may have been taken over.
    delete sent['cookie'];
    const statement = statementOf(caller);
    if (statement) sent[CALLER_HEADER] = Buffer.from(JSON.stringify(statement)).toString('base64url');
    return sent;
  }

  #channelTo(nodeId: string, listener: PeerListener): Channel {
    const node = this.#options.find(nodeId);
    if (!node) throw new PeerUnavailable(nodeId, 'unknown', `the cluster has no other node ${nodeId}`);
    const channel = this.#mutual(node, listener) ?? this.#plain(node, listener);
    if (!channel) throw new PeerUnavailable(nodeId, 'unknown', `the address of the node ${nodeId} is not known yet`);
    return channel;
  }

  #mutual({ mutual }: PeerNode, listener: PeerListener): Channel | undefined {
    const own = this.#options.own();
    if (!own || !mutual) return undefined;
    const { address, identity } = mutual;
    return {
      key: `${address} ${identity} ${own.certificate} ${own.ca}`,
      origin: address,
      prefix: `/listener/${listener}`,
      isMutual: true,
      connect: memberTls(own, identity),
    };
  }

  #plain({ urls }: PeerNode, listener: PeerListener): Channel | undefined {
    const origin = urls[listener];
    const { ca } = this.#options;
    if (origin === undefined) return undefined;
    const connect = ca === undefined ? {} : { ca: [...getCACertificates(), ca] };
    return { key: origin, origin, prefix: '', isMutual: false, connect };
  }

  #poolFor(nodeId: string, { listener, caller }: Destination, { key, origin, connect, isMutual }: Channel): Pool {
    const place = `${nodeId} ${listener} ${caller.kind} ${isMutual}`;
    const known = this.#pools.get(place);
    if (known?.key === key) return known.pool;
    // The certificate or the address has changed: answers in progress are completed.
    void known?.pool.close();
    const pool = new Pool(origin, {
      ...HTTP_1,
      connections: MAX_CONNECTIONS,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      // A resumed session would skip the check of the identity.
      connect: { ...connect, timeout: CONNECT_MS, maxCachedSessions: 0 },
    });
    this.#pools.set(place, { key, pool });
    return pool;
  }
}
