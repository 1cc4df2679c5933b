// One recorder, joined from its rooms: archive, cameras, live streams, HTTP. Two can live in one process.

import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Registry } from 'prom-client';
import { MemoryBudget } from '../base/memory-budget.ts';
import { memoryLimit } from '../base/memory-limit.ts';
import { NO_CAMERA_THERE } from '../base/networks.ts';
import { adminToken } from './http/admin-token.ts';
import { Authenticator } from './http/auth.ts';
import { CertificateError, readCertificate, type CertificatePair, type CertificatePaths } from './http/certificate.ts';
import { OwnCertificate } from './http/own-certificate.ts';
import { plainListeners, reachedAs } from './exposure.ts';
import { Archive } from './archive/archive.ts';
import { readBootId } from './archive/gaps/alive.ts';
import { GapLedger } from './archive/gaps/ledger.ts';
import { allOf } from './archive/catalogue/observer.ts';
import { nodeFileSystem } from './archive/disk/file-system.ts';
import type { Limits } from './archive/retention/plan.ts';
import { CameraSet, type WantedCamera } from './camera-set.ts';
import { NodeCameraEditor } from './camera-editor.ts';
import { NodeCameraSwitch } from './camera-switch.ts';
import { ReadPacer } from './camera/read-pacer.ts';
import type { CameraSwitch } from './camera/switch.ts';
import { SlabPool } from './codec/slab.ts';
import type { ClusterMember } from './cluster-member.ts';
import type { OpenTokenReviews } from './cluster/join.ts';
import { changedSettings } from './config/changes.ts';
import { ConfigError } from './config/load.ts';
import type { CameraConfig, Config, TokenConfig } from './config/schema.ts';
import { mergeCameras, NO_CAMERAS, type CameraList } from './database/camera-rows.ts';
import type { RecorderDatabase } from './database/database.ts';
import { authorityBeside, readTrusted } from './jobs/trusted.ts';
import { urlOf } from './cluster/peers.ts';
import { openCameraLogins } from './kept-logins.ts';
import { License } from './license/license.ts';
import { LiveLimits } from './live/limits.ts';
import { forAnswers, forCameras, forWriting, mediaBytes, registerMemoryMetrics } from './memory.ts';
import { CameraNetworks, type NetworkRules } from './reach/networks.ts';
import { takeState, type ArchiveOwner } from './owner.ts';
import { openAudit } from './node-audit.ts';
import type { RecorderDeps } from './deps.ts';
import { openEvents } from './node-events.ts';
import { registerWebhookMetrics } from './webhook-metrics.ts';
import type { Webhooks } from './webhooks.ts';
import { openServing, type Serving } from './serving.ts';

const TICK_MS = 250;
const WARNINGS_MS = 1_000;
const RECEIVE_BUFFER_BYTES = 64 * 1024;

export interface Recorder {
  /** Where the API listens, for tests that asked for port 0. */
  readonly address: string;
  /** Where playback listens. */
  readonly playbackAddress: string;
  readonly cameras: CameraSet;
  /** The routes of each listener, as `GET /api/cameras`. */
  readonly routes: Readonly<Record<'api' | 'playback' | 'metrics', readonly string[]>>;
  /** Applies changed cameras; other settings that differ need a restart, and are named in the log. */
  reload(config: Config): Promise<void>;
  /** Tears sessions down, completes every file and stops listening. */
  close(): Promise<void>;
}

