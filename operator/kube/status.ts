// Writes to a status: conditions and figures by server-side apply, what is allocated by compare-and-swap.

import { OPERATOR_STATUS_MANAGER } from '../../crds/names.ts';
import type { CallOptions, KubeApi, KubeObject, ObjectName, Resource } from './api.ts';

/**
 * Applies the operator's part of a status. `status` is all of it: a field that it had applied before and is not there
 * any more goes away. Fields of other managers stay, the assignment of a Camera among them.
 */
export async function applyStatus(
  api: KubeApi,
  resource: Resource,
  { namespace, name }: ObjectName,
  status: object,
  options: CallOptions = {},
): Promise<KubeObject> {
  return api.apply(
    resource,
    { metadata: { name, namespace }, status },
    { ...options, subresource: 'status', fieldManager: OPERATOR_STATUS_MANAGER, force: true },
  );
}

/** Replaces a status as it was read: a conflict when anybody has changed the object since. */
export async function replaceStatus(
  api: KubeApi,
  resource: Resource,
  object: KubeObject,
  status: object,
  options: CallOptions = {},
): Promise<KubeObject> {
  return api.replace(resource, { ...object, status }, { ...options, subresource: 'status' });
}
