// A site on Kubernetes as `kubectl nvr` uses it: objects through the user's own kubectl, with its login and rights; recorders at the
// addresses that the operator publishes, with the admin token of the pool.

import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { startChild } from '../../base/child.ts';
import { messageOf } from '../../base/error.ts';
import { adminTokenName, GROUP, recorderName } from '../../crds/names.ts';
import { AdminClient, AdminError, readNamed } from './admin-client.ts';
import type { CommandContext } from './command.ts';
import { NamedList, type Json, type Named, type Site, type Values } from './site.ts';

/** Those of kubectl that every installation uses, under their own names. */
export const KUBECTL_OPTIONS = {
  namespace: { type: 'string', short: 'n' },
  context: { type: 'string' },
  kubeconfig: { type: 'string' },
  pool: { type: 'string', default: 'default' },
  server: { type: 'string' },
  'token-file': { type: 'string' },
  ca: { type: 'string' },
} as const;
export const KUBECTL_USAGE = `  -n, --namespace NAME, --context NAME, --kubeconfig FILE    as kubectl has them
  --pool NAME        the RecorderPool (default: default)
  --server URL       where a recorder of the pool is reached (default: spec.address of a RecorderNode that is online)
  --token-file FILE  a file with a token (default: the Secret POOL-admin-token)
  --ca FILE          the authority of the recorder's certificate, in PEM (default: the ConfigMap POOL-recorder-ca)
`;

const PASSED_ON = ['namespace', 'context', 'kubeconfig'] as const;
const LOG_LINES = 5_000;

const Secret = z.object({ data: z.object({ token: z.string() }) });
const ConfigMap = z.object({ data: z.object({ 'ca.crt': z.string() }) });
const Node = z.object({
  spec: z.object({ poolRef: z.object({ name: z.string() }), address: z.string().optional() }),
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]) }).optional(),
});

export class KubectlSite implements Site {
  readonly #values: Values;
  readonly #env: Readonly<Record<string, string>>;
  #recorder: Promise<AdminClient> | undefined;

  constructor(values: Values, { env }: Pick<CommandContext, 'env'>) {
    this.#values = values;
    this.#env = Object.fromEntries(
      Object.entries(env).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
    );
  }

  async list(plural: string): Promise<readonly Named[]> {
    return NamedList.parse(await this.#json('get', `${plural}.${GROUP}`)).items;
  }

  async patch(plural: string, name: string, change: Json): Promise<void> {
    await this.#kubectl('patch', `${plural}.${GROUP}`, name, '--type=merge', `--patch=${JSON.stringify(change)}`);
  }

  recorder(): Promise<AdminClient> {
    return (this.#recorder ??= this.#reached());
  }

  async more(): Promise<ReadonlyMap<string, string>> {
    const logs = [
      '--tail',
      String(LOG_LINES),
      '--all-containers',
      '--prefix',
      '--ignore-errors',
      '--max-log-requests=64',
    ];
    const asked: Readonly<Record<string, readonly string[]>> = {
      'kubernetes/version.txt': ['version'],
      'kubernetes/nodes.txt': ['get', 'nodes', '-o', 'wide'],
      'kubernetes/pods.txt': ['get', 'pods', '-o', 'wide'],
      'kubernetes/events.txt': ['get', 'events', '--sort-by=.lastTimestamp'],
      'kubernetes/objects.txt': ['get', 'daemonsets,deployments,services,poddisruptionbudgets,leases', '-o', 'wide'],
      'logs/operator.txt': ['logs', '-l', 'app.kubernetes.io/component=operator', ...logs],
      'logs/recorders.txt': ['logs', '-l', 'app.kubernetes.io/component=recorder', ...logs],
    };
    const found = new Map<string, string>();
    for (const [name, args] of Object.entries(asked)) {
      found.set(name, await this.#kubectl(...args).catch((err: unknown) => `${messageOf(err)}\n`));
    }
    return found;
  }

  async #reached(): Promise<AdminClient> {
    const { pool, server, 'token-file': tokenFile, ca } = this.#values as Record<string, string | undefined>;
    const address = server ?? (await this.#address(String(pool)));
    if (!URL.canParse(address)) throw new AdminError('--server: expected an address such as https://node-1:9997');
    const token =
      tokenFile === undefined ? await this.#token(String(pool)) : (await readNamed('--token-file', tokenFile)).trim();
    const authority = ca === undefined ? await this.#authority(String(pool)) : await readNamed('--ca', ca);
    return new AdminClient(
      new URL(address),
      token === undefined ? {} : { authorization: `Bearer ${token}` },
      authority === undefined ? {} : { ca: authority },
    );
  }

  async #address(pool: string): Promise<string> {
    for (const node of await this.list('recordernodes')) {
      const { spec, status } = Node.parse(node);
      const isOnline = status?.conditions.some(({ type, status: is }) => type === 'Online' && is === 'True');
      if (spec.poolRef.name === pool && isOnline && spec.address !== undefined) return spec.address;
    }
    throw new AdminError(`no recorder of the pool ${pool} is online: name one with --server`);
  }

  /** Undefined: the pool has tokens of its own, or needs none. */
  async #token(pool: string): Promise<string | undefined> {
    const found = await this.#kubectl('get', 'secret', adminTokenName(pool), '--ignore-not-found', '-o', 'json');
    return found === ''
      ? undefined
      : Buffer.from(Secret.parse(JSON.parse(found)).data.token, 'base64').toString('utf8');
  }

  /** Undefined: the certificate is of an authority that the system trusts. */
  async #authority(pool: string): Promise<string | undefined> {
    const found = await this.#kubectl(
      'get',
      'configmap',
      `${recorderName(pool)}-ca`,
      '--ignore-not-found',
      '-o',
      'json',
    );
    return found === '' ? undefined : ConfigMap.parse(JSON.parse(found)).data['ca.crt'];
  }

  async #json(...args: readonly string[]): Promise<unknown> {
    return JSON.parse(await this.#kubectl(...args, '-o', 'json'));
  }

  /** What it prints. Throws AdminError with what it says. */
  async #kubectl(...args: readonly string[]): Promise<string> {
    const passed = PASSED_ON.flatMap((name) => {
      const value = this.#values[name];
      return typeof value === 'string' ? [`--${name}=${value}`] : [];
    });
    const child = startChild('kubectl', [...passed, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      limits: {},
      env: this.#env,
    });
    const ended = Promise.withResolvers<number | null>();
    child.on('error', () => ended.reject(new AdminError('kubectl is not installed, or cannot be started')));
    child.on('close', (code) => ended.resolve(code));
    const [code, out, err] = await Promise.all([ended.promise, text(child.stdout), text(child.stderr)]);
    if (code !== 0) throw new AdminError(err.trim() || `kubectl ended with ${code}`);
    return out;
  }
}
