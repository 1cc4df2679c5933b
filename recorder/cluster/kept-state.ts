// What was assigned to this node last, on its disk, so that it records on without the API server and after a restart
// without it. `<dataDir>/node_<node id>/assignments.json`, readable by its owner alone: logins of cameras are in it.
//
// A copy that was restored from a backup must not be believed: cameras may have moved since. Each write counts one
// further, and the count is written to a second place as well, with the archive, which no backup brings back. A copy
// with a lower count than its witness is stale.

import { join } from 'node:path';
import { z } from 'zod';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { hostIn } from '../../crds/login-hosts.ts';
import type { FileSystem } from '../archive/disk/file-system.ts';
import { makeDirectories, parseJson, readIfThere, replaceFile } from '../archive/disk/state-file.ts';
import type { Assignment } from './assignments.ts';
import type { Login } from './camera-settings.ts';

export interface Kept {
  readonly assignments: ReadonlyMap<string, Assignment>;
  /** Of cameras with a login, by name of the Secret. */
  readonly logins: ReadonlyMap<string, Login>;
}

export type LoadedState =
  | { readonly kind: 'kept'; readonly kept: Kept }
  /** `stale`: older than its witness. `damaged`: not what this program writes. */
  | { readonly kind: 'none' | 'stale' | 'damaged' };

/** `hosts`: null when the Secret names none; left out by versions that did not ask. */
const login = z.object({ username: z.string(), password: z.string(), hosts: z.array(z.string()).nullish() });
const File = z.object({
  version: z.literal(1),
  namespace: z.string(),
  count: z.number().int().positive(),
  assignments: z.array(
    z.object({
      camera: z.unknown(),
      state: z.enum(['own', 'handing-over', 'suspended']),
      epoch: z.number().int().positive(),
    }),
  ),
  logins: z.record(z.string(), login),
});
const Witness = z.object({ count: z.number().int().positive() });

export interface KeptStateOptions {
  readonly fs: FileSystem;
  readonly dataDir: string;
  readonly nodeID: string;
  /** A tenant: what another one assigned is nothing to this one. */
  readonly namespace: string;
  /** Of the archive's own state. */
  readonly witnessDirectory: string;
}

export class KeptState {
  readonly #options: KeptStateOptions;
  readonly #directory: string;
  #count = 0;
  /** One write after the other. */
  #work: Promise<void> = Promise.resolve();

  constructor(options: KeptStateOptions) {
    this.#options = options;
    this.#directory = join(options.dataDir, `node_${options.nodeID}`);
  }

  get path(): string {
    return join(this.#directory, 'assignments.json');
  }

  get #witnessPath(): string {
    return join(this.#options.witnessDirectory, 'cluster-witness.json');
  }

  /** Once, at the start. Throws what the system says of a file that is there and cannot be read. */
  async load(): Promise<LoadedState> {
    const { fs, namespace } = this.#options;
    const witnessText = await readIfThere(fs, this.#witnessPath);
    const witness = Witness.safeParse(witnessText === undefined ? undefined : parseJson(witnessText)).data?.count ?? 0;
    this.#count = witness;
    const text = await readIfThere(fs, this.path);
    if (text === undefined) return { kind: 'none' };
    const file = File.safeParse(parseJson(text));
    if (!file.success) return { kind: 'damaged' };
    const { data } = file;
    if (data.namespace !== namespace) return { kind: 'none' };
    // The witness is written last: after a crash between both the copy is one ahead.
    if (data.count < witness) return { kind: 'stale' };
    this.#count = data.count;
    const assignments = new Map<string, Assignment>();
    try {
      for (const { camera: value, state, epoch } of data.assignments) {
        const camera: Camera = parseCamera(value);
        assignments.set(camera.metadata.name, { camera, state, epoch });
      }
    } catch {
      return { kind: 'damaged' };
    }
    const logins = Object.entries(data.logins).map(([name, { hosts, ...rest }]): readonly [string, Login] => [
      name,
      { ...rest, hosts: hosts === undefined ? hostsBefore(name, assignments) : (hosts ?? undefined) },
    ]);
    return { kind: 'kept', kept: { assignments, logins: new Map(logins) } };
  }

  /** Resolves when the disk has it. Rejects with what the system says; the next call tries anew. */
  save({ assignments, logins }: Kept): Promise<void> {
    const { namespace } = this.#options;
    const write = async (): Promise<void> => {
      const count = this.#count + 1;
      const file: z.input<typeof File> = {
        version: 1,
        namespace,
        count,
        assignments: [...assignments.values()],
        logins: Object.fromEntries(
          Array.from(logins, ([name, { hosts, ...rest }]) => [name, { ...rest, hosts: hosts ? [...hosts] : null }]),
        ),
      };
      const { fs, witnessDirectory } = this.#options;
      await makeDirectories(fs, this.#directory);
      await replaceFile(fs, this.path, JSON.stringify(file), 0o600);
      this.#count = count;
      // Without it, the archive is not there: nothing may be written where its disk should be.
      const isThere = await fs.facts(witnessDirectory).catch(() => undefined);
      if (isThere) await replaceFile(fs, this.#witnessPath, JSON.stringify({ count }));
    };
    this.#work = this.#work.catch(() => {}).then(write);
    return this.#work;
  }

  /** Erases what a node that leaves knew. */
  async erase(): Promise<void> {
    await this.#work.catch(() => {});
    const { fs } = this.#options;
    if (await fs.facts(this.path).catch(() => undefined)) await fs.remove(this.path);
  }
}

/** Where a login went when nobody asked whom it is for: what was recorded is recorded on until its Secret is read. */
const hostsBefore = (secret: string, assignments: Kept['assignments']): readonly string[] =>
  Array.from(assignments.values(), ({ camera: { spec } }) =>
    spec.credentialsSecretRef?.name === secret
      ? [spec.source, spec.snapshot, spec.onvif].map((one) => hostIn(one ?? ''))
      : [],
  )
    .flat()
    .filter((host) => host !== undefined);
