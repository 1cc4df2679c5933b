// What all nodes of a cluster know of a camera in an interval: footage and gaps. The other nodes that may have footage of it are
// asked; one that does not answer is named with the time of which it may have footage.

import type { Interval } from '../../base/interval.ts';
import type { Gap, GapReport, GapReporter } from '../contract/gap-report.ts';
import { MIN_GAP_MS } from '../mp4/join.ts';
import type { GapCause } from '../contract/gap-cause.ts';
import { IntervalSet } from '../contract/intervals.ts';
import type { Asker } from '../peers/peer-requests.ts';
import type { Collector } from './collect.ts';
import {
  causesIn,
  elsewhereIn,
  NO_OTHER_NODES,
  setOf,
  withElsewhere,
  type NodeAccount,
  type OtherNodes,
} from './elsewhere.ts';
import type { OwnArchive } from './own-footage.ts';
import { silentAt, type Elsewhere } from './holders.ts';
import type { TimelineCamera } from './timeline-item.ts';

/** Gaps of a camera, and its footage in files of this node. */
export interface NodeReport extends GapReport {
  readonly footage: readonly Interval[];
}

export interface ReportWithElsewhere extends NodeReport {
  readonly elsewhere: readonly Elsewhere[];
}

/** What all nodes know of a camera in an interval. */
interface ClusterAccount {
  /** Time without footage on any node, as far as a cause is known. */
  readonly gaps: readonly (Interval & { readonly cause: GapCause })[];
  /** Footage that nodes may have which did not answer. */
  readonly elsewhere: readonly Elsewhere[];
  readonly knownUntilMs: number;
}

interface FootageOfNodesOptions {
  readonly nodeId: string;
  readonly gaps: GapReporter;
  readonly collector: Pick<Collector, 'others'> & {
    readonly own: { readonly archive: Pick<OwnArchive, 'list'> };
  };
}

export class FootageOfNodes {
  readonly #options: FootageOfNodesOptions;

  constructor(options: FootageOfNodesOptions) {
    this.#options = options;
  }

  /** What this node knows. Throws ArchiveError. */
  async ofThisNode(cameraId: string, fromMs: number, toMs: number): Promise<NodeReport> {
    const { collector, gaps } = this.#options;
    const { segments } = await collector.own.archive.list(cameraId, { fromMs, toMs });
    const closed = segments.flatMap(({ startMs, endMs }) =>
      endMs === undefined ? [] : [{ fromMs: startMs, toMs: Math.round(endMs) }],
    );
    const report = await gaps.report(cameraId, fromMs, toMs, closed);
    return { ...report, footage: footageIn(report, segments) };
  }

  /** The same, with the causes of gaps whose footage is on other nodes. */
  async report(cameraId: string, fromMs: number, toMs: number, by: Asker): Promise<ReportWithElsewhere> {
    const own = await this.ofThisNode(cameraId, fromMs, toMs);
    const others = await this.#others(cameraId, own, by);
    const elsewhere = elsewhereIn({ fromMs, toMs: own.knownUntilMs }, own, others);
    const gone = gapsOfGone(own, others);
    return {
      ...own,
      gaps: [...withElsewhere(own.gaps, elsewhere), ...gone].sort((a, b) => a.fromMs - b.fromMs),
      wantedMs: own.wantedMs + gone.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0),
      elsewhere,
    };
  }

  /** The gaps that are left when the footage of all nodes counts. */
  async ofAllNodes(cameraId: string, fromMs: number, toMs: number, by: Asker): Promise<ClusterAccount> {
    const own = await this.ofThisNode(cameraId, fromMs, toMs);
    const others = await this.#others(cameraId, own, by);
    const nodes = [own, ...others.answered];
    const knownUntilMs = Math.min(...nodes.map((node) => node.knownUntilMs));
    const all = {
      footage: nodes.flatMap(({ footage }) => footage),
      gaps: nodes.flatMap(({ gaps }): NodeAccount['gaps'] => gaps),
    };
    const elsewhere = elsewhereIn({ fromMs, toMs: knownUntilMs }, all, { answered: [], away: others.away });
    return {
      gaps: causesIn({ gaps: withElsewhere(all.gaps, elsewhere), elsewhere }).filter(
        ({ cause }) => cause !== 'unknown',
      ),
      elsewhere,
      knownUntilMs,
    };
  }

  /** Nobody is asked if this node has all footage. */
  async #others(cameraId: string, own: NodeReport, by: Asker): Promise<OtherAccounts> {
    const { fromMs, toMs, knownUntilMs, footage } = own;
    const isWhole = ![...setOf(footage).holes(fromMs, knownUntilMs)].some(
      (hole) => hole.toMs - hole.fromMs >= MIN_GAP_MS,
    );
    if (isWhole) return { ...NO_OTHER_NODES, answered: [] };
    const holders = await this.#options.collector.others(cameraId, own);
    const asked = { cameraIds: [cameraId], interval: { fromMs, toMs }, resolutionMs: 0, preview: false };
    const answered: OtherAccounts['answered'][number][] = [];
    const away: Elsewhere[] = [];
    await Promise.all(
      holders.map(async (holder) => {
        const answer = await holder.times(asked, { ...by, name: by.name || this.#options.nodeId });
        if (answer.kind !== 'answer') away.push(silentAt(holder, own, answer));
        else
          for (const camera of answer.value)
            answered.push({ nodeId: holder.nodeId, copiesAt: holder.copiesAt, ...accountOf(camera) });
      }),
    );
    return { answered, away };
  }
}

