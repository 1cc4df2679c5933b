// `/api/health/live` and `/api/health/ready`: for load balancers, orchestrators and people.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Authenticator } from '../../http/auth.ts';
import type { ApiDeps, CameraDirectory } from '../deps.ts';
import { isoTime } from '../times.ts';
import { Warning, warningsFor } from '../warning.ts';

/** A disk that does not answer in this time is not writable. */
const WRITABLE_TIMEOUT_MS = 5_000;
/** Probes that come faster share one look at the disk: they need no credentials. */
const WRITABLE_CACHE_MS = 1_000;

const Checks = z.object({
  storage: z.object({ configured: z.boolean(), reachable: z.boolean() }).describe('The database.'),
  cluster_store: z.object({
    configured: z.boolean(),
    reachable: z.boolean().optional().describe('In a cluster: the API server takes our signs of life.'),
  }),
  recordings_dir: z.object({ path: z.string(), writable: z.boolean() }),
  license: z.object({
    valid: z.boolean(),
    reason: z.object({ code: z.string(), message: z.string() }).optional().describe('Why it is not.'),
  }),
});

const SilentCamera = z.object({
  id: z.string(),
  since: z.iso.datetime({ offset: true }).describe('When the last video was written, or should have been.'),
  cause: z.string().describe('As in the gap list, as far as it is known; recording where nothing seems wrong.'),
});

const Readiness = z.object({
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
    .describe('What somebody should look at. Only for callers with a role; no failure by itself.'),
  silent_cameras: z
    .array(SilentCamera)
    .optional()
    .describe(
      'Cameras of which no video was written for 15 seconds. Only for callers with a role; no failure of the node.',
    ),
});

type Deps = Pick<ApiDeps, 'archive' | 'cameras' | 'checks' | 'clock' | 'recordPath' | 'version' | 'warnings'>;

export const healthRoutes: FastifyPluginAsyncZod<{ deps: Deps; auth: Authenticator }> = async (app, { deps, auth }) => {
  const { clock } = deps;
  const isWritable = cachedWritable(deps);

  async function runChecks(): Promise<z.output<typeof Checks>> {
    const [storage, clusterStore, license, writable] = await Promise.all([
      deps.checks.storage(),
      deps.checks.clusterStore(),
      deps.checks.license(),
      isWritable(),
    ]);
    return {
      storage,
      cluster_store: clusterStore,
      recordings_dir: { path: deps.recordPath, writable },
      license,
    };
  }

  app.get(
    '/api/health/live',
    {
      schema: {
        summary: 'The process can answer',
        tags: ['health'],
        response: { 200: z.object({ status: z.literal('live') }) },
      },
    },
    async () => ({ status: 'live' as const }),
  );

  app.get(
    '/api/health/ready',
    {
      schema: {
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
      const caller = await auth.callerOf(request, 'header');
      if (caller) {
        body.checks = checks;
        if (!ready) body.failed = failed;
        // A camera's silence does not take the node out of service: the other cameras need it.
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

function failedChecks(checks: z.output<typeof Checks>): (keyof typeof checks)[] {
  const failed: (keyof typeof checks)[] = [];
  if (checks.storage.configured && !checks.storage.reachable) failed.push('storage');
  if (!checks.recordings_dir.writable) failed.push('recordings_dir');
  if (!checks.license.valid) failed.push('license');
  return failed;
}

/** `archive.checkWritable` with a time limit, one at a time, its result good for a moment. */
function cachedWritable({ archive, clock }: Deps): () => Promise<boolean> {
  let running: Promise<boolean> | undefined;
  let last = { atMs: -Infinity, writable: false };
  return () => {
    if (clock.monotonicMs() - last.atMs < WRITABLE_CACHE_MS) return Promise.resolve(last.writable);
    running ??= archive
      .checkWritable()
      .catch(() => false)
      .then((writable) => {
        last = { atMs: clock.monotonicMs(), writable };
        running = undefined;
        return writable;
      });
    return Promise.race([running, clock.sleep(WRITABLE_TIMEOUT_MS).then(() => false)]);
  };
}
