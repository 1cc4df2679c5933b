// Writes the status of resources by server-side apply: conditions and numbers.

import { OPERATOR_STATUS_MANAGER } from '../../crds/names.ts';
import type { CallOptions, KubeApi, KubeObject, ObjectName, Resource } from './api.ts';

/**
 * Applies the operator's fields of a status. `status` must contain all of them: fields applied before and now missing are
 * removed. Fields of other managers stay, such as the assignment of a Camera.
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
