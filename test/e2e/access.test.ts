// Who may do what: every route of every listener, with every role, without a token, and for a camera that the token is
// not for. The routes are those that the listeners really have.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance, FastifyRequest, LightMyRequestResponse } from 'fastify';
import { WebSocket } from 'ws';
import { systemClock, VirtualClock } from '../../base/clock.ts';
import { LevelSwitch } from '../../base/log-level.ts';
import { noAudit } from '../../recorder/audit/entry.ts';
import { silentLog } from '../../base/log.ts';
import { unlimitedMemory } from '../../base/memory-budget.ts';
import type { ClusterAccess } from '../../recorder/api/cluster-access.ts';
import type { ListedCamera } from '../../recorder/cluster/camera-list.ts';
import { buildMetricsRegistry, buildMetricsServer } from '../../recorder/api/prometheus.ts';
import {
  archiveStatus,
  build,
  type ApiChanges,
  cameraStatus,
  emptyArchive,
  fakeCluster,
  gapReader,
  noGaps,
  token,
} from '../../recorder/api/test-support.ts';
import type { EventSource, JobKeeper, ProtectionKeeper } from '../../recorder/api/deps.ts';
import { IssueError } from '../../recorder/certificates/issuer.ts';
import { DatabaseError } from '../../recorder/database/error.ts';
import type { OpenApiDocument } from '../../recorder/http/openapi.ts';
import { NodeKeyError } from '../../recorder/jobs/node-key.ts';
import { PeerUnavailable, type PeerSender } from '../../recorder/peers/peer-requests.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { temporaryDirectory, TestCamera, TestFileSystem } from '../../recorder/archive/test-support.ts';
import { EditError, type CameraEditor } from '../../recorder/config/editor.ts';
import { SwitchError } from '../../recorder/contract/camera-switch.ts';
import { loadConfig } from '../../recorder/config/load.ts';
import type { Role, TokenConfig } from '../../recorder/config/schema.ts';
import { EventStreams } from '../../recorder/events/event-stream.ts';
import { EventJournal } from '../../recorder/events/journal.ts';
import type { Alarm } from '../../recorder/alarms/alarm.ts';
import type { Happening } from '../../recorder/happenings/happening.ts';
import { openFootage } from '../../recorder/footage/open.ts';
import { Authenticator, type AuthDeps, type AuthOptions } from '../../recorder/http/auth.ts';
import type { TokenReview as Review } from '../../recorder/cluster/token-reviews.ts';
import { JobsUnavailable, type Job } from '../../recorder/jobs/job.ts';
import { LiveLimits } from '../../recorder/live/limits.ts';
import { LiveStream, run } from '../../recorder/live/test-support.ts';
import { buildPlayback, openPlayback } from '../../recorder/playback/app.ts';
import { startRecorder } from '../../recorder/run/recorder.ts';
import type { ProbeReport } from '../../recorder/probe/report/report.ts';
import { StillError } from '../../recorder/snapshots/error.ts';
import { workspace } from '../support/workspace.ts';
import {
  API_ROUTES,
  CLUSTER_ROUTES,
  METRICS_ROUTES,
  PLAYBACK_ROUTES,
  PLAYBACK_UNDER_API,
  requestOf,
  STORE_ROUTES,
  type RouteFacts,
} from './routes.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);
/** `gate` is in scope, `yard` is not; `ghost` is in scope, and there is no such camera. */
const CAMERAS = ['gate', 'yard'];
const SCOPE = ['gate', 'gho*'];
const AWAY = 'yard-3';

const ROLES: readonly Role[] = ['viewer', 'operator', 'admin'];
/** What each role may do: routes that ask for these. */
const MAY: Readonly<Record<Role, readonly RouteFacts['role'][]>> = {
  reporter: ['reporter'],
  viewer: ['viewer'],
  operator: ['reporter', 'viewer', 'operator'],
  admin: ['reporter', 'viewer', 'operator', 'admin'],
};

interface Caller {
  readonly name: string;
  readonly token: string | undefined;
  readonly role: Role | undefined;
  readonly scoped: boolean;
  /** It has the right to export, whatever its role. */
  readonly exports?: true;
  /** It is known who it is, and it may do nothing. */
  readonly powerless?: true;
}

const CALLERS: readonly Caller[] = [
  { name: 'nobody', token: undefined, role: undefined, scoped: false },
  { name: 'a wrong token', token: 'guess', role: undefined, scoped: false },
  ...ROLES.flatMap((role) => [
    { name: role, token: role, role, scoped: false },
    { name: `${role} for some cameras`, token: `few-${role}`, role, scoped: true },
  ]),
];

