// A KubeApi that refuses writes unless this replica leads: the last check before a request is sent.

import { ApiError, type KubeApi } from './api.ts';

const NOT_LEADER = 'NOT_LEADER';

export const isNotLeader = (err: unknown): boolean => err instanceof ApiError && err.reason === NOT_LEADER;

/** Reads pass through. A write while `isLeader` is false throws ApiError `NOT_LEADER` and is not sent. */
export function writesOfLeader(api: KubeApi, isLeader: () => boolean): KubeApi {
  const check = (): void => {
    if (!isLeader()) throw new ApiError(0, NOT_LEADER, 'another replica may lead: nothing is written');
  };
  return {
    get: (...args) => api.get(...args),
    list: (...args) => api.list(...args),
    pages: (...args) => api.pages(...args),
    watch: (...args) => api.watch(...args),
    async create(...args) {
      check();
      return api.create(...args);
    },
    async replace(...args) {
      check();
      return api.replace(...args);
    },
    async mergePatch(...args) {
      check();
      return api.mergePatch(...args);
    },
    async apply(...args) {
      check();
      return api.apply(...args);
    },
    async delete(...args) {
      check();
      return api.delete(...args);
    },
  };
}
