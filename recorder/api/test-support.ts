// Shared by the tests of the API: an API with fake dependencies.

import { createHash, scryptSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { CameraArchiveStatus } from '../archive/segments/camera-archive.ts';
import { newCounters, type CameraStatus } from '../camera/status.ts';
import type { Role, TokenConfig } from '../config/schema.ts';
import { Authenticator, type AuthDeps, type AuthOptions } from '../http/auth.ts';
import { buildApi } from './app.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { standaloneChecks } from './deps.ts';
import type { GapReport } from '../archive/gaps/camera-ledger.ts';
import type { NodeReport } from '../footage/accounts.ts';
import type { ApiDeps, ArchiveReader, GapReader, SegmentReader } from './deps.ts';
import type { CameraView } from '../model/camera-view.ts';

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
  return {
    id: 'gate',
    name: 'Gate',
    state: 'recording',
    reason: undefined,
    stateSinceMs: Date.UTC(2026, 0, 1, 11),
    transport: 'tcp',
    receiveBufferBytes: undefined,
    video: undefined,
    videoRemark: undefined,
    audio: undefined,
    audioDropped: undefined,
    notRecorded: [],
    bitrate: 0,
    frameRate: 0,
    usualFrameRate: undefined,
    clockErrorMs: undefined,
    clockAheadMs: undefined,
    lastFrameMs: undefined,
    counters: newCounters(),
    ...changes,
  };
}

export function archiveStatus(changes: Partial<CameraArchiveStatus> = {}): CameraArchiveStatus {
  return {
    state: 'writing',
    reason: undefined,
    lastWrittenMs: undefined,
    segmentsClosed: 0,
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
};

export const noSegments: SegmentReader = { list: async () => ({ segments: [], days: [] }) };

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
  readonly cameras: CameraView[];
}

export type ApiChanges = Partial<Omit<ApiDeps, 'auth'>> & {
  readonly auth?: AuthOptions & Pick<AuthDeps, 'reviewer' | 'seal' | 'made'>;
};

/** An API that closes itself after the test, with a token `viewer`, `operator` and `admin` of the role of that name. */
export async function build(t: TestContext, changes: ApiChanges = {}): Promise<TestApi> {
  const recordPath = await mkdtemp(join(tmpdir(), 'api-test-'));
  t.after(() => rm(recordPath, { recursive: true }));
  const clock = new VirtualClock();
  const cameras: CameraView[] = [];
  const viewOf = (id: string): CameraView | undefined => cameras.find(({ status }) => status.id === id);
  const { auth: options, ...others } = changes;
  const tokens = [token('viewer'), token('operator'), token('admin')];
  const auth = new Authenticator(options ?? { mode: 'token', tokens }, {
    clock,
    reviewer: options?.reviewer,
    ...(options?.seal ? { seal: options.seal } : {}),
    made: options?.made,
  });
  const app = await buildApi({
    nodeName: 'rack-1',
    address: '',
    version: '1.2.3',
    recordPath,
    auth,
    cameras: { list: () => cameras, get: viewOf, streams: viewOf },
    archive: emptyArchive,
    segments: noSegments,
    gaps: noGaps,
    checks: standaloneChecks,
    machine: {
      cpuPercent: () => 12.6,
      memory: () => ({ usedBytes: 3.4 * 2 ** 30, totalBytes: 16 * 2 ** 30 }),
      disk: async () => ({ usedBytes: 100.4 * 2 ** 30, freeBytes: 899.6 * 2 ** 30, totalBytes: 1_024 * 2 ** 30 }),
    },
    clock,
    log: silentLog,
    ...others,
  });
  t.after(() => app.close());
  return { app, auth, clock, recordPath, cameras };
}
