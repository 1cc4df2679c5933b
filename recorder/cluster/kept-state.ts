// The last assignments of this node on its disk, so that it continues to record without the API server, even after a restart.
// `<dataDir>/node_<node id>/assignments.json` is readable only by its owner, because it contains logins of cameras.
//
// A copy restored from a backup must not be used, because cameras may have moved since. Each write therefore increments a count
// that is also written to a second place, the witness, with the archive, which no backup restores. A copy with a lower count than
// its witness is stale.

import { join } from 'node:path';
import { Turns } from '../../base/turns.ts';
import { parseJson } from '../../base/parse-json.ts';
import { ignoreMissing } from '../../base/file-calls.ts';
import { z } from 'zod';
import { addressesOf, parseCamera, type Camera } from '../../crds/camera.ts';
import { ResourceError } from '../../crds/parse.ts';
import { hostIn } from '../../crds/login-hosts.ts';
import type { FileSystem } from '../archive/disk/file-system.ts';
import { makeDirectories, readIfThere, replaceFile } from '../archive/disk/state-file.ts';
import type { Assignment } from './assignments.ts';
import type { Login } from './camera-settings.ts';

export interface KeptContent {
  readonly assignments: ReadonlyMap<string, Assignment>;
  /** The logins of cameras by name of the Secret. */
  readonly logins: ReadonlyMap<string, Login>;
}

type LoadedState =
  | { readonly kind: 'kept'; readonly kept: KeptContent }
  /** `stale`: older than its witness. `damaged`: not written by this program. */
  | { readonly kind: 'none' | 'stale' | 'damaged' };

/** `hosts`: null if the Secret names none; absent in copies of versions that did not check. */
const login = z.object({
  username: z.string(),
  password: z.string(),
  hosts: z.array(z.string()).nullish(),
  row: z.record(z.string(), z.unknown()).optional(),
});
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

interface KeptStateOptions {
  readonly fs: FileSystem;
  readonly dataDir: string;
  readonly nodeId: string;
  /** The tenant: assignments from another namespace are ignored. */
  readonly namespace: string;
  /** The directory of the archive's own state. */
  readonly witnessDirectory: string;
}

export class KeptState {
  readonly #options: KeptStateOptions;
  readonly #directory: string;
  #count = 0;
  /** Writes run one after another. */
  readonly #writes = new Turns(1);

  constructor(options: KeptStateOptions) {
    this.#options = options;
    this.#directory = join(options.dataDir, `node_${options.nodeId}`);
  }

  get path(): string {
    return join(this.#directory, 'assignments.json');
  }

  get #witnessPath(): string {
    return join(this.#options.witnessDirectory, 'cluster-witness.json');
  }

  /** Call once, at the start. Throws the system's error if a file exists but cannot be read. */
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
    // The witness is written last, so after a crash in between the copy is one ahead.
    if (data.count < witness) return { kind: 'stale' };
    this.#count = data.count;
    const assignments = new Map<string, Assignment>();
    for (const { camera: value, state, epoch } of data.assignments) {
      const camera = readable(value);
      if (camera) assignments.set(camera.metadata.name, { camera, state, epoch });
    }
    // Another program has written the file.
    if (assignments.size === 0 && data.assignments.length > 0) return { kind: 'damaged' };
    const logins = Object.entries(data.logins).map(([name, { hosts, ...rest }]): readonly [string, Login] => [
      name,
      { ...rest, hosts: hosts === undefined ? hostsBefore(name, assignments) : (hosts ?? undefined) },
    ]);
    return { kind: 'kept', kept: { assignments, logins: new Map(logins) } };
  }

  /** Resolves when it is on disk. Rejects with the system's error; the next call tries again. */
  save({ assignments, logins }: KeptContent): Promise<void> {
    const { namespace } = this.#options;
    return this.#writes.take(async () => {
      const count = this.#count + 1;
      const file: z.input<typeof File> = {
        version: 1,
        namespace,
        count,
        // What was held in memory is lost with the process, and other nodes record these cameras.
        assignments: [...assignments.values()].flatMap(({ state, ...rest }) =>
          state === 'standby' ? [] : [{ ...rest, state }],
        ),
        logins: Object.fromEntries(
          Array.from(logins, ([name, { hosts, ...rest }]) => [name, { ...rest, hosts: hosts ? [...hosts] : null }]),
        ),
      };
      const { fs, witnessDirectory } = this.#options;
      await makeDirectories(fs, this.#directory);
      await replaceFile(fs, this.path, JSON.stringify(file), 0o600);
      this.#count = count;
      // If the directory is missing, so is the archive: nothing may be written where its disk should be mounted.
      const isThere = await fs.facts(witnessDirectory).catch(ignoreMissing);
      if (isThere) await replaceFile(fs, this.#witnessPath, JSON.stringify({ count }));
    });
  }

  /** Resolves when nothing is being written. */
  async close(): Promise<void> {
    await this.#writes.idle();
  }

  /** Deletes the copy of a node that leaves. */
  async erase(): Promise<void> {
    await this.close();
    const { fs } = this.#options;
    if (await fs.facts(this.path).catch(ignoreMissing)) await fs.remove(this.path);
  }
}

/** Undefined: this version cannot read the camera, which says nothing about the others. */
function readable(value: unknown): Camera | undefined {
  try {
    return parseCamera(value);
  } catch (err) {
    if (err instanceof ResourceError) return undefined;
    throw err;
  }
}

/** The hosts to which a login was sent before they were checked: recording continues until the Secret has been read. */
const hostsBefore = (secret: string, assignments: KeptContent['assignments']): readonly string[] =>
  Array.from(assignments.values(), ({ camera }) =>
    camera.spec.credentialsSecretRef?.name === secret ? addressesOf(camera).map(hostIn) : [],
  )
    .flat()
    .filter((host) => host !== undefined);
