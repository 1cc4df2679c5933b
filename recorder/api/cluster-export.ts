// Exports of all nodes of a cluster: each node exports the part of the window that it gives, and this node joins the parts, as
// `assemble` does.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { assert } from '../../base/assert.ts';
import { readBody } from '../../base/http-answer.ts';
import { askerOf } from '../http/access.ts';
import { tell } from '../http/audit.ts';
import { ApiError } from '../http/problem.ts';
import { lapseEstimate } from '../jobs/ffmpeg.ts';
import type { Assembly, Job, JobOutcome, JobRequest } from '../jobs/job.ts';
import { gapsOfAll, turnsOf, type NodeTurn } from '../jobs/node-turns.ts';
import { PeerUnavailable, type PeerSender } from '../peers/peer-requests.ts';
import { viewerOf } from '../peers/whole-answer.ts';
import type { ClusterAccount } from '../footage/accounts.ts';
import type { GapReader, JobKeeper } from './deps.ts';
import { available } from './submitted-job.ts';

interface ClusterExportDeps {
  readonly jobs: JobKeeper;
  readonly gaps: GapReader;
  /** Outside of a cluster, both are undefined. */
  readonly nodeId: string | undefined;
  readonly peers: PeerSender | undefined;
}

const MAX_TURNS = 64;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Limits how long an estimate takes, which reads the index of each file. */
const ANSWER_MS = 30_000;

const Submitted = z.object({ job_id: z.string() });
const Estimate = z.object({ duration_seconds: z.number(), size_bytes: z.number() });

export class ClusterExports {
  readonly #deps: ClusterExportDeps;

  constructor(deps: ClusterExportDeps) {
    this.#deps = deps;
  }

  /** Requests the parts, and the job that joins them. If this node has all footage, it is an ordinary job. Throws ApiError. */
  async submit(request: FastifyRequest, wanted: JobRequest): Promise<Job> {
    const { jobs } = this.#deps;
    const assembly = await this.assemblyOf(request, wanted);
    if (!assembly) return available(jobs.submit(wanted, request.headers.authorization));
    tell(request, { parts: assembly.parts.length });
    return available(jobs.submit({ ...wanted, assembly }, request.headers.authorization));
  }