/** Only the configuration has this role. */
const REPORTERS: readonly Caller[] = [
  { name: 'a reporter', token: 'reporter', role: 'reporter', scoped: false },
  { name: 'a reporter for some cameras', token: 'few-reporter', role: 'reporter', scoped: true },
];

/** Only the configuration gives this right to viewers. */
const EXPORTER: Caller = {
  name: 'a viewer who may export',
  token: 'exporter',
  role: 'viewer',
  scoped: false,
  exports: true,
};

type Auth = AuthOptions & Pick<AuthDeps, 'reviewer'>;

interface Source {
  /** Where it is said who may do what. */
  readonly source: string;
  readonly auth: Auth;
  readonly callers: readonly Caller[];
}

const CONFIGURED: Source = {
  source: 'configured tokens',
  auth: {
    mode: 'token',
    tokens: [...ROLES, 'reporter' as const]
      .flatMap((role): TokenConfig[] => [
        token(role),
        { ...token(role, `few-${role}`), name: `few-${role}`, cameras: SCOPE },
      ])
      .concat({ ...token('viewer', 'exporter'), export: true }),
  },
  callers: [...CALLERS, ...REPORTERS, EXPORTER],
};

const REVIEWED: Source = {
  source: 'tokens that the API server knows',
  auth: { mode: 'kubernetes', tokens: [], reviewer: { review: async (whom) => reviewOf(whom as string) } },
  callers: [
    ...CALLERS,
    { name: 'somebody without a right', token: 'powerless', role: undefined, scoped: false, powerless: true },
  ],
};

function reviewOf(presented: string): Review {
  const known = { kind: 'known', name: presented, cameras: undefined } as const;
  if (presented === 'powerless') return { ...known, role: undefined };
  const role = ROLES.find((one) => presented.endsWith(one));
  if (role === undefined) return { kind: 'wrong' };
  return { ...known, role, ...(presented.startsWith('few-') && { cameras: new Set(['gate', 'ghost']) }) };
}

const PLACES = ['bearer', 'basic', 'query', 'cookie', 'link'] as const;
type Place = (typeof PLACES)[number];

const isKnown = (cameraId: string): boolean => CAMERAS.includes(cameraId);

function jobKeeper(t: TestContext): JobKeeper {
  const path = join(workspace(t), 'movie.mp4');
  writeFileSync(path, 'movie');
  const jobOf = (cameraId: string): Job => ({
    kind: 'export',
    cameraId,
    id: `of-${cameraId}`,
    fromMs: NOON_MS,
    toMs: NOON_MS + 1000,
    state: 'done',
    progress: 1,
    createdAtMs: NOON_MS,
    completedAtMs: NOON_MS,
    outcome: { sizeBytes: 5, durationMs: 1000, gaps: [] },
    reason: undefined,
  });
  const find = (id: string) => CAMERAS.map(jobOf).find((job) => job.id === id);
  return {
    ffmpegIsThere: async () => true,
    submit: async ({ cameraId }) => jobOf(cameraId),
    get: async (id) => find(id),
    list: async () => CAMERAS.map(jobOf),
    remove: async (id) => find(id) !== undefined,
    estimate: async () => ({ sizeBytes: 5, durationMs: 1000, gaps: [] }),
    result: async () => ({ path, sizeBytes: 5, modifiedMs: NOON_MS }),
    manifest: async () => ({ text: Buffer.from('{}'), signature: Buffer.alloc(64) }),
    signingKey: async () => ({ publicKey: 'PEM', fingerprint: 'f'.repeat(64), sign: () => Buffer.alloc(64) }),
    isMember: () => true,
    fileName: () => 'result',
  };
}

function protectionKeeper(): ProtectionKeeper {
  const windowOf = (cameraId: string) => ({
    id: `of-${cameraId}`,
    cameraId,
    fromMs: NOON_MS,
    toMs: NOON_MS + 1000,
    createdMs: NOON_MS,
    note: undefined,
    untilMs: undefined,
    by: undefined,
  });
  const find = (id: string) => CAMERAS.map(windowOf).find((window) => window.id === id);
  return {
    windows: {
      list: async (cameraId) =>
        CAMERAS.map(windowOf).filter((window) => cameraId === undefined || window.cameraId === cameraId),
      add: async ({ cameraId }) => windowOf(cameraId),
      remove: async (id) => find(id),
    },
    keptMs: 1000,
  };
}

