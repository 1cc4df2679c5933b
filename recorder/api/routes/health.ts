// `/api/health/live` and `/api/health/ready`: for load balancers, orchestrators and people.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Clock } from '../../../base/clock.ts';
import { MINUTE_MS } from '../../../base/units.ts';
import { Reason } from '../../probe/report/reason.ts';
import type { Authenticator } from '../../http/auth.ts';
import type { ApiDeps } from '../deps.ts';
import type { CameraDirectory } from '../../model/camera-view.ts';
import { isoTime } from '../times.ts';
import { Warning, warningsFor } from '../warning.ts';
import { TIME } from '../examples.ts';

/** A disk that does not answer in this time is not writable. */
const WRITABLE_TIMEOUT_MS = 5_000;
/** A database that does not answer in this time counts as unreachable: load balancers wait for little longer. */
const STORAGE_TIMEOUT_MS = 1_500;
/** More frequent probes share one result: anybody may send them, as they need no credentials. */
const RESULT_KEPT_MS = 1_000;
/**
 * A node whose renewals have failed for this long is not ready: other nodes have taken over its cameras long before. A
 * restart or an upgrade of the API server takes less time, and all nodes record and answer meanwhile.
 */
const CUT_OFF_MS = 5 * MINUTE_MS;

const Live = z.object({ status: z.literal('live') }).meta({ id: 'Live', description: 'The process can answer.' });

const Checks = z
  .object({
    storage: z.object({ configured: z.boolean(), reachable: z.boolean() }).describe('The database.'),
    cluster_store: z.object({
      configured: z.boolean(),
      reachable: z
        .boolean()
        .optional()
        .describe(
          "In a cluster: whether the API server, or etcd, accepts the renewals of this node, and the server's own member of etcd answers.",
        ),
      unreachable_seconds: z
        .int()
        .optional()
        .describe(
          'Seconds since the last accepted renewal. Absent while renewals are accepted, and when none has been since the start.',
        ),
    }),
    recordings_dir: z.object({ path: z.string(), writable: z.boolean() }),
    license: z.object({
      valid: z.boolean(),
      reason: Reason.optional().describe('Why the check fails.'),
    }),
  })
  .meta({ id: 'Checks', description: 'What readiness depends on.' });

const SilentCamera = z
  .object({
    id: z.string(),
    since: z.iso.datetime({ offset: true }).describe('When the last video was written, or should have been.'),
    cause: z
      .string()
      .describe('The cause as in the list of gaps, as far as it is known; `recording` where no fault is known.'),
  })
  .meta({ id: 'SilentCamera', description: 'A camera of which no video was written for 15 seconds.' });

const Readiness = z
  .object({
    status: z.enum(['ready', 'not_ready']),
    version: z.string(),
    timestamp: z.iso.datetime({ offset: true }),
    checks: Checks.optional().describe('Only for callers with a role.'),
    failed: z
      .array(Checks.keyof())
      .optional()
      .describe('The checks that fail. Only for callers with a role, when the node is not ready.'),
    warnings: z
      .array(Warning)
      .optional()
      .describe('Problems that need attention but do not fail readiness. Only for callers with a role.'),
    silent_cameras: z
      .array(SilentCamera)
      .optional()
      .describe(
        'Cameras of which no video was written for 15 seconds; they do not fail readiness. Only for callers with a role.',
      ),
  })
  .meta({ id: 'Readiness', description: 'Whether the node is ready, and why not.' });

type Deps = Pick<ApiDeps, 'archive' | 'cameras' | 'checks' | 'clock' | 'recordPath' | 'version' | 'warnings'> & {
  readonly auth?: Authenticator | undefined;
};

