// Replaces the CA of the cluster while all members go on. Everything trusts the new CA before it signs, and every member has a certificate
// of it before the old one is dropped; the members say on their RecorderNodes how far they are. etcd reads the CAs that it trusts when it
// starts, so each member of it is started again, one after the other. An end at any moment leaves members that trust each other, and
// the next replacement completes what is missing.

import { X509Certificate } from 'node:crypto';
import { authorityId, certificatesIn } from '../../base/authorities.ts';
import type { Clock } from '../../base/clock.ts';
import { CERTIFICATE_ANNOTATION, type Issuer } from './issuer.ts';
import { RotationError } from './key-rotation.ts';
import type { Renewal } from './renewal.ts';
import type { StoreApi } from './secrets.ts';
import { Statements } from './statements.ts';

/** Of a node: ids of the CAs that everything on it trusts; that of its certificate first. */
const AUTHORITIES_ANNOTATION = 'kube-nvr.dev/authorities';
/** Nodes need this long at most to take a certificate, or to start etcd again; those that say nothing for longer are away. */
const WAIT_MS = 60_000;
/** So long a node waits for those before it to start their etcd again. */
const TURN_MS = 20_000;

interface AuthorityRotationOptions {
  readonly api: StoreApi;
  readonly namespace: string;
  readonly nodeId: string;
  readonly issuer: Pick<Issuer, 'requireKey' | 'keepCopies' | 'publishAnother' | 'signWith' | 'trustOnly'>;
  readonly renewal: Pick<Renewal, 'renew'>;
  /** PEM. */
  readonly current: () => { readonly certificate: string; readonly authorities: string | undefined };
  /** The member of etcd of this server; one that reads no file of ours trusts nothing of its own. */
  readonly etcd: {
    /** The CAs that it trusts since it was started, PEM. */
    readonly trusted: () => string | undefined;
    readonly startAgain: () => void;
  };
  readonly waitMs?: number;
  readonly clock: Clock;
}

/** What a replacement waits for: that members trust the new CA, have its certificate, trust no other one. */
export type AuthorityStep = 'trust' | 'certificate' | 'drop';

export class AuthorityRotation {
  readonly #options: AuthorityRotationOptions;
  readonly #statements: Statements;
  readonly #certificates: Statements;
  /** The nodes before this one, and since when it waits for them. */
  #before = '';
  #beforeMs = -Infinity;

  constructor(options: AuthorityRotationOptions) {
    this.#options = options;
    this.#statements = new Statements({ waitMs: WAIT_MS, ...options, annotation: AUTHORITIES_ANNOTATION });
    this.#certificates = new Statements({ ...options, annotation: CERTIFICATE_ANNOTATION });
  }

  /** Throws NoKeyError if another server has to replace the CA, ApiError and IssueError. */
  requireKey(): Promise<void> {
    return this.#options.issuer.requireKey();
  }

  /**
   * To be called every few seconds: this node has a certificate of the CA that signs, trusts those of the cluster, and says so. With a vote,
   * it has the key of the CA, too. Throws ApiError and IssueError, and rejects with errors of the file system.
   */
  async follow(): Promise<void> {
    const { nodeId, issuer, renewal, current, etcd } = this.#options;
    await renewal.renew();
    const { certificate, authorities = '' } = current();
    // Before it says that it has a certificate of the next CA: the old one may be dropped then, and with it what proves this one.
    await this.#certificates.keepSaid(nodeId, [certificate]);
    await issuer.keepCopies();
    const trusted = etcd.trusted() ?? authorities;
    await this.#statements.keepSaid(nodeId, idsOf(trusted, certificate));
    if (isSame(idsOf(trusted), idsOf(authorities))) this.#before = '';
    else if (await this.#isInTurn(idsOf(authorities))) etcd.startAgain();
  }

  /**
   * Resolves to the nodes that are away, which have to join again. `force`: also if there are some. Throws RotationError, ApiError and
   * IssueError.
   */
  async replace({
    force,
    began,
  }: {
    readonly force: boolean;
    readonly began: (step: AuthorityStep) => void;
  }): Promise<readonly string[]> {
    const { issuer } = this.#options;
    let away: readonly string[] = [];
    const untilAll = async (step: AuthorityStep, isDone: (ids: readonly string[]) => boolean): Promise<void> => {
      began(step);
      ({ away } = await this.#statements.untilAll(isDone, { knownAway: away }));
      if (away.length > 0 && !force) throw incomplete(away);
    };
    const id = await issuer.publishAnother();
    await untilAll('trust', (ids) => ids.includes(id));
    await issuer.signWith(id);
    await untilAll('certificate', (ids) => ids[0] === id);
    await issuer.trustOnly(id);
    await untilAll('drop', (ids) => ids.join() === id);
    return away;
  }

  /** One server after the other, by name: without more than one member of etcd, a cluster of three has its majority. */
  async #isInTurn(wanted: readonly string[]): Promise<boolean> {
    const { nodeId, clock } = this.#options;
    const others = await this.#statements.all();
    const before = others.filter((other) => other.nodeId < nodeId && !isSame(other.ids, wanted));
    const names = before.map((other) => other.nodeId).join();
    if (names !== this.#before) this.#beforeMs = clock.monotonicMs();
    this.#before = names;
    return names === '' || clock.monotonicMs() - this.#beforeMs > TURN_MS;
  }
}

const incomplete = (away: readonly string[]): RotationError =>
  new RotationError(
    `the CA was not replaced, because ${away.join(', ')} did not follow: away, or of an older version. ` +
      'With force it is replaced anyway, and nodes that are away have to join again',
  );

/** The one that signed the certificate first, if it is named. */
function idsOf(bundle: string, certificate?: string): readonly string[] {
  const leaf = certificate === undefined ? undefined : new X509Certificate(certificate);
  const signed = (authority: string): boolean => leaf?.verify(new X509Certificate(authority).publicKey) === true;
  const all = certificatesIn(bundle);
  return [...all.filter(signed), ...all.filter((one) => !signed(one))].map(authorityId);
}

const isSame = (some: readonly string[], others: readonly string[]): boolean =>
  some.toSorted().join() === others.toSorted().join();