interface OtherAccounts extends OtherNodes {
  readonly answered: readonly (ReturnType<typeof accountOf> & {
    readonly nodeId: string;
    readonly copiesAt: string | undefined;
  })[];
}

/** Of accounts that lie beside copies, the gaps of which no node that answers tells: the node that knew them is gone. */
function gapsOfGone(own: NodeReport, { answered }: OtherAccounts): Gap[] {
  const told = setOf([...own.recorded, ...own.footage, ...own.gaps, ...answered.flatMap(({ footage }) => footage)]);
  for (const { copiesAt, gaps } of answered)
    if (copiesAt === undefined) for (const one of gaps) told.add(one.fromMs, one.toMs);
  const found: Gap[] = [];
  for (const gap of answered.flatMap(({ copiesAt, gaps }) => (copiesAt === undefined ? [] : gaps))) {
    for (const part of told.holes(Math.max(gap.fromMs, own.fromMs), Math.min(gap.toMs, own.knownUntilMs))) {
      if (part.toMs - part.fromMs >= MIN_GAP_MS) found.push({ ...gap, ...part, isOpen: false, isProvisional: false });
    }
    told.add(gap.fromMs, gap.toMs);
  }
  return found;
}

/** What a holder tells of a camera. */
export const accountOf = ({ spans, gaps, known_until_ms }: TimelineCamera) => ({
  footage: spans.map(toInterval),
  gaps: gaps.map((gap) => ({ ...toInterval(gap), cause: gap.cause })),
  knownUntilMs: known_until_ms,
});

/** What all nodes together know of a camera. Sorted and disjoint. */
export interface Account {
  /** On disks. */
  readonly footage: readonly Interval[];
  /** Also what retention has removed since. */
  readonly recorded: readonly Interval[];
  readonly gaps: readonly (Interval & { readonly cause: GapCause })[];
  /** Those that did not answer: they may have footage for these gaps, and know of others. */
  readonly silent: readonly string[];
}

/** What one place told; `copiesAt`: with the copies of a node that may be gone. */
export interface ToldAccount {
  readonly nodeId: string;
  readonly copiesAt?: string | undefined;
  readonly camera: TimelineCamera;
}

/** The same at every node that is told the same. Of two causes of a gap, that of the node with the lesser id counts. */
export function accountOfAll({ fromMs, toMs }: Interval, told: readonly ToldAccount[]): Omit<Account, 'silent'> {
  const inOrder = [...told].sort(
    (a, b) => Number(a.copiesAt !== undefined) - Number(b.copiesAt !== undefined) || (a.nodeId < b.nodeId ? -1 : 1),
  );
  const knownUntilMs = Math.min(
    toMs,
    ...inOrder.filter(({ copiesAt }) => copiesAt === undefined).map(({ camera }) => camera.known_until_ms),
  );
  const cut = (all: readonly Interval[]): Interval[] => [
    ...setOf(all.map((one) => ({ fromMs: Math.max(one.fromMs, fromMs), toMs: Math.min(one.toMs, knownUntilMs) }))),
  ];
  const footage = cut(inOrder.flatMap(({ camera }) => camera.spans.map(toInterval)));
  // Nodes of an older version do not tell what was removed.
  const recorded = cut(
    inOrder.flatMap(({ camera: { spans, written = [] } }) => [...spans, ...written].map(toInterval)),
  );
  const taken = new IntervalSet().with(recorded);
  const gaps: (Interval & { readonly cause: GapCause })[] = [];
  for (const { cause, ...gap } of inOrder.flatMap(({ camera }) => accountOf(camera).gaps)) {
    for (const hole of taken.holes(Math.max(gap.fromMs, fromMs), Math.min(gap.toMs, knownUntilMs)))
      gaps.push({ ...hole, cause });
    taken.add(gap.fromMs, gap.toMs);
  }
  return { footage, recorded, gaps: gaps.sort((a, b) => a.fromMs - b.fromMs) };
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

const toInterval = ({ start_ms, end_ms }: { readonly start_ms: number; readonly end_ms: number }): Interval => ({
  fromMs: start_ms,
  toMs: end_ms,
});
