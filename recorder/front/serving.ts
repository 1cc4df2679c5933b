// The HTTP side of a recorder: API, playback and metrics, and the parts that only they use: jobs, still images, PTZ.

import type { Server as HttpsServer } from 'node:https';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { assert } from '../../base/assert.ts';
import type { Warning } from '../../base/reason.ts';
import { buildApi } from '../api/app.ts';
import { buildHealthServer } from '../api/health-server.ts';
import { standaloneChecks, type ApiDeps, type ClusterStore, type ReadinessChecks } from '../api/deps.ts';
import { LocalMachine } from '../api/machine.ts';
import { buildMetricsRegistry, buildMetricsServer } from '../api/prometheus.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import type { Collector } from '../footage/collect.ts';
import { causesIn } from '../footage/elsewhere.ts';
import type { Holder } from '../footage/holder.ts';
import { openFootage } from '../footage/open.ts';
import { bytesOf } from '../archive/disk/space.ts';
import { urlOf } from '../cluster/peers.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { Config } from '../config/schema.ts';
import type { ListenAddress } from '../config/values.ts';
import type { Authenticator } from '../http/auth.ts';
import type { Issuers } from '../identity/issuers.ts';
import { followCertificate, registerCertificateMetrics, type CertificatePair } from '../http/certificate.ts';
import { plainListeners } from '../config/exposure.ts';
import { heldFootage } from './held-footage.ts';
import type { OpenApiDocument } from '../http/openapi.ts';
import { followAuthorities } from '../http/member-certificate.ts';
import type { OwnCertificate } from '../http/own-certificate.ts';
import { buildPeersServer } from '../api/peers-server.ts';
import { FootageOfNodes } from '../footage/accounts.ts';
import { jobName } from '../jobs/job-id.ts';
import { Jobs } from '../jobs/jobs.ts';
import { NamedJobs } from '../jobs/named-jobs.ts';
import { mayHaveJobs, openQueue } from '../jobs/open-queue.ts';
import { Timelines } from '../api/timelines.ts';
import { Shortfalls } from '../model/shortfalls.ts';
import { ObjectiveWatch } from '../objectives/watch.ts';
import { AlarmMails } from '../mail/alarm-mails.ts';
import type { MutualTls } from '../peers/identity.ts';
import type { CopyPlaces } from '../contract/copy-places.ts';
import type { PeerListener } from '../contract/other-node.ts';
import { PeerRequests } from '../peers/peer-requests.ts';
import { RelayMetrics } from '../relay/metrics.ts';
import { buildPlayback, openPlayback } from '../playback/app.ts';
import type { PlaybackDeps } from '../playback/deps.ts';
import { bandsOf, searchRegion } from '../activity/region.ts';
import type { LookStore } from '../activity/store.ts';
import type { NodeAudit } from './audit.ts';
import { ArchiveStills } from '../still/archive-stills.ts';
import { JpegMaker } from '../still/jpeg-maker.ts';
import { Thumbnails } from '../still/thumbnails.ts';
import type { FrontDeps } from './deps.ts';
import type { FrontStorage } from './storage.ts';
import type { CameraEditor } from '../config/editor.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Happenings } from '../happenings/happenings.ts';
import type { CameraDirectory } from '../model/camera-view.ts';
import type { Engine } from '../model/engine.ts';
import type { Joining } from '../api/routes/join.ts';
import type { Trust } from './trust.ts';

const WARNINGS_MS = 1_000;
/** The still in a mail: of the last moment before the alarm. */
const STILL_BEFORE_MS = 1_000;
const STILL_WIDTH = 640;

export interface ServingParts extends FrontStorage {
  readonly engine: Engine;
  /** Those of the engine, with their viewers. */
  readonly cameras: CameraDirectory;
  /** Of the loop that both sides share: a request has arrived; what it returns is called when the answer is complete. See `ReadPacer`. */
  readonly keepAwake: () => () => void;
  /** Undefined without targets. */
  readonly copies?: (CopyPlaces & { readonly holders: readonly Holder[]; warnings(): readonly Warning[] }) | undefined;
  readonly current: CurrentConfig;
  /** Metrics of the whole recorder. */
  readonly registry: Registry;
  readonly happenings: Happenings;
  /** What key frames show. */
  readonly looks: LookStore;
  readonly alarms: Alarms;
  /** Undefined when the configuration files are not known. */
  readonly cameraEditor: CameraEditor | undefined;
  /** Set in a cluster of servers without Kubernetes. */
  readonly store?: (ClusterStore & Pick<Joining, 'admission' | 'issuer' | 'keys'>) | undefined;
  readonly operatorMetrics?: (() => Promise<string>) | undefined;
  readonly audit: NodeAudit;
  readonly rowWarnings?: () => readonly Warning[];
}

