// An engine, composed of its parts: it records, and it needs no listener, no account and no database for that.

import { errorCode, messageOf } from '../../base/error.ts';
import type { Archive } from '../archive/archive.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';
import { ConfigError } from '../config/error.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { Config } from '../config/schema.ts';
import { SourceLimits } from '../live/source-limits.ts';
import { Doctor } from '../probe/doctor.ts';
import { openArchive } from './archive.ts';
import { openCameras } from './cameras.ts';
import type { EngineDeps } from './deps.ts';
import { openEdgeRecovery } from './edge-recovery.ts';
import { Errands } from './errands.ts';
import { Holds } from './holds.ts';
import { forSnapshots, forStandbys } from './memory.ts';

export type OpenedEngine = Awaited<ReturnType<typeof openEngine>>;

/** Creates the parts; neither the archive nor a camera is touched. */
export async function openEngine(current: CurrentConfig, wanted: WantedCameras, deps: EngineDeps) {
  const config = current.value;
  // Opened before the memory for writing: they are released before it.
  const liveLimits = new SourceLimits({}, deps.memory);
  const snapshotMemory = forSnapshots(deps.memory);
  const standbyMemory = forStandbys(deps.memory);
  const { archive, gaps } = await openArchive(current, wanted, deps);
  const node = await openCameras(config, wanted, { archive, gaps, liveLimits, standbyMemory }, deps);
  const { cameras, reach } = node;
  const recovery = openEdgeRecovery(config, wanted, { archive, gaps, registry: deps.registry }, node, deps);
  const holds = new Holds({ ...deps, cameras });
  const { clock, log, version, front } = deps;
  const errands = new Errands(config, { cameras, reach, keep: front.keep, memory: snapshotMemory, clock, log });
  return {
    ...node,
    wanted,
    archive,
    gaps,
    recovery,
    errands,
    examiner: new Doctor({ clock, version, find: (id) => cameras.observed(id), reach }),
    warnings: () => [...archive.warnings(), ...reach.logins.warnings(), ...holds.warnings()],
    /** To be called four times a second. */
    tick() {
      holds.tick();
      cameras.tick();
      archive.tick();
      recovery.tick();
      errands.tick();
    },
  };
}

/** The record path may be missing or foreign for a while, but not unusable. */
export async function recovered(archive: Archive, { recordPath }: Config): Promise<void> {
  try {
    await archive.recover();
  } catch (err) {
    if (errorCode(err) === undefined) throw err;
    throw new ConfigError('', 'record_path', `${recordPath} cannot be used: ${messageOf(err)}`);
  }
}