const clusterCamera = (id: string): ListedCamera => ({
  id,
  name: id.toUpperCase(),
  nodeId: 'rack-2',
  epoch: 3,
  state: 'recording',
  reason: undefined,
  lastWrittenMs: NOON_MS,
  archives: [{ nodeId: 'rack-2', oldestMs: NOON_MS, newestMs: undefined }],
});

/** This node leads; `yard-3`, which is out of scope, is recorded by another one. */
function clusterAccess(): ClusterAccess {
  const owner = { nodeId: 'rack-2', url: 'http://rack-2:9997', epoch: 3 };
  const done = async () => ({ code: 200, message: 'done' });
  return fakeCluster('rack-1', {
    ownerOf: (cameraId) => (cameraId === AWAY ? owner : undefined),
    holdersOf: (cameraId) =>
      cameraId === AWAY
        ? [
            {
              nodeId: 'rack-2',
              url: owner.url,
              playbackUrl: undefined,
              oldestMs: NOON_MS,
              newestMs: NOON_MS,
              isRecording: true,
            },
          ]
        : [],
    cameras: async () => ({ isCurrent: true, nodes: [], cameras: [...CAMERAS, AWAY].map(clusterCamera) }),
    origins: () => [owner.url],
    others: () => new Map([[AWAY, owner]]),
    metrics: async () => ({ leader: 'rack-1', hasMajority: true, voters: ['rack-1'], nodes: [] }),
    leader: () => ({ nodeId: 'rack-1', url: undefined }),
    ask: done,
    leave: done,
  });
}

function cameraEditor(): CameraEditor {
  const edit = async (id: string) => {
    if (!isKnown(id)) throw new EditError('unknown-camera', 'none');
    return { settings: { id, source: `rtsp://${id}.example/` }, tag: '1' };
  };
  return {
    read: edit,
    change: edit,
    add: async ({ id }) => edit(id as string),
    remove: async (id) => void (await edit(id)),
    complete: async (id, source) => (await edit(id), source),
  };
}

const expelled = { nodeId: 'rack-3', step: 'done', problem: undefined, away: [], secrets: [] } as const;

const probeReport: ProbeReport = {
  seconds: 1,
  state: 'recording',
  login: [],
  methods: [],
  answers: [],
  unanswered: [],
  streams: [],
  not_recorded: [],
  not_believed: [],
  recorded: {},
  runs_ended: [],
  rows: [],
};

const happeningOf = (cameraId: string): Happening => ({
  camera_id: cameraId,
  id: '1',
  source: 'door',
  type: 'opened',
  start_ms: NOON_MS,
  end_ms: null,
  reported_by: 'door',
  received_ms: NOON_MS,
});

const alarmOf = (cameraId: string): Alarm => ({
  id: cameraId,
  cameraId,
  code: 'camera-unreachable',
  message: undefined,
  startMs: NOON_MS,
  endMs: undefined,
  count: 1,
  acknowledged: undefined,
  isMailed: false,
  isEscalated: false,
});

async function eventsOf(t: TestContext): Promise<EventSource> {
  const clock = systemClock;
  const memory = unlimitedMemory('events');
  const journal = await EventJournal.open({ directory: workspace(t), node: 'rack-1', clock, log: silentLog, memory });
  for (const cameraId of CAMERAS) journal.tell({ type: 'camera.state', cameraId, data: { state: 'recording' } });
  await journal.close();
  return { journal, streams: new EventStreams({ clock, memory }) };
}

