// The storage of a recorder: the archive with its gaps, the database that lists it, and the events.

import { Registry } from 'prom-client';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { memoryLimit } from '../../base/memory-limit.ts';
import { DAY_MS } from '../../base/units.ts';
import { Archive } from '../archive/archive.ts';
import { allOf, type SegmentObserver } from '../archive/catalogue/observer.ts';
import { readBootId } from '../archive/gaps/alive.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { GapLedger } from '../archive/gaps/ledger.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { RecorderDatabase } from '../database/database.ts';
import type { RecorderDeps } from './deps.ts';
import { Happenings } from '../happenings/happenings.ts';
import { LiveLimits } from '../live/limits.ts';
import { forAnswers, forStandbys, forWriting, mediaBytes, registerMemoryMetrics, type AnswerMemory } from './memory.ts';
import { openEvents, type NodeEvents } from './events.ts';
import { registerLogMetrics } from './logs.ts';
import type { ArchiveOwner } from './owner.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';

export interface Storage {
  /** Metrics of the whole recorder. */
  readonly registry: Registry;
  readonly memory: MemoryBudget;
  readonly liveLimits: LiveLimits;
  readonly answers: AnswerMemory;
  /** Opens the account of cameras that are held for other nodes. */
  readonly standbyMemory: ReturnType<typeof forStandbys>;
  readonly events: NodeEvents;
  readonly database: RecorderDatabase | undefined;
  readonly archive: Archive;
  readonly gaps: GapLedger;
  readonly happenings: Happenings;
}

/** What was told of a camera without footage is kept for so long, unless its footage should be kept for less. */
const KEPT_MS = 400 * DAY_MS;

/** Creates the parts; archive and database are not touched until they are started. */
export async function openStorage(
  config: CurrentConfig,
  wanted: WantedCameras,
  deps: RecorderDeps & { readonly owner: ArchiveOwner },
): Promise<Storage> {
  const { clock, log, version } = deps;
  const { workDir, recordPath: root, archive: settings } = config.value;
  const registry = new Registry();
  const memory = new MemoryBudget(mediaBytes(memoryLimit()));
  registerMemoryMetrics(registry, memory);
  registerLogMetrics(registry, deps.logLevels);
  const liveLimits = new LiveLimits({}, memory);
  const events = await openEvents(config.value, { clock, log, memory, version });
  const answers = forAnswers(memory);
  const standbyMemory = forStandbys(memory);
  const database = await openDatabase(config, wanted, registry, deps);
  const observers: SegmentObserver[] = [];
  const archive = new Archive({
    root,
    clock,
    log,
    syncIntervalMs: settings.syncIntervalMs,
    registry,
    observer: allOf(observers),
    workDir,
    ...deps.owner,
    limits: () => wanted.limits,
    epochOf: (cameraId) => wanted.epochOf(cameraId),
    memory: forWriting(memory),
  });
  const gaps = new GapLedger({
    root,
    clock,
    log,
    bootId: await readBootId(),
    registry,
    observerOf: events.gapsOf,
    checkDisk: () => archive.checkDisk(),
  });
  const happenings = new Happenings({
    root,
    fs: nodeFileSystem,
    clock,
    log,
    checkDisk: () => archive.checkDisk(),
    keptFromMs(cameraId) {
      // What is on the disk is not known: nothing is removed.
      if (archive.fault || archive.catalogue.problem !== undefined) return -Infinity;
      const [oldest] = archive.catalogue.oldestFirst(cameraId);
      return oldest?.segment.startMs ?? clock.wallMs() - (archive.keeping?.wantedMs(cameraId) ?? KEPT_MS);
    },
    told: events.happened,
  });
  observers.push(gaps, ...(database ? [database] : []));
  return { registry, memory, liveLimits, answers, standbyMemory, events, database, archive, gaps, happenings };
}

/** Resolves to undefined for a recorder without a database. */
async function openDatabase(
  config: CurrentConfig,
  wanted: WantedCameras,
  registry: Registry,
  { clock, log }: RecorderDeps,
): Promise<RecorderDatabase | undefined> {
  const { database, nodeName, workDir, cluster } = config.value;
  if (!database) return undefined;
  // Loaded only when a database is configured.
  const { RecorderDatabase } = await import('../database/database.ts');
  return new RecorderDatabase({
    url: database.url,
    nodeName,
    workDir,
    defaults: () => config.value.archive,
    listAllNodes: cluster.mode !== 'none',
    clock,
    log,
    registry,
    camerasChanged: () => wanted.changed(),
  });
}
