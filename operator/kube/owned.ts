// Applies and deletes objects that one of our resources owns; objects of others are left alone.

import { CodedError } from '../../base/error.ts';
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

/** The resource that owns the objects: when it is deleted, so are they. */
export interface Owner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** An object of this name exists and is not ours. It is not changed. */
export class ForeignObjectError extends CodedError<'FOREIGN_OBJECT'> {
  override readonly name = 'ForeignObjectError';
  readonly key: string;
  /** `Kind/name` of the controller of the object; undefined if it has none. */
  readonly controller: string | undefined;

  constructor(resource: Resource, key: string, controller: OwnerReference | undefined) {
    const whose = controller ? `belongs to ${controller.kind} ${controller.name}` : 'was not made by this operator';
    super('FOREIGN_OBJECT', `${resource.kind} ${key} ${whose}: it is not taken over`);
    this.key = key;
    this.controller = controller && `${controller.kind}/${controller.name}`;
  }
}

export const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((reference) => reference.controller === true);

/**
 * Server-side apply of an object with `owner` as its controller. Throws ForeignObjectError if an object of this name exists that
 * `owner` does not control. Owners are compared by uid, because a new owner may have the name of an old one.
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
    // If the object was deleted and created by others since it was read, the apply fails, because a uid is immutable.
    ...(existing && { uid: existing.metadata.uid }),
  };
  return api.apply(resource, { ...object, metadata }, { ...options, fieldManager: OPERATOR_MANAGER, force: true });
}

/** Deletes an object that `owner` controls. Does nothing if it does not exist or has another owner. */
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
