// The cameras of a case whose footage is on several nodes: fetches their parts, and plans the movies that they become.

import { join } from 'node:path';
import { fetchAssembly, FETCHING_SHARE, type AssembleDeps } from './assemble.ts';
import type { CaseDeps } from './case.ts';
import type { JobRequest } from './job.ts';

/**
 * `directory` keeps the parts, so that a camera is fetched once. `progress` of the writing of the case follows that of
 * fetching. `credential`: as for `assemble`.
 */
export function caseAssemblies(
  request: JobRequest,
  credential: string | undefined,
  directory: string,
  deps: AssembleDeps,
  signal: AbortSignal,
): Pick<CaseDeps, 'assembled' | 'progress'> {
  const { report } = deps;
  const assemblies = request.case?.assemblies;
  if (!assemblies) return { progress: report.progress };
  const fetchingShare = assemblies.length > 0 ? FETCHING_SHARE : 0;
  return {
    progress: (share) => report.progress(fetchingShare + share * (1 - fetchingShare)),
    assembled(cameraId) {
      const i = assemblies.findIndex((one) => one.cameraId === cameraId);
      const assembly = assemblies[i];
      if (!assembly) return undefined;
      const progress = (share: number): void => report.progress((i * FETCHING_SHARE + share) / assemblies.length);
      // The window of a case is known before that of its parts.
      const own = { ...deps, report: { progress, window: async () => {} } };
      const { case: _, ...about } = request;
      const wanted = { ...about, cameraId, assembly };
      return fetchAssembly(wanted, credential, join(directory, String(i)), own, signal).then(({ movies }) => movies);
    },
  };
}
