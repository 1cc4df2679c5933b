// Makes the addresses of a node's recorder from its pod, as reported by the kubelet, and the pool's settings. Pure. What
// recorders report about themselves is not used: with the stolen token of one recorder, an attacker could redirect all viewers,
// and with them their tokens, to a host of their own.

import { hostInUrl } from '../../base/host.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { API_PORT, PLAYBACK_PORT, SCHEME_ANNOTATION } from '../manifests/recorder.ts';
import type { RecorderPod } from '../observe/caches.ts';

type Addresses = Pick<RecorderNode['spec'], 'address' | 'playbackAddress'>;

/** Undefined while the pod has no IP address yet; the last known addresses then stay. */
export function addressesOf({ spec }: RecorderPool, pod: RecorderPod): Addresses | undefined {
  const scheme = pod.metadata.annotations?.[SCHEME_ANNOTATION] ?? (spec.tls ? 'https' : 'http');
  const { type, template = '' } = spec.advertise;
  if (type === 'Template') {
    const url = template.replaceAll('{node}', pod.spec?.nodeName ?? '');
    return URL.canParse(url) ? { address: new URL(url).origin, playbackAddress: new URL(url).origin } : undefined;
  }
  const ip = type === 'HostPort' ? pod.status?.hostIP : pod.status?.podIP;
  if (ip === undefined) return undefined;
  const base = `${scheme}://${hostInUrl(ip)}`;
  return { address: `${base}:${API_PORT}`, playbackAddress: `${base}:${PLAYBACK_PORT}` };
}

/** The newest pod of each node; pods that are being deleted come last. */
export function podsByNode(pods: readonly RecorderPod[]): ReadonlyMap<string, RecorderPod> {
  const rank = ({ metadata: { deletionTimestamp, creationTimestamp = '' } }: RecorderPod): string =>
    `${deletionTimestamp === undefined ? 1 : 0}${creationTimestamp}`;
  const newest = new Map<string, RecorderPod>();
  for (const pod of pods) {
    const node = pod.spec?.nodeName;
    if (node === undefined) continue;
    const other = newest.get(node);
    if (!other || rank(pod) > rank(other)) newest.set(node, pod);
  }
  return newest;
}
