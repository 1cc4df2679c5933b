// A KubeApi whose calls end when this process must stop: with a slow API server, work of many calls would take longer
// than a pod may take to stop.

import { promptly } from '../../base/promptly.ts';
import type { KubeApi } from './api.ts';

/** Calls reject with the reason of `stop` once it has aborted. Watches have their own signal. */
export function callsUntil(api: KubeApi, stop: AbortSignal): KubeApi {
  const until =
    <Args extends readonly unknown[], T>(call: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      stop.throwIfAborted();
      return promptly(call(...args), stop);
    };
  return {
    get: until(api.get.bind(api)),
    list: until(api.list.bind(api)),
    pages: (resource, selection, options) => {
      const signal = options?.signal ? AbortSignal.any([options.signal, stop]) : stop;
      return api.pages(resource, selection, { ...options, signal });
    },
    watch: api.watch.bind(api),
    create: until(api.create.bind(api)),
    replace: until(api.replace.bind(api)),
    mergePatch: until(api.mergePatch.bind(api)),
    apply: until(api.apply.bind(api)),
    delete: until(api.delete.bind(api)),
  };
}