/** Two cameras with all that there may be of them. `changed`: what the API gets instead. */
async function apiStage(
  t: TestContext,
  auth: Auth,
  changed: (changes: ApiChanges) => ApiChanges = (changes) => changes,
): Promise<Listener> {
  const image = { type: 'image/jpeg', body: Buffer.from('image'), etag: '"1"', remainingMs: 1000 } as const;
  const still = async (cameraId: string) => {
    if (!isKnown(cameraId)) throw new StillError('unknown-camera', 'none');
    return image;
  };
  const change = async (cameraId: string): Promise<number> => {
    if (!isKnown(cameraId)) throw new SwitchError('unknown-camera', 'none');
    return 1;
  };
  const {
    app,
    auth: authenticator,
    clock,
    cameras,
  } = await build(
    t,
    changed({
      auth,
      archive: {
        ...emptyArchive,
        countSegments: (cameraId) => (isKnown(cameraId) ? 1 : 0),
        current: async (cameraId) =>
          isKnown(cameraId) ? { path: `${cameraId}.mp4`, startMs: NOON_MS, sizeBytes: 1 } : undefined,
      },
      segments: {
        list: async (cameraId) => ({ segments: [], days: isKnown(cameraId) ? ['2026-01-01'] : [] }),
      },
      gaps: gapReader(async (cameraId, fromMs, toMs) => ({
        ...(await noGaps.ofThisNode(cameraId, fromMs, toMs)),
        ...(isKnown(cameraId) ? { wantedMs: 1000, recordedMs: 1000 } : {}),
      })),
      times: {
        refresh: async () => {},
        of: async (cameraId, fromMs, toMs) => ({
          keptFromMs: isKnown(cameraId) ? NOON_MS : undefined,
          footage: isKnown(cameraId) ? [{ fromMs, toMs }] : [],
          report: await noGaps.ofThisNode(cameraId, fromMs, toMs),
        }),
      },
      protections: protectionKeeper(),
      jobs: jobKeeper(t),
      ptz: { move: async () => 'done', presets: async () => [] },
      stills: {
        snapshot: still,
        thumbnail: still,
        archived: async (cameraId, timeMs) => {
          if (!isKnown(cameraId)) throw new StillError('no-footage', 'none');
          return { ...image, timeMs, isSettled: true };
        },
      },
      discoverer: {
        search: async () => ({ reports: [], problems: [] }),
        known: async () => new Set(),
        stillOfNew: async () => ({ type: 'image/jpeg', body: Buffer.from('still'), etag: '"1"', remainingMs: 0 }),
      },
      doctor: {
        report: async () => probeReport,
        capture: async () => Buffer.from('capture'),
        tryOut: async () => probeReport,
      },
      cameraEditor: cameraEditor(),
      cameraSwitch: { start: change, stop: change },
      tryLogins: async () => 1,
      logLevels: new LevelSwitch('info'),
      audit: {
        sink: noAudit,
        reader: { read: async () => ({ lines: [], next: undefined }), end: { n: 0, sha256: '' } },
      },
      cluster: clusterAccess(),
      store: {
        objects: {
          list: async () => [],
          get: async () => ({}),
          apply: async () => ({ object: {}, outcome: 'unchanged' }),
          patch: async () => ({}),
          delete: async () => {},
        },
        admission: { invite: async () => ({ token: 'nvrjoin', untilMs: NOON_MS }) },
        rotation: { rotate: async () => ({ key: '0a1b2c3d', secrets: 0, away: [] }) },
        expulsion: { begin: async () => expelled, state: expelled },
      },
      refusedCameras: () => [{ id: 'yard-2', reason: { code: 'x', message: 'yard' } }],
      events: await eventsOf(t),
      happenings: {
        add: async (events) => events,
        find: async ({ cameraIds }) => cameraIds.filter(isKnown).map(happeningOf),
      },
      alarms: {
        list: CAMERAS.map(alarmOf),
        notes: [],
        acknowledge: async (id) => CAMERAS.map(alarmOf).find((alarm) => alarm.id === id),
        write: async (by, note) => ({ id: '1', by, atMs: NOON_MS, note }),
      },
      testMail: async () => undefined,
      warnings: () => CAMERAS.map((cameraId) => ({ code: 'x', message: `of ${cameraId}`, cameraId })),
    }),
  );
  for (const id of CAMERAS) {
    const live = new LiveStream({ cameraId: id, limits: new LiveLimits(), clock, log: silentLog });
    live.begin(run());
    cameras.push({
      status: cameraStatus({ id, name: id.toUpperCase() }),
      ptz: true,
      archive: archiveStatus(),
      live,
      silence: { sinceMs: NOON_MS, cause: 'unknown' },
    });
  }
  return { app, auth: authenticator, clock };
}

interface Listener {
  readonly app: FastifyInstance;
  readonly auth: Authenticator;
  /** Of the listener: wrong tokens are limited by it. */
  readonly clock: VirtualClock;
}

/** Twenty seconds of each camera, from the same moment on. */
async function playbackStage(t: TestContext, options: Auth, underApi = false): Promise<Listener> {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock(NOON_MS);
  const fs = new TestFileSystem(root);
  const archive = new Archive({ root, clock, log: silentLog, fs, syncIntervalMs: 5_000 });
  await archive.recover();
  t.after(() => archive.close());
  const sources = CAMERAS.map((cameraId) => {
    const name = `${cameraId.slice(0, 1).toUpperCase()}${cameraId.slice(1)}`;
    const camera = { cameraId, name, format: 'fmp4', segmentDurationMs: 300_000 } as const;
    const recording = archive.sinkFor(camera, { needKeyFrame: () => undefined });
    const source = new TestCamera(clock, recording, () => recording.tick());
    source.begin();
    return source;
  });
  for (const source of sources) await source.play(20, fs);
  for (const source of sources) source.end();
  await fs.idle();
  const auth = new Authenticator(options, { clock, reviewer: options.reviewer });
  const footage = openFootage({ recordPath: root, archive, clock, log: silentLog });
  const deps = { version: '1.2.3', footage, auth, clock, log: silentLog };
  if (underApi) return build(t, { auth: options, playback: { port: () => 1, routes: openPlayback(deps).routes } });
  const app = await buildPlayback(deps);
  t.after(() => app.close());
  return { app, auth, clock };
}

