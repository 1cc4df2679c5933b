// Members of a pool in one process: listeners for members on loopback, with certificates of one CA, and requests among them.

import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { systemClock, type Clock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { newAuthority, newKey, newRequest, signRequest, type Authority } from '../../base/x509.ts';
import { buildPeersServer } from '../../recorder/api/peers-server.ts';
import type { JobKeeper } from '../../recorder/api/deps.ts';
import type { MutualTls } from '../../recorder/peers/identity.ts';
import type { PeerListener, PeerNode } from '../../recorder/contract/other-node.ts';
import { PeerRequests } from '../../recorder/peers/peer-requests.ts';

const TIMES = { fromMs: Date.now() - 3_600_000, toMs: Date.now() + 86_400_000 };

const noJobs = {
  get: async () => undefined,
  result: async () => undefined,
  manifest: async () => undefined,
} as unknown as JobKeeper;

export const identityOf = (nodeId: string): string => `kube-nvr://video/default/${nodeId}`;

export async function certificateOf(authority: Authority, nodeId: string): Promise<MutualTls> {
  const key = newKey();
  const subject = { commonName: nodeId, names: [nodeId, identityOf(nodeId)], ...TIMES };
  return { key, certificate: await signRequest(await newRequest(key), authority, subject), ca: authority.certificate };
}

export class Members {
  readonly authority: Authority;
  readonly nodes = new Map<string, PeerNode>();
  /** Nodes that are no members any more; they keep their certificates. */
  readonly removed = new Set<string>();
  readonly #t: TestContext;
  readonly #listeners = new Map<string, FastifyInstance>();

  private constructor(t: TestContext, authority: Authority) {
    this.#t = t;
    this.authority = authority;
  }

  static async open(t: TestContext): Promise<Members> {
    return new Members(t, await newAuthority({ commonName: 'CA', ...TIMES }));
  }

  /** Lets a node listen for the others. */
  async listen(nodeId: string, listeners: Readonly<Record<PeerListener, FastifyInstance>>): Promise<void> {
    await Promise.all(Object.values(listeners).map(async (app) => app.ready()));
    const pair = await certificateOf(this.authority, nodeId);
    const app = await buildPeersServer({
      nodeId,
      pair,
      authorities: this.authority.certificate,
      jobs: noJobs,
      listeners,
      members: { has: (id) => !this.removed.has(id), look: () => Promise.resolve() },
      clock: systemClock,
      log: silentLog,
    });
    this.#t.after(() => app.close());
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    this.#listeners.set(nodeId, app);
    this.place(nodeId, `https://127.0.0.1:${port}`);
  }

  /** Where the others find a node. */
  place(nodeId: string, address: string): void {
    const mutual = { address, identity: identityOf(nodeId) };
    this.nodes.set(nodeId, { nodeId, urls: { api: undefined, playback: undefined }, mutual });
  }

  /** Ends the listener of a node, with all its connections. */
  async kill(nodeId: string): Promise<void> {
    const app = this.#listeners.get(nodeId);
    assert.ok(app, `${nodeId} listens`);
    await app.close();
  }

  /** The requests of a node to the others. */
  async requestsOf(
    nodeId: string,
    changes: { readonly own?: MutualTls | undefined; readonly clock?: Clock } = {},
  ): Promise<PeerRequests> {
    const certificate = 'own' in changes ? changes.own : await certificateOf(this.authority, nodeId);
    const requests = new PeerRequests({
      nodeId,
      find: (id) => (id === nodeId ? undefined : this.nodes.get(id)),
      own: () => certificate,
      clock: changes.clock ?? systemClock,
    });
    this.#t.after(() => requests.close());
    return requests;
  }
}
