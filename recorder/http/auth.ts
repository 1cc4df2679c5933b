// Identifies the caller of a request: by its token, by the cookie of its session, or by a link.

import type { FastifyRequest } from 'fastify';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Registry } from 'prom-client';
import { systemClock, type Clock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { hashPassword } from '../../base/password-hash.ts';
import type { Warning } from '../../base/reason.ts';
import { noAudit, type AuditSink } from '../audit/entry.ts';
import type { IssuerConfig, Role, TokenConfig, UserConfig } from '../config/schema.ts';
import type { AdminCode } from './admin-code.ts';
import type { Vouched } from '../peers/peer-requests.ts';
import { AuthFailures } from './auth-failures.ts';
import { callerFor, hasRole, mayExport, scopeOf, type Caller } from './caller.ts';
import { requireOwnPage } from './cors.ts';
import { tokenInHeader, tokenInQuery } from './credentials.ts';
import { Devices } from './devices.ts';
import { EndedSessions, type Ended } from './ended-sessions.ts';
import { IssuerRules, type Claims, type IssuerRights, type PersonHolder } from './issuer-rules.ts';
import { LastUse } from './last-use.ts';
import { hasLink, Links, type Link } from './links.ts';
import { networkOf } from './failed-attempts.ts';
import { LocalSignIns } from './local-sign-ins.ts';
import { problemOfPassword } from './new-password.ts';
import type { PageUsers } from './page-users.ts';
import { ApiError } from './problem.ts';
import { busy, Refusals, staleCode, staleLink, unauthorized, wrongPassword } from './refusals.ts';
import { isStated, relayedBy, type StatedCaller } from './relayed.ts';
import { Seal, SEAL_KEY_BYTES } from './seal.ts';
import { allOf, isSameAccount, SeenSessions, type AccountName, type SeenSession } from './seen-sessions.ts';
import { Sessions, type Holder, type Session } from './sessions.ts';
import { SignIns } from './sign-ins.ts';
import { TokenOwners, type TokenOptions } from './token-owners.ts';
import type { TokenReviewer } from './token-review.ts';
import { Users, type Attempt, type UserHolder } from './users.ts';
import { WorkBudget } from './work-budget.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What `callerOf` found, so that wrong credentials of a request count once. */
    identified?: Promise<Caller>;
  }
}

export interface AuthOptions extends TokenOptions {
  readonly users?: readonly UserConfig[];
  readonly issuers?: readonly IssuerConfig[];
  /** With mode `none`: names accepted as `Host`, besides addresses and localhost. */
  readonly allowedHosts?: readonly string[];
}

export interface Configured {
  readonly tokens: readonly TokenConfig[];
  readonly users: readonly UserConfig[];
  readonly issuers: readonly IssuerRights[];
}

export interface AuthDeps {
  readonly clock?: Clock;
  readonly log?: Log;
  /** Reviews tokens that are not configured; needed for the mode `kubernetes`. */
  readonly reviewer?: TokenReviewer | undefined;
  readonly registry?: Registry;
  readonly audit?: AuditSink;
  /** Users who are made on the page, and the code for the first of them; without it, nobody is made there. */
  readonly made?: { readonly users: Pick<PageUsers, 'list' | 'put' | 'delete'>; readonly code: AdminCode } | undefined;
  /** Seals sessions; by default, they end with the process. */
  readonly seal?: Seal;
  /** By default, they are forgotten with the process. */
  readonly ended?: EndedSessions;
  /** Processor time of this thread. */
  readonly cpuMs?: () => number;
}

const newSeal = (): Seal => new Seal({ nodeId: '', secret: randomBytes(SEAL_KEY_BYTES) });

/**
 * Where a route accepts credentials. `anywhere`: in the header, as a token in the query, and as a link. `metrics`: in the header,
 * and the token for metrics is accepted too.
 */
export type CredentialPlace = 'header' | 'header-or-query' | 'anywhere' | 'metrics';

