// Computes the conditions of a RecorderNode that the operator adds to what the recorder reports itself: whether the node is
// online, and how far its drain is. Pure.

import type { RecorderNode } from '../../crds/recorder-node.ts';
import { mergeConditions, type StatedCondition } from '../kube/conditions.ts';
import type { Liveness } from '../plan/snapshot.ts';
import type { ShownStatus } from './camera-status.ts';

const OURS: ReadonlySet<string> = new Set(['Online', 'Drained']);

/** A node that is being drained. */
export interface DrainFacts {
  /** Why it is drained. */
  readonly cause: string;
  /** Cameras that the node still has. */
  readonly held: number;
  /** Those of them that another node may record. */
  readonly cameras: number;
  /** For too long no camera has left it. */
  readonly isGivenUp: boolean;
}

interface NodeFacts {
  /** Undefined: the node has not been examined yet. */
  readonly liveness: Liveness | undefined;
  /** Undefined: the node is not being drained. */
  readonly drain: DrainFacts | undefined;
  readonly nowMs: number;
}

export function statusOfNode(node: RecorderNode, { liveness, drain, nowMs }: NodeFacts): ShownStatus {
  const before = (node.status?.conditions ?? []).filter(({ type }) => OURS.has(type));
  const stated = [online(liveness), ...(drain ? [drained(drain)] : [])];
  // No observedGeneration: the generation also grows with each response to a request, which does not concern these conditions.
  const { conditions, transitions } = mergeConditions(before, stated, undefined, new Date(nowMs));
  // A removed node is not drained, it is gone: `kubectl get` shows its role.
  const isDrained = drain !== undefined && (node.spec.role !== 'Removed' || node.spec.drain);
  const isChanged = conditions !== before || node.status?.drain !== isDrained;
  return { status: { drain: isDrained, conditions }, isChanged, transitions };
}

function online(liveness: Liveness | undefined): StatedCondition {
  switch (liveness?.state) {
    case 'Live':
      return condition('Online', 'True', 'LeaseRenewed', 'its Lease changes');
    case 'Unavailable':
      return condition(
        'Online',
        'False',
        'NodeUnavailable',
        liveness.isReleased ? 'its recorder has ended' : 'its Lease has not changed for too long',
      );
    default:
      return condition(
        'Online',
        'Unknown',
        'NotHeard',
        'its Lease does not change, but without a majority the node does not count as lost',
      );
  }
}

function drained({ cause, held, cameras, isGivenUp }: DrainFacts): StatedCondition {
  if (held === 0) return condition('Drained', 'True', 'Empty', `${cause}; no camera is recorded here`);
  const still = `${cause}; ${held} ${held === 1 ? 'camera is' : 'cameras are'} still recorded here`;
  if (cameras === 0) return condition('Drained', 'False', 'NoOtherNode', `${still}, and no other node may record them`);
  if (isGivenUp) return condition('Drained', 'False', 'NotMoving', `${still}, and none could leave for too long`);
  return condition('Drained', 'False', 'HandingOver', still);
}

const condition = (
  type: string,
  status: StatedCondition['status'],
  reason: string,
  message: string,
): StatedCondition => ({ type, status, reason, message });
