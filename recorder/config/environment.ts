// What differs from pod to pod of a DaemonSet, and what comes from Secrets: in no file, and so in the environment.

import { ConfigError, firstProblem } from './load.ts';
import { DatabaseUrl, RedisUrl, type Config } from './schema.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** `config` with what the variables say. Throws ConfigError, which names the variable and does not show its value. */
export function inEnvironment(config: Config, env: Environment): Config {
  const { KUBE_NVR_NODE_NAME: nodeName, KUBE_NVR_ADVERTISE: advertise } = env;
  const { KUBE_NVR_PLAYBACK_ADVERTISE: playback } = env;
  const database = urlIn(env, 'KUBE_NVR_DATABASE_URL', DatabaseUrl);
  const redis = urlIn(env, 'KUBE_NVR_REDIS_URL', RedisUrl);
  return {
    ...config,
    ...(nodeName ? { nodeName } : {}),
    ...(database === undefined ? {} : { database: { ...config.database, url: database } }),
    ...(redis === undefined ? {} : { redis: { ...config.redis, url: redis } }),
    cluster: { ...config.cluster, ...(advertise ? { advertise } : {}) },
    playback: { ...config.playback, ...(playback ? { advertise: playback } : {}) },
  };
}

function urlIn(env: Environment, name: string, schema: typeof DatabaseUrl): string | undefined {
  const text = env[name];
  if (!text) return undefined;
  // Secrets are made with editors, which end files with a line feed.
  const parsed = schema.safeParse(text.trim());
  if (parsed.success) return parsed.data;
  throw new ConfigError('environment', name, firstProblem(parsed.error).problem);
}
