// The command `recorder cluster recover`: the last server of a cluster without Kubernetes, whose other servers are lost for good, makes
// a cluster out of its own state.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { becomeOwnerOf } from '../../base/as-owner.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { ApiError } from '../../base/kubernetes/api-error.ts';
import { mergePatch } from '../../base/kubernetes/client.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, CAMERAS } from '../../crds/names.ts';
import { StoreConnection } from '../../store/connection.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import { nodeFileSystem as fs } from '../archive/disk/file-system.ts';
import { DirectoryInUse, takeDirectory } from '../archive/disk/directory-lock.ts';
import { CommandError } from './command.ts';
import { nodeFiles, type NodeFiles } from '../certificates/node-files.ts';
import { nodesPath } from '../certificates/secrets.ts';
import { ApiServer } from '../cluster/api-server.ts';
import type { Config } from '../config/schema.ts';
import { EtcdMemberError } from '../servers/etcd-member.ts';
import { hostOfServer } from '../config/exposure.ts';
import { CertificateError, readCertificate } from '../http/certificate.ts';
import { OwnEtcd, type EtcdTls, type Role } from '../servers/own-etcd.ts';
import { readMember } from '../run/servers.ts';

interface RecoverOptions {
  readonly config: Config;
  readonly clock: Clock;
}

/** Nothing was recovered; the message says why. */
export class RecoverError extends CommandError {
  override readonly name = 'RecoverError';
}

/**
 * The lost servers may have moved cameras since this one heard of them. No epoch that they gave may be given again, so every camera
 * continues with one that is this much higher: a camera would have to move every 15 seconds for half a year to get there.
 */
const EPOCHS_LEFT_OUT = 1_000_000;

const Cameras = z.array(
  z.object({
    metadata: z.object({ name: z.string() }),
    status: z
      .object({
        assignment: z.object({ epoch: z.number() }).optional(),
        standby: z.object({ epoch: z.number() }).optional(),
      })
      .optional(),
  }),
);
const Nodes = z.array(
  z.object({ metadata: z.object({ name: z.string() }), spec: z.object({ role: z.string().optional() }) }),
);

/** Resolves to the names of the nodes that were removed. Throws RecoverError and ConfigError. */
export async function recoverCluster({ config, clock }: RecoverOptions): Promise<readonly string[]> {
  const { nodeName: nodeId, recordPath, workDir, cluster: settings } = config;
  if (settings.etcd) {
    throw new RecoverError(
      "cluster.etcd.endpoints: this etcd is not the recorder's own: its administrators recover it",
    );
  }
  // From here on with the rights of the recorder's user: what is read and written is the recorder's.
  becomeOwnerOf(settings.dataDir);
  const { cluster, ring } = await readMember(config);
  if (!existsSync(join(recordPath, '.kube-nvr'))) {
    throw new RecoverError(`record_path: ${recordPath} is not the archive of this server: mount its disk first`);
  }
  const files = nodeFiles(settings.dataDir, nodeId);
  const tls = await tlsOf(files);
  const [host, directory] = [hostOfServer(config), dirname(files.cluster)];
  const lock = await takeDirectory(workDir, { fs, holder: { node: nodeId }, log: silentLog }).catch((err: unknown) => {
    if (!(err instanceof DirectoryInUse)) throw err;
    throw new RecoverError('the recorder of this server runs: stop it first (systemctl stop recorder)');
  });
  const etcd = new OwnEtcd({
    nodeId,
    host,
    directory,
    recordPath,
    files,
    cluster,
    tls: () => tls,
    clock,
    log: silentLog,
  });
  const api = new ApiServer(
    new StoreConnection({ etcd: new EtcdClient({ endpoints: etcd.urls, tls: () => tls }), seal: ring, clock }),
  );
  try {
    const [alive] = await etcd.answering();
    if (alive !== undefined) {
      throw new RecoverError(
        `the member of etcd at ${alive} answers: with more than half of its servers a cluster works again. ` +
          'If the others are lost, stop the recorder on that server, and recover one server only',
      );
    }
    let removed: readonly string[] = [];
    await etcd.recover(async () => {
      // Before votes are taken: without a majority nothing moves.
      await raiseEpochs(api);
      removed = await removeOthers(api, nodeId);
    });
    return removed;
  } catch (err) {
    if (err instanceof EtcdMemberError || err instanceof ApiError) throw new RecoverError(err.message, { cause: err });
    throw err;
  } finally {
    await api.close();
    await etcd.close();
    lock.release();
  }
}

async function tlsOf({ authorities, certificate, key }: NodeFiles): Promise<EtcdTls> {
  try {
    const [ca, pair] = await Promise.all([readFile(authorities, 'utf8'), readCertificate({ certificate, key })]);
    return { ca, ...pair };
  } catch (cause) {
    const file = cause instanceof CertificateError ? cause.file : authorities;
    throw new RecoverError(`${file}: ${messageOf(cause)}`, { cause });
  }
}

/** Throws ApiError. */
async function raiseEpochs(api: ApiServer): Promise<void> {
  const path = `/apis/${API_VERSION}/namespaces/${STORE_NAMESPACE}/${CAMERAS}`;
  const { items } = await api.list(path);
  for (const { metadata, status = {} } of Cameras.parse(items)) {
    const { assignment, standby } = status;
    const raised = (place: { readonly epoch: number }): object => ({ epoch: place.epoch + EPOCHS_LEFT_OUT });
    const change = {
      ...(assignment && { assignment: raised(assignment) }),
      ...(standby && { standby: raised(standby) }),
    };
    await mergePatch(api, `${path}/${metadata.name}/status`, { status: change });
  }
}

/** Gives this node the only vote. Nodes without a vote stay: they do not count, and may be alive. Throws ApiError. */
async function removeOthers(api: ApiServer, nodeId: string): Promise<readonly string[]> {
  const path = nodesPath(STORE_NAMESPACE);
  const { items } = await api.list(path);
  const setRole = (name: string, role: Role): Promise<unknown> =>
    mergePatch(api, `${path}/${name}`, { spec: { role } });
  await setRole(nodeId, 'Voter');
  const lost = Nodes.parse(items).filter(({ metadata, spec }) => metadata.name !== nodeId && spec.role === 'Voter');
  for (const { metadata } of lost) await setRole(metadata.name, 'Removed');
  return lost.map(({ metadata }) => metadata.name);
}
