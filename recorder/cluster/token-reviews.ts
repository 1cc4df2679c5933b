// Authenticates a token with a TokenReview and authorises its user with SubjectAccessReviews on cameras and the pool in the
// recorder's namespace (https://kubernetes.io/docs/reference/access-authn-authz/).

import { concurrently } from '../../base/concurrently.ts';
import { CAMERAS, GROUP, RECORDER_POOLS, VERSION } from '../../crds/names.ts';
import type { Role } from '../config/schema.ts';
import { ApiServerError, type ApiServer } from './api-server.ts';

export interface TokenReviewsOptions {
  readonly api: Pick<ApiServer, 'call'>;
  readonly namespace: string;
  readonly pool: string;
  /** The accepted audiences of a token; if empty, that of the API server itself. */
  readonly audiences: readonly string[];
  /** The cameras that this node knows about, its own first. */
  readonly cameraIds: () => Iterable<string>;
}

/** The user and the rights of a token. */
export type TokenReview =
  | {
      readonly kind: 'known';
      readonly name: string;
      /** Undefined: the user may do nothing here. */
      readonly role: Role | undefined;
      /** Ids of the cameras in the scope of the token; undefined: all cameras and the node. */
      readonly cameras: ReadonlySet<string> | undefined;
      readonly user?: ReviewedUser;
    }
  /** No user has this token. */
  | { readonly kind: 'wrong' }
  /** The API server did not answer. `problem` is a text for people, without the token. */
  | { readonly kind: 'unavailable'; readonly problem: string };

/** The fields of a TokenReview's `status.user` that a SubjectAccessReview needs. */
export interface ReviewedUser {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups?: unknown;
  readonly extra?: unknown;
}

interface Right {
  readonly verb: 'get' | 'update';
  readonly resource: string;
  readonly name?: string;
}

/** A user with rights to single cameras needs one review for each; with more cameras than this, such a user sees none. */
const MAX_CAMERAS = 1_000;
/** How many of the reviews for one token run at once. */
const AT_ONCE = 4;
const MAX_NAME_LENGTH = 300;

export class TokenReviews {
  readonly #options: TokenReviewsOptions;

  constructor(options: TokenReviewsOptions) {
    this.#options = options;
  }

  /** Of the owner of a token; or of the user whom another recorder found by one, whose rights alone are asked for. */
  async review(whom: string | ReviewedUser): Promise<TokenReview> {
    try {
      const user = typeof whom === 'string' ? await this.#userOf(whom) : whom;
      if (!user) return { kind: 'wrong' };
      return { kind: 'known', name: user.username.slice(0, MAX_NAME_LENGTH), user, ...(await this.#rightsOf(user)) };
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      return { kind: 'unavailable', problem: problemOf(err) };
    }
  }

  /** The rights of a role include those of the lower ones. */
  async #rightsOf(user: ReviewedUser): Promise<{ role: Role | undefined; cameras: ReadonlySet<string> | undefined }> {
    const [mayGet, mayUpdate, mayUpdatePool] = await Promise.all([
      this.#may(user, { verb: 'get', resource: CAMERAS }),
      this.#may(user, { verb: 'update', resource: CAMERAS }),
      this.#may(user, { verb: 'update', resource: RECORDER_POOLS, name: this.#options.pool }),
    ]);
    if (mayGet) return { role: roleOf(mayUpdate, mayUpdatePool), cameras: undefined };
    const ids = [...this.#options.cameraIds()].slice(0, MAX_CAMERAS);
    const seen = await this.#mayEach(user, 'get', ids);
    if (seen.length === 0) return { role: undefined, cameras: new Set() };
    // There is one role for all cameras: a user that may update only some of them may only view.
    const changed = mayUpdate ? seen : await this.#mayEach(user, 'update', seen);
    return { role: roleOf(changed.length === seen.length, mayUpdatePool), cameras: new Set(seen) };
  }

  async #mayEach(user: ReviewedUser, verb: Right['verb'], ids: readonly string[]): Promise<readonly string[]> {
    const allowed = await concurrently(ids, AT_ONCE, (name) => this.#may(user, { verb, resource: CAMERAS, name }));
    return ids.filter((_, i) => allowed[i]);
  }

  async #may(user: ReviewedUser, right: Right): Promise<boolean> {
    const { username, uid, groups, extra } = user;
    const status = await this.#ask('authorization.k8s.io', 'SubjectAccessReview', {
      user: username,
      uid,
      groups,
      extra,
      resourceAttributes: { namespace: this.#options.namespace, group: GROUP, version: VERSION, ...right },
    });
    return status['allowed'] === true;
  }

  /** Undefined for a token that is invalid or for another audience. */
  async #userOf(token: string): Promise<ReviewedUser | undefined> {
    const { audiences } = this.#options;
    const spec = { token, ...(audiences.length > 0 && { audiences }) };
    const status = await this.#ask('authentication.k8s.io', 'TokenReview', spec);
    if (status['authenticated'] !== true) return undefined;
    // A server without support for audiences leaves them out.
    const meantFor = Array.isArray(status['audiences']) ? (status['audiences'] as readonly unknown[]) : [];
    if (audiences.length > 0 && !audiences.some((audience) => meantFor.includes(audience))) return undefined;
    const { username, uid, groups, extra } = (status['user'] ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof username !== 'string' || username === '') return undefined;
    return { username, uid: typeof uid === 'string' ? uid : undefined, groups, extra };
  }

  /** Creates a review and returns its `status`. Reviews are not stored objects. */
  async #ask(group: string, kind: string, spec: object): Promise<Readonly<Record<string, unknown>>> {
    const path = `/apis/${group}/v1/${kind.toLowerCase()}s`;
    const answer = await this.#options.api.call('POST', path, { apiVersion: `${group}/v1`, kind, metadata: {}, spec });
    const { status } = (answer ?? {}) as { status?: unknown };
    if (typeof status === 'object' && status !== null) return status as Readonly<Record<string, unknown>>;
    throw new ApiServerError(0, 'INVALID_ANSWER', `an answer has no status: ${kind}`);
  }
}

function roleOf(mayUpdate: boolean, mayUpdatePool: boolean): Role {
  if (!mayUpdate) return 'viewer';
  return mayUpdatePool ? 'admin' : 'operator';
}

function problemOf({ status, reason }: ApiServerError): string {
  if (status === 403) {
    return "the recorder's service account may not create tokenreviews and subjectaccessreviews (bind it to the ClusterRole system:auth-delegator)";
  }
  return status === 0 ? 'the API server does not answer' : `the API server refuses to say (${reason})`;
}
