// What the front keeps: events, what other systems tell of cameras, and the rows of a database.

import type { Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryBudget } from '../../base/memory-budget.ts';
import { DAY_MS } from '../../base/units.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { RecorderDatabase } from '../database/database.ts';
import { Happenings } from '../happenings/happenings.ts';
import type { EngineArchive } from '../model/engine.ts';
import { openEvents, type NodeEvents } from './events.ts';
import { forAnswers, type AnswerMemory } from './memory.ts';

export interface FrontStorage {
  readonly events: NodeEvents;
  readonly answers: AnswerMemory;
  readonly database: RecorderDatabase | undefined;
}

interface StorageDeps {
  readonly registry: Registry;
  readonly memory: MemoryBudget;
  readonly version: string;
  /** Called when the cameras of the database have changed. */
  readonly camerasChanged: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** The database is not touched until it is opened. */
export async function openFrontStorage(config: CurrentConfig, deps: StorageDeps): Promise<FrontStorage> {
  const events = await openEvents(config.value, deps);
  const answers = forAnswers(deps.memory);
  return { events, answers, database: await openDatabase(config, deps) };
}

/** Resolves to undefined for a recorder without a database. */
async function openDatabase(
  config: CurrentConfig,
  { registry, camerasChanged, clock, log }: StorageDeps,
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
    camerasChanged,
  });
}

/** What was told of a camera without footage is kept for so long, unless its footage should be kept for less. */
const KEPT_MS = 400 * DAY_MS;

interface BesideFootage {
  readonly archive: EngineArchive;
  readonly clock: Clock;
  readonly log: Log;
}

/** The lines of alarms. */
export const openAlarmLines = ({ archive, clock, log }: BesideFootage): Happenings =>
  new Happenings({
    root: archive.stateRoot,
    directory: '.kube-nvr/alarms',
    fs: nodeFileSystem,
    clock,
    log,
    checkDisk: () => archive.checkDisk(),
    keptFromMs: () => clock.wallMs() - KEPT_MS,
    told: () => {},
  });

interface HappeningsDeps extends BesideFootage {
  readonly told: NodeEvents['happened'];
}

export const openHappenings = ({ archive, told, clock, log }: HappeningsDeps): Happenings =>
  new Happenings({
    root: archive.stateRoot,
    fs: nodeFileSystem,
    clock,
    log,
    checkDisk: () => archive.checkDisk(),
    keptFromMs: (cameraId) => keptFromMs({ archive, clock }, cameraId),
    told,
  });

/** Since when what belongs to footage of a camera is kept. */
export async function keptFromMs(
  { archive, clock }: Pick<BesideFootage, 'archive' | 'clock'>,
  cameraId: string,
): Promise<number> {
  return (await archive.keptFromMs(cameraId)) ?? clock.wallMs() - (archive.keeping?.wantedMs(cameraId) ?? KEPT_MS);
}
