// The cameras of an engine: which are recorded, and which may be recorded.

import { NO_CAMERA_THERE } from '../../base/networks.ts';
import { nodeFileSystem as fs } from '../archive/disk/file-system.ts';
import { CameraSet } from '../cameras/camera-set.ts';
import { NodeCameraSwitch } from '../cameras/camera-switch.ts';
import { ReadPacer } from '../camera/read-pacer.ts';
import type { Config } from '../config/schema.ts';
import { openCameraLogins } from './kept-logins.ts';
import { License } from '../license/license.ts';
import type { EngineDeps } from './deps.ts';
import { stateNews } from './news.ts';
import { blocksIn, forCameras, type forStandbys } from './memory.ts';
import type { SourceLimits } from '../live/source-limits.ts';
import type { Archive } from '../archive/archive.ts';
import type { GapLedger } from '../archive/gaps/ledger.ts';
import { CameraNetworks, type NetworkRules } from '../reach/networks.ts';
import { StandbySet } from '../cameras/standby-set.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';

export interface NodeCameras {
  readonly license: License;
  readonly pacer: ReadPacer;
  readonly reach: { readonly networks: CameraNetworks; readonly logins: Awaited<ReturnType<typeof openCameraLogins>> };
  readonly cameras: CameraSet;
  /** Cameras that other nodes record. */
  readonly standbys: StandbySet;
  readonly cameraSwitch: NodeCameraSwitch;
}

const RECEIVE_BUFFER_BYTES = 64 * 1024;

interface Recorded {
  readonly archive: Archive;
  readonly gaps: GapLedger;
  readonly liveLimits: SourceLimits;
  /** Opens the account of cameras that are held for other nodes. */
  readonly standbyMemory: ReturnType<typeof forStandbys>;
}

export async function openCameras(
  config: Config,
  wanted: WantedCameras,
  { archive, gaps, liveLimits, standbyMemory }: Recorded,
  deps: EngineDeps,
): Promise<NodeCameras> {
  const { registry, memory, front, clock, log } = deps;
  const license = new License({
    ...config.license,
    wanted: () => wanted.enabledCount,
    changed: () => wanted.changed(),
    registry,
    clock,
    log,
  });
  const pacer = new ReadPacer();
  const reach = {
    networks: new CameraNetworks(networksOf(config)),
    logins: await openCameraLogins({ fs, workDir: config.workDir, clock, log }),
  };
  const receiveBuffer = Buffer.allocUnsafeSlow(RECEIVE_BUFFER_BYTES);
  const connecting = { clock, log, pool: blocksIn(memory), pacer, reach, receiveBuffer };
  const standbys = new StandbySet({
    ...connecting,
    memory: standbyMemory,
    recordingOf: ({ id, name, record }) =>
      archive.sinkFor({ cameraId: id, name, ...record }, { needKeyFrame: () => {} }),
  });
  const cameras = new CameraSet({
    ...connecting,
    archive,
    gaps,
    standbys,
    wantedFromMs: (cameraId) => wanted.fromMs(cameraId),
    liveLimits,
    memory: forCameras(memory),
    state: stateNews(front.tell),
    refusals: (candidates, running) => license.refusals(candidates, running),
  });
  const cameraSwitch = switchOf(config, wanted, { license, cameras }, deps);
  return { license, pacer, reach, cameras, standbys, cameraSwitch };
}

function switchOf(
  { workDir }: Config,
  wanted: WantedCameras,
  { license, cameras }: Pick<NodeCameras, 'license' | 'cameras'>,
  { rows, clock, log }: EngineDeps,
): NodeCameraSwitch {
  return new NodeCameraSwitch({
    fs,
    workDir,
    files: () => wanted.files,
    ...(rows && {
      database: {
        cameras: () => rows.cameras.cameras,
        setEnabled: (id: string, enabled: boolean) => rows.setCameraEnabled(id, enabled),
      },
    }),
    refusal(cameraId) {
      const candidates = wanted.list().cameras.filter(({ id, enabled }) => enabled || id === cameraId);
      return license.refusals(candidates, cameras.running()).get(cameraId);
    },
    apply: () => wanted.apply(),
    clock,
    log,
  });
}

/** In a cluster, the users that write Cameras do not own the network. */
export function networksOf({ cameraNetworks, cluster }: Config): NetworkRules {
  const refused = cluster.mode === 'none' ? [] : [...NO_CAMERA_THERE, ...cluster.networks];
  return { only: cameraNetworks, refused };
}
