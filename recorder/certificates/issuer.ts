// Signs certificates of members with the CA of the cluster, which is in the store as a Secret. Every server with a vote can: the cluster
// needs no particular server for it.

import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { rm } from 'node:fs/promises';
import {
  anotherAuthority,
  authoritiesData,
  authoritiesIn,
  authoritiesName,
  authorityId,
  bundleOf,
  leafTimes,
  needsNext,
  signerOf,
  signingNow,
} from '../../base/authorities.ts';
import type { Clock } from '../../base/clock.ts';
import { hostOfUrl } from '../../base/host.ts';
import { hasStatus } from '../../base/kubernetes/api-error.ts';
import { AUTHORITIES_SECRET, nodeIdentity } from '../../crds/names.ts';
import {
  isOfNode,
  keyIn,
  sealedAgain,
  sealedFor,
  type Certified,
  type OwnPair,
  type StoredAuthority,
  type Voter,
} from './authority-copies.ts';
import { SealError } from './key-ring.ts';
import { readAuthority, type NodeFiles } from './node-files.ts';
import { nodesPath, readSecret, secretOf, secretsPath, type StoreApi } from './secrets.ts';
import { isRemoved, saidBy } from './statements.ts';

const SECRET_TYPE = 'kube-nvr.dev/authorities';
/** Of a node: its certificate, PEM. Copies of the keys of CAs are made for it. */
export const CERTIFICATE_ANNOTATION = 'kube-nvr.dev/certificate';
/** A server with more names than this states the first ones. */
export const MAX_NAMES = 64;
const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '::1'];
const DNS_NAME =
  /^(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$/;

export interface Issued {
  /** PEM, as are the authorities of the cluster. */
  readonly certificate: string;
  readonly authorities: string;
}

export interface IssueRequest {
  readonly nodeId: string;
  /** PKCS #10 as PEM. */
  readonly request: string;
  /** Host names and addresses of the node, as it states them. */
  readonly names: readonly string[];
}

/** A certificate is not issued. The message is for the client. */
export class IssueError extends Error {
  override readonly name: string = 'IssueError';
}

/** This server has no copy of the key of the CA. */
export class NoKeyError extends IssueError {
  override readonly name = 'NoKeyError';
}

interface IssuerOptions {
  readonly api: StoreApi;
  readonly namespace: string;
  readonly pool: string;
  readonly nodeId: string;
  readonly own: () => OwnPair;
  readonly files: NodeFiles;
  readonly clock: Pick<Clock, 'wallMs'>;
}

export class Issuer {
  readonly #options: IssuerOptions;

  constructor(options: IssuerOptions) {
    this.#options = options;
  }

  /**
   * Puts the CA that `recorder cluster init` made into the store. Throws ApiError, NodeFileError, and IssueError if the store has
   * another CA.
   */
  async adopt(): Promise<void> {
    const { api, namespace, nodeId, own, files } = this.#options;
    const made = await readAuthority(files);
    if (!made) return;
    const stored = sealedFor(made, [{ nodeId, certificate: own().certificate }]);
    const data = authoritiesData(new Map([[this.#name, [stored]]]));
    try {
      await api.call('POST', secretsPath(namespace), secretOf(namespace, AUTHORITIES_SECRET, SECRET_TYPE, data));
    } catch (err) {
      // An earlier start has stored it, but ended before it removed the file.
      if (!hasStatus(err, 409)) throw err;
      if (!(await this.#isKept(made.certificate))) {
        throw new IssueError('this etcd holds another cluster: delete the state of this node, and join that cluster');
      }
    }
    await rm(files.authority, { force: true });
  }

  async #isKept(certificate: string): Promise<boolean> {
    const { api, namespace } = this.#options;
    try {
      const kept = authoritiesIn((await readSecret(api, namespace, AUTHORITIES_SECRET))?.data).get(this.#name) ?? [];
      return kept.some((one) => one.certificate === certificate);
    } catch (err) {
      // Another cluster encrypts its Secrets with keys of its own.
      if (err instanceof Error && err.cause instanceof SealError) return false;
      throw err;
    }
  }

  /** The CA that signs, and all that clients trust, as PEM. Throws ApiError and IssueError. */
  async trust(): Promise<{ readonly signer: string; readonly bundle: string }> {
    const { all, signer } = await this.#authorities();
    return { signer: signer.certificate, bundle: bundleOf(all, this.#options.clock.wallMs()) };
  }

  /** Throws ApiError, IssueError, NoKeyError, and RequestError if the request is not signed with its own key. */
  async issue({ nodeId, request, names }: IssueRequest): Promise<Issued> {
    const { namespace, pool, clock } = this.#options;
    await this.#requireOwn(nodeId, names);
    const { all, signer } = await this.#authorities();
    const key = this.#keyIn(signer);
    const nowMs = clock.wallMs();
    const { signRequest } = await import('../../base/x509.ts');
    const subject = {
      commonName: nodeId,
      names: memberNames(namespace, pool, nodeId, names),
      ...leafTimes(signer, nowMs),
    };
    const certificate = await signRequest(request, { certificate: signer.certificate, key }, subject);
    return { certificate, authorities: bundleOf(all, nowMs) };
  }

  /** Throws ApiError, IssueError, and NoKeyError if another server has to sign. */
  async requireKey(): Promise<void> {
    this.#keyIn((await this.#authorities()).signer);
  }

  /**
   * To be called every few seconds. Each server with a vote has a copy of each key, and no other one has: any server that has a copy
   * provides for that. If no member has one, as after the last ones were lost, this server makes another CA if it has a vote. Throws ApiError
   * and IssueError.
   */
  async keepCopies(): Promise<void> {
    await this.#change(async (all, nowMs) => {
      const { voters, members } = await this.#nodes();
      const { nodeId, own } = this.#options;
      const isTheirs = (voter: Certified): boolean => this.#isTheirs(voter, all, nowMs);
      const next = all.map((one) => sealedAgain(one, voters, { own: own(), isTheirs }));
      if (next.some((one, index) => one !== all[index])) return next;
      const isLost = all.every(
        ({ key, copies = [] }) => key === undefined && !copies.some((one) => members.has(one.nodeId)),
      );
      const isVoter = voters.some((one) => one.nodeId === nodeId);
      return isLost && isVoter ? [...all, signingNow(await this.#another(all, nowMs), nowMs)] : all;
    });
  }

  /** The servers with a vote, this one with the certificate that it has, and the names of all members. */
  async #nodes(): Promise<{ readonly voters: readonly Voter[]; readonly members: ReadonlySet<string> }> {
    const { api, namespace, nodeId: ownId, own } = this.#options;
    const { items } = await api.list(nodesPath(namespace));
    const members = items.filter(({ spec }) => !isRemoved(spec));
    const voters = members.filter(({ spec }) => (spec as { readonly role?: string }).role === 'Voter');
    return {
      members: new Set(members.map(({ metadata }) => metadata.name)),
      voters: voters.map((node) => {
        const nodeId = node.metadata.name;
        const [said] = saidBy(node, CERTIFICATE_ANNOTATION);
        return { nodeId, certificate: nodeId === ownId ? own().certificate : readable(said) };
      }),
    };
  }

  /** A member can write everything in the store, but not a certificate of the CA for another node. */
  #isTheirs({ nodeId, certificate }: Certified, all: readonly StoredAuthority[], nowMs: number): boolean {
    const { namespace, pool } = this.#options;
    return isOfNode(certificate, nodeIdentity(namespace, pool, nodeId), { bundle: bundleOf(all, nowMs), nowMs });
  }

  /** A new CA. This server gets a copy of its key, also if it does not say its certificate yet. */
  async #another(all: readonly StoredAuthority[], nowMs: number): Promise<StoredAuthority> {
    const { namespace, pool, nodeId, own } = this.#options;
    const { voters } = await this.#nodes();
    const isOther = (one: Voter): one is Certified =>
      one.nodeId !== nodeId && one.certificate !== undefined && this.#isTheirs(one as Certified, all, nowMs);
    const having = [...voters.filter(isOther), { nodeId, certificate: own().certificate }];
    return sealedFor(await anotherAuthority(commonNameOf(namespace, pool), nowMs), having);
  }

  #keyIn(signer: StoredAuthority): string {
    const key = keyIn(signer, this.#options.own());
    if (key !== undefined) return key;
    const having = (signer.copies ?? []).map(({ nodeId }) => nodeId).join(', ');
    throw new NoKeyError(`only a server with a vote has the key of the CA: do this on one of ${having}`);
  }

  /** Refuses names of other nodes: a node must not be able to pass for another one. */
  async #requireOwn(nodeId: string, names: readonly string[]): Promise<void> {
    const { api, namespace } = this.#options;
    if (names.length > MAX_NAMES) throw new IssueError(`names: expected at most ${MAX_NAMES}`);
    const wrong = names.find((name) => isIP(name) === 0 && !DNS_NAME.test(name));
    if (wrong !== undefined) throw new IssueError('names: expected host names and IP addresses');
    const { items } = await api.list(nodesPath(namespace));
    const taken = new Map<string, string>();
    for (const { metadata, spec } of items) {
      if (metadata.name === nodeId) continue;
      const { address, peerAddress } = (spec ?? {}) as Readonly<Record<string, unknown>>;
      for (const name of [metadata.name, hostOf(address), hostOf(peerAddress)]) {
        if (name !== undefined) taken.set(name.toLowerCase(), metadata.name);
      }
    }
    for (const name of names.filter((one) => !LOOPBACK.includes(one))) {
      const owner = taken.get(name.toLowerCase());
      if (owner !== undefined) throw new IssueError(`names: ${name} is the node ${owner}`);
    }
  }

  /** Makes another CA, which members trust from now on, and which signs nothing yet. Resolves to its id. Throws what `requireKey` throws. */
  async publishAnother(): Promise<string> {
    await this.requireKey();
    const all = await this.#change(async (known, nowMs) => [...known, await this.#another(known, nowMs)]);
    return authorityId((all.at(-1) as StoredAuthority).certificate);
  }

  /** From now on this CA signs. Throws ApiError and IssueError. */
  async signWith(id: string): Promise<void> {
    await this.#change(async (all, nowMs) => {
      const next = named(all, id);
      return [...all.filter((one) => one !== next), signingNow(next, nowMs)];
    });
  }

  /** From now on no other CA is trusted. Throws ApiError and IssueError. */
  async trustOnly(id: string): Promise<void> {
    await this.#change(async (all) => [named(all, id)]);
  }

  async #authorities(): Promise<{ readonly all: readonly StoredAuthority[]; readonly signer: StoredAuthority }> {
    const { own, clock } = this.#options;
    const all = await this.#change(async (known, nowMs) => {
      const isDue = needsNext(known, nowMs) && known.some((one) => keyIn(one, own()) !== undefined);
      return isDue ? [...known, await this.#another(known, nowMs)] : known;
    });
    const signer = signerOf(all, clock.wallMs());
    if (!signer) throw new IssueError('the CA of the cluster has expired');
    return { all, signer };
  }

  /** All CAs, after `change`, which is called again when another member has written at the same time. */
  async #change(
    change: (all: readonly StoredAuthority[], nowMs: number) => Promise<readonly StoredAuthority[]>,
  ): Promise<readonly StoredAuthority[]> {
    const { api, namespace, clock } = this.#options;
    for (;;) {
      const secret = await readSecret(api, namespace, AUTHORITIES_SECRET);
      const kept = authoritiesIn<StoredAuthority>(secret?.data);
      const all = kept.get(this.#name) ?? [];
      if (!secret || all.length === 0) throw new IssueError('the store of the cluster has no CA');
      const next = await change(all, clock.wallMs());
      if (next === all) return all;
      const data = authoritiesData(kept.set(this.#name, next));
      const object = secretOf(namespace, AUTHORITIES_SECRET, secret.type, data, secret);
      try {
        await api.call('PUT', `${secretsPath(namespace)}/${AUTHORITIES_SECRET}`, object);
        return next;
      } catch (err) {
        if (!hasStatus(err, 409)) throw err;
      }
    }
  }

  get #name(): string {
    return authoritiesName(this.#options.namespace, this.#options.pool);
  }
}

/** Throws IssueError: without this CA there would be none. */
function named(all: readonly StoredAuthority[], id: string): StoredAuthority {
  const found = all.find(({ certificate }) => authorityId(certificate) === id);
  if (!found) throw new IssueError('another member has replaced the CA meanwhile: repeat it');
  return found;
}

/** A certificate that can be parsed: any member may have written this text. */
function readable(certificate: string | undefined): string | undefined {
  try {
    return certificate === undefined ? undefined : new X509Certificate(certificate).toString();
  } catch {
    // It counts as no certificate.
    return undefined;
  }
}

export const commonNameOf = (namespace: string, pool: string): string => `kube-nvr ${namespace}/${pool}`;

/** The names in a member's certificate: the node, its identity for peers, `localhost`, and its addresses. */
export const memberNames = (
  namespace: string,
  pool: string,
  nodeId: string,
  names: readonly string[],
): readonly string[] => [...new Set([nodeId, nodeIdentity(namespace, pool, nodeId), ...LOOPBACK, ...names])];

function hostOf(address: unknown): string | undefined {
  return typeof address === 'string' && URL.canParse(address) ? hostOfUrl(new URL(address)) : undefined;
}