async function metricsStage(t: TestContext, options: Auth): Promise<Listener> {
  const clock = new VirtualClock(NOON_MS);
  const views = CAMERAS.map((id) => ({ status: cameraStatus({ id }), archive: archiveStatus(), live: undefined }));
  const cameras = { list: () => views };
  const registry = buildMetricsRegistry({ cameras, version: '1', nodeName: 'rack-1', site: '', clock });
  const auth = new Authenticator(options, { clock, reviewer: options.reviewer });
  const app = buildMetricsServer(registry, { log: silentLog, auth, requireToken: true });
  t.after(() => app.close());
  return { app, auth, clock };
}

/** What a caller sees of an answer; without what no two answers share, such as the time. */
function seenOf({ statusCode, headers, body }: LightMyRequestResponse): string {
  // The tag is made of the body.
  const { 'x-request-id': id, date: _, etag: __, ...rest } = headers;
  const seen = JSON.stringify({ statusCode, rest, body }).replaceAll(String(id), 'ID');
  return seen.replaceAll(/(?<=server_time(_ms)?\W+)\d[\w:.+-]*/g, 'NOW');
}

/** As if it were told of the camera that does not exist. */
const withGhost = (seen: string): string =>
  seen
    .replaceAll(/yard(-3)?/g, 'ghost')
    .replaceAll(/Yard(-3)?/g, 'Ghost')
    .replaceAll(/"content-length":"?\d+"?/g, '');

async function ask(
  { app, auth, clock }: Listener,
  name: string,
  facts: RouteFacts,
  caller: Pick<Caller, 'token'>,
  camera: string,
  place: Place = 'bearer',
): Promise<LightMyRequestResponse> {
  // An hour between any two, so that wrong tokens are no more than wrong.
  clock.advance(3_600_000);
  await app.ready();
  const { url, payload } = requestOf(app, name, facts, camera);
  const given = caller.token;
  const isInAddress = given !== undefined && (place === 'query' || place === 'link');
  return app.inject({
    method: name.split(' ')[0] as 'GET',
    url: isInAddress ? addressOf(url, given, place, auth) : url,
    ...(payload === undefined ? {} : { payload }),
    headers: given === undefined || isInAddress ? {} : await headersOf(given, place, auth),
  });
}

function addressOf(url: string, given: string, place: Place, auth: Authenticator): string {
  if (place === 'query') return `${url}${url.includes('?') ? '&' : '?'}access_token=${given}`;
  const headers = { authorization: authorizationOf(given, 'bearer') };
  return auth.linkTo(url, { headers } as unknown as FastifyRequest)?.url ?? url;
}

async function headersOf(given: string, place: Place, auth: Authenticator): Promise<Record<string, string>> {
  if (place !== 'cookie') return { authorization: authorizationOf(given, place) };
  const request = { ip: '127.0.0.1', protocol: 'http', headers: {}, server: { listenerName: 'api' }, url: '/' };
  // A caller who cannot sign in has no cookie that is valid.
  const cookie = await auth.signIn(request as unknown as FastifyRequest, { token: given }).then(
    ({ cookies: [cookie = ''] = [] }) => cookie.split(';', 1)[0] as string,
    () => 'kube_nvr_session=bm90IHNlYWxlZCBieSB0aGlzIG5vZGUgb3IgYW55IG90aGVy',
  );
  return { cookie, 'sec-fetch-site': 'same-origin' };
}

const authorizationOf = (given: string, place: Place): string =>
  place === 'bearer' ? `Bearer ${given}` : `Basic ${Buffer.from(`someone:${given}`).toString('base64')}`;