interface Opened {
  readonly address: string;
  readonly playbackAddress: string;
  readonly routes: Readonly<Record<'api' | 'playback' | 'metrics', readonly string[]>>;
}

/** Certificates to present, and to trust others by. */
interface ServingTrust extends Trust {
  readonly auth: Authenticator;
  readonly issuers: Issuers;
  /** The certificate by which members of a pool recognize each other. */
  readonly own: OwnCertificate | undefined;
}

/** Jobs, still images and PTZ are created by the constructor; the listeners by `open`. */
export class Serving {
  readonly #config: Config;
  readonly #parts: ServingParts;
  readonly #trust: ServingTrust;
  readonly #deps: FrontDeps;
  readonly #jpegs: JpegMaker;
  readonly #thumbnails: Thumbnails;
  readonly #collector: Collector;
  readonly #footage: FootageOfNodes;
  readonly #shortfalls: Shortfalls;
  readonly #jobs: Jobs;
  readonly #namedJobs: NamedJobs;
  readonly #peers: PeerRequests | undefined;
  readonly #relayMetrics: RelayMetrics;
  readonly #listeners: FastifyInstance[] = [];
  #certificateInUse: CertificatePair | undefined;
  #following: { close(): void } | undefined;
  #jobsStarted: Promise<void> | undefined;
  #opened: Opened | undefined;
  #playbackPort: number | undefined;
  readonly #mails: AlarmMails;
  #objectives: ObjectiveWatch | undefined;
  #stills: ApiDeps['stills'] | undefined;
  #toldMs = -Infinity;