/** Starts everything `config` asks for. Rejects when an address is taken or the archive cannot be used at all. */
export async function startRecorder(config: Config, deps: RecorderDeps): Promise<Recorder> {
  // Before anything in it is read: what another recorder keeps there changes under one that believes it its own.
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

async function startAlone(config: Config, deps: RecorderDeps & { readonly owner: ArchiveOwner }): Promise<Recorder> {
  const { clock, log, version } = deps;
  const { nodeName, recordPath } = config;
  const tokenReviews = await joinTokenReviews();
  const reviewer = tokenReviews?.reviews;
  const archiveRegistry = new Registry();
  const audit = openAudit(config, { clock, log, copy: deps.audit, registry: archiveRegistry });
  const auth = new Authenticator(
    {
      ...config.auth,
      tokens: await tokensOf(config),
      metricsSha256: config.metrics.tokenSha256,
      allowedHosts: allowedHostsOf(config),
    },
    { clock, log, reviewer, registry: archiveRegistry, audit: audit.sink },
  );
  const memory = new MemoryBudget(mediaBytes(memoryLimit()));
  registerMemoryMetrics(archiveRegistry, memory);
  const liveLimits = new LiveLimits({}, memory);
  const events = await openEvents(config, { clock, log, memory, version });
  const answers = forAnswers(memory);
  let present = config;
  let started = false;
  const database = config.database && (await openDatabase(config.database.url));
  const bootId = await readBootId();
  const gaps = new GapLedger({
    root: recordPath,
    clock,
    log,
    bootId,
    registry: archiveRegistry,
    observerOf: events.gapsOf,
    checkDisk: () => archive.checkDisk(),
  });
  let limits: Limits = limitsOf(present, config.cameras);
  const archive = new Archive({
    root: recordPath,
    clock,
    log,
    syncIntervalMs: config.archive.syncIntervalMs,
    registry: archiveRegistry,
    observer: allOf(database ? [gaps, database] : [gaps]),
    workDir: config.workDir,
    ...deps.owner,
    limits: () => limits,
    memory: forWriting(memory),
  });
  const license = new License({
    ...config.license,
    wanted: () => wantedCameras().cameras.filter(({ enabled }) => enabled).length,
    changed: reapplyCameras,
    registry: archiveRegistry,
    clock,
    log,
  });
  const pacer = new ReadPacer();
  const reach = {
    networks: new CameraNetworks(networksOf(config)),
    logins: await openCameraLogins({ fs: nodeFileSystem, workDir: config.workDir, clock, log }),
  };
  const cameras = new CameraSet({
    clock,
    log,
    archive,
    gaps,
    pool: new SlabPool(),
    pacer,
    reach,
    receiveBuffer: Buffer.allocUnsafeSlow(RECEIVE_BUFFER_BYTES),
    liveLimits,
    memory: forCameras(memory),
    state: events.cameraState,
    refusals: (wanted, running) => license.refusals(wanted, running),
  });
  const cameraSwitch = new NodeCameraSwitch({
    fs: nodeFileSystem,
    workDir: config.workDir,
    files: () => present.cameras,
    ...(database
      ? {
          database: {
            cameras: () => database.cameras.cameras,
            setEnabled: (id: string, enabled: boolean) => database.setCameraEnabled(id, enabled),
          },
        }
      : {}),
    refusal(cameraId) {
      const wanted = wantedCameras().cameras.filter(({ id, enabled }) => enabled || id === cameraId);
      return license.refusals(wanted, cameras.running()).get(cameraId);
    },
    apply: applyCameras,
    clock,
    log,
  });
  const cameraEditor =
    deps.configuration &&
    new NodeCameraEditor({
      fs: nodeFileSystem,
      configFile: deps.configuration.file,
      reload: deps.configuration.reload,
      ...(database
        ? {
            database: {
              row: (id: string) => database.cameraRow(id),
              edit: (id, change) => database.editCamera(id, change),
            },
          }
        : {}),
      ...(config.cluster.mode === 'none' ? {} : { cluster: { has: (id) => cameras.config(id) !== undefined } }),
      apply: applyCameras,
      forget: (id) => cameraSwitch.forget(id),
      clock,
    });
  const own = config.tls === 'auto' || config.cluster.listen ? await openOwnCertificate() : undefined;
  const member = await joinCluster();
  const certificate = config.tls === 'auto' ? own?.paths : config.tls;
  const tls = certificate && (await readTls(certificate));
  for (const { message } of plainListeners(config)) log.warn({}, message);
  const peerCa =
    (await readTrusted('cluster.ca', config.cluster.ca)) ??
    (member && certificate ? await authorityBeside(certificate.certificate) : undefined);
  const redisCa = await readTrusted('redis.ca', config.redis?.ca);
  let serving: Serving | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lookedMs = -Infinity;
  let webhooks: Webhooks | undefined;
  // Also without any: metrics are joined once, and the first may come with a reload.
  registerWebhookMetrics(archiveRegistry, () => webhooks?.list ?? []);
  try {
    await configureWebhooks(config, events.beginId);
    // Before recovery, which tells of the segments that it completes.
    await gaps.load();
    await Promise.all([archive.recover(), database?.open(), cameraSwitch.load(), license.start()]);
    database?.start(archive);
    // Before cameras send anything: building it holds up everything else, and footage is dated by when packets were seen.
    serving = await openServing(
      config,
      {
        archive,
        gaps,
        cameras,
        cameraSwitch: switchOf(member),
        cameraEditor,
        pacer,
        reach,
        license,
        database,
        member,
        registry: archiveRegistry,
        memory: answers,
        audit,
        events,
        refusedCameras: () => wantedCameras().refused,
      },
      { auth, tls, certificate, own, peerCa, redisCa },
      deps,
    );
    started = true;
    deps.recording?.();
    await member?.start();
    await applyCameras();
    timer = setInterval(() => {
      cameras.tick();
      archive.tick();
      member?.tick();
      lookForWarnings();
    }, TICK_MS);
    const { address, playbackAddress, routes } = serving;
    log.info({ version, node: nodeName, address, cameras: cameras.list().length, recordPath }, 'recorder started');

    return {
      address,
      playbackAddress,
      cameras,
      routes,
      async reload(next) {
        const beginId = events.journal.newestId;
        deps.logLevels?.configure(next.log.level);
        present = { ...present, log: { ...present.log, level: next.log.level } };
        const settings = changedSettings(present, next);
        if (settings.length > 0) log.warn({ settings }, 'settings changed that need a restart');
        const { tokens, tokensFile } = next.auth;
        if (!isDeepStrictEqual(tokens, present.auth.tokens)) {
          auth.replaceTokens(await tokensOf({ ...present, auth: next.auth }));
          log.info({ tokens: tokens.map(({ name }) => name) }, 'tokens replaced');
        }
        const { tokenSha256 } = next.metrics;
        if (tokenSha256 !== present.metrics.tokenSha256) {
          auth.replaceMetricsToken(tokenSha256);
          log.info({}, 'token for metrics replaced');
        }
        const { syncIntervalMs, protectForMs } = present.archive;
        const archive = { ...next.archive, syncIntervalMs, protectForMs };
        present = {
          ...present,
          archive,
          cameras: next.cameras,
          auth: { ...present.auth, tokens, tokensFile },
          metrics: { ...present.metrics, tokenSha256 },
        };
        reach.networks.configure(networksOf(next));
        database?.reconfigure();
        await license.look();
        await applyCameras();
        await configureWebhooks(next, beginId);
      },
      async close() {
        await close();
        log.info({}, 'recorder stopped');
      },
    };
  } catch (err) {
    await close();
    throw err;
  }

  async function close(): Promise<void> {
    started = false;
    events.stopping();
    license.close();
    // Cameras first: what they still hold goes into files while the API answers.
    await Promise.all([cameras.close(), serving?.leaveCameras()]);
    clearInterval(timer);
    await Promise.all([member?.close(), serving?.close(), tokenReviews?.close(), own?.close()]);
    auth.close();
    await Promise.all([audit.close(), archive.close()]);
    await gaps.close();
    await webhooks?.close();
    await events.close();
    // Last: what was closed until now has rows.
    await database?.close();
  }

  async function configureWebhooks(next: Config, beginId: number): Promise<void> {
    if (!webhooks) {
      // Not loaded where there are none.
      if (next.webhooks.length === 0 && next.webhooksFile === undefined) return;
      const { Webhooks } = await import('./webhooks.ts');
      const directory = join(config.workDir, 'events');
      webhooks = new Webhooks({ journal: events.journal, directory, clock, log });
    }
    await webhooks.configure(next, beginId);
  }

  /** They are asked of many parts, each of which knows only what is now. */
  function lookForWarnings(): void {
    const nowMs = clock.monotonicMs();
    if (!serving || nowMs - lookedMs < WARNINGS_MS) return;
    lookedMs = nowMs;
    events.warningsAre(serving.warnings());
  }

  /** Without configured ones, the one that was made for the first start. */
  async function tokensOf({ auth: { mode, tokens }, workDir }: Config): Promise<readonly TokenConfig[]> {
    return mode === 'token' && tokens.length === 0 ? [await adminToken(workDir, log)] : tokens;
  }

  async function openOwnCertificate(): Promise<OwnCertificate> {
    const directory = join(config.workDir, 'tls');
    try {
      return await OwnCertificate.open({ directory, names: () => reachedAs(config), clock, log });
    } catch (err) {
      if (err instanceof CertificateError) throw new ConfigError(err.file, 'tls', err.message);
      throw err;
    }
  }

  async function openDatabase(url: string): Promise<RecorderDatabase> {
    // Not loaded where there is none.
    const { RecorderDatabase } = await import('./database/database.ts');
    return new RecorderDatabase({
      url,
      nodeName,
      workDir: config.workDir,
      defaults: () => present.archive,
      listAllNodes: config.cluster.mode !== 'none',
      clock,
      log,
      registry: archiveRegistry,
      camerasChanged: reapplyCameras,
    });
  }

  /** Cameras of the files and, with one, of the database, as users want them now. */
  function wantedCameras(): CameraList & { readonly cameras: readonly WantedCamera[] } {
    const { cameras, refused } = mergeCameras<WantedCamera>(
      cameraSwitch.overrule(present.cameras),
      member?.cameras() ?? database?.cameras ?? NO_CAMERAS,
    );
    return {
      refused,
      cameras: cameras.map((camera) =>
        camera.enabled ? camera : { halted: member ? SUSPENDED : DISABLED_ROW, ...camera },
      ),
    };
  }

  /** Resolves to nothing for a node on its own. */
  async function joinCluster(): Promise<ClusterMember | undefined> {
    if (config.cluster.mode === 'none') return undefined;
    const { pod } = deps;
    if (config.cluster.mode === 'etcd') throw new ConfigError('', 'cluster.mode', 'etcd is not supported yet');
    if (!pod) throw new ConfigError('', 'cluster.mode', 'kubernetes: this process does not run in a pod');
    // Not loaded where there is no cluster.
    const { openMember } = await import('./cluster-member.ts');
    return openMember({
      config,
      place: pod,
      version,
      cameras,
      archive,
      gaps: events.accountFor(gaps),
      observer: events.assignments,
      own,
      changed: reapplyCameras,
      clock,
      log,
    });
  }

  /** Resolves to nothing where tokens are only those of the configuration. */
  async function joinTokenReviews(): Promise<OpenTokenReviews | undefined> {
    const { pod } = deps;
    if (config.auth.mode !== 'kubernetes') return undefined;
    if (!pod) throw new ConfigError('', 'auth.mode', 'kubernetes: this process does not run in a pod');
    const { audiences } = config.auth;
    const { openTokenReviews } = await import('./cluster/join.ts');
    return openTokenReviews({ place: pod, pool: config.cluster.pool, audiences, cameraIds, clock });
  }

  /** Of which something may be told here: those of this node, of its archive, and of the cluster. */
  function cameraIds(): ReadonlySet<string> {
    return new Set([
      ...cameras.list().map(({ status }) => status.id),
      ...archive.extents().map(({ camera }) => camera),
      ...(member?.view.cameraIds() ?? []),
    ]);
  }

  /** Cameras of files are the node's, others the cluster's. */
  function switchOf(member: ClusterMember | undefined): CameraSwitch {
    if (!member) return cameraSwitch;
    const keeper = (id: string): CameraSwitch =>
      present.cameras.some((camera) => camera.id === id) ? cameraSwitch : member.cameraSwitch;
    return { start: (id, by) => keeper(id).start(id, by), stop: (id, by) => keeper(id).stop(id, by) };
  }

  /** For changes from elsewhere. */
  function reapplyCameras(): void {
    if (started) void applyCameras().catch((err: unknown) => log.error({ err }, 'cameras could not be changed'));
  }

  function applyCameras(): Promise<void> {
    const { cameras: wanted, refused } = wantedCameras();
    for (const { id, reason } of refused) log.warn({ camera: id, ...reason }, 'a camera is refused');
    audit.camerasAre(wanted);
    limits = limitsOf(present, wanted);
    serving?.configure(wanted);
    return cameras.apply(wanted);
  }
}

/** In a cluster those who write Cameras are not those who own the network. */
function networksOf({ cameraNetworks, cluster }: Config): NetworkRules {
  const refused = cluster.mode === 'none' ? [] : [...NO_CAMERA_THERE, ...cluster.networks];
  return { only: cameraNetworks, refused };
}

const SUSPENDED = { reason: { code: 'suspended', message: 'spec.suspend of the Camera is true' } } as const;
const DISABLED_ROW = { reason: { code: 'disabled', message: 'enabled is false in the table cameras' } } as const;

/** Also of origins that are named: their pages may do everything as it is. */
function allowedHostsOf({ auth, cors, cluster, playback }: Config): readonly string[] {
  const urls = [...cors.origins, urlOf(cluster.advertise, false), urlOf(playback.advertise, false)];
  return [
    ...auth.allowedHosts,
    ...urls.flatMap((url) => (URL.canParse(url ?? '') ? [new URL(url ?? '').hostname] : [])),
  ];
}

/** How much footage is kept, of the node and of each camera. */
const limitsOf = (config: Config, cameras: readonly CameraConfig[]): Limits => ({
  node: config.archive.retention,
  cameras: new Map(cameras.map(({ id, record }) => [id, record.retention])),
});

/** Throws ConfigError when the pair cannot be used. */
async function readTls(paths: CertificatePaths): Promise<CertificatePair> {
  try {
    return await readCertificate(paths);
  } catch (err) {
    if (err instanceof CertificateError) throw new ConfigError(err.file, `tls.${err.key}`, err.message);
    throw err;
  }
}
