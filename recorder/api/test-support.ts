// Shared by the tests of the API: an API with fake dependencies.

import type { FootageTimes } from '../contract/footage-times.ts';
import { createHash, scryptSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { noAudit } from '../audit/entry.ts';
import type { Visits } from '../audit/visits.ts';
import type { CameraArchiveStatus } from '../contract/archive-status.ts';
import { stoppedStatus, type CameraStatus } from '../contract/camera-status.ts';
import type { Role, TokenConfig } from '../config/schema.ts';
import { Authenticator, type AuthDeps, type AuthOptions } from '../http/auth.ts';
import { Issuers } from '../identity/issuers.ts';
import { CameraNetworks } from '../reach/networks.ts';
import { buildApi } from './app.ts';
import type { ClusterAccess } from './cluster-access.ts';
import {
  standaloneChecks,
  type ApiDeps,
  type ArchiveReader,
  type Audit,
  type GapReader,
  type JobKeeper,
  type SegmentReader,
} from './deps.ts';
import type { GapReport } from '../contract/gap-report.ts';
import type { NodeReport } from '../footage/accounts.ts';
import type { PlaybackListener } from './playback-address.ts';
import type { LiveStream } from '../live/test-support.ts';
import type { CameraDirectory, CameraView } from '../model/camera-view.ts';

export const token = (role: Role, text: string = role): TokenConfig => ({
  name: role,
  role,
  sha256: createHash('sha256').update(text).digest('hex'),
});

/** A hash of a password with the least cost that is accepted. */
export function hashOf(password: string): string {
  const salt = Buffer.from('0123456789abcdef');
  const hash = scryptSync(password, salt, 32, { N: 16_384, r: 8, p: 1 });
  return ['scrypt', 16_384, 8, 1, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** The header of a caller with one of the three tokens of `build`. */
export const as = (role: Role): { authorization: string } => ({ authorization: `Bearer ${role}` });

/** A cluster in which this node knows of no camera, node or footage, but what a test says. */
export const fakeCluster = (nodeId: string, known: Partial<ClusterAccess> = {}): ClusterAccess => ({
  nodeId,
  lookAtNodes: async () => {},
  ownerOf: () => undefined,
  holdersOf: () => [],
  footageHolders: async () => [],
  others: () => new Map(),
  cameras: async () => ({ isCurrent: true, nodes: [], cameras: [] }),
  origins: () => [],
  playbackOrigins: () => [],
  places: () => [],
  metrics: async () => ({ leader: undefined, hasMajority: false, voters: [], nodes: [] }),
  leader: () => undefined,
  ask: async () => ({ code: 503, message: 'nobody answers' }),
  leave: async () => ({ code: 503, message: 'nobody answers' }),
  ...known,
});

export function cameraStatus(changes: Partial<CameraStatus> = {}): CameraStatus {
  const stopped = stoppedStatus({ id: 'gate', name: 'Gate' }, Date.UTC(2026, 0, 1, 11));
  return { ...stopped, state: 'recording', transport: 'tcp', ...changes };
}

export function archiveStatus(changes: Partial<CameraArchiveStatus> = {}): CameraArchiveStatus {
  return {
    state: 'writing',
    reason: undefined,
    lastWrittenMs: undefined,
    segmentsClosed: 0,
    shortSegments: 0,
    bytesWritten: 0,
    framesWritten: 0,
    framesDropped: new Map(),
    currentFile: undefined,
    ...changes,
  };
}

export const emptyArchive: ArchiveReader = {
  current: async () => undefined,
  checkWritable: async () => true,
  countSegments: () => 0,
  disks: async () => [{ path: '/recordings', isLeaving: false, fault: undefined }],
};

const noSegments: SegmentReader = { list: async () => ({ segments: [], days: [] }) };

/** The gaps of a node that has no others. */
export function gapReader(
  report: (cameraId: string, fromMs: number, toMs: number) => Promise<GapReport & Partial<NodeReport>>,
): GapReader {
  const ofThisNode: GapReader['ofThisNode'] = async (...asked) => ({ footage: [], ...(await report(...asked)) });
  return {
    ofThisNode,
    report: async (cameraId, fromMs, toMs) => ({ ...(await ofThisNode(cameraId, fromMs, toMs)), elsewhere: [] }),
    ofAllNodes: async (cameraId, fromMs, toMs) => {
      const { gaps, knownUntilMs } = await ofThisNode(cameraId, fromMs, toMs);
      return { gaps, elsewhere: [], knownUntilMs };
    },
  };
}

/** The gaps of a camera that was never configured. */
export const noGaps = gapReader(async (_cameraId, fromMs, toMs) => ({
  fromMs,
  toMs,
  gaps: [],
  knownUntilMs: toMs,
  wantedMs: 0,
  recordedMs: 0,
  recorded: [],
  degraded: [],
  filled: [],
}));

export interface TestApi {
  readonly app: FastifyInstance;
  readonly clock: VirtualClock;
  readonly recordPath: string;
  readonly auth: Authenticator;
  /** What `/api/cameras` lists; tests fill it. */
  readonly cameras: TestedCamera[];
}

/** What a test says of the dependencies of an API; the rest is as in `apiDeps`. */
type DepsChanges = Partial<Omit<ApiDeps, 'audit' | 'playback'>> & {
  readonly audit?: Partial<Audit>;
  readonly playback?: Partial<PlaybackListener>;
};

/** The dependencies of the API of a node that has no cameras and no footage. Those with `unasked` are not used. */
export function apiDeps({ audit, playback, ...changes }: DepsChanges & Pick<ApiDeps, 'recordPath' | 'auth'>): ApiDeps {
  const unasked = {} as never;
  const reportOf: FootageTimes['of'] = async (_id, fromMs, toMs) => ({
    keptFromMs: undefined,
    footage: [],
    report: await noGaps.ofThisNode(_id, fromMs, toMs),
  });
  return {
    nodeName: 'rack-1',
    site: { name: '', timeZone: undefined },
    objectives: () => [],
    address: '',
    version: '1.2.3',
    origins: [],
    trustedProxies: [],
    issuers: new Issuers([], { clock: new VirtualClock(), networks: new CameraNetworks() }),
    cameras: { list: () => [], get: () => undefined, streams: () => undefined },
    archive: emptyArchive,
    segments: noSegments,
    gaps: noGaps,
    times: { refresh: async () => {}, of: reportOf },
    jobs: { ffmpegIsThere: async () => false } as unknown as JobKeeper,
    ptz: unasked,
    cameraSwitch: unasked,
    tryLogins: unasked,
    stills: unasked,
    discoverer: unasked,
    doctor: unasked,
    logLevels: unasked,
    audit: { sink: noAudit, visits: { begin: () => () => {} } as unknown as Visits, reader: unasked, ...audit },
    events: unasked,
    happenings: { add: async (events) => events, find: async () => [] },
    activity: { bands: async () => [], search: async () => [] },
    alarms: {
      list: [],
      notes: [],
      acknowledge: async () => undefined,
      write: async (by, note) => ({ id: 'n', by, atMs: 0, note }),
    },
    testMail: async () => undefined,
    warnings: () => [],
    checks: standaloneChecks,
    playback: { port: () => undefined, advertised: undefined, document: unasked, routes: async () => {}, ...playback },
    machine: {
      cpuPercent: () => 12.6,
      memory: () => ({ usedBytes: 3.4 * 2 ** 30, totalBytes: 16 * 2 ** 30 }),
      disk: async () => ({ usedBytes: 100.4 * 2 ** 30, freeBytes: 899.6 * 2 ** 30, totalBytes: 1_024 * 2 ** 30 }),
    },
    keepAwake: () => () => {},
    clock: new VirtualClock(),
    log: silentLog,
    ...changes,
  };
}

export type ApiChanges = Omit<DepsChanges, 'auth'> & {
  readonly auth?: AuthOptions & Pick<AuthDeps, 'reviewer' | 'seal' | 'ended' | 'made' | 'registry'>;
};

/** A camera with its live stream. */
export type TestedCamera = Omit<CameraView, 'live'> & { readonly live: LiveStream | undefined };

/** Of what is in `cameras` at the time. */
export function directoryOf(cameras: readonly TestedCamera[]): CameraDirectory {
  const viewOf = (camera: TestedCamera): CameraView => ({ ...camera, live: camera.live?.stats });
  const find = (id: string): TestedCamera | undefined => cameras.find(({ status }) => status.id === id);
  return {
    list: () => cameras.map(viewOf),
    get: (id) => cameras.map(viewOf).find(({ status }) => status.id === id),
    streams(id) {
      const camera = find(id);
      return camera && { live: camera.live };
    },
  };
}

/** An API that closes itself after the test, with a token `viewer`, `operator` and `admin` of the role of that name. */
export async function build(t: TestContext, changes: ApiChanges = {}): Promise<TestApi> {
  const recordPath = await mkdtemp(join(tmpdir(), 'api-test-'));
  t.after(() => rm(recordPath, { recursive: true }));
  const clock = new VirtualClock();
  const cameras: TestedCamera[] = [];
  const { auth: options, ...others } = changes;
  const tokens = [token('viewer'), token('operator'), token('admin')];
  const auth = new Authenticator(options ?? { mode: 'token', tokens }, {
    clock,
    reviewer: options?.reviewer,
    ...(options?.seal ? { seal: options.seal } : {}),
    ...(options?.ended ? { ended: options.ended } : {}),
    made: options?.made,
    ...(options?.registry ? { registry: options.registry } : {}),
  });
  const app = await buildApi(apiDeps({ recordPath, auth, cameras: directoryOf(cameras), clock, ...others }));
  t.after(() => app.close());
  return { app, auth, clock, recordPath, cameras };
}