  constructor(config: Config, parts: ServingParts, trust: ServingTrust, deps: FrontDeps) {
    const { engine, cameras, answers, registry } = parts;
    const { archive } = engine;
    const { clock, log } = deps;
    this.#config = config;
    this.#parts = parts;
    this.#trust = trust;
    this.#deps = deps;
    this.#shortfalls = new Shortfalls({ clock, cameras, keeping: archive.keeping });
    this.#jpegs = new JpegMaker({ ffmpegPath: config.ffmpeg.path, clock, log });
    this.#thumbnails = new Thumbnails({
      find: (id) =>
        cameras.get(id) && {
          live: () => engine.cameras.keyFrame(id),
          files: (count) => archive.newestFiles(id, count),
        },
      maker: this.#jpegs,
      memory: answers.images,
      clock,
    });
    this.#mails = new AlarmMails({
      alarms: parts.alarms,
      settings: () => mailOf(parts)?.settings,
      // Loaded only when a mail is sent.
      send: async (mail) => {
        const settings = mailOf(parts);
        const { sendMail } = await import('../mail/send.ts');
        return settings ? sendMail(settings.server, mail) : 'no mail is configured';
      },
      still: async (id, atMs) => {
        const made = this.#stills?.archived(id, atMs - STILL_BEFORE_MS, STILL_WIDTH, undefined);
        // There is none, or it cannot be made: the mail goes without it.
        return (await made?.catch(() => undefined))?.body;
      },
      facts: () => ({
        site: config.console.site,
        timeZone: config.console.timeZone,
        url: parts.current.value.mail?.url,
        nameOf: (id) => cameras.get(id)?.status.name ?? id,
      }),
      clock,
      log,
    });
    this.#peers = openPeerRequests(engine, trust, deps);
    this.#relayMetrics = new RelayMetrics(registry);
    this.#collector = openFootage({
      recordPath: config.recordPath,
      archive: heldFootage(archive),
      cluster: engine.member?.view,
      peers: this.#peers,
      copies: parts.copies,
      clock,
      log,
      keepAwake: parts.keepAwake,
    });
    this.#footage = new FootageOfNodes({ nodeId: config.nodeName, gaps: engine.gaps, collector: this.#collector });
    this.#jobs = openJobs(config, parts, { collector: this.#collector, times: this.#footage }, trust, deps);
    this.#namedJobs = new NamedJobs(this.#jobs, engine.member?.view.nodeId);
    this.#certificateInUse = trust.tls;
    registerCertificateMetrics(registry, {
      listeners: () => this.#certificateInUse,
      nodes: () => (config.cluster.listen ? trust.own?.pair : undefined),
    });
  }

  /** The address of the API; not before `open`. */
  get address(): string {
    return this.#isOpen.address;
  }

  get playbackAddress(): string {
    return this.#isOpen.playbackAddress;
  }

  get routes(): Opened['routes'] {
    return this.#isOpen.routes;
  }

  /** Rejects when an address is taken. */
  async open(): Promise<void> {
    const { cluster, health, playback: playbackSettings, listen, metrics: metricsSettings } = this.#config;
    const opened = openPlayback(this.#playbackDeps);
    const playback = await buildPlayback(this.#playbackDeps, opened);
    const apiDeps = this.#apiDeps(playback, opened);
    this.#stills = apiDeps.stills;
    this.#objectives = this.#watchObjectives(apiDeps);
    const api = await buildApi(apiDeps);
    // Last, so that all metrics are registered.
    const metrics = this.#buildMetrics();
    this.#followCertificate([api, playback, ...(metricsSettings.requireToken ? [metrics] : [])]);
    const playbackAddress = await this.#listen(playback, playbackSettings.listen);
    // Kept, because the server asks the system for it each time.
    this.#playbackPort = portOf(playback);
    const address = await this.#listen(api, listen);
    await this.#listen(metrics, metricsSettings.listen);
    if (cluster.listen && this.#trust.own) {
      await this.#listenToPeers(cluster.listen, this.#trust.own, { api, playback });
    }
    if (health) await this.#listen(await buildHealthServer(apiDeps), health.listen);
    // Not awaited: recording does not need jobs.
    this.#jobsStarted = this.#jobs.start();
    this.#opened = {
      address,
      playbackAddress,
      routes: { api: api.routeList.names, playback: playback.routeList.names, metrics: metrics.routeList.names },
    };
  }

  /** Reports the current warnings as events. */
  tick(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#toldMs < WARNINGS_MS) return;
    this.#toldMs = nowMs;
    this.#parts.events.warningsAre(this.#warnings());
    this.#mails.tick();
    this.#objectives?.tick();
  }

  /** Stops listening; jobs continue at the next start. */
  async close(): Promise<void> {
    this.#following?.close();
    this.#jpegs.close();
    await this.#mails.close();
    await this.#objectives?.close();
    await this.#jobsStarted;
    await this.#jobs.close();
    await Promise.all(this.#listeners.map((server) => server.close()));
    await this.#peers?.close();
  }

  get #isOpen(): Opened {
    assert(this.#opened, 'it listens');
    return this.#opened;
  }

  /** The settings that API and playback share. */
  get #facing() {
    const { auth, tls } = this.#trust;
    const { cors, trustedProxies } = this.#config;
    return {
      version: this.#deps.version,
      recordPath: this.#config.recordPath,
      auth,
      ...(tls ? { tls } : {}),
      origins: cors.origins,
      trustedProxies,
      keepAwake: this.#parts.keepAwake,
      clock: this.#deps.clock,
      log: this.#deps.log,
    };
  }

  get #playbackDeps(): PlaybackDeps {
    const { engine, answers, registry, audit } = this.#parts;
    return {
      ...this.#facing,
      footage: this.#collector,
      cluster: engine.member?.view,
      peers: this.#peers,
      relayMetrics: this.#relayMetrics,
      memory: answers.playback,
      registry,
      visits: audit.visits,
    };
  }

  #apiDeps(playback: FastifyInstance, { routes, keyFrameAt }: ReturnType<typeof openPlayback>): ApiDeps {
    const { engine, cameras, cameraEditor, database, store, audit, events, happenings, looks, alarms } = this.#parts;
    const { archive, cameraSwitch, errands, examiner, member, refusedCameras } = engine;
    const { nodeName, cluster, archive: settings, playback: playbackSettings } = this.#config;
    const { clock, logLevels } = this.#deps;
    const memory = this.#parts.answers.images;
    const archived = new ArchiveStills({ maker: this.#jpegs, memory, clock });
    return {
      ...this.#facing,
      issuers: this.#trust.issuers,
      nodeName,
      site: { name: this.#config.console.site, timeZone: this.#config.console.timeZone },
      objectives: () => this.#parts.current.value.objectives,
      address: cluster.advertise,
      cameras,
      archive,
      segments: database ?? archive,
      gaps: this.#footage,
      times: engine.times,
      keeping: archive.keeping,
      protections: archive.protections && { windows: archive.protections, keptMs: settings.protectForMs },
      peers: this.#peers,
      copies: this.#parts.copies,
      relayMetrics: this.#relayMetrics,
      jobs: this.#namedJobs,
      ptz: errands,
      cameraSwitch,
      tryLogins: (id) => errands.tryLogins(id),
      ...(cameraEditor ? { cameraEditor } : {}),
      ...(member ? { cluster: member.view } : {}),
      ...(store ? { store } : {}),
      stills: {
        snapshot: (id) => errands.snapshot(id),
        thumbnail: (id, isFresh) => this.#thumbnails.get(id, isFresh),
        archived: async (id, atMs, width, by) => archived.get(id, await keyFrameAt(id, atMs, by), width),
      },
      discoverer: errands,
      doctor: examiner,
      logLevels,
      audit,
      events,
      happenings,
      activity: {
        bands: (cameraId, stretch, stepMs) => bandsOf(looks, cameraId, stretch, stepMs),
        search: (query) => searchRegion(looks, query),
      },
      alarms,
      testMail: () => this.#mails.test(),
      warnings: () => this.#warnings(),
      ...(database || member ? { refusedCameras } : {}),
      checks: this.#checks(),
      playback: {
        port: () => this.#playbackPort,
        advertised: urlOf(playbackSettings.advertise, this.#trust.tls !== undefined),
        document: () => playback.swagger() as OpenApiDocument,
        routes,
      },
      machine: new LocalMachine(clock),
    };
  }

  #watchObjectives(deps: ApiDeps): ObjectiveWatch {
    const { cluster, cameras, objectives, clock, log } = deps;
    const timelines = new Timelines(deps);
    const asking = { sees: () => true, by: { name: this.#config.nodeName, credential: undefined } };
    return new ObjectiveWatch({
      objectives,
      cameraIds: async () => {
        const listed = (await cluster?.cameras())?.cameras ?? [];
        return [...new Set([...cameras.list().map(({ status }) => status.id), ...listed.map(({ id }) => id)])];
      },
      accounts: (ids, interval) => timelines.accounts(asking, ids, interval),
      isMine: () => cluster === undefined || cluster.leader()?.nodeId === cluster.nodeId,
      measured: (measured) => this.#parts.engine.member?.objectivesAre(measured),
      registry: this.#parts.registry,
      clock,
      log,
    });
  }

  #checks(): ReadinessChecks {
    const { engine, database } = this.#parts;
    const { license, member } = engine;
    return {
      ...standaloneChecks,
      license: () => Promise.resolve(license.check()),
      ...(member
        ? {
            clusterStore: () => ({
              configured: true,
              unreachableMs: member.unreachableMs(),
              isMemberDown: member.isMemberDown(),
            }),
          }
        : {}),
      ...(database ? { storage: () => database.check() } : {}),
    };
  }

  /** The current warnings. */
  #warnings(): readonly Warning[] {
    const { engine, current, events, database, audit, copies } = this.#parts;
    const { member } = engine;
    return [
      ...current.warnings(),
      ...events.removals(),
      ...engine.warnings(),
      ...(copies?.warnings() ?? []),
      ...this.#shortfalls.warnings(),
      ...this.#jobs.warnings(),
      ...(database?.warnings() ?? []),
      ...(member?.warnings() ?? []),
      ...(this.#parts.rowWarnings?.() ?? []),
      ...plainListeners(this.#config),
      ...this.#trust.auth.warnings(),
      ...audit.warnings(),
      ...this.#mails.warnings(),
    ];
  }

  #buildMetrics() {
    const { cameras, registry: own, operatorMetrics: more } = this.#parts;
    const { version, clock, log } = this.#deps;
    const { auth, tls } = this.#trust;
    const {
      nodeName,
      metrics,
      console: { site },
    } = this.#config;
    const { requireToken } = metrics;
    const registry = Registry.merge([buildMetricsRegistry({ cameras, version, nodeName, site, clock }), own]);
    return buildMetricsServer(registry, { log, requireToken, auth, more, ...(requireToken && tls ? { tls } : {}) });
  }

  #followCertificate(listeners: readonly FastifyInstance[]): void {
    const { certificate } = this.#trust;
    const { log, clock } = this.#deps;
    if (!certificate) return;
    const servers = listeners.map(({ server }) => server as HttpsServer);
    const used = (pair: CertificatePair): void => {
      this.#certificateInUse = pair;
    };
    this.#following = followCertificate(certificate, servers, { log, clock, used });
  }

  async #listen(server: FastifyInstance, { host, port }: ListenAddress): Promise<string> {
    const address = await server.listen({ host, port });
    this.#listeners.push(server);
    return address;
  }

  async #listenToPeers(
    address: ListenAddress,
    own: OwnCertificate,
    listeners: Readonly<Record<PeerListener, FastifyInstance>>,
  ): Promise<void> {
    const { engine, audit, store } = this.#parts;
    const { member } = engine;
    const { visits, sink } = audit;
    const { clock, log } = this.#deps;
    const { pair, authorities } = own;
    const joining = store && { ...store, authorities: () => own.authorities };
    const jobs = this.#namedJobs;
    const peers = await buildPeersServer({
      nodeId: this.#config.nodeName,
      visits,
      audit: sink,
      pair,
      authorities,
      jobs,
      listeners,
      members: member && { has: (nodeId) => member.isMember(nodeId), look: () => member.view.lookAtNodes() },
      joining,
      clock,
      log,
    });
    own.follow(followAuthorities(peers.server as HttpsServer));
    await this.#listen(peers, address);
  }
}

