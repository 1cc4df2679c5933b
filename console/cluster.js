// Finds out which node of a cluster records which camera. It asks any node, and another one when a node does not answer.
// Its only dependency is api.js; copy both.
//
//   const directory = new Directory({ token: () => '…' });
//   const player = new LivePlayer(video, { cameraId: 'gate', token: '…', locate: () => directory.locate('gate') });

import { ApiError, getJson } from './api.js';

/** After this time without an answer the page continues without the node; a later answer is still used. */
const HEDGE_MS = 700;
const TIMEOUT_MS = 5_000;
/** Calls within this time share one answer. */
const FRESH_MS = 500;
/** How long an address that this browser could not reach is not tried again. */
const UNREACHABLE_MS = 30_000;

export class Directory {
  #origin;
  #token;
  #relay;
  #answer = { node_id: '', nodes: [], cameras: [] };
  #asking;
  #askedAt = -Infinity;
  /** URL to the time when it may be tried again. */
  #unreachable = new Map();
  /** Node id to the last answer of the node: cameras and warnings as in `GET /api/cameras`, or why they are unknown. */
  #details = new Map();

  /**
   * @param {{ baseUrl?: string, token?: () => string, relay?: boolean }} [options] `baseUrl`: of any node, or of a Service
   *   for all. `relay`: other nodes are always asked through this one, as for a page whose session is a cookie; otherwise
   *   only those that this browser cannot reach.
   */
  constructor({ baseUrl = window.location.origin, token = () => '', relay = false } = {}) {
    this.#origin = new URL(baseUrl).origin;
    this.#token = token;
    this.#relay = relay;
  }

  /** As of `GET /cluster/cameras`. */
  get nodes() {
    return this.#answer.nodes;
  }

  /** As of `GET /cluster/cameras`. */
  get cameras() {
    return this.#answer.cameras;
  }

  /** Asks the nodes where the cameras are. Rejects when no node answers. */
  async refresh() {
    if (performance.now() - this.#askedAt < FRESH_MS) return;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  /** Base URL of the node that records a camera; undefined when none does now. Rejects when no node answers. */
  async locate(cameraId) {
    await this.refresh();
    return this.baseOfCamera(cameraId);
  }

  /** The last known result of `locate`. */
  baseOfCamera(cameraId) {
    const nodeId = this.cameras.find(({ id }) => id === cameraId)?.node_id;
    return nodeId ? this.baseOf(nodeId) : undefined;
  }

  /** Undefined for a node that is unknown or has not published its address. */
  baseOf(nodeId) {
    const { url } = this.nodes.find(({ node_id }) => node_id === nodeId) ?? {};
    // Behind a Service or a proxy, nodes may have addresses that this browser cannot reach.
    const isHidden = this.#relay || !url || this.#isUnreachable(url);
    if (!isHidden) return url;
    // This also holds for the node that answered last: the next request to a Service may reach another one.
    return this.nodes.some(({ node_id }) => node_id === nodeId)
      ? `${this.#origin}/node/${encodeURIComponent(nodeId)}`
      : undefined;
  }

  /**
   * The last known cameras and warnings of a node: `{ cameras, warnings, problem }`. A node that does not answer delays no other.
   */
  detailsOf(nodeId) {
    return this.#details.get(nodeId) ?? { cameras: [], warnings: [], problem: undefined };
  }

  /** Asks every node with cameras for their state; resolves when all have answered or timed out. */
  async refreshDetails() {
    const owners = new Set(this.cameras.map(({ node_id }) => node_id).filter(Boolean));
    for (const nodeId of this.#details.keys()) if (!owners.has(nodeId)) this.#details.delete(nodeId);
    await Promise.all([...owners].map((nodeId) => this.#refreshNode(nodeId)));
  }

  async #refreshNode(nodeId) {
    const known = this.#details.get(nodeId);
    if (known?.asking) return known.asking;
    const details = known ?? { cameras: [], warnings: [], problem: undefined };
    this.#details.set(nodeId, details);
    details.asking = this.getFrom(nodeId, '/api/cameras')
      .then(({ cameras, warnings = [] }) => Object.assign(details, { cameras, warnings, problem: undefined }))
      .catch((error) => Object.assign(details, { cameras: [], warnings: [], problem: problemOf(error, nodeId) }))
      .finally(() => (details.asking = undefined));
    return details.asking;
  }

  /** JSON of a node. Rejects with ApiError for an error status, and with TypeError or a DOMException without an answer. */
  async getFrom(nodeId, path) {
    const base = this.baseOf(nodeId);
    if (!this.#isOnline(nodeId)) throw new TypeError(`${nodeId} is offline`);
    if (base === undefined) throw new TypeError(`the address of ${nodeId} is unknown`);
    try {
      return await getJson(`${base}${path}`, this.#token(), AbortSignal.timeout(TIMEOUT_MS));
    } catch (error) {
      const isOther = base !== this.#origin && !base.startsWith(`${this.#origin}/`);
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

  /** Tries one node after the other until one answers that reaches the API server. */
  async #ask() {
    const others = this.nodes.filter(({ online, url }) => online && url && url !== this.#origin);
    const left = [this.#origin, ...others.map(({ node_id, url }) => (this.#relay ? this.baseOf(node_id) : url))];
    const enough = new AbortController();
    let second;
    let failure;
    const running = new Set();
    try {
      while (left.length > 0 || running.size > 0) {
        const base = left.shift();
        if (base !== undefined) {
          const signal = AbortSignal.any([enough.signal, AbortSignal.timeout(TIMEOUT_MS)]);
          const asked = getJson(`${base}/cluster/cameras`, this.#token(), signal)
            .then((answer) => ({ answer }))
            .catch((error) => ({ error }))
            .finally(() => running.delete(asked));
          running.add(asked);
        }
        const result = await Promise.race([...running, ...(left.length > 0 ? [sleep(HEDGE_MS)] : [])]);
        if (result?.answer?.current) return this.#take(result.answer);
        second ??= result?.answer;
        // Every node accepts the same tokens: one that refuses this token speaks for all.
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