/** A user or a token, without its secret. */
interface Account {
  readonly kind: 'user' | 'token';
  readonly name: string;
  readonly role: Role;
  readonly mayExport: boolean;
  /** Patterns; undefined: all cameras. */
  readonly cameras: readonly string[] | undefined;
  readonly isGuessable: boolean;
  /** A user who was made on the page, and can be changed there. */
  readonly isMade: boolean;
  readonly lastUsedMs: number | undefined;
}

/** A user as an admin makes or changes one; without a password, that of the user stays. */
interface MadeUser {
  readonly name: string;
  readonly role: UserConfig['role'];
  readonly cameras?: readonly string[] | undefined;
  readonly export?: boolean | undefined;
  readonly password?: string | undefined;
}

const MAX_MADE_USERS = 1000;

/** A caller who signed in, for one request. */
interface SessionCaller extends Caller {
  readonly session: Session;
  /** Without the session. */
  readonly holder: Caller;
  /** The link that the request carried instead of a cookie. */
  readonly link?: Link | undefined;
}

/** Of a caller whom a member states. */
type Entry = NonNullable<StatedCaller['of']>;

/** The caller of every request where no token is required. */
const ANYBODY: Caller = callerFor({ name: 'anonymous', role: 'admin' });

const inSession = (holder: Caller, session: Session, link?: Link): SessionCaller => {
  const { id, endsWith, sinceMs, expiresMs, isDue, vouchedBy, from, isAccepted } = session;
  return { ...holder, holder, link, session: { id, endsWith, sinceMs, expiresMs, isDue, vouchedBy, from, isAccepted } };
};

const holderIn = (caller: Caller): Caller => ('holder' in caller ? (caller as SessionCaller).holder : caller);

/** Without a promise where none is needed. */
const after = (found: Caller | Promise<Caller>, then: (holder: Caller) => Caller): Caller | Promise<Caller> =>
  found instanceof Promise ? found.then(then) : then(found);

/** Throws 403 unless the caller has at least `role`. */
export function requireRole(caller: Caller, role: Role): void {
  if (hasRole(caller, role)) return;
  const has = caller.role === undefined ? `${caller.name} has no role here` : `the token has the role ${caller.role}`;
  throw new ApiError(403, 'forbidden', `this needs the role ${role}, but ${has}`);
}

const invalid = (field: string, problem: string): ApiError =>
  new ApiError(400, 'invalid-parameter', `${field}: ${problem}`, { errors: [{ field, detail: problem }] });

/** Throws ApiError. */
function requireGoodPassword(password: string, name: string, field = 'password'): void {
  const problem = problemOfPassword(password, name);
  if (problem !== undefined) throw invalid(field, problem);
}

const isThemselves = (by: Caller, userName: string): boolean => 'passwordHash' in holderIn(by) && by.name === userName;

export class Authenticator {
  /** No token is required. */
  readonly isOpen: boolean;
  /** Names accepted as `Host`, besides addresses and localhost; undefined: any. */
  readonly hosts: readonly string[] | undefined;
  /** Undefined where no token is required: nobody is told apart there. */
  readonly work: WorkBudget | undefined;
  /** Those that wait for their issuer. */
  readonly signIns: SignIns;
  readonly #clock: Clock;
  readonly #refusals: Refusals;
  readonly #changed = new Set<() => void>();
  readonly #tokens: TokenOwners;
  readonly #users: Users;
  readonly #rules: IssuerRules;
  readonly #localSignIns: LocalSignIns;
  readonly #ended: EndedSessions;
  readonly #seal: Seal;
  readonly #sessions: Sessions;
  readonly #devices: Devices;
  readonly #links: Links;
  readonly #lastUse: LastUse;
  readonly #seen: SeenSessions;
  readonly #made: AuthDeps['made'];
  #configured: readonly UserConfig[];
  #configuredTokens: readonly TokenConfig[];
  #configuredIssuers: readonly IssuerConfig[];
  /** Of the other servers of a cluster. */
  #shared: Configured = { tokens: [], users: [], issuers: [] };

