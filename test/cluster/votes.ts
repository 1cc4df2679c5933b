// The votes in a cluster of servers that run etcd themselves: what a server tells of them must be what etcd says.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { EtcdClient } from '../../base/etcd/client.ts';
import { nodeFiles } from '../../recorder/certificates/node-files.ts';
import { until } from '../support/until.ts';

interface EtcdServer {
  readonly name: string;
  readonly address: string;
  readonly dataDir: string;
}

/** What is used of the answer of `GET /cluster/metrics`. */
interface Told {
  readonly voters: readonly string[];
  readonly nodes: readonly { readonly node_id: string; readonly role: string }[];
}

/** Asks the member of etcd of a server, as the server itself does. */
export async function askEtcd<T>(
  { name, address, dataDir }: EtcdServer,
  ask: (etcd: EtcdClient) => Promise<T>,
): Promise<T> {
  const { authorities, certificate, key } = nodeFiles(dataDir, name);
  const [ca = '', own = '', secret = ''] = [authorities, certificate, key].map((file) => readFileSync(file, 'utf8'));
  const tls = { ca, certificate: own, key: secret };
  const endpoints = [`https://${address}:2379`];
  const etcd = new EtcdClient({ endpoints: () => endpoints, tls: () => tls, callTimeoutMs: 1_000 });
  try {
    return await ask(etcd);
  } finally {
    await etcd.close();
  }
}

/**
 * What a server tells when it is asked for its metrics by `ask`. A vote of its answer is one that etcd has, in each answer. Its voters are
 * those of etcd that answer, and its nodes have the same roles: a member that answers late on a busy machine has no vote until the next
 * look.
 */
export async function toldVotes<T extends Told>(server: EtcdServer, ask: () => Promise<T>): Promise<T> {
  const { told, untrue } = await until(`${server.name} tells the votes of etcd`, async () => {
    const before = await votesIn(server);
    const told = await ask();
    const after = await votesIn(server);
    if (before === undefined || after === undefined) return { told, untrue: [] };
    if (before.join() !== after.join()) return undefined;
    const untrue = told.voters.filter((name) => !before.includes(name));
    const roles = told.nodes.flatMap(({ node_id, role }) => (role === 'voter' ? [node_id] : [])).sort();
    const isWhole = [told.voters, roles].every((names) => names.join() === before.join());
    return (isWhole || untrue.length > 0) && { told, untrue };
  });
  assert.deepEqual(untrue, [], `votes that ${server.name} tells, and etcd does not have`);
  return told;
}

/** For the end of a test: each server that runs tells the votes as etcd has them. */
export async function assertVotesAreTold(
  servers: readonly { readonly server: EtcdServer; readonly ask: () => Promise<Told> }[],
): Promise<void> {
  for (const { server, ask } of servers) await toldVotes(server, ask);
}

/** The nodes of etcd whose votes answer the server; undefined if it has no member, or uses an etcd of others. */
function votesIn(server: EtcdServer): Promise<readonly string[] | undefined> {
  return askEtcd(server, async (etcd) => {
    const members = await etcd.members();
    const votes = members.map(async ({ name, clientUrls: [url] }) => {
      const answers =
        url !== undefined &&
        (await etcd.status(url).then(
          ({ isLearner }) => !isLearner,
          () => false,
        ));
      return answers ? [name] : [];
    });
    return (await Promise.all(votes)).flat().sort();
  }).catch(() => undefined);
}
