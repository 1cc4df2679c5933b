// What a recorder answers, joined from its rooms: API, playback and metrics, with what stands behind them alone: jobs, still
// images, PTZ.

import type { Server as HttpsServer } from 'node:https';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { buildApi } from './api/app.ts';
import { buildHealthServer } from './api/health-server.ts';
import { standaloneChecks, type ApiDeps } from './api/deps.ts';
import type { Warning } from './model/warning.ts';
import { localMachine } from './api/machine.ts';
import { buildMetricsRegistry, buildMetricsServer } from './api/prometheus.ts';
import type { Archive } from './archive/archive.ts';
import { nodeFileSystem } from './archive/disk/file-system.ts';
import type { GapReport } from './archive/gaps/camera-ledger.ts';
import type { GapLedger } from './archive/gaps/ledger.ts';
import { bytesOf } from './archive/retention/plan.ts';
import type { CameraSet } from './camera-set.ts';
import type { ReadPacer } from './camera/read-pacer.ts';
import type { CameraSwitch } from './camera/switch.ts';
import type { ClusterMember } from './cluster-member.ts';
import { urlOf } from './cluster/peers.ts';
import type { CameraEditor } from './config/editor.ts';
import type { CameraConfig, Config } from './config/schema.ts';
import type { ListenAddress } from './config/values.ts';
import type { CameraList } from './database/camera-rows.ts';
import type { RecorderDatabase } from './database/database.ts';
import type { Authenticator } from './http/auth.ts';
import {
  followCertificate,
  MIN_TLS_VERSION,
  registerCertificateMetrics,
  type CertificatePair,
  type CertificatePaths,
} from './http/certificate.ts';
import { plainListeners } from './exposure.ts';
import type { OpenApiDocument } from './http/openapi.ts';
import type { OwnCertificate } from './http/own-certificate.ts';
import { buildPeersServer } from './api/peers-server.ts';
import { Jobs } from './jobs/jobs.ts';
import { mayHaveJobs, openQueue } from './jobs/open-queue.ts';
import type { License } from './license/license.ts';
import type { AnswerMemory } from './memory.ts';
import { Ptz } from './onvif/ptz.ts';
import { Doctor } from './probe/doctor.ts';
import { buildPlayback } from './playback/app.ts';
import type { Reach } from './reach/reach.ts';
import type { NodeAudit } from './node-audit.ts';
import type { RecorderDeps } from './deps.ts';
import type { NodeEvents } from './node-events.ts';
import { Snapshots } from './still/snapshots.ts';
import { Thumbnails } from './still/thumbnails.ts';

/** A camera that is told to move or stop; a request waits for the command before it and its own. */
const PTZ_ANSWER_TIMEOUT_MS = 10_000;

/** What goes on without any of it. */
export interface Recording {
  readonly archive: Archive;
  readonly gaps: GapLedger;
  readonly cameras: CameraSet;
  readonly cameraSwitch: CameraSwitch;
  /** Undefined where nobody knows in which files cameras are configured. */
  readonly cameraEditor: CameraEditor | undefined;
  readonly pacer: ReadPacer;
  readonly reach: Reach;
  readonly license: License;
  readonly database: RecorderDatabase | undefined;
  readonly member: ClusterMember | undefined;
  /** Of all of them. */
  readonly registry: Registry;
  readonly memory: AnswerMemory;
  readonly audit: NodeAudit;
  readonly events: NodeEvents;
  readonly refusedCameras: () => CameraList['refused'];
}

/** What was read from files that the configuration names. */
export interface Trust {
  readonly auth: Authenticator;
  readonly tls: CertificatePair | undefined;
  /** Where that pair lies. */
  readonly certificate: CertificatePaths | undefined;
  /** What members of a pool know each other by. */
  readonly own: OwnCertificate | undefined;
  /** Certificates that other recorders, and Redis, are trusted by; PEM. */
  readonly peerCa: string | undefined;
  readonly redisCa: string | undefined;
}

