// Objects that belong to one of ours: applied under its name, and only when they are not somebody else's.

import { OPERATOR_MANAGER } from '../../crds/names.ts';
import {
  isNotFound,
  keyOf,
  type CallOptions,
  type KubeApi,
  type KubeObject,
  type OwnerReference,
  type Resource,
} from './api.ts';

/** The resource whose deletion takes its objects with it. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** An object of this name exists and is not ours. It is left as it is. */
export class ForeignObjectError extends Error {
  readonly code = 'FOREIGN_OBJECT';
  readonly key: string;
  /** `Kind/name` of its controller; undefined when it has none. */
  readonly controller: string | undefined;

  constructor(resource: Resource, key: string, controller: OwnerReference | undefined) {
    const whose = controller ? `belongs to ${controller.kind} ${controller.name}` : 'was made by somebody else';
    super(`${resource.kind} ${key} ${whose}: it is not taken over`);
    this.name = 'ForeignObjectError';
    this.key = key;
    this.controller = controller && `${controller.kind}/${controller.name}`;
  }
}

export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((reference) => reference.controller === true);

/**
 * Server-side apply of an object that `owner` controls. Throws ForeignObjectError when there is one of its name that
 * `owner` does not control: judged by uid, because a new owner may have the name of an old one.
 */
export async function applyOwned(
  api: KubeApi,
  resource: Resource,
  object: KubeObject,
  owner: Owner,
  options: CallOptions = {},
): Promise<KubeObject> {
  const existing = await getIfThere(api, resource, object, options);
  if (existing) {
    const controller = controllerOf(existing);
    if (controller?.uid !== owner.uid) {
      throw new ForeignObjectError(resource, keyOf(existing.metadata), controller);
    }
  }
  const { apiVersion, kind, name, uid } = owner;
  const reference: OwnerReference = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
  const metadata = {
    ...object.metadata,
    ownerReferences: [reference],
    // Deleted and made again by somebody else since we looked: refused, because a uid is immutable.
    ...(existing && { uid: existing.metadata.uid }),
  };
  return api.apply(resource, { ...object, metadata }, { ...options, fieldManager: OPERATOR_MANAGER, force: true });
}

/** Deletes what `owner` controls; what is not there or not its own is left alone. */
export async function deleteOwned(
  api: KubeApi,
  resource: Resource,
  name: KubeObject['metadata'],
  owner: Owner,
  options: CallOptions = {},
): Promise<void> {
  const existing = await getIfThere(api, resource, { metadata: name }, options);
  if (!existing || controllerOf(existing)?.uid !== owner.uid) return;
  try {
    await api.delete(resource, name, { ...options, uid: existing.metadata.uid, propagationPolicy: 'Background' });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}

async function getIfThere(
  api: KubeApi,
  resource: Resource,
  { metadata: { namespace, name } }: KubeObject,
  options: CallOptions,
): Promise<KubeObject | undefined> {
  try {
    return await api.get(resource, { namespace, name }, options);
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}
