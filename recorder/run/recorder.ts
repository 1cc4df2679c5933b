// One recorder, composed of its parts: archive, cameras, live streams, HTTP. Two recorders can run in one process.

import { cameraOfFootage } from '../../base/camera-id.ts';
import { errorCode, messageOf } from '../../base/error.ts';
import type { PodPlace } from '../../base/kubernetes/pod-place.ts';
import type { Log } from '../../base/log.ts';
import type { Archive } from '../archive/archive.ts';
import { Parts, type Part } from '../../base/parts.ts';
import type { CameraSet } from '../cameras/camera-set.ts';
import type { CameraSwitch } from '../contract/camera-switch.ts';
import type { ClusterMember } from './member.ts';
import type { Asked } from '../config/changes.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import { CurrentConfig } from '../config/current-config.ts';
import { openEdgeRecovery } from './edge-recovery.ts';
import type { RecorderDeps } from './deps.ts';
import { todoOf } from '../api/todo.ts';
import { plainListeners } from '../config/exposure.ts';
import type { OwnCertificate } from '../http/own-certificate.ts';
import { adminLink, reachable } from '../http/admin-code.ts';
import { EndedSessions } from '../http/ended-sessions.ts';
import { publicKeyOf } from '../http/seal.ts';
import { ownKey } from '../http/seal-key.ts';
import { openAccess } from './access.ts';
import { openAudit } from './audit.ts';
import { openCameras } from './cameras.ts';
import { NodeWebhooks } from './node-webhooks.ts';
import { takeState, type ArchiveOwner } from './owner.ts';
import { reload } from './reload.ts';
import type { ServersCluster } from './servers.ts';
import { Serving } from './serving.ts';
import type { RowTable } from '../database/row-table.ts';
import { openStorage, type Storage } from './storage.ts';
import type { StandbySet } from '../cameras/standby-set.ts';
import { Ticks } from './ticks.ts';
import { openOwnCertificate, readTrust } from './trust.ts';
import { WantedCameras } from '../cameras/wanted-cameras.ts';
import { registerVoteMetrics } from './vote-metrics.ts';
import { registerWebhookMetrics } from './webhook-metrics.ts';

const TICK_MS = 250;

type OwnerDeps = RecorderDeps & { readonly owner: ArchiveOwner };

export interface Recorder {
  /** The address of the API, for tests that use port 0. */
  readonly address: string;
  /** The address of playback. */
  readonly playbackAddress: string;
  readonly cameras: CameraSet;
  /** The routes of each listener, such as `GET /api/cameras`. */
  readonly routes: Readonly<Record<'api' | 'playback' | 'metrics', readonly string[]>>;
  /** See `reload`. */
  reload(load: () => Promise<Config>, asked: Asked): Promise<void>;
  /** Closes all sessions, completes every file and stops listening. */
  close(): Promise<void>;
}

/** Starts everything in `config`. Rejects when an address is in use or the archive cannot be used. */
export async function startRecorder(config: Config, deps: RecorderDeps): Promise<Recorder> {
  // Before anything in it is read: another recorder could change the files of the directory.
  const { lock, owner } = await takeState(config, deps);
  try {
    const recorder = await startAlone(config, { ...deps, owner });
    return {
      ...recorder,
      async close() {
        await recorder.close();
        lock.release();
      },
    };
  } catch (err) {
    lock.release();
    throw err;
  }
}

async function startAlone(config: Config, deps: OwnerDeps): Promise<Recorder> {
  const made = await compose(config, deps);
  const { current, wanted, database, events, webhooks, license, cameras, reach, access, serving } = made;
  const { log, logLevels, version } = deps;
  const parts = new Parts(partsOf(config, made, deps));
  await parts.start();
  const { address, playbackAddress, routes } = serving;
  const { nodeName: node, recordPath } = config;
  log.info({ version, node, address, cameras: cameras.list().length, recordPath }, 'recorder started');
  const { auth, issuers, firstCode } = access;
  if (firstCode) await tellFirstLink(firstCode, address, log);
  const { networks } = reach;
  const { journal } = events;
  return {
    address,
    playbackAddress,
    cameras,
    routes,
    reload: (load, asked) =>
      reload(load, asked, {
        current,
        auth,
        issuers,
        networks,
        database,
        license,
        wanted,
        webhooks,
        journal,
        logLevels,
        log,
      }),
    async close() {
      await parts.close();
      log.info({}, 'recorder stopped');
    },
  };
}

