// Makes an informer (base/kubernetes) for one of the operator's resources.

import type { Clock } from '../../base/clock.ts';
import { Informer as ObjectInformer, type InformerObserver } from '../../base/kubernetes/informer.ts';
import type { Log } from '../../base/log.ts';
import type { KubeApi, KubeObject, Resource, Selection } from './api.ts';

export type { Change, InformerObserver, Invalid } from '../../base/kubernetes/informer.ts';

interface InformerOptions<T> {
  readonly api: KubeApi;
  readonly resource: Resource;
  readonly selection?: Selection;
  /** Throws if the object is not valid. */
  readonly parse: (object: KubeObject) => T;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: InformerObserver | undefined;
  readonly random?: () => number;
}

export class Informer<T> extends ObjectInformer<T, KubeObject> {
  readonly resource: Resource;

  constructor({ api, resource, selection = {}, ...rest }: InformerOptions<T>) {
    super({
      ...rest,
      source: {
        name: resource.plural,
        pages: (signal) => api.pages(resource, selection, { signal }),
        watch: (resourceVersion, signal) => api.watch(resource, { ...selection, resourceVersion }, signal),
      },
    });
    this.resource = resource;
  }
}