/** The status that `caller` gets for a camera that there is and that it may see. */
function statusFor(facts: RouteFacts, caller: Caller, place: Place, takesCookies: boolean): number {
  const { role, scoped, powerless, exports } = caller;
  if (facts.role === 'anyone') return facts.status;
  if (place === 'cookie' && (powerless || !takesCookies)) return 401;
  const isRead = (place !== 'query' || facts.query) && (place !== 'link' || facts.link);
  if (powerless && isRead) return 403;
  if (role === undefined || !isRead) return 401;
  // Who may not look has no session.
  if (role === 'reporter' && place === 'cookie') return 401;
  if (!MAY[role].includes(facts.role) && !(facts.right === 'export' && exports)) return 403;
  return scoped && facts.cameras === 'nothing' ? 403 : facts.status;
}

const LISTENERS = [
  { name: 'the API', open: apiStage, routes: { ...API_ROUTES, ...CLUSTER_ROUTES, ...STORE_ROUTES } },
  { name: 'playback', open: playbackStage, routes: PLAYBACK_ROUTES },
  {
    name: 'playback under the API',
    open: (t: TestContext, auth: Auth) => playbackStage(t, auth, true),
    routes: PLAYBACK_UNDER_API,
  },
  { name: 'metrics that want a token', open: metricsStage, routes: METRICS_ROUTES },
].flatMap(({ name, open, routes }) =>
  [CONFIGURED, REVIEWED].map(({ source, auth, callers }) => ({
    listener: `${name}, ${source}`,
    stage: (t: TestContext) => open(t, auth),
    routes,
    callers,
  })),
);
/** Whatever promises something breaks its promise; what answers at once, does so. */
const failing = <T extends object>(of: T, error: unknown): T =>
  new Proxy(of, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value === 'object' && value !== null) return failing(value, error);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const answer: unknown = Reflect.apply(value, target, args);
        return answer instanceof Promise ? answer.then(() => Promise.reject(error as Error)) : answer;
      };
    },
  });

/** What may be away, as the API learns of it: the error of each, and a cluster whose nodes and whose leader do not answer. */
const OUTAGES: readonly ((deps: ApiChanges) => ApiChanges)[] = [
  ...[
    new DatabaseError('UNAVAILABLE', 'away'),
    new EditError('camera-not-kept', 'away'),
    new IssueError('away'),
    new JobsUnavailable('away'),
    new NodeKeyError('away'),
    new StillError('ffmpeg-missing', 'away'),
    new SwitchError('switch-not-kept', 'away'),
    Object.assign(new Error('away'), { code: 'EIO' }),
  ].map((error) => (deps: ApiChanges) => {
    const parts = Object.entries(deps).filter(([name]) => name !== 'auth' && name !== 'cluster');
    return {
      ...deps,
      ...Object.fromEntries(
        parts.map(([name, part]) => [name, typeof part === 'object' ? failing(part as object, error) : part]),
      ),
    };
  }),
  (deps) => ({ ...deps, cluster: fakeCluster('rack-1') }),
  (deps) => ({ ...deps, peers: SILENT_NODES }),
];

const SILENT_NODES: PeerSender = {
  request: (nodeId) => Promise.reject(new PeerUnavailable(nodeId, 'away', 'away')),
  upgrade: (nodeId) => Promise.reject(new PeerUnavailable(nodeId, 'away', 'away')),
  answers: async () => false,
};

/** Nobody can say whose a token is. */
const UNREVIEWED: Auth = {
  mode: 'kubernetes',
  tokens: [],
  reviewer: { review: async () => ({ kind: 'unavailable', problem: 'away' }) },
};

/** The routes that answer 503 to an admin, for a camera of this node and for that of another one, with what the document says. */
async function unavailable(on: Listener, routes: Readonly<Record<string, RouteFacts>>) {
  await on.app.ready();
  const { paths = {} } = on.app.swagger() as OpenApiDocument;
  const found: { readonly name: string; readonly isListed: boolean }[] = [];
  for (const [name, facts] of Object.entries(routes)) {
    const [method = '', path = ''] = name.split(' ');
    const operation = paths[path.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{filename}')]?.[method.toLowerCase()];
    if (facts.webSocket || !operation) continue;
    for (const camera of ['gate', AWAY]) {
      const { statusCode } = await ask(on, name, facts, { token: 'admin' }, camera);
      if (statusCode === 503) found.push({ name, isListed: '503' in (operation.responses ?? {}) });
    }
  }
  return found;
}

/** They look at no cookie: one begins a session, the other does what an issuer has signed. */
const WITHOUT_SESSION = ['POST /api/session', 'POST /api/sign-in/:issuer/logout'];

/** What browsers send with requests of pages of other programs on the recorder's machine, of other sites, and of no site. */
const FOREIGN_PAGES: readonly Readonly<Record<string, string>>[] = [
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'none' },
  { 'sec-fetch-site': 'same-site', origin: 'http://nvr.example:9090' },
  { 'sec-fetch-site': 'same-site', origin: 'http://nvr.example:8080' },
  // Over plain HTTP, browsers send no more than this.
  { origin: 'http://nvr.example:9090' },
  { origin: 'http://nvr.example' },
  { origin: 'http://other.example:8080' },
  { origin: 'null' },
  {},
];

