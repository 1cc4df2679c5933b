// What all nodes of a cluster know of a camera in an interval: footage and gaps. The other nodes that may have footage of it are
// asked; one that does not answer is named with the time of which it may have footage.

import { z } from 'zod';
import type { Interval } from '../../base/interval.ts';
import type { Log } from '../../base/log.ts';
import type { Archive } from '../archive/archive.ts';
import type { GapReport } from '../archive/gaps/camera-ledger.ts';
import { isGapCause } from '../archive/gaps/cause.ts';
import {
  causesIn,
  elsewhereIn,
  NO_OTHER_NODES,
  withElsewhere,
  type NodeAccount,
  type OtherNodes,
} from '../footage/elsewhere.ts';
import { IntervalSet } from '../archive/gaps/intervals.ts';
import type { GapLedger } from '../archive/gaps/ledger.ts';
import type { ClusterAccount, NodeReport, ReportWithElsewhere } from '../api/deps.ts';
import type { Collector } from '../footage/collect.ts';
import { countedTime } from '../footage/turns.ts';
import { holdersIn, silentAt, type Elsewhere, type FootageHolder } from '../footage/holders.ts';
import type { Asker, PeerSender } from '../peers/peer-requests.ts';
import { viewerOf, wholeAnswer, type WholeAnswer } from '../peers/whole-answer.ts';

interface FootageOfNodesOptions {
  readonly nodeId: string;
  readonly archive: Pick<Archive, 'list'>;
  readonly gaps: Pick<GapLedger, 'report'>;
  readonly collector: Collector;
  /** Undefined outside of a cluster. */
  readonly cluster:
    | { readonly peers: PeerSender; readonly holders: (cameraId: string) => Promise<readonly FootageHolder[]> }
    | undefined;
  readonly log: Log;
}

/** Names of files and times of pictures deviate by this much. */
const HOLE_MS = 100;
const ANSWER_MS = 5_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

const Stretch = z.object({ start_ms: z.number(), end_ms: z.number() });
const Answer = z
  .object({
    known_until_ms: z.number(),
    gaps: z.array(Stretch.extend({ cause: z.string(), filled_from: z.string().optional() })),
    footage: z.array(Stretch),
  })
  .transform(({ known_until_ms, gaps, footage }): Account => ({
    footage: footage.map(toInterval),
    gaps: gaps
      .filter(({ filled_from }) => filled_from === undefined)
      .map((gap) => ({ ...toInterval(gap), cause: isGapCause(gap.cause) ? gap.cause : 'unknown' })),
    knownUntilMs: known_until_ms,
  }));

export class FootageOfNodes {
  readonly #o: FootageOfNodesOptions;

  constructor(options: FootageOfNodesOptions) {
    this.#o = options;
  }

  /** What this node knows. Throws ArchiveError. */
  async ofThisNode(cameraId: string, fromMs: number, toMs: number): Promise<NodeReport> {
    const { archive, gaps } = this.#o;
    const { segments } = await archive.list(cameraId, { fromMs, toMs });
    const closed = segments.flatMap(({ startMs, endMs }) =>
      endMs === undefined ? [] : [{ fromMs: startMs, toMs: Math.round(endMs) }],
    );
    const report = gaps.report(cameraId, fromMs, toMs, closed);
    return { ...report, footage: footageIn(report, segments) };
  }

  /** The same, with the causes of gaps whose footage is on other nodes. */
  async report(cameraId: string, fromMs: number, toMs: number, by: Asker): Promise<ReportWithElsewhere> {
    const own = await this.ofThisNode(cameraId, fromMs, toMs);
    const others = await this.#others(cameraId, own, by);
    const elsewhere = elsewhereIn({ fromMs, toMs: own.knownUntilMs }, own, others);
    return { ...own, gaps: withElsewhere(own.gaps, elsewhere), elsewhere };
  }

