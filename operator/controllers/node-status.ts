// Computes the condition of a RecorderNode that the operator adds to what the recorder reports itself: whether the node is
// online. Pure.

import type { RecorderNode } from '../../crds/recorder-node.ts';
import { mergeConditions, type StatedCondition } from '../kube/conditions.ts';
import type { Liveness } from '../plan/snapshot.ts';
import type { ShownStatus } from './camera-status.ts';

const TYPE = 'Online';

/** `liveness` undefined: the node has not been examined yet. */
export function statusOfNode(node: RecorderNode, liveness: Liveness | undefined, nowMs: number): ShownStatus {
  const before = (node.status?.conditions ?? []).filter(({ type }) => type === TYPE);
  const stated = online(liveness);
  // No observedGeneration: the generation also grows with each response to a request, which does not concern this condition.
  const { conditions, transitions } = mergeConditions(before, [stated], undefined, new Date(nowMs));
  return { status: { conditions }, isChanged: conditions !== before, transitions };
}

function online(liveness: Liveness | undefined): StatedCondition {
  const is = (status: StatedCondition['status'], reason: string, message: string): StatedCondition => ({
    type: TYPE,
    status,
    reason,
    message,
  });
  switch (liveness?.state) {
    case 'Live':
      return is('True', 'LeaseRenewed', 'its Lease changes');
    case 'Unavailable':
      return is('False', 'NodeUnavailable', 'its Lease has not changed for too long');
    default:
      return is(
        'Unknown',
        'NotHeard',
        'its Lease does not change, but without a majority the node does not count as lost',
      );
  }
}
