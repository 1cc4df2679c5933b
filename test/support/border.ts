// A contract between two processes, kept in one: whatever crosses is a copy, as a message makes it.

import assert from 'node:assert/strict';
import { deserialize, serialize } from 'node:v8';

type Question = (...asked: readonly unknown[]) => unknown;

/** A signal gives a question up, and is not sent. */
export function overBorder<T extends object>(target: T, at = ''): T {
  const question =
    (ask: Question, name: string): Question =>
    (...asked) => {
      const copies = asked.map((one) => (one instanceof AbortSignal ? one : sent(one, name)));
      const answer = ask.apply(target, copies);
      return answer instanceof Promise ? answer.then((value) => sent(value, name)) : sent(answer, name);
    };
  return new Proxy(target, {
    get(_, key) {
      const value: unknown = Reflect.get(target, key);
      const name = `${at}${String(key)}`;
      if (typeof value === 'function') return question(value as Question, name);
      return hasQuestions(value) ? overBorder(value, `${name}.`) : sent(value, name);
    },
  });
}

/** A part of the contract, and no value: an object with functions, of its own or of its class. */
const hasQuestions = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  !(value instanceof Map || value instanceof Set || Array.isArray(value)) &&
  (Object.getPrototypeOf(value) !== Object.prototype || Object.values(value).some((one) => typeof one === 'function'));

/** Fails for what a message does not carry whole. */
function sent<T>(value: T, name: string): T {
  const copy = deserialize(serialize(value)) as T;
  assert.deepStrictEqual(copy, value, `${name} cannot be sent`);
  return copy;
}