  constructor(
    options: AuthOptions,
    {
      clock = systemClock,
      log = silentLog,
      reviewer,
      registry,
      audit = noAudit,
      seal = newSeal(),
      ended = new EndedSessions(clock),
      made,
      cpuMs,
    }: AuthDeps = {},
  ) {
    this.isOpen = options.mode === 'none';
    this.#clock = clock;
    this.hosts = this.isOpen ? (options.allowedHosts ?? []) : undefined;
    this.work = this.isOpen ? undefined : new WorkBudget({ clock, log, registry, audit, ...(cpuMs && { cpuMs }) });
    this.#refusals = new Refusals(clock, new AuthFailures({ clock, log, registry, audit }));
    const changed = (): void => this.#tellChange();
    this.#tokens = new TokenOwners(options, { clock, log, refusals: this.#refusals, reviewer, changed });
    this.#made = made;
    this.#configured = options.users ?? [];
    this.#configuredTokens = options.tokens;
    this.#users = new Users(this.#allUsers, clock);
    this.#configuredIssuers = options.issuers ?? [];
    this.#rules = new IssuerRules(this.#configuredIssuers);
    this.#localSignIns = new LocalSignIns({ log, registry });
    this.signIns = new SignIns(seal, clock);
    this.#ended = ended;
    this.#seal = seal;
    this.#sessions = new Sessions(seal, clock);
    this.#devices = new Devices(seal, clock);
    this.#links = new Links(seal, clock);
    this.#lastUse = new LastUse(clock);
    this.#seen = new SeenSessions(clock);
  }

  replaceTokens(tokens: readonly TokenConfig[]): void {
    this.#configuredTokens = tokens;
    this.#tokens.replace([...tokens, ...this.#shared.tokens]);
    this.#tellChange();
  }

