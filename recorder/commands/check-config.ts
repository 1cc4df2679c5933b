// Finds all problems that prevent a configuration from running on this machine: addresses, directories, certificates.
// Everything that it opens is closed, and everything that it creates is removed.

import { once } from 'node:events';
import { access, constants, mkdir, rmdir, stat } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { createServer, isIP, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { errorCode } from '../../base/error.ts';
import { exists } from '../../base/file-calls.ts';
import { NodeFileError, nodeFiles, readCluster } from '../certificates/node-files.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import { formatListen, type ListenAddress } from '../config/values.ts';
import { ETCD_PORTS, hostOfServer } from '../config/exposure.ts';
import { CertificateError, readCertificate } from '../http/certificate.ts';
import { readTrusted } from '../http/trusted.ts';
import { HOW_TO_JOIN } from '../front/trust.ts';
import { nodeNameProblem } from './node-name.ts';

const PROBE_MS = 2_000;

interface StartOptions {
  /** The addresses may be in use by a recorder that runs with this configuration. */
  readonly mayRun: boolean;
}

/**
 * Problems with their keys, without positions in the files. Empty: the recorder can start. Checked before archive and
 * cameras are touched: if an address is in use, another recorder may be using the archive.
 */
export async function startProblems(config: Config, { mayRun }: StartOptions): Promise<ConfigError[]> {
  const { cluster, log, redis, tls, workDir, recordPath } = config;
  const problems: ConfigError[] = [];
  const note = (key: string, problem: string): void => void problems.push(new ConfigError('', key, problem));
  if (!(mayRun && (await isRunning(config)))) await checkAddresses(config, note);
  if (cluster.mode === 'etcd') await checkMember(config, note);
  const directories = [
    ['workDir', workDir],
    ...((await mayWaitForDisk(config)) ? [] : [['record_path', recordPath]]),
    ...(log.directory === undefined ? [] : [['log.directory', log.directory]]),
  ] as const;
  for (const [key = '', path = ''] of directories) {
    const problem = await problemOfDirectory(path);
    if (problem !== undefined) note(key, `${path} ${problem}`);
  }
  for (const [key, pair] of [
    ['tls', tls === 'auto' ? undefined : tls],
    ['cluster.tls', cluster.tls],
  ] as const) {
    if (!pair) continue;
    await readCertificate(pair).catch((err: unknown) => {
      if (!(err instanceof CertificateError)) throw err;
      note(`${key}.${err.key}`, `${err.file} ${err.message}`);
    });
  }
  for (const [key, file] of [
    ['cluster.ca', cluster.ca],
    ['cluster.tls.ca', cluster.tls?.ca],
    ['redis.ca', redis?.ca],
  ] as const) {
    await readTrusted(key, file).catch((err: Error) => note(key, err.message.slice(key.length + 2)));
  }
  return problems;
}

/** The mount point of a known archive whose disk is missing is an empty directory: the recorder waits for the disk. */
const mayWaitForDisk = async ({ workDir, recordPath }: Config): Promise<boolean> =>
  (await exists(`${workDir}/archive-id`)) && (await exists(recordPath)) && !(await exists(`${recordPath}/.kube-nvr`));

/** Keeps every listener open until all were tried: two addresses may be equal. */
async function checkAddresses(config: Config, note: (key: string, problem: string) => void): Promise<void> {
  const held: Server[] = [];
  const { mode, etcd } = config.cluster;
  for (const [key, address] of [
    ['listen', config.listen],
    ['playback.listen', config.playback.listen],
    ['metrics.listen', config.metrics.listen],
    ...(config.cluster.listen ? ([['cluster.listen', config.cluster.listen]] as const) : []),
    ...(config.health ? ([['health.listen', config.health.listen]] as const) : []),
    ...(mode === 'etcd' && !etcd
      ? Object.values(ETCD_PORTS).map((port) => ['cluster.mode', etcdAddress(config, port)] as const)
      : []),
  ] as const) {
    const server = createServer().listen({ host: address.host, port: address.port });
    try {
      await once(server, 'listening');
      held.push(server);
    } catch (err) {
      const problem = `${formatListen(address)} ${wordsOfListen(errorCode(err))}`;
      note(key, key === 'cluster.mode' ? `etcd: ${problem}: the recorder runs etcd there itself` : problem);
    }
  }
  for (const server of held) {
    server.close();
    await once(server, 'close');
  }
}

/** As etcd listens: on all addresses if others reach this server by a name. */
function etcdAddress(config: Config, port: number): ListenAddress {
  const { hostname } = new URL(`https://${hostOfServer(config)}`);
  const host = hostname.replace(/^\[|\]$/g, '');
  return { host: isIP(host) === 0 ? '0.0.0.0' : host, port };
}

/** What a server of a cluster without Kubernetes needs before it can start. */
async function checkMember(config: Config, note: (key: string, problem: string) => void): Promise<void> {
  const { cluster, nodeName } = config;
  const name = nodeNameProblem(nodeName);
  if (name !== undefined) note('nodeName', name);
  if (!cluster.listen) note('cluster.listen', 'is missing: with mode etcd, the other servers reach this one there');
  const files = nodeFiles(cluster.dataDir, nodeName);
  try {
    const member = await readCluster(files);
    if (!member) return note('cluster.mode', `etcd: ${files.cluster} is missing: ${HOW_TO_JOIN}`);
    const isAlone = member.initial === 'join' && member.members.length === 0;
    if (isAlone && !cluster.etcd && !(await exists(join(dirname(files.cluster), 'etcd/member')))) {
      note('cluster.etcd.endpoints', 'is missing: this server has no data of etcd, and knows no server that has');
    }
  } catch (err) {
    if (!(err instanceof NodeFileError)) throw err;
    note('cluster.mode', `etcd: ${err.message}`);
  }
}

function wordsOfListen(code: string | undefined): string {
  if (code === 'EADDRINUSE') return 'is in use by another program, or by another listener of this file (EADDRINUSE)';
  if (code === 'EADDRNOTAVAIL') return 'is not an address of this machine (EADDRNOTAVAIL)';
  if (code === 'EACCES') return 'is not allowed for this user: ports below 1024 need a privilege (EACCES)';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `is a host name that cannot be resolved (${code})`;
  return `cannot be used for listening (${code ?? 'failed'})`;
}

/** Undefined when files can be created in it, or it can be created. */
async function problemOfDirectory(path: string): Promise<string | undefined> {
  try {
    const made = await makeDirectories(path);
    try {
      await access(path, constants.W_OK | constants.X_OK);
    } finally {
      for (const directory of made.toReversed()) await rmdir(directory);
    }
    return undefined;
  } catch (err) {
    const code = errorCode(err);
    if (code === 'EACCES' || code === 'EPERM') return `is not writable for this user (${code})`;
    if (code === 'EEXIST' || code === 'ENOTDIR') return `is not a directory, or its path contains a file (${code})`;
    if (code === 'EROFS') return 'is on a read-only file system (EROFS)';
    return `cannot be created (${code ?? 'failed'})`;
  }
}

/**
 * Returns the directories that it created, the outermost first. Does not use `recursive` of mkdir, which never ends in
 * `/proc`.
 */
async function makeDirectories(path: string): Promise<string[]> {
  try {
    await mkdir(path);
    return [path];
  } catch (err) {
    if (errorCode(err) === 'EEXIST' && (await stat(path)).isDirectory()) return [];
    if (errorCode(err) !== 'ENOENT' || dirname(path) === path) throw err;
    const made = await makeDirectories(dirname(path));
    // The parent exists, but the directory cannot be created.
    if (made.length === 0) throw err;
    await mkdir(path);
    return [...made, path];
  }
}

/** Whether a recorder answers at the address of this configuration. */
async function isRunning({ listen, tls }: Pick<Config, 'listen' | 'tls'>): Promise<boolean> {
  const url = `${tls ? 'https' : 'http'}://${formatListen(reachable(listen))}/api/health/ready`;
  return new Promise((resolve) => {
    const options = { timeout: PROBE_MS, rejectUnauthorized: false, agent: false as const };
    const asked = (tls ? requestHttps : requestHttp)(url, options, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => (body += text));
      response.on('end', () => resolve(/"version"/.test(body)));
      response.on('error', () => resolve(false));
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.end();
  });
}

/** An address at which this machine reaches the listener. */
function reachable({ host, port }: ListenAddress): ListenAddress {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port };
  return { host: host === '::' ? '::1' : host, port };
}