/** Nobody can sign in yet, apart from the owner of the admin token. Only people who run the recorder read its log. */
async function tellFirstLink(firstCode: NonNullable<Made['access']['firstCode']>, address: string, log: Log) {
  try {
    const code = await firstCode();
    if (code === undefined) return;
    const link = adminLink(reachable(address), code);
    log.info({ link }, 'no user is configured: open this link within 24 hours to make the first admin');
  } catch (err) {
    log.warn({ problem: messageOf(err) }, 'a link for the first admin cannot be made: run "recorder admin-link"');
  }
}

type Made = Awaited<ReturnType<typeof compose>>;

/** Creates the parts from top to bottom, each from the previous ones. */
async function compose(config: Config, deps: OwnerDeps) {
  const { clock, log } = deps;
  const current = new CurrentConfig(config);
  const wanted = new WantedCameras(current, log);
  const storage = await openStorage(current, wanted, deps);
  const { archive, database, events, happenings, registry } = storage;
  const webhooks = new NodeWebhooks({ workDir: config.workDir, journal: events.journal, clock, log });
  // Even without webhooks: metrics are registered once, and the first webhook may come with a reload.
  registerWebhookMetrics(registry, () => webhooks.list);
  const node = await openCameras(config, wanted, storage, deps);
  const { cameras, standbys, cameraSwitch } = node;
  const recovery = openEdgeRecovery(config, wanted, storage, node, deps);
  const own = await openOwnCertificate(config, deps);
  const servers = await openServers(current, own, database?.rows, deps);
  registerVoteMetrics(registry, () => servers?.members.votes?.last ?? []);
  const sessions = await ownKey(config.workDir, log);
  const sessionKey = publicKeyOf(sessions);
  const ended = new EndedSessions(clock, { workDir: config.workDir, log });
  await ended.load();
  const member = await joinCluster(
    config,
    { wanted, storage, cameras, standbys, own, sessionKey, ended, servers },
    deps,
  );
  wanted.join({ cameraSwitch, database, member });
  const audit = openAudit(config, { ...deps, copy: deps.audit, registry });
  const cameraIds = (): ReadonlySet<string> => knownCameras(cameras, archive, member);
  const logins = servers?.logins;
  const access = await openAccess(config, {
    ...deps,
    registry,
    audit: audit.sink,
    ownKey: sessions,
    ended,
    sessionKeys: member?.sessionKeys,
    logins,
    cameraIds,
  });
  const trust = { ...(await readTrust(config, own, member)), auth: access.auth, issuers: access.issuers, own };
  for (const { code, message } of plainListeners(config)) log.warn({ todo: todoOf(code) }, message);
  const recording = {
    current,
    ...storage,
    ...node,
    cameraSwitch: switchOf(cameraSwitch, wanted, member),
    member,
    store: servers?.store,
    operatorMetrics: servers && (() => servers.metrics()),
    audit,
    refusedCameras: () => [...wanted.list().refused, ...(servers?.rows?.refused ?? [])],
    rowWarnings: () => servers?.rows?.warnings() ?? [],
  };
  const serving = new Serving(config, recording, trust, deps);
  const ticks = new Ticks(TICK_MS, () => {
    cameras.tick();
    archive.tick();
    happenings.tick();
    recovery.tick();
    member?.tick();
    serving.tick();
  });
  return {
    ...storage,
    ...node,
    current,
    wanted,
    webhooks,
    recovery,
    own,
    servers,
    member,
    audit,
    access,
    serving,
    ticks,
  };
}

/** The parts in the order in which they start; they are closed in reverse order. */
function partsOf(config: Config, made: Made, deps: RecorderDeps): readonly Part[] {
  const { wanted, database, events, archive, gaps, happenings, webhooks, license, cameras, cameraSwitch } = made;
  const { recovery, own, servers, member, audit, access, serving, ticks } = made;
  return [
    // Closed last, so that all closed segments get rows.
    { name: 'database', close: () => database?.close() },
    { name: 'events', close: () => events.close() },
    { name: 'webhooks', start: () => webhooks.configure(config, events.beginId), close: () => webhooks.close() },
    // Before recovery, which reports the segments that it completes.
    { name: 'gaps', start: () => gaps.load(), close: () => gaps.close() },
    {
      name: 'archive',
      start: () => Promise.all([recovered(archive, config), database?.open(), cameraSwitch.load(), license.start()]),
      close: () => Promise.all([audit.close(), archive.close(), happenings.settled()]),
    },
    { name: 'rows', start: () => database?.start(archive) },
    { name: 'tokens', close: () => access.auth.close() },
    { name: 'audit', start: () => audit.start() },
    ...(servers ? [servers.etcd] : []),
    // Before cameras send anything: building it blocks the event loop, and footage is dated by the arrival of packets.
    {
      name: 'listeners',
      start: () => serving.open(),
      close: () => Promise.all([member?.close(), serving.close(), access.close(), own?.close()]),
    },
    { name: 'cluster', start: () => (deps.recording?.(), member?.start()) },
    ...(servers ? [servers.operator] : []),
    // Runs until the cameras are closed.
    { name: 'ticks', close: () => ticks.stop() },
    {
      name: 'cameras',
      start: () =>
        wanted.follow((list) => {
          audit.camerasAre(list);
          serving.configure(list);
          return cameras.apply(list, wanted.held);
        }),
      // Closed before the listeners: the API answers while the data of the cameras are written.
      close: () => Promise.all([cameras.close(), serving.leaveCameras()]),
    },
    { name: 'recovery', close: () => recovery.close() },
    { name: 'first tick', start: () => ticks.start() },
    { name: 'licence', close: () => license.close() },
    { name: 'end', close: () => (wanted.leave(), events.stopping()) },
  ];
}