  /** Those of the configuration of this node. */
  get configured(): Configured {
    const issuers = this.#configuredIssuers.map(({ name, issuer, nameClaim, rules, sessionMs }) => {
      return { name, issuer, nameClaim, rules, sessionMs };
    });
    return { tokens: this.#configuredTokens, users: this.#configured, issuers };
  }

  /** Replaces those of other servers of the cluster; users who are made on the page may have changed, too. */
  replaceShared(shared: Configured): void {
    this.#shared = shared;
    this.#tokens.replace([...this.#configuredTokens, ...shared.tokens]);
    this.#users.replace(this.#allUsers);
    this.#rules.replace([...this.#configuredIssuers, ...shared.issuers]);
    this.#tellChange();
  }

  replaceIssuers(issuers: readonly IssuerConfig[]): void {
    this.#configuredIssuers = issuers;
    this.#rules.replace([...issuers, ...this.#shared.issuers]);
    this.#tellChange();
  }

  replaceUsers(users: readonly UserConfig[]): void {
    this.#configured = users;
    this.#users.replace(this.#allUsers);
    this.#tellChange();
  }

  /** Replaces the token for metrics; undefined: metrics need a token with the role viewer. */
  replaceMetricsToken(sha256: string | undefined): void {
    this.#tokens.replaceMetricsToken(sha256);
  }

  /** Replaces the key of sessions, which ends those of another key. Returns whether it is another one. */
  replaceSessionKey(key: Buffer): boolean {
    const isOther = this.#seal.replaceKey(key);
    if (isOther) this.#tellChange();
    return isOther;
  }

  /** To be called when the nodes are others whose sessions are accepted. */
  membersChanged(): void {
    this.#tellChange();
  }

  /** Calls `listener` when the rights of callers have changed, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#changed.add(listener);
    return () => void this.#changed.delete(listener);
  }

  /**
   * For a caller that stays connected for long, such as a viewer. Until the returned function is called, its rights are
   * checked repeatedly. `changed` gets the caller with its present rights, `ended` is called when it has none any more.
   */
  lease(caller: Caller, on: { changed(caller: Caller): void; ended(): void }): () => void {
    const letGo = this.#tokens.hold(holderIn(caller));
    const stopListening = this.onChange(() => {
      const renewed = this.renewed(caller);
      if (renewed) on.changed(renewed);
      else on.ended();
    });
    return () => {
      letGo();
      stopListening();
    };
  }

  /** The caller with its present rights; undefined if its token or its user was removed, or if it signed out. */
  renewed(caller: Caller): Caller | undefined {
    if (caller === ANYBODY) return caller;
    // The member that stated a caller ends the requests of that caller itself.
    if (isStated(caller)) return caller.of ? this.#renewedStated(caller, caller.of) : caller;
    if (caller.session) {
      const { session } = caller;
      const isOpen = !this.#ended.has(session) && session.isAccepted();
      const holder = isOpen ? this.renewed(holderIn(caller)) : undefined;
      return holder && inSession(holder, session);
    }
    if ('mark' in caller) return this.#users.byMark(caller.mark as string);
    if ('rule' in caller) return this.#rules.caller(caller as PersonHolder);
    return this.#tokens.renewed(caller);
  }

  /** Undefined if the caller may not look, for any reason; wrong credentials count as a failed attempt of the address. */
  async callerOf(request: FastifyRequest, place: CredentialPlace): Promise<Caller | undefined> {
    try {
      request.identified = (async () => this.identify(request, place))();
      const caller = await request.identified;
      return hasRole(caller, 'viewer') ? caller : undefined;
    } catch (err) {
      if (err instanceof ApiError) return undefined;
      throw err;
    }
  }

  /**
   * Throws 401 for missing or wrong credentials, 429 after too many wrong ones, 403 for tokens of Kubernetes without TLS.
   * Returns a promise only if the API server must be asked; it rejects with the same errors, and with 503 without an answer.
   */
  identify(request: FastifyRequest, place: CredentialPlace): Caller | Promise<Caller> {
    return after(this.#identify(request, place), (caller) => {
      const holder = holderIn(caller);
      if ('mark' in holder) this.#lastUse.note('user', holder.name);
      else if ('digest' in holder) this.#lastUse.note('token', holder.name);
      if (caller !== holder && !(caller as SessionCaller).link) this.#noteSeen(request, caller as SessionCaller);
      return caller;
    });
  }

  #identify(request: FastifyRequest, place: CredentialPlace): Caller | Promise<Caller> {
    const stated = relayedBy(request.raw)?.viewer;
    if (stated && !stated.of) return stated;
    const isForMetrics = place === 'metrics';
    if (this.isOpen && !(isForMetrics && this.#tokens.hasMetricsToken)) return ANYBODY;
    if (stated?.of) return this.#listed(stated, stated.of);
    // Before a token: a node that passes a request on adds that of the link's maker, and only the link may follow a redirect.
    const link = place === 'anywhere' ? this.#links.of(request) : undefined;
    if (link) {
      const session = { ...link, isDue: false };
      return after(this.#holding(link.holder, request), (holder) => this.#open(holder, session, staleLink, link));
    }
    const isInQuery = place === 'header-or-query' || place === 'anywhere';
    const token = tokenInHeader(request) ?? (isInQuery ? tokenInQuery(request) : undefined);
    if (token !== undefined) return this.#tokens.ownerOf(token, request, isForMetrics);
    const session = isForMetrics ? undefined : this.#sessions.of(request);
    if (!session) throw place === 'anywhere' && hasLink(request) ? staleLink() : unauthorized();
    requireOwnPage(request);
    return after(this.#holding(session.holder, request), (holder) => this.#open(holder, session, unauthorized));
  }

  /** Throws what `refused` makes if the session, or all sessions of its account, were ended. */
  #open(holder: Caller, session: Session, refused: () => ApiError, link?: Link): SessionCaller {
    const caller = this.#inSession(holder, session, link);
    if (this.#ended.has(caller.session)) throw refused();
    return caller;
  }

  #inSession(holder: Caller, session: Session, link?: Link): SessionCaller {
    const account = this.accountOf(holder);
    const endsWith = (): readonly string[] => [...session.endsWith(), ...(account ? [allOf(account)] : [])];
    return inSession(holder, { ...session, endsWith }, link);
  }

  #noteSeen({ headers, ip: address }: FastifyRequest, caller: SessionCaller): void {
    const account = this.accountOf(caller);
    const { session } = caller;
    if (account) this.#seen.note({ account, caller, session, address, browser: headers['user-agent'] });
  }

  /**
   * Begins a session for the owner of a token or for a user; `cookies` are for the browser. Rejects as `identify` does.
   * They are undefined where no token is required.
   */
  async signIn(
    request: FastifyRequest,
    credentials: { readonly token: string } | { readonly name: string; readonly password: string },
  ): Promise<{ readonly caller: Caller; readonly cookies?: readonly string[] }> {
    if (this.isOpen) return { caller: ANYBODY };
    const isToken = 'token' in credentials;
    const owner = isToken
      ? await this.#tokens.ownerOf(credentials.token, request)
      : await this.#user(request, credentials.name, credentials.password);
    requireRole(owner, 'viewer');
    if (this.#configuredIssuers.length > 0) this.#localSignIns.note(owner, request.ip);
    return this.#begin(request, owner, isToken ? credentials : undefined);
  }

  /** Begins a session for a person whom an issuer knows; undefined if no rule gives that person a role. */
  signInPerson(
    request: FastifyRequest,
    issuer: string,
    claims: Claims,
  ): { readonly caller: Caller; readonly cookies: readonly string[] } | undefined {
    const holder = this.#rules.sessionOf(issuer, claims, this.#clock.wallMs());
    const person = holder && this.#rules.caller(holder);
    return person && this.#begin(request, person, holder);
  }

  /** Sessions that this node has seen since `sinceMs`, milliseconds since 1970, with the present rights of their callers. */
  sessions(): { readonly sessions: readonly SeenSession[]; readonly sinceMs: number } {
    const open = this.#seen.list.flatMap((seen) => {
      const caller = this.renewed(seen.caller);
      return caller ? [{ ...seen, caller }] : [];
    });
    return { sessions: open, sinceMs: this.#lastUse.sinceMs };
  }

  /** Whose account a request has, or is stated to have; undefined where nobody is told apart. */
  accountOf(caller: Caller): AccountName | undefined {
    const holder = holderIn(caller);
    const of = isStated(holder) ? holder.of : this.#entryOf(holder);
    if (!of || caller === ANYBODY) return undefined;
    const kind = 'user' in of ? 'user' : 'rule' in of ? 'person' : 'token' in of ? 'token' : 'kubernetes';
    return { kind, name: caller.name };
  }

  /** Ends all sessions of an account, and links, that began until now: also those that no node has seen. */
  endAllOf(account: AccountName): void {
    const begun = this.#seen.list.filter((seen) => isSameAccount(seen.account, account));
    this.endSessions([allOf(account)], Math.max(...begun.map(({ session }) => session.sinceMs)));
  }

  /** Ends what has begun with one of `endsWith` until now: at this node at once, at others when they learn of it. */
  endSessions(endsWith: readonly string[], sinceMs?: number): void {
    this.#ended.end(endsWith, sinceMs);
    this.#tellChange();
  }

  /** Sessions that other nodes have ended. */
  learnEnded(others: readonly Ended[]): void {
    if (this.#ended.learn(others)) this.#tellChange();
  }

  /** Begins a session of the owner of a token, of a person, or of a user. */
  #begin(
    request: FastifyRequest,
    owner: Caller,
    known?: Holder,
  ): { readonly caller: Caller; readonly cookies: readonly string[] } {
    const holder = known ?? { user: (owner as UserHolder).mark };
    const { session, setCookie } = this.#sessions.begin(request, holder);
    const device = known ? [] : [this.#devices.note(request, owner.name)];
    const caller = this.#inSession(owner, session);
    this.#noteSeen(request, caller);
    return { caller, cookies: [setCookie, ...device] };
  }

  /**
   * Makes an admin with this name and password, and begins a session. The code is that of the link; it can be used once. Rejects
   * with 401 for another code, 429 after too many of them, 400 for a name that the configuration has, or a password that is guessed first.
   */
  async makeAdmin(
    request: FastifyRequest,
    { name, password, code }: { readonly name: string; readonly password: string; readonly code: string },
  ): Promise<{ readonly caller: Caller; readonly cookies?: readonly string[] }> {
    const attempt = this.#attemptOf(request);
    attempt.begin();
    const refused = (): ApiError => {
      attempt.failed();
      return this.#refusals.of('password', request, staleCode());
    };
    if (!this.#made || !(await this.#made.code.isValid(code))) throw refused();
    if (this.#configured.some((user) => user.name === name)) {
      throw new ApiError(
        400,
        'invalid-parameter',
        'name: the configuration has a user of this name: choose another one',
      );
    }
    requireGoodPassword(password, name);
    // First: of two requests at the same moment, one makes a user.
    if (!(await this.#made.code.use())) throw refused();
    await this.#made.users.put({ name, role: 'admin', password: await hashPassword(password) });
    this.#users.replace(this.#allUsers);
    this.#tellChange();
    return this.#begin(request, this.#users.named(name));
  }

  /** What another node of the cluster is told of a caller; undefined for a caller whom no list of its own can name there. */
  vouchedFor(caller: Caller): Vouched | undefined {
    const holder = holderIn(caller);
    if (this.isOpen || isStated(holder)) return undefined;
    const of = this.#entryOf(holder);
    return of && { name: caller.name, cameras: scopeOf(caller), of, session: caller.session?.id };
  }

  #entryOf(holder: Caller): Vouched['of'] | undefined {
    if ('mark' in holder) return { user: (holder as UserHolder).mark };
    if ('rule' in holder) return { rule: (holder as PersonHolder).rule };
    const kubernetes = this.#tokens.userOf(holder);
    if (kubernetes) return { kubernetes };
    const token = this.#tokens.digestOf(holder);
    return token === undefined ? undefined : { token };
  }

  /**
   * The caller whom a member states, with the rights of the entry in the lists of this node, or those that the API server tells. Throws 401 if
   * there is no such entry.
   */
  #listed(stated: StatedCaller, of: Entry): Caller | Promise<Caller> {
    const found = 'kubernetes' in of ? this.#tokens.ofUser(of.kubernetes) : this.#inLists(of, stated.name);
    if (!found) throw unauthorized();
    return after(found, (caller) => this.#statedAs(stated, caller));
  }

  #statedAs({ of, statedBy, sessionThere, may }: StatedCaller, found: Caller): StatedCaller {
    return this.#tokens.also({ ...found, of, statedBy, sessionThere, may }, found);
  }

  #renewedStated(stated: StatedCaller, of: Entry): Caller | undefined {
    const found = 'kubernetes' in of ? this.#tokens.renewed(stated) : this.#inLists(of, stated.name);
    return found && this.#statedAs(stated, found);
  }

  #inLists(of: Exclude<Entry, { readonly kubernetes: unknown }>, name: string): Caller | undefined {
    if ('user' in of) return this.#users.byMark(of.user);
    if ('rule' in of) return this.#rules.caller({ rule: of.rule, name });
    return this.#tokens.byDigest(of.token);
  }

  /** Ends the session of a request, and returns the cookie that makes the browser forget it. */
  signOut(request: FastifyRequest): string {
    const there = relayedBy(request.raw)?.viewer?.sessionThere;
    if (there !== undefined) this.endSessions([there]);
    const session = this.#sessions.of(request);
    if (session) {
      requireOwnPage(request);
      this.endSessions([session.id], session.sinceMs);
    }
    return this.#sessions.forget(request);
  }

  /**
   * `path` as an address that opens without a token, for its caller's rights and a few minutes. Where no token is required, it is
   * the path itself. Undefined for a caller that another node states.
   */
  linkTo(path: string, request: FastifyRequest): { readonly url: string; readonly expiresMs: number } | undefined {
    const expiresMs = this.#links.untilMs;
    if (this.isOpen) return { url: path, expiresMs };
    const open = this.#sessions.of(request);
    const token = tokenInHeader(request);
    const holder = open?.holder ?? (token === undefined ? undefined : { token });
    if (!holder) return undefined;
    const id = open?.id ?? randomUUID();
    return { url: this.#links.addressOf(path, { id, holder, expiresMs, from: open?.from }), expiresMs };
  }

  /** Where a request is redirected to, so that its link opens that address, too. */
  followed(caller: Caller | undefined, location: string): string {
    const link = caller && 'link' in caller ? (caller as SessionCaller).link : undefined;
    return link ? this.#links.addressOf(location, link) : location;
  }

  /** The cookie with which the session of a request lasts longer; undefined unless the session is due. */
  prolonged(request: FastifyRequest, { session }: Caller): string | undefined {
    const open = session?.isDue ? this.#sessions.of(request) : undefined;
    return open && this.#sessions.begin(request, open.holder, open).setCookie;
  }

  /** Users, then tokens; in the order of the configuration. Uses are known since `sinceMs`, milliseconds since 1970. */
  accounts(): { readonly accounts: readonly Account[]; readonly sinceMs: number } {
    if (this.isOpen) return { accounts: [], sinceMs: this.#lastUse.sinceMs };
    const configured = new Set([...this.#configured, ...this.#shared.users].map(({ name }) => name));
    const account = (kind: Account['kind'], caller: Caller & { readonly isGuessable?: boolean }): Account => ({
      kind,
      name: caller.name,
      // Both have one.
      role: caller.role ?? 'viewer',
      mayExport: mayExport(caller),
      cameras: caller.patterns,
      isGuessable: caller.isGuessable === true,
      isMade: kind === 'user' && this.makesUsers && !configured.has(caller.name),
      lastUsedMs: this.#lastUse.of(kind, caller.name),
    });
    const users = this.#users.list.map((user) => account('user', user));
    const tokens = this.#tokens.list.map((token) => account('token', token));
    return { accounts: [...users, ...tokens], sinceMs: this.#lastUse.sinceMs };
  }

  get makesUsers(): boolean {
    return this.#made !== undefined && !this.isOpen;
  }

  /** Makes a user, or replaces one who was made on the page. Resolves to whether the user is new. Throws ApiError. */
  async putUser(by: Caller, { password, ...user }: MadeUser): Promise<boolean> {
    const users = this.#requireMade(user.name);
    const before = users.list.find(({ name }) => name === user.name);
    if (isThemselves(by, user.name) && before?.role !== user.role) throw invalid('role', 'nobody changes the own role');
    if (!before && users.list.length >= MAX_MADE_USERS)
      throw invalid('name', `expected at most ${MAX_MADE_USERS} users`);
    if (password === undefined && !before) throw invalid('password', 'is missing');
    if (password !== undefined) requireGoodPassword(password, user.name);
    const hash = password === undefined ? (before?.password as string) : await hashPassword(password);
    await this.#keep(users.put({ ...user, cameras: user.cameras && [...user.cameras], password: hash }));
    return before === undefined;
  }

  /** Removes a user who was made on the page; the sessions end. Throws ApiError. */
  async removeUser(by: Caller, userName: string): Promise<void> {
    const users = this.#requireMade(userName);
    if (isThemselves(by, userName)) throw invalid('name', 'nobody removes themselves');
    if (!users.list.some(({ name }) => name === userName))
      throw new ApiError(404, 'not-found', 'there is no such user');
    await this.#keep(users.delete(userName));
  }

  /** A new password for the user who is signed in; other sessions of the user end. Throws ApiError. */
  async changePassword(
    request: FastifyRequest,
    by: Caller,
    { password, next }: { readonly password: string; readonly next: string },
  ): Promise<{ readonly caller: Caller; readonly cookies: readonly string[] }> {
    const { name } = by;
    if (!by.session || !('passwordHash' in holderIn(by))) {
      throw new ApiError(403, 'forbidden', 'only users who sign in with name and password have one');
    }
    const users = this.#requireMade(name);
    requireGoodPassword(next, name, 'new_password');
    const known = await this.#user(request, name, password).catch((err: unknown) => {
      // The session is valid all the same.
      throw err instanceof ApiError && err.status === 401 ? invalid('password', 'is not the present password') : err;
    });
    const before = users.list.find((user) => user.name === name);
    if (!before || before.password !== known.passwordHash) throw unauthorized();
    await this.#keep(users.put({ ...before, password: await hashPassword(next) }));
    return this.#begin(request, this.#users.named(name));
  }

  /** Throws ApiError unless a user of this name may be made or changed on the page. */
  #requireMade(userName: string): Pick<PageUsers, 'list' | 'put' | 'delete'> {
    if (!this.#made || this.isOpen) {
      throw new ApiError(
        409,
        'user-in-configuration',
        'users of this recorder are in its configuration, or in the Secret of its pool',
      );
    }
    if ([...this.#configured, ...this.#shared.users].some(({ name }) => name === userName)) {
      throw new ApiError(409, 'user-in-configuration', 'the configuration has this user: change it there (auth.users)');
    }
    return this.#made.users;
  }

  async #keep(change: Promise<void>): Promise<void> {
    await change.catch((err: unknown) => {
      throw new ApiError(503, 'user-not-kept', 'the change cannot be stored: nothing has changed', { cause: err });
    });
    this.#users.replace(this.#allUsers);
    this.#tellChange();
  }

  /** Reports the tokens that were refused since the last report. */
  close(): void {
    this.#refusals.close();
  }

  /** Warns of presented tokens that are easy to guess. */
  warnings(): Warning[] {
    return this.#tokens.warnings();
  }

  async #user(request: FastifyRequest, name: string, password: string): Promise<UserHolder> {
    const attempt = this.#attemptOf(request, name);
    attempt.begin();
    if (this.#users.isBusyFor(attempt)) throw busy();
    const letGo = request.server.connections.keep(request.raw.socket);
    const user = await this.#users.signIn(name, password, attempt).finally(letGo);
    if (user) return user;
    throw this.#refusals.of('password', request, wrongPassword());
  }

  /** `begin` throws 429 for an address, or a browser that the user has signed in with before, with too many failures. */
  #attemptOf(request: FastifyRequest, name?: string): Attempt {
    const { attempts } = this.#refusals;
    const device = name === undefined ? undefined : this.#devices.of(request, name);
    const key = device ?? networkOf(request.ip);
    return {
      key,
      isKnown: device !== undefined,
      begin: () => {
        if (attempts.isSpent(key)) throw this.#refusals.heldOff(key, request);
        // Nobody waits for the answer any more, so the others need not wait for it either.
        if (request.raw.socket.destroyed) throw busy();
      },
      // Each attempt counts, also with the same password: its check costs processor time.
      failed: () => void attempts.add(key, randomUUID()),
    };
  }

  /** The caller with the rights of a session. */
  #holding(holder: Holder, request: FastifyRequest): Caller | Promise<Caller> {
    if ('token' in holder) {
      // Requests to other nodes on behalf of the caller need its credential.
      request.headers.authorization = `Bearer ${holder.token}`;
      return this.#tokens.ownerOf(holder.token, request);
    }
    const found = 'rule' in holder ? this.#rules.caller(holder) : this.#users.byMark(holder.user);
    if (!found) throw unauthorized();
    return found;
  }

  get #allUsers(): readonly UserConfig[] {
    const all = [...this.#configured, ...this.#shared.users, ...(this.#made?.users.list ?? [])];
    // The first one of a name counts.
    return [...new Map(all.toReversed().map((user) => [user.name, user])).values()].reverse();
  }

  #tellChange(): void {
    for (const listener of this.#changed) listener();
  }
}
