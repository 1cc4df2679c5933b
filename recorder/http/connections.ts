// Limits the connections of a listener. Anybody can connect, so clients without a valid token ("strangers") could use up all
// connections. Their number per address is limited, and when the listener is full, the longest idle stranger is closed; if none is idle,
// the oldest one, in the middle of its request: a stranger can make a request last for as long as it likes. Strangers of a network
// from which a right token came within a day go after all others: they may be about to show it again.

import { BlockList, isIPv6, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { systemClock, type Clock } from '../../base/clock.ts';
import { hasRole, type Caller } from './caller.ts';
import { networkOf } from './failed-attempts.ts';
import { ApiError } from './problem.ts';
import { RightPlaces } from './right-places.ts';

interface ConnectionLimits {
  /** All connections together. */
  readonly total: number;
  /** From one address (for IPv6, one /64 network), without a valid token. */
  readonly anonymousPerAddress: number;
  /** With one token. */
  readonly perToken: number;
  /** With tokens of viewers: the others are for operators, admins, and connections that have shown no token yet. */
  readonly viewers: number;
}

/**
 * Limits for a listener with `total` connections. Many callers may share an address, and every new connection is a
 * stranger until its first request has been read: a limit of a few dozen would close connections of a page with many tiles.
 */
export const connectionLimits = (total: number): ConnectionLimits => ({
  total,
  anonymousPerAddress: Math.ceil(total / 4),
  perToken: Math.ceil(total / 4),
  viewers: total - Math.ceil(total / 10),
});

interface Connection {
  readonly key: string;
  readonly socket: Socket;
  readonly network: string;
  /** A right token came from its network within a day, or its password is checked soon. */
  isLast: boolean;
  /** The name of the valid token; undefined for a stranger. */
  caller: string | undefined;
  /** The token has no role above viewer. */
  isViewer: boolean;
  /** Requests that are being answered; a connection that became a WebSocket has one until it ends. */
  requests: number;
}

interface Group {
  readonly idle: Set<Connection>;
  readonly busy: Set<Connection>;
}

const keyOf = (socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${socket.remoteAddress} ${socket.remotePort}`;

/** The caller where no token is required. */
const EVERYBODY = '';
/** The key in `RightPlaces`. */
const ANY_TOKEN = '';

export class Connections {
  readonly #limits: ConnectionLimits;
  /** A proxy forwards many clients: only `total` limits its connections. */
  readonly #proxies = new BlockList();
  readonly #open = new Map<string, Connection>();
  /** Strangers, as they go when the listener is full; in each set, the one first that has been idle or busy for longest. */
  readonly #first: Group = { idle: new Set(), busy: new Set() };
  readonly #last: Group = { idle: new Set(), busy: new Set() };
  /** Strangers by network. */
  readonly #strangers = new Map<string, Set<Connection>>();
  readonly #byToken = new Map<string, Set<Connection>>();
  #viewers = 0;
  readonly #rightPlaces: RightPlaces;

  constructor(
    limits: ConnectionLimits,
    trustedProxies: readonly string[],
    clock: Pick<Clock, 'monotonicMs'> = systemClock,
  ) {
    this.#limits = limits;
    this.#rightPlaces = new RightPlaces(clock);
    for (const proxy of trustedProxies) {
      const [address = '', bits] = proxy.split('/');
      const family = isIPv6(address) ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#proxies.addAddress(address, family);
      else this.#proxies.addSubnet(address, Number(bits), family);
    }
  }

  get size(): number {
    return this.#open.size;
  }

  /** False for a request that another listener has accepted and passed on. */
  has(socket: Socket): boolean {
    return this.#open.has(keyOf(socket));
  }

  /** Watches the connections of `app`. Call it before the hooks that check tokens. */
  watch(app: FastifyInstance): void {
    app.server.on('connection', (socket: Socket) => this.#add(socket));
    app.addHook('onRequest', ({ raw }, reply, done) => {
      const connection = this.#open.get(keyOf(raw.socket));
      if (connection) {
        connection.requests++;
        const { idle, busy } = this.#groupOf(connection);
        if (idle.delete(connection)) busy.add(connection);
        reply.raw.once('close', () => {
          connection.requests--;
          this.#rest(connection);
        });
      }
      done();
    });
  }

  /**
   * To be called when a request on this connection has a valid token, or needs none (undefined). Throws 429 if the token has
   * too many connections, or all viewers together.
   */
  identify(socket: Socket, caller?: Pick<Caller, 'name' | 'role'>): void {
    const connection = this.#open.get(keyOf(socket));
    const name = caller?.name ?? EVERYBODY;
    if (!connection || connection.caller === name) return;
    const { perToken, viewers } = this.#limits;
    const others = this.#byToken.get(name);
    if (caller && others && others.size >= perToken && !closeIdle(others)) {
      throw new ApiError(429, 'too-many-connections', `this token has ${perToken} connections: close some of them`);
    }
    const isViewer = caller !== undefined && !hasRole(caller, 'operator');
    if (isViewer && this.#viewers >= viewers && !(others && closeIdle(others))) {
      throw new ApiError(429, 'too-many-connections', `viewers have ${viewers} connections: try again later`);
    }
    this.#leave(connection);
    connection.caller = name;
    connection.isViewer = isViewer;
    this.#enter(connection);
    if (caller) this.#rightPlaces.note(connection.network, ANY_TOKEN);
  }

  /** The connection goes after those of other strangers until the returned function is called. For a bounded number of them. */
  keep(socket: Socket): () => void {
    const connection = this.#open.get(keyOf(socket));
    if (!connection || connection.isLast) return () => {};
    const move = (isLast: boolean): void => {
      const before = this.#groupOf(connection);
      connection.isLast = isLast;
      for (const state of ['idle', 'busy'] as const) {
        if (before[state].delete(connection)) this.#groupOf(connection)[state].add(connection);
      }
    };
    move(true);
    return () => move(false);
  }

  #add(socket: Socket): void {
    const { remoteAddress } = socket;
    // Already closed.
    if (remoteAddress === undefined) return void socket.destroy();
    const network = networkOf(remoteAddress);
    const neighbours = this.#strangers.get(network);
    const { total, anonymousPerAddress } = this.#limits;
    const isFull =
      (neighbours &&
        neighbours.size >= anonymousPerAddress &&
        !this.#isProxy(remoteAddress) &&
        !closeIdle(neighbours) &&
        !closeFirst(neighbours)) ||
      (this.#open.size >= total && !closeFirstOf(this.#first) && !closeFirstOf(this.#last));
    if (isFull) return void socket.destroy();
    const isLast = this.#rightPlaces.has(network, ANY_TOKEN);
    const key = keyOf(socket);
    const connection = { key, socket, network, isLast, caller: undefined, isViewer: false, requests: 0 };
    this.#open.set(connection.key, connection);
    this.#enter(connection);
    this.#rest(connection);
    socket.once('close', () => this.#remove(connection));
  }

  #isProxy(address: string): boolean {
    return this.#proxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  }

  #remove(connection: Connection): void {
    if (this.#open.get(connection.key) === connection) this.#open.delete(connection.key);
    this.#leave(connection);
  }

  /** Marks an idle stranger as one that may be closed when the listener is full. */
  #rest(connection: Connection): void {
    const { requests, caller, socket } = connection;
    if (requests > 0 || caller !== undefined || socket.destroyed) return;
    const { idle, busy } = this.#groupOf(connection);
    busy.delete(connection);
    idle.add(connection);
  }

  #groupOf({ isLast }: Connection): Group {
    return isLast ? this.#last : this.#first;
  }

  #enter(connection: Connection): void {
    const { caller, network } = connection;
    const groups = caller === undefined ? this.#strangers : this.#byToken;
    const group = groups.get(caller ?? network) ?? new Set();
    groups.set(caller ?? network, group.add(connection));
    if (connection.isViewer) this.#viewers++;
  }

  #leave(connection: Connection): void {
    const { caller, network } = connection;
    const groups = caller === undefined ? this.#strangers : this.#byToken;
    const group = groups.get(caller ?? network);
    if (group?.delete(connection) && connection.isViewer) this.#viewers--;
    if (group?.size === 0) groups.delete(caller ?? network);
    const { idle, busy } = this.#groupOf(connection);
    idle.delete(connection);
    busy.delete(connection);
  }
}

/** Closes the first connection without a request; false when there is none. */
const closeIdle = (connections: Iterable<Connection>): boolean =>
  closeFirst(connections, ({ requests }) => requests === 0);

const closeFirstOf = ({ idle, busy }: Group): boolean => closeFirst(idle) || closeFirst(busy);

function closeFirst(connections: Iterable<Connection>, isMeant?: (one: Connection) => boolean): boolean {
  for (const connection of connections) {
    if (connection.socket.destroyed || isMeant?.(connection) === false) continue;
    connection.socket.destroy();
    return true;
  }
  return false;
}
