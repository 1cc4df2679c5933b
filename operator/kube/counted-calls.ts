// A KubeApi that counts its calls, including failed ones, by the verbs of the API server's own audit log and metrics.

import type { KubeApi, Resource } from './api.ts';

/** `count` is called before each call is sent; `resource` is the plural name used in paths. */
export function countedCalls(api: KubeApi, count: (verb: string, resource: string) => void): KubeApi {
  const counted =
    <Rest extends readonly unknown[], T>(verb: string, call: (resource: Resource, ...rest: Rest) => T) =>
    (resource: Resource, ...rest: Rest): T => {
      count(verb, resource.plural);
      return call(resource, ...rest);
    };
  return {
    get: counted('get', api.get.bind(api)),
    list: counted('list', api.list.bind(api)),
    pages: counted('list', api.pages.bind(api)),
    watch: counted('watch', api.watch.bind(api)),
    create: counted('create', api.create.bind(api)),
    replace: counted('update', api.replace.bind(api)),
    mergePatch: counted('patch', api.mergePatch.bind(api)),
    apply: counted('patch', api.apply.bind(api)),
    delete: counted('delete', api.delete.bind(api)),
  };
}