export interface Serving {
  readonly address: string;
  readonly playbackAddress: string;
  readonly routes: Readonly<Record<'api' | 'playback' | 'metrics', readonly string[]>>;
  /** What somebody should look at now, the database included, which is a check of ready. */
  warnings(): readonly Warning[];
  /** The cameras that are wanted now. */
  configure(cameras: readonly CameraConfig[]): void;
  /** Asks and tells cameras nothing more. */
  leaveCameras(): Promise<void>;
  /** Stops listening; jobs go on at the next start. */
  close(): Promise<void>;
}

/** Rejects when an address is taken. */
export async function openServing(
  config: Config,
  recording: Recording,
  { auth, tls, certificate, own: ownCertificate, peerCa, redisCa }: Trust,
  deps: RecorderDeps,
): Promise<Serving> {
  const { clock, log, version } = deps;
  const { nodeName, recordPath } = config;
  const {
    archive,
    gaps,
    cameras,
    cameraSwitch,
    cameraEditor,
    pacer,
    reach,
    license,
    database,
    member,
    memory,
    audit,
    events,
    registry: own,
  } = recording;
  const keepAwake = (): (() => void) => pacer.keepAwake();
  const snapshots = new Snapshots({ find: (id) => cameras.config(id), memory: memory.images, reach, clock });
  const thumbnails = openThumbnails();
  const jobs = openJobs();
  const { moveTimeoutMs } = config.ptz;
  const ptz = new Ptz({ clock, log, reach, limits: { moveTimeoutMs, answerTimeoutMs: PTZ_ANSWER_TIMEOUT_MS } });

  let certificateInUse = tls;
  registerCertificateMetrics(own, () => certificateInUse);
  const plain = plainListeners(config);
  const secured = { auth, ...(tls ? { tls } : {}) };
  const facing = { ...secured, origins: config.cors.origins, trustedProxies: config.trustedProxies };
  const playback = await buildPlayback({
    version,
    recordPath,
    ...facing,
    archive,
    ...(member ? { cluster: member.view } : {}),
    memory: memory.playback,
    registry: own,
    keepAwake,
    visits: audit.visits,
    clock,
    log,
  });
  const warnings = (): readonly Warning[] => [
    ...archive.warnings(),
    ...jobs.warnings(),
    ...(member?.warnings() ?? []),
    ...plain,
    ...auth.warnings(),
    ...audit.warnings(),
  ];
  const apiDeps: ApiDeps = {
    nodeName,
    address: config.cluster.advertise,
    version,
    recordPath,
    ...facing,
    cameras,
    archive,
    segments: database ?? archive,
    gaps: { report: gapsIn },
    protections: archive.protections && { windows: archive.protections, keptMs: config.archive.protectForMs },
    jobs,
    ptz,
    cameraSwitch,
    ...(cameraEditor ? { cameraEditor } : {}),
    ...(member ? { cluster: member.view } : {}),
    stills: { snapshot: (id) => snapshots.get(id), thumbnail: (id) => thumbnails.get(id) },
    doctor: new Doctor({ clock, version, find: (id) => cameras.observed(id), reach }),
    ...(deps.logLevels ? { logLevels: deps.logLevels } : {}),
    audit,
    events,
    warnings,
    ...(database || member ? { refusedCameras: recording.refusedCameras } : {}),
    checks: {
      ...standaloneChecks,
      license: () => Promise.resolve(license.check()),
      ...(member ? { clusterStore: () => ({ configured: true, unreachableMs: member.unreachableMs() }) } : {}),
      ...(database ? { storage: () => database.check() } : {}),
    },
    playback: {
      port: () => portOf(playback),
      advertised: urlOf(config.playback.advertise, tls !== undefined),
      document: () => playback.swagger() as OpenApiDocument,
    },
    machine: localMachine(recordPath, clock),
    keepAwake,
    clock,
    log,
  };
  const api = await buildApi(apiDeps);
  // Last: what is registered later would be left out.
  const registry = Registry.merge([buildMetricsRegistry({ cameras, version, nodeName, clock }), own]);
  const { requireToken } = config.metrics;
  const metrics = buildMetricsServer(registry, { log, requireToken, ...(requireToken ? secured : { auth }) });
  const certificates =
    certificate &&
    followCertificate(
      certificate,
      [api, playback, ...(requireToken ? [metrics] : [])].map(({ server }) => server as HttpsServer),
      { log, clock, used: (pair) => (certificateInUse = pair) },
    );
  const opened: FastifyInstance[] = [];
  const listen = async (server: FastifyInstance, { host, port }: ListenAddress): Promise<string> => {
    const address = await server.listen({ host, port });
    opened.push(server);
    return address;
  };
  const stopListening = async (): Promise<void> => {
    await Promise.all(opened.map((server) => server.close()));
  };
  try {
    const playbackAddress = await listen(playback, config.playback.listen);
    const address = await listen(api, config.listen);
    await listen(metrics, config.metrics.listen);
    if (config.cluster.listen && ownCertificate) await listenToPeers(config.cluster.listen, ownCertificate);
    if (config.health) await listen(await buildHealthServer(apiDeps), config.health.listen);
    // Not waited for: recording needs no jobs.
    const jobsStarted = jobs.start();
    return {
      address,
      playbackAddress,
      routes: { api: api.routeList.names, playback: playback.routeList.names, metrics: metrics.routeList.names },
      warnings: () => [...warnings(), ...(database?.warnings() ?? [])],
      configure: (wanted) => ptz.configure(wanted),
      async leaveCameras() {
        thumbnails.close();
        await Promise.all([snapshots.close(), ptz.close()]);
      },
      async close() {
        certificates?.close();
        await jobsStarted;
        await jobs.close();
        await stopListening();
      },
    };
  } catch (err) {
    certificates?.close();
    await stopListening();
    throw err;
  }

  async function listenToPeers(address: ListenAddress, own: OwnCertificate): Promise<void> {
    const peers = await buildPeersServer({
      visits: audit.visits,
      pair: own.pair,
      authorities: own.authorities,
      jobs,
      clock,
      log,
    });
    own.follow(({ certificate, key }, authorities) =>
      (peers.server as HttpsServer).setSecureContext({
        cert: certificate,
        key,
        ca: authorities,
        minVersion: MIN_TLS_VERSION,
      }),
    );
    await listen(peers, address);
  }

  async function gapsIn(cameraId: string, fromMs: number, toMs: number): Promise<GapReport> {
    return gaps.report(cameraId, fromMs, toMs, await archive.recorded(cameraId, fromMs, toMs));
  }

  function openJobs(): Jobs {
    const directory = join(config.workDir, 'jobs');
    const queue = {
      directory: join(config.workDir, 'redis'),
      url: config.redis?.url,
      ...(redisCa === undefined ? {} : { ca: redisCa }),
      nodeName,
      clock,
      log,
    };
    return new Jobs({
      directory,
      keyDirectory: join(config.workDir, 'signing'),
      nodeName,
      recordPath,
      archive,
      ffmpegPath: config.ffmpeg.path,
      version,
      clock,
      log,
      async room() {
        const space = await nodeFileSystem.space(directory);
        const { minFree } = config.archive.retention;
        return space.freeBytes - (minFree ? bytesOf(minFree, space) : 0);
      },
      peers: {
        members: () => [...config.cluster.peers.map((address) => ({ address })), ...(member?.members() ?? [])],
        scheme: config.tls ? 'https' : 'http',
        ...(peerCa === undefined ? {} : { ca: peerCa }),
        own: () =>
          ownCertificate?.authorities === undefined
            ? undefined
            : { ...ownCertificate.pair, ca: ownCertificate.authorities },
      },
      async knownTime(cameraId, fromMs, toMs) {
        const { gaps, knownUntilMs } = await gapsIn(cameraId, fromMs, toMs);
        return { gaps, untilMs: knownUntilMs };
      },
      registry: own,
      memory: memory.jobs,
      mayHaveJobs: () => mayHaveJobs(queue),
      openQueue: (work, ended) => openQueue(queue, work, ended),
      observer: events.jobs,
    });
  }

  function openThumbnails(): Thumbnails {
    return new Thumbnails({
      find: (id) =>
        cameras.config(id) && {
          live: () => cameras.get(id)?.live?.keyFrame(),
          files: () => archive.newestFiles(id),
        },
      ffmpegPath: config.ffmpeg.path,
      memory: memory.images,
      clock,
      log,
    });
  }
}

function portOf({ server }: FastifyInstance): number | undefined {
  const address = server.address();
  return typeof address === 'object' ? address?.port : undefined;
}
