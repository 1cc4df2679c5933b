// Keeps a copy of selected objects: lists, watches, begins anew when the watch ends, when nothing came for half a
// minute, and when it is told to.

import type { ApiServer, Kind, ObjectOf } from './api-server.ts';
import type { Process } from './world.ts';

const QUIET_MS = 30_000;
const RETRY_MS = 1_000;

type Options<K extends Kind> = {
  readonly kind: K;
  readonly client: Process;
  readonly api: ApiServer;
  readonly selects?: (object: ObjectOf<K>) => boolean;
  /** Object undefined: it is not selected any more. */
  readonly onChange: (name: string, object: ObjectOf<K> | undefined) => void;
  /** A list came, and `onChange` has been called for what differs. */
  readonly onListed?: () => void;
};

export class Reflector<K extends Kind> {
  objects = new Map<string, ObjectOf<K>>();
  isSynced = false;
  readonly #options: Options<K>;
  #stop: () => void = () => {};
  #attempt = 0;
  #heardMs = 0;

  constructor(options: Options<K>) {
    this.#options = options;
  }

  list(): void {
    const { kind, client, api, selects = () => true, onChange } = this.#options;
    const attempt = ++this.#attempt;
    const isCurrent = (): boolean => attempt === this.#attempt;
    this.#stop();
    const watcher = {
      kind,
      client,
      selects,
      onEvent: (name: string, object: ObjectOf<K> | undefined): void => {
        if (!isCurrent()) return;
        this.#heardMs = client.nowMs();
        if (object) this.objects.set(name, object);
        else this.objects.delete(name);
        onChange(name, object);
      },
      onEnd: (): void => {
        if (isCurrent()) client.after(RETRY_MS / 4, () => isCurrent() && this.list());
      },
    };
    api.listAndWatch(watcher, 3_000, (objects, stop) => {
      if (!isCurrent()) return stop();
      if (!objects) return client.after(RETRY_MS, () => isCurrent() && this.list());
      this.#stop = stop;
      this.#heardMs = client.nowMs();
      const before = this.objects;
      this.objects = new Map(objects.map((object) => [object.name, object]));
      this.isSynced = true;
      for (const object of objects) onChange(object.name, object);
      for (const name of before.keys()) if (!this.objects.has(name)) onChange(name, undefined);
      this.#options.onListed?.();
      this.#watchdog(attempt);
    });
  }

  #watchdog(attempt: number): void {
    const { client } = this.#options;
    client.after(QUIET_MS - (client.nowMs() - this.#heardMs), () => {
      if (attempt !== this.#attempt) return;
      if (client.nowMs() - this.#heardMs >= QUIET_MS - 1) this.list();
      else this.#watchdog(attempt);
    });
  }
}