/** Without `auth`, answers have the status only. */
export const healthRoutes: FastifyPluginAsyncZod<{ deps: Deps }> = async (app, { deps }) => {
  const { auth, clock } = deps;
  const writable = new SharedCheck(() => deps.archive.checkWritable(), false, WRITABLE_TIMEOUT_MS, clock);
  const noStorage = { configured: true, reachable: false };
  const storage = new SharedCheck(() => deps.checks.storage(), noStorage, STORAGE_TIMEOUT_MS, clock);

  async function runChecks(): Promise<z.output<typeof Checks>> {
    const [database, license, isWritable] = await Promise.all([
      storage.result(),
      deps.checks.license(),
      writable.result(),
    ]);
    return {
      storage: database,
      cluster_store: clusterStoreOf(deps.checks.clusterStore()),
      recordings_dir: { path: deps.recordPath, writable: isWritable },
      license,
    };
  }

  app.get(
    '/api/health/live',
    {
      config: { examples: { 200: { status: 'live' } } },
      schema: {
        operationId: 'getLive',
        summary: 'The process can answer',
        tags: ['health'],
        response: { 200: Live },
      },
    },
    async () => ({ status: 'live' as const }),
  );

  app.get(
    '/api/health/ready',
    {
      config: {
        examples: {
          200: {
            status: 'ready',
            version: '0.1.0',
            timestamp: TIME,
            checks: {
              storage: { configured: true, reachable: true },
              cluster_store: { configured: false },
              recordings_dir: { path: '/var/lib/recorder/recordings', writable: true },
              license: { valid: true },
            },
            warnings: [],
            silent_cameras: [],
          },
          503: { status: 'not_ready', version: '0.1.0', timestamp: TIME },
        },
      },
      schema: {
        operationId: 'getReady',
        summary: 'All checks pass',
        description: 'Needs no credentials; the checks themselves are shown only to callers with a role.',
        tags: ['health'],
        response: { 200: Readiness, 503: Readiness },
      },
    },
    async (request, reply) => {
      const checks = await runChecks();
      const failed = failedChecks(checks);
      const ready = failed.length === 0;
      const body: z.output<typeof Readiness> = {
        status: ready ? 'ready' : 'not_ready',
        version: deps.version,
        timestamp: isoTime(clock.wallMs()),
      };
      const caller = await auth?.callerOf(request, 'header');
      if (caller) {
        body.checks = checks;
        if (!ready) body.failed = failed;
        // A silent camera does not make the node unready: the other cameras need it.
        body.warnings = warningsFor(caller, deps.warnings);
        body.silent_cameras = silentCameras(deps.cameras).filter(({ id }) => caller.sees(id));
      }
      return reply.code(ready ? 200 : 503).send(body);
    },
  );
};

function silentCameras(cameras: CameraDirectory): z.output<typeof SilentCamera>[] {
  return cameras.list().flatMap(({ status, silence }) => {
    return silence ? [{ id: status.id, since: isoTime(silence.sinceMs), cause: silence.cause }] : [];
  });
}

function clusterStoreOf(state: ReturnType<Deps['checks']['clusterStore']>): z.output<typeof Checks>['cluster_store'] {
  if (!state.configured) return state;
  const { unreachableMs, isMemberDown = false } = state;
  const isKnown = unreachableMs > 0 && Number.isFinite(unreachableMs);
  return {
    configured: true,
    reachable: unreachableMs === 0 && !isMemberDown,
    ...(isKnown ? { unreachable_seconds: Math.floor(unreachableMs / 1000) } : {}),
  };
}

/**
 * A node that has not reached the cluster since its start does not know which cameras it records: it is not ready. Nor is a server whose
 * own member of etcd does not answer: the next server must not be stopped now.
 */
function isInCluster({
  configured,
  reachable,
  unreachable_seconds,
}: z.output<typeof Checks>['cluster_store']): boolean {
  return !configured || reachable === true || (unreachable_seconds ?? Infinity) * 1000 < CUT_OFF_MS;
}

function failedChecks(checks: z.output<typeof Checks>): (keyof typeof checks)[] {
  const failed: (keyof typeof checks)[] = [];
  if (checks.storage.configured && !checks.storage.reachable) failed.push('storage');
  if (!isInCluster(checks.cluster_store)) failed.push('cluster_store');
  if (!checks.recordings_dir.writable) failed.push('recordings_dir');
  if (!checks.license.valid) failed.push('license');
  return failed;
}

/** One check runs at a time; its result is reused for a while. */
class SharedCheck<T> {
  readonly #check: () => Promise<T>;
  readonly #failed: T;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #running: Promise<T> | undefined;
  #last: { readonly atMs: number; readonly found: T };

  constructor(check: () => Promise<T>, failed: T, timeoutMs: number, clock: Clock) {
    this.#check = check;
    this.#failed = failed;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#last = { atMs: -Infinity, found: failed };
  }

  /** The result of the check, or `failed` when it takes too long or rejects. */
  async result(): Promise<T> {
    if (this.#clock.monotonicMs() - this.#last.atMs < RESULT_KEPT_MS) return this.#last.found;
    this.#running ??= this.#run();
    return Promise.race([this.#running, this.#clock.sleep(this.#timeoutMs).then(() => this.#failed)]);
  }

  async #run(): Promise<T> {
    // What fails is not ready.
    const found = await this.#check().catch(() => this.#failed);
    this.#last = { atMs: this.#clock.monotonicMs(), found };
    this.#running = undefined;
    return found;
  }
}