/** The record path may be missing or foreign for a while, but not unusable. */
async function recovered(archive: Archive, { recordPath }: Config): Promise<void> {
  try {
    await archive.recover();
  } catch (err) {
    if (errorCode(err) === undefined) throw err;
    throw new ConfigError('', 'record_path', `${recordPath} cannot be used: ${messageOf(err)}`);
  }
}

interface MemberParts {
  readonly wanted: WantedCameras;
  readonly storage: Storage;
  readonly cameras: CameraSet;
  readonly standbys: StandbySet;
  readonly own: OwnCertificate | undefined;
  readonly sessionKey: string;
  readonly ended: EndedSessions;
  readonly servers: ServersCluster | undefined;
}

/** Resolves to undefined unless this is a server of a cluster without Kubernetes. */
async function openServers(
  current: CurrentConfig,
  own: OwnCertificate | undefined,
  table: RowTable | undefined,
  { clock, log }: RecorderDeps,
): Promise<ServersCluster | undefined> {
  const config = current.value;
  if (config.cluster.mode !== 'etcd') return undefined;
  if (!own) throw new ConfigError('', 'cluster.listen', 'is missing: the other servers reach this one there');
  const { ServersCluster } = await import('./servers.ts');
  return ServersCluster.open({ config, own, table, defaults: () => current.value.archive, clock, log });
}

/** Resolves to undefined outside of a cluster. */
async function joinCluster(
  config: Config,
  { wanted, storage: { archive, gaps, events }, cameras, standbys, own, sessionKey, ended, servers }: MemberParts,
  { pod, version, clock, log }: RecorderDeps,
): Promise<ClusterMember | undefined> {
  if (config.cluster.mode === 'none') return undefined;
  if (!servers && !pod) throw new ConfigError('', 'cluster.mode', 'kubernetes: this process does not run in a pod');
  // Loaded only in a cluster.
  const [{ openMember }, { openApiServer }] = await Promise.all([import('./member.ts'), import('../cluster/join.ts')]);
  return openMember({
    config,
    open: servers ? () => servers.open() : (connections) => openApiServer(pod as PodPlace, clock, connections),
    version,
    cameras,
    standbys,
    archive,
    gaps: events.accountFor({
      takeOver: (cameraId, sinceMs) => gaps.takeOver(cameraId, sinceMs, standbys.heldSinceMs(cameraId)),
      giveUp: (cameraId, sinceMs) => gaps.giveUp(cameraId, sinceMs),
    }),
    observer: events.assignments,
    own,
    sessionKey,
    ended,
    servers: servers?.members,
    changed: () => wanted.changed(),
    clock,
    log,
  });
}

/** Cameras about which this node may give information: its own, those of its archive, and those of the cluster. */
const knownCameras = (cameras: CameraSet, archive: Archive, member: ClusterMember | undefined): ReadonlySet<string> =>
  new Set([
    ...cameras.list().map(({ status }) => status.id),
    ...archive.extents().map(({ camera }) => cameraOfFootage(camera)),
    ...(member?.view.cameraIds() ?? []),
  ]);

/** Cameras of files are switched on the node, others in the cluster. */
function switchOf(cameraSwitch: CameraSwitch, wanted: WantedCameras, member: ClusterMember | undefined): CameraSwitch {
  if (!member) return cameraSwitch;
  const keeper = (id: string): CameraSwitch =>
    wanted.files.some((camera) => camera.id === id) ? cameraSwitch : member.cameraSwitch;
  return { start: (id, by) => keeper(id).start(id, by), stop: (id, by) => keeper(id).stop(id, by) };
}