/** Undefined outside of a cluster. */
function openPeerRequests(
  { member }: Engine,
  { own, peerCa }: ServingTrust,
  { clock }: FrontDeps,
): PeerRequests | undefined {
  return (
    member &&
    new PeerRequests({
      nodeId: member.view.nodeId,
      find: (nodeId) => member.find(nodeId),
      own: () => mutualTls(own),
      ca: peerCa,
      clock,
    })
  );
}

const mutualTls = (own: OwnCertificate | undefined): MutualTls | undefined =>
  own?.authorities === undefined ? undefined : { ...own.pair, ca: own.authorities };

function openJobs(
  config: Config,
  { engine: { cameras, member }, registry, answers, events }: ServingParts,
  { collector, times }: { readonly collector: Collector; readonly times: FootageOfNodes },
  { own, peerCa, redisCa }: ServingTrust,
  { version, clock, log }: FrontDeps,
): Jobs {
  const { nodeName, recordPath } = config;
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
    archive: collector.own.archive,
    ffmpegPath: config.ffmpeg.path,
    version,
    local: {
      site: config.console.site,
      timeZone: config.console.timeZone,
      nameOf: (id) => cameras.get(id)?.status.name ?? id,
    },
    clock,
    log,
    async spareBytes() {
      const space = await nodeFileSystem.space(directory);
      const { minFree } = config.archive.retention;
      return space.freeBytes - (minFree ? bytesOf(minFree, space) : 0);
    },
    peers: {
      members: () => [...config.cluster.peers.map((address) => ({ address })), ...(member?.members() ?? [])],
      scheme: config.tls ? 'https' : 'http',
      ...(peerCa === undefined ? {} : { ca: peerCa }),
      own: () => mutualTls(own),
    },
    collector,
    async knownTime(cameraId, fromMs, toMs, isOfAllNodes, by) {
      const {
        gaps,
        elsewhere,
        knownUntilMs: untilMs,
      } = await (isOfAllNodes
        ? times.ofAllNodes(cameraId, fromMs, toMs, by)
        : times.report(cameraId, fromMs, toMs, by));
      return { gaps: isOfAllNodes ? gaps : causesIn({ gaps, elsewhere }), elsewhere, untilMs };
    },
    registry,
    memory: answers.jobs,
    mayHaveJobs: () => mayHaveJobs(queue),
    openQueue: (work, ended) => openQueue(queue, work, ended),
    observer: (change, job) => events.jobs(change, { ...job, id: jobName(member?.view.nodeId, job.id) }),
  });
}

function portOf({ server }: FastifyInstance): number | undefined {
  const address = server.address();
  return typeof address === 'object' ? address?.port : undefined;
}

/** The mail server, and who gets mails; undefined if there is none. */
function mailOf({ current }: Pick<ServingParts, 'current'>) {
  const { mail } = current.value;
  if (!mail) return undefined;
  const { server: url, allowPlainText: allowsPlainText, user, password, passwordFile, from, to, escalation } = mail;
  return {
    server: { url, allowsPlainText, user, password, passwordFile, from },
    settings: { to, escalation: escalation && { afterMs: escalation.after, to: escalation.to } },
  };
}
