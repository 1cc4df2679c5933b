// Reads the certificates that the configuration names: the one that a recorder presents, and those by which it trusts
// others.

import { join } from 'node:path';
import { NodeFileError, nodeFiles, readCluster } from '../certificates/node-files.ts';
import type { EngineMember } from '../model/engine.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import type { FrontDeps } from './deps.ts';
import { reachedAs } from '../config/exposure.ts';
import { CertificateError, readCertificate, type CertificatePair, type CertificatePaths } from '../http/certificate.ts';
import { OwnCertificate } from '../http/own-certificate.ts';
import { authorityBeside, readTrusted } from '../http/trusted.ts';

export interface Trust {
  readonly tls: CertificatePair | undefined;
  /** The paths of the pair. */
  readonly certificate: CertificatePaths | undefined;
  /** CA certificates for other recorders and for Redis; PEM. */
  readonly peerCa: string | undefined;
  readonly redisCa: string | undefined;
}

/** The certificate by which members of a pool recognize each other; it may serve all clients. Rejects with ConfigError. */
export async function openOwnCertificate(
  config: Config,
  { clock, log }: FrontDeps,
): Promise<OwnCertificate | undefined> {
  if (config.tls !== 'auto' && !config.cluster.listen) return undefined;
  const directory = ownDirectory(config);
  const isIssued = config.cluster.mode === 'etcd';
  if (isIssued) await requireMember(config);
  try {
    return await OwnCertificate.open({ directory, names: () => reachedAs(config), isIssued, clock, log });
  } catch (err) {
    if (err instanceof CertificateError) throw new ConfigError(err.file, 'tls', err.message);
    throw err;
  }
}

export const HOW_TO_JOIN = 'run recorder cluster init on the first server, recorder cluster join on others';

/** Only the CA of the cluster makes certificates of its members: a start must not make others in their place. */
async function requireMember({ cluster: { dataDir }, nodeName }: Config): Promise<void> {
  const files = nodeFiles(dataDir, nodeName);
  try {
    if (await readCluster(files)) return;
  } catch (err) {
    if (!(err instanceof NodeFileError)) throw err;
    throw new ConfigError('', 'cluster.mode', err.message);
  }
  throw new ConfigError('', 'cluster.mode', `etcd: ${files.cluster} is missing: ${HOW_TO_JOIN}`);
}

/** For a member of a cluster without Kubernetes, it is with the state of the node: deleting that deletes the certificate, too. */
const ownDirectory = ({ cluster, nodeName, workDir }: Config): string =>
  cluster.mode === 'etcd' ? nodeFiles(cluster.dataDir, nodeName).directory : join(workDir, 'tls');

/** The file of the certificate that viewers see; undefined over plain HTTP. */
export const servedCertificate = (config: Config): string | undefined =>
  config.tls === 'auto' ? join(ownDirectory(config), 'certificate.pem') : config.tls?.certificate;

/** Throws ConfigError when the pair cannot be used, and what `readTrusted` throws. */
export async function readTrust(
  config: Config,
  own: OwnCertificate | undefined,
  member: EngineMember | undefined,
): Promise<Trust> {
  const certificate = config.tls === 'auto' ? own?.paths : config.tls;
  const tls = certificate && (await readTls(certificate));
  const peerCa =
    (await readTrusted('cluster.ca', config.cluster.ca)) ??
    (member && certificate ? await authorityBeside(certificate.certificate) : undefined);
  return { tls, certificate, peerCa, redisCa: await readTrusted('redis.ca', config.redis?.ca) };
}

async function readTls(paths: CertificatePaths): Promise<CertificatePair> {
  try {
    return await readCertificate(paths);
  } catch (err) {
    if (err instanceof CertificateError) throw new ConfigError(err.file, `tls.${err.key}`, err.message);
    throw err;
  }
}
