// Makes a cluster on its first server: the CA, the certificate of this node and the key for Secrets. It needs no network: the
// recorder puts the CA into the store when it starts.

import { randomUUID } from 'node:crypto';
import { bundleOf, leafTimes, withNext } from '../../base/authorities.ts';
import { commonNameOf, memberNames } from './issuer.ts';
import { KeyRing } from './key-ring.ts';
import type { MemberContent } from './node-files.ts';

interface FoundOptions {
  readonly nodeId: string;
  readonly namespace: string;
  readonly pool: string;
  /** Host names and addresses of this server. */
  readonly names: readonly string[];
  readonly nowMs: number;
}

export async function foundCluster({ nodeId, namespace, pool, names, nowMs }: FoundOptions): Promise<MemberContent> {
  const { newKey, newRequest, signRequest } = await import('../../base/x509.ts');
  const [authority] = (await withNext([], commonNameOf(namespace, pool), nowMs)) ?? [];
  if (!authority) throw new Error('a cluster without CA gets one');
  const key = newKey();
  const subject = {
    commonName: nodeId,
    names: memberNames(namespace, pool, nodeId, names),
    ...leafTimes(authority, nowMs),
  };
  return {
    key,
    certificate: await signRequest(await newRequest(key), authority, subject),
    authorities: bundleOf([authority], nowMs),
    keys: KeyRing.new().format(),
    authority,
    cluster: { version: 1, clusterId: randomUUID(), initial: 'new', members: [] },
  };
}
