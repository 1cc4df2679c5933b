// Which node has which camera, in a cluster of recorders. Any node tells, and nodes come and go: this knows the others to
// ask when one gives no answer. No dependencies beside api.js; copy both.
//
//   const directory = new Directory({ token: () => '…' });
//   const player = new LivePlayer(video, { cameraId: 'gate', token: '…', locate: () => directory.locate('gate') });

import { ApiError, getJson } from './api.js';

/** A node that has said nothing for so long is not waited for any more, though it may still answer. */
const HEDGE_MS = 700;
const TIMEOUT_MS = 5_000;
/** Those who ask within this time share one answer. */
const FRESH_MS = 500;
/** An address that this browser cannot reach is tried again after this time. */
const UNREACHABLE_MS = 30_000;

export class Directory {
  #origin;
  #token;
  #answer = { node_id: '', nodes: [], cameras: [] };
  #asking;
  #askedAt = -Infinity;
  /** URL to when it may be tried again. */
  #unreachable = new Map();
  /** Node id to what was learned from it last: cameras as of `GET /api/cameras`, or why there are none. */
  #details = new Map();

  /** @param {{ baseUrl?: string, token?: () => string }} [options] `baseUrl`: of any node, or of a Service over all. */
  constructor({ baseUrl = window.location.origin, token = () => '' } = {}) {
    this.#origin = new URL(baseUrl).origin;
    this.#token = token;
  }

  /** As of `GET /cluster/cameras`. */
  get nodes() {
    return this.#answer.nodes;
  }

  /** As of `GET /cluster/cameras`. */
  get cameras() {
    return this.#answer.cameras;
  }

  /** Asks the nodes for where the cameras are: rejects when none answers. */
  async refresh() {
    if (performance.now() - this.#askedAt < FRESH_MS) return;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  /** Base of the API of the node that has a camera; undefined when none has it now. Rejects when no node answers. */
  async locate(cameraId) {
    await this.refresh();
    return this.baseOfCamera(cameraId);
  }

  /** The same as it was known last. */
  baseOfCamera(cameraId) {
    const nodeId = this.cameras.find(({ id }) => id === cameraId)?.node_id;
    return nodeId ? this.baseOf(nodeId) : undefined;
  }

  /** Undefined for a node that is not known, or has not said where it is. */
  baseOf(nodeId) {
    const { url } = this.nodes.find(({ node_id }) => node_id === nodeId) ?? {};
    // Behind a Service or a proxy nodes may have addresses that only they can reach.
    if (nodeId === this.#answer.node_id && (!url || this.#isUnreachable(url))) return this.#origin;
    return url ?? undefined;
  }

  /**
   * What a node tells of its cameras: `{ cameras, problem }`, as it was learned last. A node that hangs holds nobody up.
   */
  detailsOf(nodeId) {
    return this.#details.get(nodeId) ?? { cameras: [], problem: undefined };
  }

  /** Asks every node that has cameras what it knows of them; resolves when all have answered, or are too slow. */
  async refreshDetails() {
    const owners = new Set(this.cameras.map(({ node_id }) => node_id).filter(Boolean));
    for (const nodeId of this.#details.keys()) if (!owners.has(nodeId)) this.#details.delete(nodeId);
    await Promise.all([...owners].map((nodeId) => this.#refreshNode(nodeId)));
  }

  async #refreshNode(nodeId) {
    const known = this.#details.get(nodeId);
    if (known?.asking) return known.asking;
    const details = known ?? { cameras: [], problem: undefined };
    this.#details.set(nodeId, details);
    details.asking = this.getFrom(nodeId, '/api/cameras')
      .then(({ cameras }) => Object.assign(details, { cameras, problem: undefined }))
      .catch((error) => Object.assign(details, { cameras: [], problem: problemOf(error, nodeId) }))
      .finally(() => (details.asking = undefined));
    return details.asking;
  }

  /** JSON of a node. Rejects with ApiError for an answer that is none, with TypeError or a DOMException without one. */
  async getFrom(nodeId, path) {
    const base = this.baseOf(nodeId);
    if (!this.#isOnline(nodeId)) throw new TypeError(`${nodeId} gives no sign of life`);
    if (base === undefined) throw new TypeError(`no address of ${nodeId}`);
    try {
      return await getJson(new URL(path, base), this.#token(), AbortSignal.timeout(TIMEOUT_MS));
    } catch (error) {
      const isOther = base !== this.#origin;
      if (error instanceof ApiError || !isOther) throw error;
      this.#unreachable.set(base, performance.now() + UNREACHABLE_MS);
      if (this.baseOf(nodeId) === base) throw error;
      return this.getFrom(nodeId, path);
    }
  }

  #isOnline(nodeId) {
    return this.nodes.find(({ node_id }) => node_id === nodeId)?.online ?? false;
  }

  #isUnreachable(url) {
    return (this.#unreachable.get(url) ?? -Infinity) > performance.now();
  }

  /** One node after the other, until one answers that is in touch with the cluster. */
  async #ask() {
    const others = this.nodes.filter(({ online, url }) => online && url && url !== this.#origin);
    const left = [this.#origin, ...others.map(({ url }) => url)];
    const enough = new AbortController();
    let second;
    let failure;
    const running = new Set();
    try {
      while (left.length > 0 || running.size > 0) {
        const base = left.shift();
        if (base !== undefined) {
          const signal = AbortSignal.any([enough.signal, AbortSignal.timeout(TIMEOUT_MS)]);
          const asked = getJson(new URL('/cluster/cameras', base), this.#token(), signal)
            .then((answer) => ({ answer }))
            .catch((error) => ({ error }))
            .finally(() => running.delete(asked));
          running.add(asked);
        }
        const result = await Promise.race([...running, ...(left.length > 0 ? [sleep(HEDGE_MS)] : [])]);
        if (result?.answer?.current) return this.#take(result.answer);
        second ??= result?.answer;
        // Who may not ask here may not elsewhere: every node takes the same tokens.
        if (result?.error instanceof ApiError && result.error.status < 500) throw result.error;
        failure ??= result?.error;
      }
      if (!second) throw failure;
      return this.#take(second);
    } finally {
      enough.abort();
    }
  }

  #take(answer) {
    this.#askedAt = performance.now();
    this.#answer = answer;
  }
}

const problemOf = (error, nodeId) =>
  error instanceof ApiError ? `${nodeId}: ${error.message}` : `${nodeId} cannot be reached from this browser.`;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