/** HEAD is GET without a body. */
const withoutHead = (names: readonly string[]): string[] => names.filter((name) => !name.startsWith('HEAD ')).sort();

for (const { listener, stage, routes, callers } of LISTENERS) {
  const asked = Object.entries(routes).filter(([, facts]) => !facts.webSocket);

  test(`${listener}: every route answers each role as the table says, wherever the token stands`, async (t) => {
    const on = await stage(t);
    for (const [name, facts] of asked) {
      for (const caller of callers) {
        for (const place of PLACES) {
          const answer = await ask(on, name, facts, caller, 'gate', place);
          const what = `${name} for ${caller.name} (${place}): ${answer.body.slice(0, 300)}`;
          assert.equal(answer.statusCode, statusFor(facts, caller, place, !listener.startsWith('metrics')), what);
          if (answer.statusCode === 401) assert.equal(answer.json().code, 'unauthorized', what);
          if (answer.statusCode === 403) assert.equal(answer.json().code, 'forbidden', what);
        }
      }
    }
  });

  test(`${listener}: a camera out of scope answers exactly as one that does not exist`, async (t) => {
    const on = await stage(t);
    const few = { token: 'few-admin' };
    let compared = 0;
    for (const [name, facts] of asked) {
      if (facts.cameras !== 'one') continue;
      const [yard, away, ghost, forAll] = [
        await ask(on, name, facts, few, 'yard'),
        await ask(on, name, facts, few, AWAY),
        await ask(on, name, facts, few, 'ghost'),
        await ask(on, name, facts, { token: 'admin' }, 'yard'),
      ];
      if (facts.takesUnknown) {
        assert.equal(yard.json().code, 'unknown-camera', name);
      } else {
        for (const answer of [yard, away]) assert.equal(withGhost(seenOf(answer)), withGhost(seenOf(ghost)), name);
      }
      // Else the comparison would say nothing.
      assert.equal(forAll.statusCode, facts.status, name);
      assert.notEqual(seenOf(forAll), seenOf(yard), name);
      compared++;
    }
    assert.ok(compared > 0 || listener.startsWith('metrics'));
  });

  test(`${listener}: no answer to a token for some cameras names another camera`, async (t) => {
    const on = await stage(t);
    for (const [name, facts] of asked) {
      for (const role of ROLES) {
        const told = seenOf(await ask(on, name, facts, { token: `few-${role}` }, 'gate'));
        assert.doesNotMatch(told, /yard/i, name);
      }
      if (facts.cameras !== 'some') continue;
      const all = (await ask(on, name, facts, { token: 'admin' }, 'gate')).body;
      assert.match(all, /yard/i, name);
    }
  });

  test(`${listener}: a page that is not the recorder's own changes nothing with the session of a visitor`, async (t) => {
    const on = await stage(t);
    const { cookie } = await headersOf('admin', 'cookie', on.auth);
    for (const [name, facts] of asked) {
      const method = name.split(' ')[0] as 'POST';
      const changes = !['GET', 'OPTIONS'].includes(method) && !WITHOUT_SESSION.includes(name);
      for (const page of changes ? FOREIGN_PAGES : []) {
        await on.app.ready();
        const { url, payload } = requestOf(on.app, name, facts, 'gate');
        const headers = { host: 'nvr.example:8080', ...page, cookie };
        const answer = await on.app.inject({ method, url, headers, ...(payload === undefined ? {} : { payload }) });
        const what = `${name} from ${JSON.stringify(page)}: ${answer.body.slice(0, 300)}`;
        assert.deepEqual([answer.statusCode, answer.json().code], [403, 'foreign-origin'], what);
      }
    }
  });

  test(`${listener}: every route is in the table`, async (t) => {
    const { app } = await stage(t);
    const names = withoutHead(app.routeList.names);
    const own = listener.includes('under') ? names.filter((name) => name.includes(' /playback/')) : names;
    assert.deepEqual(own, Object.keys(routes).sort());
  });
}