  /** What counts of the footage of each node, and the gaps that are left when all of it counts. */
  async ofAllNodes(cameraId: string, fromMs: number, toMs: number, by: Asker): Promise<ClusterAccount> {
    const [own, { footage }] = await Promise.all([
      this.ofThisNode(cameraId, fromMs, toMs),
      this.#o.collector.collect(cameraId, { fromMs, toMs }, by),
    ]);
    const others = await this.#others(cameraId, own, by);
    const nodes = [{ nodeId: this.#o.nodeId, ...own }, ...others.answered];
    const knownUntilMs = Math.min(...nodes.map((node) => node.knownUntilMs));
    const all: NodeAccount = {
      footage: nodes.flatMap(({ footage }) => footage),
      gaps: nodes.flatMap(({ gaps }) => gaps),
    };
    const elsewhere = elsewhereIn({ fromMs, toMs: knownUntilMs }, all, { answered: [], away: others.away });
    return {
      // What is played counts, so that an export has the same pictures: of two nodes, those of the higher epoch.
      nodes: Array.from(
        Map.groupBy(footage, ({ nodeId }) => nodeId || this.#o.nodeId),
        ([nodeId, files]) => ({
          nodeId,
          footage: Array.from(setOf(files.map(countedTime))),
        }),
      ),
      gaps: causesIn({ gaps: withElsewhere(all.gaps, elsewhere), elsewhere }).filter(
        ({ cause }) => cause !== 'unknown',
      ),
      elsewhere,
      knownUntilMs,
    };
  }

  /** Nobody is asked if this node has all footage. */
  async #others(cameraId: string, own: NodeReport, by: Asker): Promise<OtherAccounts> {
    const { cluster } = this.#o;
    const { fromMs, knownUntilMs, footage } = own;
    const isWhole = ![...setOf(footage).holes(fromMs, knownUntilMs)].some((hole) => hole.toMs - hole.fromMs >= HOLE_MS);
    if (!cluster || isWhole) return { ...NO_OTHER_NODES, answered: [] };
    const holders = holdersIn(await cluster.holders(cameraId), own);
    const answered: OtherAccounts['answered'][number][] = [];
    const away: Elsewhere[] = [];
    await Promise.all(
      holders.map(async (holder) => {
        const answer = await this.#ask(cluster.peers, holder, cameraId, own, by);
        if (answer.kind === 'answer') answered.push({ nodeId: holder.nodeId, ...answer.value });
        else away.push(silentAt(holder, own, answer));
      }),
    );
    return { answered, away };
  }

  async #ask(
    peers: PeerSender,
    { nodeId, isOnline }: FootageHolder,
    cameraId: string,
    { fromMs, toMs }: Interval,
    by: Asker,
  ): Promise<WholeAnswer<Account>> {
    if (isOnline === false) return { kind: 'away' };
    const query = `from=${fromMs / 1000}&to=${toMs / 1000}&local=1&footage=1`;
    const request = {
      listener: 'api',
      caller: viewerOf({ name: by.name || this.#o.nodeId, credential: by.credential }, cameraId),
      path: `/api/archive/${encodeURIComponent(cameraId)}/gaps?${query}`,
      headMs: ANSWER_MS,
    } as const;
    return wholeAnswer({ peers, log: this.#o.log }, nodeId, request, MAX_ANSWER_BYTES, Answer);
  }
}

interface Account extends NodeAccount {
  readonly knownUntilMs: number;
}

interface OtherAccounts extends OtherNodes {
  readonly answered: readonly (Account & { readonly nodeId: string })[];
}

/** Recorded time that is in a file: retention may have removed the file. */
function footageIn(
  { recorded }: GapReport,
  files: readonly { readonly startMs: number; readonly endMs?: number | undefined }[],
): Interval[] {
  const inFiles = setOf(files.map(({ startMs, endMs = Infinity }) => ({ fromMs: startMs, toMs: Math.round(endMs) })));
  return recorded.flatMap(({ fromMs, toMs }) =>
    Array.from(inFiles.overlapping(fromMs, toMs), (file) => ({
      fromMs: Math.max(fromMs, file.fromMs),
      toMs: Math.min(toMs, file.toMs),
    })),
  );
}

const setOf = (intervals: Iterable<Interval>): IntervalSet => new IntervalSet(HOLE_MS - 1).with(intervals);

const toInterval = ({ start_ms, end_ms }: z.output<typeof Stretch>): Interval => ({ fromMs: start_ms, toMs: end_ms });
