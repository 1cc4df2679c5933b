// What the front may ask of an engine can be a message between two processes: this is checked by the compiler.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FrontOfEngine } from '../contract/news.ts';
import type { AT_ONCE, Engine } from './engine.ts';

type Scalar = string | number | boolean | bigint | undefined | null | Date | Uint8Array;

/** The places in a value that structuredClone refuses, or of which it keeps only a part. */
type UnsendableIn<T, At extends string> = T extends Scalar
  ? never
  : T extends ((...parameters: never[]) => unknown) | Error | symbol
    ? At
    : T extends ReadonlyMap<infer K, infer V>
      ? UnsendableIn<K | V, At>
      : T extends ReadonlySet<infer V> | readonly (infer V)[]
        ? UnsendableIn<V, At>
        : T extends Iterable<unknown> | AsyncIterable<unknown>
          ? At
          : T extends object
            ? { [K in keyof T & string]: UnsendableIn<T[K], `${At}.${K}`> }[keyof T & string]
            : never;

/** The same of a contract: of what its questions are asked with, and answer. A question may be given up with a signal. */
type Unsendable<T, At extends string> = T extends (...parameters: infer Parameters) => infer Answer
  ? UnsendableIn<Exclude<Parameters[number], AbortSignal>, `${At}()`> | UnsendableIn<Awaited<Answer>, At>
  : T extends Scalar | readonly unknown[] | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown> | Error
    ? UnsendableIn<T, At>
    : { [K in keyof T & string]: Unsendable<T[K], `${At}.${K}`> }[keyof T & string];

/** The questions that are answered at once. */
type AtOnce<T, At extends string> = T extends (...parameters: never[]) => infer Answer
  ? Answer extends Promise<unknown> | void
    ? never
    : At
  : T extends Scalar | readonly unknown[] | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>
    ? never
    : { [K in keyof T & string]: AtOnce<T[K], At extends '' ? K : `${At}.${K}`> }[keyof T & string];

type None<T extends never> = T;

test('a question is a promise, unless the front finds the answer in what it was told', () => {
  type Found = (typeof AT_ONCE)[number];
  type Checked = [None<Exclude<AtOnce<Engine, ''>, Found>>, None<Exclude<Found, AtOnce<Engine, ''>>>];
  const none: readonly Checked[] = [];
  assert.deepEqual(none, []);
});

test('news and questions carry plain values', () => {
  type Checked = [None<Unsendable<FrontOfEngine, 'front'>>, None<Unsendable<Engine, 'engine'>>];
  const none: readonly Checked[] = [];
  assert.deepEqual(none, []);
});
