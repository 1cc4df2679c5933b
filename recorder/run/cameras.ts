// The cameras of a node: which are recorded, which may be recorded, and how users change them.

import { NO_CAMERA_THERE } from '../../base/networks.ts';
import { nodeFileSystem as fs } from '../archive/disk/file-system.ts';
import { NodeCameraEditor } from '../cameras/camera-editor.ts';
import { CameraSet } from '../cameras/camera-set.ts';
import { NodeCameraSwitch } from '../cameras/camera-switch.ts';
import { ReadPacer } from '../camera/read-pacer.ts';
import { SlabPool } from '../codec/slab.ts';
import type { Config } from '../config/schema.ts';
import type { RecorderDeps } from './deps.ts';
import { openCameraLogins } from './kept-logins.ts';
import { License } from '../license/license.ts';
import { forCameras } from './memory.ts';
import { CameraNetworks, type NetworkRules } from '../reach/networks.ts';
import { StandbySet } from '../cameras/standby-set.ts';
import type { Storage } from './storage.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';

export interface NodeCameras {
  readonly license: License;
  readonly pacer: ReadPacer;
  readonly reach: { readonly networks: CameraNetworks; readonly logins: Awaited<ReturnType<typeof openCameraLogins>> };
  readonly cameras: CameraSet;
  /** Cameras that other nodes record. */
  readonly standbys: StandbySet;
  readonly cameraSwitch: NodeCameraSwitch;
  /** Undefined when the configuration files are not known. */
  readonly cameraEditor: NodeCameraEditor | undefined;
}

const RECEIVE_BUFFER_BYTES = 64 * 1024;

export async function openCameras(
  config: Config,
  wanted: WantedCameras,
  storage: Storage,
  deps: RecorderDeps,
): Promise<NodeCameras> {
  const { clock, log } = deps;
  const { archive, gaps, events, registry, liveLimits, memory } = storage;
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
  const connecting = { clock, log, pool: new SlabPool(), pacer, reach, receiveBuffer };
  const standbys = new StandbySet({
    ...connecting,
    memory: storage.standbyMemory,
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
    state: events.cameraState,
    refusals: (candidates, running) => license.refusals(candidates, running),
  });
  const cameraSwitch = switchOf(config, wanted, storage, { license, cameras }, deps);
  const cameraEditor = editorOf(config, wanted, storage, { cameras, cameraSwitch }, deps);
  return { license, pacer, reach, cameras, standbys, cameraSwitch, cameraEditor };
}

function switchOf(
  { workDir }: Config,
  wanted: WantedCameras,
  { database }: Storage,
  { license, cameras }: Pick<NodeCameras, 'license' | 'cameras'>,
  { clock, log }: RecorderDeps,
): NodeCameraSwitch {
  return new NodeCameraSwitch({
    fs,
    workDir,
    files: () => wanted.files,
    ...(database && {
      database: {
        cameras: () => database.cameras.cameras,
        setEnabled: (id: string, enabled: boolean) => database.setCameraEnabled(id, enabled),
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

function editorOf(
  { cluster }: Config,
  wanted: WantedCameras,
  { database }: Storage,
  { cameras, cameraSwitch }: Pick<NodeCameras, 'cameras' | 'cameraSwitch'>,
  { configuration, clock }: RecorderDeps,
): NodeCameraEditor | undefined {
  if (!configuration) return undefined;
  return new NodeCameraEditor({
    fs,
    configFile: configuration.file,
    reload: configuration.reload,
    ...(database && {
      database: {
        row: (id: string) => database.cameraRow(id),
        edit: (id, change) => database.editCamera(id, change),
      },
    }),
    ...(cluster.mode !== 'none' && { cluster: { has: (id) => cameras.config(id) !== undefined, mode: cluster.mode } }),
    apply: () => wanted.apply(),
    forget: (id) => cameraSwitch.forget(id),
    clock,
  });
}

/** In a cluster, the users that write Cameras do not own the network. */
export function networksOf({ cameraNetworks, cluster }: Config): NetworkRules {
  const refused = cluster.mode === 'none' ? [] : [...NO_CAMERA_THERE, ...cluster.networks];
  return { only: cameraNetworks, refused };
}
