// One recorder, composed of its parts: archive, cameras, live streams, HTTP. Two recorders can run in one process.

import { Registry } from 'prom-client';
import { cameraOfFootage } from '../../base/camera-id.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { memoryLimit } from '../../base/memory-limit.ts';
import { Parts, type Part } from '../../base/parts.ts';
import type { CameraSet } from '../cameras/camera-set.ts';
import type { FrontOfEngine } from '../contract/news.ts';
import type { AskedRemovals } from '../config/changes.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import { CurrentConfig } from '../config/current-config.ts';
import type { RecorderDeps } from './deps.ts';
import { Alarms } from '../alarms/alarms.ts';
import { todoOf } from '../api/todo.ts';
import { plainListeners } from '../config/exposure.ts';
import type { OwnCertificate } from '../http/own-certificate.ts';
import { adminLink, reachable } from '../http/admin-code.ts';
import { EndedSessions } from '../http/ended-sessions.ts';
import { publicKeyOf } from '../http/seal.ts';
import { ownKey } from '../http/seal-key.ts';
import { openAccess } from '../front/access.ts';
import { openAudit } from '../front/audit.ts';
import { keepingEvents } from '../front/camera-events.ts';
import { openCameraEditor } from '../front/camera-editor.ts';
import { LiveStreams } from '../front/live-streams.ts';
import { MemberSessions } from '../front/member-sessions.ts';
import { NodeWebhooks } from '../front/node-webhooks.ts';
import { answersOf } from '../engine/answers.ts';
import { openEngine, recovered } from '../engine/engine.ts';
import { joinCluster } from '../engine/join.ts';
import { takeState, type ArchiveOwner } from '../engine/owner.ts';
import { registerLogMetrics } from './logs.ts';
import { mediaBytes, registerMemoryMetrics } from './memory.ts';
import { openActivity } from './activity.ts';
import { openCopies } from './copies.ts';
import { reload } from './reload.ts';
import type { ServersCluster } from './servers.ts';
import { Serving } from '../front/serving.ts';
import { LiveLimits } from '../live/limits.ts';
import { AT_ONCE, type Engine } from '../model/engine.ts';
import type { RowTable } from '../database/row-table.ts';
import { Ticks } from './ticks.ts';
import { keptFromMs, openAlarmLines, openFrontStorage, openHappenings } from '../front/storage.ts';
import { openOwnCertificate, readTrust } from '../front/trust.ts';
import { localPorts, overBorder, serve } from '../border/channel.ts';
import { WantedCameras } from '../cameras/wanted-cameras.ts';
import { registerVoteMetrics } from './vote-metrics.ts';
import { registerWebhookMetrics } from '../front/webhook-metrics.ts';

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
  reload(load: () => Promise<Config>, asked: AskedRemovals): Promise<void>;
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
  const { current, wanted, database, events, webhooks, license, cameras, copies, reach, access, serving } = made;
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
        copies,
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
  const { clock, log, version } = deps;
  const current = new CurrentConfig(config);
  const wanted = new WantedCameras(current, log);
  const registry = new Registry();
  const memory = new MemoryBudget(mediaBytes(memoryLimit()));
  registerMemoryMetrics(registry, memory);
  registerLogMetrics(registry, deps.logLevels);
  const around = { ...deps, registry, memory };
  // Opened first: viewers give way to all others.
  const limits = new LiveLimits({}, memory);
  const storage = await openFrontStorage(current, { ...around, camerasChanged: () => wanted.changed() });
  const { database, events } = storage;
  const webhooks = new NodeWebhooks({ workDir: config.workDir, journal: events.journal, clock, log });
  // Even without webhooks: metrics are registered once, and the first webhook may come with a reload.
  registerWebhookMetrics(registry, () => webhooks.list);
  const copies = await openCopies(current, () => opened.archive, registry, deps);
  const memberSessions = new MemberSessions();
  const front: FrontOfEngine = {
    tell: events.tell,
    openGaps: events.openGaps,
    sessionsAre: memberSessions.are,
    live: (watch, news) => live.hear(watch, news),
    keep: (cameraId, occurrences) => keepEvents(cameraId, occurrences),
  };
  const opened = await openEngine(current, wanted, { ...around, front, rows: database, copies });
  const own = await openOwnCertificate(config, deps);
  const servers = await openServers(current, own, database?.rows, deps);
  registerVoteMetrics(registry, () => servers?.members.votes?.last ?? []);
  const sessions = await ownKey(config.workDir, log);
  const ended = new EndedSessions(clock, { workDir: config.workDir, log });
  await ended.load();
  const identity = { own, sessionKey: publicKeyOf(sessions), ended };
  const { pod } = deps;
  const member = await joinCluster(config, opened, { front, identity, pod, servers, copies, version, clock, log });
  wanted.join({ cameraSwitch: opened.cameraSwitch, database, member });
  const answers = answersOf(opened, { front, member, refused: () => servers?.rows?.refused ?? [] });
  const [fromFront, fromEngine] = localPorts();
  serve(answers, fromEngine);
  const engine = overBorder(answers, AT_ONCE, fromFront);
  const live = new LiveStreams({ engine: engine.cameras, limits, clock });
  const beside = { ...deps, archive: engine.archive };
  const happenings = openHappenings({ ...beside, told: events.happened });
  const keepEvents = keepingEvents({ happenings, clock, log });
  const { archive, cameras } = opened;
  const keptSinceMs = (cameraId: string): Promise<number> => keptFromMs(beside, cameraId);
  const activity = openActivity({ ...deps, archive, cameras, keptFromMs: keptSinceMs, ffmpegPath: config.ffmpeg.path });
  const alarmLines = openAlarmLines(beside);
  const alarms = new Alarms({ journal: events.journal, lines: alarmLines, clock, log });
  const audit = openAudit(config, { ...deps, copy: deps.audit, registry });
  const access = await openAccess(config, {
    ...deps,
    registry,
    audit: audit.sink,
    ownKey: sessions,
    ended,
    memberSessions,
    logins: servers?.logins,
    cameraIds: () => knownCameras(engine),
  });
  const trust = { ...(await readTrust(config, own, member)), auth: access.auth, issuers: access.issuers, own };
  for (const { code, message } of plainListeners(config)) log.warn({ todo: todoOf(code) }, message);
  const serving = new Serving(
    config,
    {
      ...storage,
      engine,
      cameras: live,
      keepAwake: () => opened.pacer.keepAwake(),
      copies,
      current,
      registry,
      happenings,
      looks: activity.store,
      alarms,
      cameraEditor: openCameraEditor(config, engine, database, deps),
      store: servers?.store,
      operatorMetrics: servers && (() => servers.metrics()),
      audit,
      rowWarnings: () => servers?.rows?.warnings() ?? [],
    },
    trust,
    deps,
  );
  const ticks = new Ticks(TICK_MS, () => {
    opened.tick();
    member?.tick();
    happenings.tick();
    alarmLines.tick();
    serving.tick();
  });
  return {
    ...storage,
    ...opened,
    copies,
    current,
    webhooks,
    happenings,
    activity,
    alarms,
    alarmLines,
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
  const { wanted, database, events, archive, gaps, happenings, copies, webhooks, license, cameras, cameraSwitch } =
    made;
  const { activity, alarms, alarmLines, recovery, errands, own, servers, member, audit, access, serving, ticks } = made;
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
      close: () => Promise.all([audit.close(), archive.close(), happenings.settled(), alarmLines.settled()]),
    },
    { name: 'alarms', start: () => alarms.start(), close: () => alarms.close() },
    { name: 'rows', start: () => database?.start(archive) },
    { name: 'copies', start: () => copies?.start(), close: () => copies?.close() },
    { name: 'activity', start: () => activity.watch.start(), close: () => activity.watch.close() },
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
          errands.configure(list);
          return cameras.apply(list, wanted.held);
        }),
      // Closed before the listeners: the API answers while the data of the cameras are written.
      close: () => Promise.all([cameras.close(), errands.close()]),
    },
    { name: 'recovery', close: () => recovery.close() },
    { name: 'first tick', start: () => ticks.start() },
    { name: 'licence', close: () => license.close() },
    { name: 'end', close: () => (member?.release(), wanted.leave(), events.stopping()) },
  ];
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

/** Cameras about which this node may give information: its own, those of its archive, and those of the cluster. */
const knownCameras = ({ cameras, archive, member }: Engine): ReadonlySet<string> =>
  new Set([
    ...cameras.list().map(({ status }) => status.id),
    ...archive.extents().map(({ camera }) => cameraOfFootage(camera)),
    ...(member?.view.cameraIds() ?? []),
  ]);