  /** Requests the parts of a camera; undefined if this node has all footage, or no node has any. Throws ApiError. */
  async assemblyOf(request: FastifyRequest, wanted: JobRequest): Promise<Assembly | undefined> {
    const { jobs } = this.#deps;
    const { account, turns, done } = await this.#ofEachTurn(request, wanted, (turn) =>
      this.#part(request, wanted, turn),
    );
    if (!done) return undefined;
    const parts = done.map(({ job_id }, i) => {
      const peerAddress = jobs.addressOf(turns[i]!.nodeId);
      assert(peerAddress !== undefined, 'a node that has taken a job has an address');
      return { peerAddress, peerJobId: job_id };
    });
    const { gaps, elsewhere } = account;
    return { parts, withCredential: request.headers.authorization !== undefined, known: { gaps, elsewhere } };
  }

  /** What `submit` would make. Throws JobError. */
  async estimate(request: FastifyRequest, wanted: JobRequest): Promise<JobOutcome> {
    const { jobs } = this.#deps;
    const { authorization } = request.headers;
    const found = await this.#ofEachTurn(request, wanted, (turn) => this.#estimateOf(request, wanted, turn));
    const { account, done } = found;
    if (!done) return jobs.estimate(wanted, authorization);
    const { fromMs, speed } = wanted;
    const toMs = Math.min(wanted.toMs, account.knownUntilMs);
    const copied = {
      durationMs: done.reduce((sum, { duration_seconds }) => sum + duration_seconds * 1000, 0),
      sizeBytes: done.reduce((sum, { size_bytes }) => sum + size_bytes, 0),
    };
    return {
      ...(speed === undefined ? copied : lapseEstimate(copied, speed)),
      gaps: gapsOfAll({ fromMs, toMs }, account.nodes, account.gaps, account.elsewhere),
      elsewhere: account.elsewhere,
      ...(toMs < wanted.toMs && { untilMs: toMs }),
    };
  }

  /**
   * Calls `ask` for the part of each node. A node that does not answer then counts as away, and the others are asked again.
   * `done` is undefined outside of a cluster, if this node has all footage, or if nobody has any.
   */
  async #ofEachTurn<T>(request: FastifyRequest, wanted: JobRequest, ask: (turn: NodeTurn) => Promise<T>) {
    const { gaps, nodeId, peers } = this.#deps;
    const { cameraId, fromMs, toMs } = wanted;
    let account = await gaps.ofAllNodes(cameraId, fromMs, toMs, askerOf(request));
    for (;;) {
      const turns = turnsOf(wanted, account.nodes);
      if (turns.length > MAX_TURNS) {
        const detail = `to: the footage changes between nodes more than ${MAX_TURNS} times: request shorter windows`;
        throw new ApiError(413, 'window-too-long', detail);
      }
      const isAlone = peers === undefined || turns.every((turn) => turn.nodeId === nodeId);
      if (isAlone) return { account, turns, done: undefined };
      try {
        return { account, turns, done: await Promise.all(turns.map(ask)) };
      } catch (err) {
        if (!(err instanceof PeerUnavailable)) throw err;
        account = without(err.nodeId, account);
      }
    }
  }

  async #part(request: FastifyRequest, wanted: JobRequest, turn: NodeTurn): Promise<z.output<typeof Submitted>> {
    const { jobs, nodeId } = this.#deps;
    const { cameraId, by } = wanted;
    if (turn.nodeId !== nodeId) return Submitted.parse(await this.#ask(request, cameraId, turn, 'as_part=1'));
    const { fromMs, toMs } = turn;
    const part: JobRequest = { kind: 'export', cameraId, fromMs, toMs, isPart: true, ...(by !== undefined && { by }) };
    return { job_id: (await available(jobs.submit(part, request.headers.authorization))).id };
  }

  async #estimateOf(
    request: FastifyRequest,
    { cameraId }: JobRequest,
    turn: NodeTurn,
  ): Promise<z.output<typeof Estimate>> {
    const { jobs, nodeId } = this.#deps;
    if (turn.nodeId !== nodeId) return Estimate.parse(await this.#ask(request, cameraId, turn, 'dry_run=1'));
    const { fromMs, toMs } = turn;
    const { authorization } = request.headers;
    const outcome = await jobs.estimate({ kind: 'export', cameraId, fromMs, toMs }, authorization);
    return { duration_seconds: outcome.durationMs / 1000, size_bytes: outcome.sizeBytes };
  }

  /** The answer of another node to a request for its part. Throws PeerUnavailable, ApiError. */
  async #ask(request: FastifyRequest, cameraId: string, turn: NodeTurn, query: string): Promise<unknown> {
    const { peers } = this.#deps;
    assert(peers, 'there are other nodes');
    const window = `from=${turn.fromMs / 1000}&to=${turn.toMs / 1000}`;
    const { status, body } = await peers.request(turn.nodeId, {
      listener: 'api',
      caller: { ...viewerOf(askerOf(request), cameraId), may: 'export' },
      method: 'POST',
      path: `/api/archive/${encodeURIComponent(cameraId)}/export?${window}&${query}`,
      headMs: ANSWER_MS,
    });
    const tooLong = (): Error => new PeerUnavailable(turn.nodeId, 'away', 'the answer is too long');
    const text = (await readBody(body, MAX_ANSWER_BYTES, tooLong)).toString();
    const answer = parsed(text) as { readonly code?: string; readonly detail?: string } | undefined;
    if (status === 200 || status === 202) return answer;
    const told = `the node ${turn.nodeId} refused its part: ${answer?.detail ?? `status ${status}`}`;
    if (status === 429) throw new ApiError(429, 'too-many-jobs', told);
    throw new PeerUnavailable(turn.nodeId, 'away', told);
  }
}

/** The same without the footage of a node that does not answer. */
function without(nodeId: string, account: ClusterAccount): ClusterAccount {
  const lost = account.nodes.find((node) => node.nodeId === nodeId)?.footage ?? [];
  const away = lost.map(({ fromMs, toMs }) => ({ nodeId, fromMs, toMs, isOnline: false }));
  return {
    ...account,
    nodes: account.nodes.filter((node) => node.nodeId !== nodeId),
    gaps: [...account.gaps, ...away.map(({ fromMs, toMs }) => ({ fromMs, toMs, cause: 'on-node-away' as const }))],
    elsewhere: [...account.elsewhere, ...away].sort((a, b) => a.fromMs - b.fromMs),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The status says enough.
    return undefined;
  }
}
