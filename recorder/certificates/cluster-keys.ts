// The keys of the cluster as this node has them. Their order is that of the cluster; keys that this node lacks come from other members.

import type { Log } from '../../base/log.ts';
import { Turns } from '../../base/turns.ts';
import { KeyRing } from './key-ring.ts';
import { writeKeys, type NodeFiles } from './node-files.ts';

interface ClusterKeysOptions {
  readonly files: NodeFiles;
  readonly ring: KeyRing;
  /** The text of a file of keys from each other member that answers. */
  readonly ask: () => AsyncIterable<string>;
  readonly log: Log;
}

export class ClusterKeys {
  readonly #options: ClusterKeysOptions;
  #ring: KeyRing;
  readonly #changes = new Turns(1);

  constructor(options: ClusterKeysOptions) {
    this.#options = options;
    this.#ring = options.ring;
  }

  readonly seal = (plain: Buffer, name: string): Buffer => this.#ring.seal(plain, name);
  readonly open = (sealed: Buffer, name: string): Buffer => this.#ring.open(sealed, name);

  /** The ids of the keys; the first one seals. */
  get ids(): readonly string[] {
    return this.#ring.ids;
  }

  /** The text of the file of keys. */
  get text(): string {
    return this.#ring.format();
  }

  /** Makes a key that seals nothing yet, and resolves to its id. Rejects with errors of the file system. */
  async grow(): Promise<string> {
    return this.#changes.take(async () => {
      await this.#keep(this.#ring.grown());
      return this.ids.at(-1) as string;
    });
  }

  /** Has these keys in this order, as far as other members can give what is missing. Rejects with errors of the file system. */
  async follow(ids: readonly string[]): Promise<void> {
    await this.#changes.take(async () => {
      const ring = (await this.#completed(ids)).ordered(ids);
      if (ring.ids.join() === this.ids.join()) return;
      await this.#keep(ring);
      this.#options.log.info({ key: this.ids[0], keys: this.ids.length }, 'the keys of the cluster have changed');
    });
  }

  async #completed(ids: readonly string[]): Promise<KeyRing> {
    let ring = this.#ring;
    const isComplete = (): boolean => ids.every((id) => ring.ids.includes(id));
    if (isComplete()) return ring;
    for await (const text of this.#options.ask()) {
      ring = ring.with(KeyRing.parse(text));
      if (isComplete()) break;
    }
    return ring;
  }

  async #keep(ring: KeyRing): Promise<void> {
    await writeKeys(this.#options.files, ring.format());
    this.#ring = ring;
  }
}
