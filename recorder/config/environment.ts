// Reads settings from environment variables: those that differ between the pods of a DaemonSet, and those from Secrets.

import { readFile } from 'node:fs/promises';
import { hostInUrl } from '../../base/host.ts';
import { ConfigError, firstProblem } from './load.ts';
import { parseListen, ValueError, type ListenAddress } from './values.ts';
import { DatabaseUrl, RedisUrl, sha256Digits, type Config } from './schema.ts';
import { errorCode } from '../../base/error.ts';
import { reasonOf } from './yaml-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns `config` with the values of the variables. Throws ConfigError, whose message names the variable and not its
 * value.
 */
export function inEnvironment(config: Config, env: Environment): Config {
  const { KUBE_NVR_NODE_NAME: nodeName } = env;
  const advertise = withBrackets(env['KUBE_NVR_ADVERTISE']);
  const playback = withBrackets(env['KUBE_NVR_PLAYBACK_ADVERTISE']);
  const database = urlIn(env, 'KUBE_NVR_DATABASE_URL', DatabaseUrl);
  const health = listenIn(env, 'KUBE_NVR_HEALTH_LISTEN');
  const peers = listenIn(env, 'KUBE_NVR_PEERS_LISTEN');
  const redis = urlIn(env, 'KUBE_NVR_REDIS_URL', RedisUrl);
  return {
    ...config,
    ...(nodeName ? { nodeName } : {}),
    ...(database === undefined ? {} : { database: { ...config.database, url: database } }),
    ...(redis === undefined ? {} : { redis: { ...config.redis, url: redis } }),
    auth: { ...config.auth, sessionKeyFile: env['KUBE_NVR_SESSION_KEY_FILE'] || undefined },
    cluster: { ...config.cluster, ...(advertise ? { advertise } : {}), ...(peers ? { listen: peers } : {}) },
    ...(health ? { health: { listen: health } } : {}),
    playback: { ...config.playback, ...(playback ? { advertise: playback } : {}) },
  };
}

/** `[fd00::5]:9997` for `fd00::5:9997`: in the environment of a pod, Kubernetes inserts its address as it is. */
function withBrackets(address: string | undefined): string | undefined {
  const [, host = '', port] = /^(.*):(\d+)$/.exec(address ?? '') ?? [];
  return port === undefined ? address : `${hostInUrl(host)}:${port}`;
}

/**
 * The files with the users and the issuers of a pool. These are variables and not settings, like everything that pods get besides the
 * settings: recorders of an older version that restart before their update read the settings, too, and would reject one
 * that they do not know.
 */
export const filesIn = (env: Environment) => ({
  usersFile: env['KUBE_NVR_USERS_FILE'] || undefined,
  issuersFile: env['KUBE_NVR_ISSUERS_FILE'] || undefined,
});

/** The SHA-256 of no known text. */
const OF_NO_TOKEN = '0'.repeat(64);

/**
 * The file with the digest of the token for metrics; undefined outside of pods. If the variable is set, metrics need a
 * token in every mode: if the file is missing or empty, no token is accepted, and recording is not affected.
 */
export const metricsTokenFile = ({ KUBE_NVR_METRICS_TOKEN_FILE: file }: Environment): string | undefined =>
  file === '' ? undefined : file;

/** Returns `config` with the content of that file. Throws ConfigError, whose message names the variable. */
export async function withMetricsToken(config: Config, env: Environment): Promise<Config> {
  const file = metricsTokenFile(env);
  if (file === undefined) return config;
  const refuse = (problem: string): never => {
    throw new ConfigError('environment', 'KUBE_NVR_METRICS_TOKEN_FILE', `${file}: ${problem}`);
  };
  const text = await readFile(file, 'utf8').catch((err: unknown) =>
    errorCode(err) === 'ENOENT' ? '' : refuse(reasonOf(err)),
  );
  const parsed = sha256Digits().safeParse(text.trim() || OF_NO_TOKEN);
  const tokenSha256 = parsed.success ? parsed.data : refuse(firstProblem(parsed.error).problem);
  return { ...config, metrics: { ...config.metrics, requireToken: true, tokenSha256 } };
}

function listenIn(env: Environment, name: string): ListenAddress | undefined {
  const text = env[name];
  if (!text) return undefined;
  try {
    return parseListen(text);
  } catch (err) {
    if (err instanceof ValueError) throw new ConfigError('environment', name, err.message);
    throw err;
  }
}

function urlIn(env: Environment, name: string, schema: typeof DatabaseUrl): string | undefined {
  const text = env[name];
  if (!text) return undefined;
  // Text editors add a line feed at the end of a Secret.
  const parsed = schema.safeParse(text.trim());
  if (parsed.success) return parsed.data;
  throw new ConfigError('environment', name, firstProblem(parsed.error).problem);
}
