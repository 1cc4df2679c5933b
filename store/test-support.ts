// For this room's tests: etcd in memory, with its revisions, and kinds that are small enough to read.

import type { EtcdClient, EtcdEvent, KeyValue, TxnOperation } from '../base/etcd/client.ts';
import type { StoredKind } from './kinds.ts';
import type { Schema } from './schema.ts';
import type { Seal } from './objects.ts';

type Etcd = Pick<EtcdClient, 'range' | 'txn' | 'watch'>;

export class FakeEtcd implements Etcd {
  /** All keys at each revision; the first one is empty. */
  readonly #states: ReadonlyMap<string, KeyValue>[] = [new Map()];
  readonly #events: { readonly revision: number; readonly event: EtcdEvent }[] = [];
  /** Called before each transaction, once for each entry: what another client does at that moment. */
  readonly meanwhile: (() => Promise<unknown>)[] = [];
  /** The most operations of a transaction, as etcd has it. */
  readonly maxOperations = 128;

  get #revision(): number {
    return this.#states.length;
  }

  get keys(): readonly string[] {
    return [...(this.#states.at(-1)?.keys() ?? [])];
  }

  value(key: string): string {
    return this.#states.at(-1)?.get(key)?.value.toString('utf8') ?? '';
  }

  range: Etcd['range'] = async ({ key, rangeEnd, limit = Infinity, revision }) => {
    const state = this.#states[revision === undefined ? this.#states.length - 1 : Number(revision) - 1];
    const isAsked = (one: string): boolean => (rangeEnd === undefined ? one === key : one >= key && one < rangeEnd);
    const found = [...(state ?? [])].filter(([one]) => isAsked(one)).sort(([a], [b]) => (a < b ? -1 : 1));
    const kvs = found.slice(0, limit).map(([, kv]) => kv);
    return { kvs, more: found.length > kvs.length, revision: String(this.#revision) };
  };

  txn: Etcd['txn'] = async ({ compare, success }) => {
    await this.meanwhile.shift()?.();
    const before = this.#states.at(-1) as ReadonlyMap<string, KeyValue>;
    const isAs = compare.every(({ key, modRevision }) => (before.get(key)?.modRevision ?? '0') === modRevision);
    if (!isAs) return { succeeded: false, revision: String(this.#revision) };
    if (success.length > this.maxOperations) throw new Error('etcd: too many operations in a transaction');
    this.#carryOut(before, success);
    return { succeeded: true, revision: String(this.#revision) };
  };

  #carryOut(before: ReadonlyMap<string, KeyValue>, operations: readonly TxnOperation[]): void {
    const now = new Map(before);
    const modRevision = String(this.#revision + 1);
    for (const operation of operations) {
      const { key } = 'put' in operation ? operation.put : operation.delete;
      const previous = before.get(key);
      let kv: KeyValue = { key, value: Buffer.alloc(0), createRevision: '0', modRevision };
      if ('put' in operation) {
        kv = {
          ...kv,
          value: Buffer.from(operation.put.value),
          createRevision: previous?.createRevision ?? modRevision,
        };
        now.set(key, kv);
      } else if (!now.delete(key)) continue;
      const type = 'put' in operation ? 'PUT' : 'DELETE';
      this.#events.push({ revision: Number(modRevision), event: { type, kv, previous } });
    }
    this.#states.push(now);
  }

  /** All changes up to now, and then no more. */
  watch: Etcd['watch'] = async function* (this: FakeEtcd, asked: Parameters<Etcd['watch']>[0]) {
    const { key, rangeEnd, afterRevision } = asked;
    const events = this.#events.flatMap(({ revision, event }) =>
      revision > Number(afterRevision) && event.kv.key >= key && event.kv.key < rangeEnd ? [event] : [],
    );
    yield { revision: String(this.#revision), events };
  }.bind(this) as Etcd['watch'];
}

/** Shows in what is stored that it was sealed for this key, and how often. */
export class TestSeal implements Seal {
  count = 0;
  seal = (plain: Buffer, key: string): Buffer => Buffer.from(`${++this.count} ${key} ${plain.toString('base64')}`);
  open = (sealed: Buffer, key: string): Buffer => {
    const [, name, text = ''] = sealed.toString('utf8').split(' ');
    if (name !== key) throw new Error('the sealed value is of another key');
    return Buffer.from(text, 'base64');
  };
}

const TEXT: Schema = { type: 'string' };
const METADATA: Schema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: { name: TEXT, labels: { type: 'object', additionalProperties: TEXT } },
};

/** A kind with a field of each sort. */
export const DOOR: StoredKind = {
  group: 'test.example',
  version: 'v1',
  kind: 'Door',
  plural: 'doors',
  schema: {
    type: 'object',
    properties: {
      apiVersion: TEXT,
      kind: TEXT,
      metadata: METADATA,
      spec: {
        type: 'object',
        properties: {
          colour: { type: 'string', enum: ['red', 'green'] },
          height: { type: 'integer', minimum: 1, maximum: 300 },
          handle: { type: 'string', default: 'round' },
          tags: { type: 'array', items: TEXT },
          keys: { type: 'array', items: TEXT, 'x-kubernetes-list-type': 'set' },
          panes: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['place'],
            items: { type: 'object', properties: { place: TEXT, glass: TEXT, clean: { type: 'boolean' } } },
          },
        },
      },
      status: { type: 'object', properties: { isOpen: { type: 'boolean' } } },
    },
  },
  hasStatus: true,
  isManaged: true,
  selectableFields: [],
  isSealed: false,
};

/** What may belong to a door. */
export const BELL: StoredKind = { ...DOOR, kind: 'Bell', plural: 'bells' };

/** A kind that is encrypted. */
export const PIN: StoredKind = {
  ...DOOR,
  kind: 'Pin',
  plural: 'pins',
  schema: {
    type: 'object',
    properties: {
      apiVersion: TEXT,
      kind: TEXT,
      metadata: METADATA,
      data: { type: 'object', additionalProperties: TEXT },
    },
  },
  hasStatus: false,
  isSealed: true,
};