test('whatever is away, a route that answers 503 says so in the document', async (t) => {
  const signIn: RouteFacts = {
    role: 'anyone',
    cameras: 'all',
    status: 200,
    request: () => ({ url: '/api/session', payload: { token: 'admin' } }),
  };
  const all = { ...API_ROUTES, ...CLUSTER_ROUTES, ...STORE_ROUTES, 'POST /api/session': signIn };
  const found = [
    ...(await unavailable(await apiStage(t, UNREVIEWED), all)),
    ...(await unavailable(await playbackStage(t, UNREVIEWED), PLAYBACK_ROUTES)),
  ];
  assert.ok(found.length > 100, 'nearly every route asks whose the token is');
  for (const outage of OUTAGES) {
    const some = await unavailable(await apiStage(t, CONFIGURED.auth, outage), all);
    assert.ok(some.length > 0, String(outage));
    found.push(...some);
  }
  assert.deepEqual([...new Set(found.flatMap(({ name, isListed }) => (isListed ? [] : [name])))], []);
});

test('every route that a recorder has is in the table', async (t) => {
  const directory = workspace(t);
  const file = join(directory, 'config.yaml');
  const listen = '127.0.0.1:0';
  const paths = { record_path: join(directory, 'recordings'), workDir: join(directory, 'work') };
  mkdirSync(paths.record_path);
  writeFileSync(file, JSON.stringify({ listen, playback: { listen }, metrics: { listen }, ...paths }));
  const configuration = { file, reload: async () => {} };
  const deps = { clock: systemClock, log: silentLog, version: '0', logLevels: new LevelSwitch('info'), configuration };
  const recorder = await startRecorder(await loadConfig(file), deps);
  t.after(() => recorder.close());
  const { api, playback, metrics } = recorder.routes;
  assert.deepEqual(withoutHead(api), Object.keys({ ...API_ROUTES, ...PLAYBACK_UNDER_API }).sort());
  assert.deepEqual(withoutHead(playback), Object.keys(PLAYBACK_ROUTES).sort());
  assert.deepEqual(withoutHead(metrics), Object.keys(METRICS_ROUTES).sort());
});

test("a page that is not the recorder's own gets no live pictures with the session of a visitor", async (t) => {
  const on = await apiStage(t, CONFIGURED.auth);
  await on.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = on.app.server.address() as AddressInfo;
  const { cookie } = await headersOf('viewer', 'cookie', on.auth);
  const outcome = async (page: Readonly<Record<string, string>>): Promise<string> => {
    const headers = { ...page, host: 'nvr.example:8080', cookie };
    const socket = new WebSocket(`ws://127.0.0.1:${port}/websocket/gate`, { headers });
    t.after(() => socket.terminate());
    return Promise.race([
      once(socket, 'message').then(() => 'pictures'),
      once(socket, 'close').then(([code]) => String(code)),
    ]).finally(() => socket.terminate());
  };
  assert.equal(await outcome({ origin: 'http://nvr.example:8080' }), 'pictures');
  for (const page of FOREIGN_PAGES) assert.equal(await outcome(page), '4403', JSON.stringify(page));
});

for (const { source, auth, callers } of [CONFIGURED, REVIEWED]) {
  test(`live streams, ${source}: every role, wherever the token stands, in scope and out of it`, async (t) => {
    const on = await apiStage(t, auth);
    await on.app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = on.app.server.address() as AddressInfo;
    /** The first message, or the code that the connection is closed with. */
    const outcome = async (given: string | undefined, camera: string, place: Place): Promise<unknown> => {
      on.clock.advance(3_600_000);
      const query = given !== undefined && place === 'query' ? `?access_token=${given}` : '';
      const headers = given === undefined || query !== '' ? {} : await headersOf(given, place, on.auth);
      const socket = new WebSocket(`ws://127.0.0.1:${port}/websocket/${camera}${query}`, { headers });
      t.after(() => socket.terminate());
      return Promise.race([
        once(socket, 'message').then(() => 'pictures'),
        once(socket, 'close').then(([code, reason]) => `${code} ${reason}`),
      ]).finally(() => socket.terminate());
    };
    for (const { token: given, role, scoped, powerless = role === 'reporter' } of callers) {
      for (const place of PLACES) {
        const refused = powerless && place !== 'cookie' ? '4403 the token has no role here' : '4401 a token is needed';
        const isRefused = role === undefined || role === 'reporter';
        const sees = isRefused ? refused : 'pictures';
        assert.equal(await outcome(given, 'gate', place), sees);
        const yard = await outcome(given, 'yard', place);
        assert.equal(yard, scoped && !isRefused ? await outcome(given, 'ghost', place) : sees);
        assert.equal(yard === 'pictures', !isRefused && !scoped);
      }
    }
  });
}
