// What a recorder answers, joined from its rooms: API, playback and metrics, with what stands behind them alone: jobs, still
// images, PTZ.

import type { Server as HttpsServer } from 'node:https';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { assert } from '../base/assert.ts';
import { buildApi } from './api/app.ts';
import { standaloneChecks, type ArchiveReader, type ProtectionKeeper } from './api/deps.ts';
import { localMachine } from './api/machine.ts';
import { buildMetricsRegistry, buildMetricsServer } from './api/prometheus.ts';
import type { Archive } from './archive/archive.ts';
import { nodeFileSystem } from './archive/file-system.ts';
import type { GapReport } from './archive/gaps/camera-ledger.ts';
import type { GapLedger } from './archive/gaps/ledger.ts';
import { bytesOf } from './archive/retention/plan.ts';
import type { CameraSet } from './camera-set.ts';
import type { ReadPacer } from './camera/read-pacer.ts';
import type { CameraSwitch } from './camera/switch.ts';
import type { ClusterMember } from './cluster-member.ts';
import { urlOf } from './cluster/peers.ts';
import type { CameraConfig, Config } from './config/schema.ts';
import type { ListenAddress } from './config/values.ts';
import type { CameraList } from './database/camera-rows.ts';
import type { RecorderDatabase } from './database/database.ts';
import type { Authenticator } from './http/auth.ts';
import { followCertificate, registerCertificateMetrics, type CertificatePair } from './http/certificate.ts';
import { Jobs } from './jobs/jobs.ts';
import { mayHaveJobs, openQueue } from './jobs/open-queue.ts';
import type { License } from './license/license.ts';
import { Ptz } from './onvif/ptz.ts';
import { buildPlayback } from './playback/app.ts';
import type { RecorderDeps } from './recorder.ts';
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
  readonly pacer: ReadPacer;
  readonly license: License;
  readonly database: RecorderDatabase | undefined;
  readonly member: ClusterMember | undefined;
  /** Of all of them. */
  readonly registry: Registry;
  readonly refusedCameras: () => CameraList['refused'];
}

/** What was read from files that the configuration names. */
export interface Trust {
  readonly auth: Authenticator;
  readonly tls: CertificatePair | undefined;
  /** Certificates that other recorders, and Redis, are trusted by; PEM. */
  readonly peerCa: string | undefined;
  readonly redisCa: string | undefined;
}

export interface Serving {
  readonly address: string;
  readonly playbackAddress: string;
  readonly routes: Readonly<Record<'api' | 'playback' | 'metrics', readonly string[]>>;
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
  { auth, tls, peerCa, redisCa }: Trust,
  deps: RecorderDeps,
): Promise<Serving> {
  const { clock, log, version } = deps;
  const { nodeName, recordPath } = config;
  const { archive, gaps, cameras, cameraSwitch, pacer, license, database, member, registry: own } = recording;
  const keepAwake = (): (() => void) => pacer.keepAwake();
  const snapshots = new Snapshots({ find: (id) => cameras.config(id), clock });
  const thumbnails = openThumbnails();
  const jobs = openJobs();
  const { moveTimeoutMs } = config.ptz;
  const ptz = new Ptz({ clock, log, limits: { moveTimeoutMs, answerTimeoutMs: PTZ_ANSWER_TIMEOUT_MS } });

  let certificateInUse = tls;
  registerCertificateMetrics(own, () => certificateInUse);
  const secured = { auth, ...(tls ? { tls } : {}) };
  const facing = { ...secured, origins: config.cors.origins, trustedProxies: config.trustedProxies };
  const playback = await buildPlayback({
    version,
    recordPath,
    ...facing,
    archive,
    ...(member ? { cluster: member.view } : {}),
    registry: own,
    keepAwake,
    clock,
    log,
  });
  const api = await buildApi({
    nodeName,
    address: config.cluster.advertise,
    version,
    recordPath,
    ...facing,
    cameras,
    archive: database ? listedBy(database, archive) : archive,
    gaps: { report: gapsIn },
    protections: protectionsOf(archive),
    jobs,
    ptz,
    cameraSwitch,
    ...(member ? { cluster: member.view } : {}),
    stills: { snapshot: (id) => snapshots.get(id), thumbnail: (id) => thumbnails.get(id) },
    ...(deps.logLevels ? { logLevels: deps.logLevels } : {}),
    audit: deps.audit ?? log.child({ audit: true }),
    warnings: () => [...archive.warnings(), ...jobs.warnings()],
    ...(database || member ? { refusedCameras: recording.refusedCameras } : {}),
    checks: {
      ...standaloneChecks,
      license: () => Promise.resolve(license.check()),
      ...(member ? { clusterStore: () => Promise.resolve({ configured: true, reachable: member.isReachable() }) } : {}),
      ...(database ? { storage: () => database.check() } : {}),
    },
    playback: { port: () => portOf(playback), advertised: urlOf(config.playback.advertise, tls !== undefined) },
    machine: localMachine(recordPath, clock),
    keepAwake,
    clock,
    log,
  });
  // Last: what is registered later would be left out.
  const registry = Registry.merge([buildMetricsRegistry({ cameras, version, nodeName, clock }), own]);
  const { requireToken } = config.metrics;
  const metrics = buildMetricsServer(registry, { log, ...(requireToken ? secured : {}) });
  const certificates =
    config.tls &&
    followCertificate(
      config.tls,
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
    // Not waited for: recording needs no jobs.
    const jobsStarted = jobs.start();
    return {
      address,
      playbackAddress,
      routes: { api: api.routeList.names, playback: playback.routeList.names, metrics: metrics.routeList.names },
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
      },
      knownGaps: async (cameraId, fromMs, toMs) => (await gapsIn(cameraId, fromMs, toMs)).gaps,
      registry: own,
      mayHaveJobs: () => mayHaveJobs(queue),
      openQueue: (work) => openQueue(queue, work),
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
      clock,
      log,
    });
  }
}

/** Protected footage as the API asks for it. */
function protectionsOf(archive: Archive): ProtectionKeeper {
  const { protections } = archive;
  assert(protections, 'an archive with limits has protections');
  return {
    list: (cameraId) => protections.list(cameraId),
    add: (window, nowMs) => protections.add(window, nowMs),
    remove: (id) => protections.remove(id),
    countSegments: (cameraId, fromMs, toMs) => archive.countSegments(cameraId, fromMs, toMs),
  };
}

/** The archive as the API asks for it, with lists from the database. */
function listedBy(database: RecorderDatabase, archive: Archive): ArchiveReader {
  return {
    list: (cameraId, query) => database.list(archive, cameraId, query),
    current: (cameraId) => archive.current(cameraId),
    checkWritable: () => archive.checkWritable(),
  };
}

function portOf({ server }: FastifyInstance): number | undefined {
  const address = server.address();
  return typeof address === 'object' ? address?.port : undefined;
}
