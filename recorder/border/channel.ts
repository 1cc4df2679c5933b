// Questions of the front to the side that records, as messages: what is asked and answered, and what is given up.

import { receivedError, sentError, type SentError } from './crossing-error.ts';

/** Carries messages to the other side: each once, and in order. */
interface Port {
  post(message: Message): void;
  /** Called with each message of the other side. */
  onMessage(hear: (message: Message) => void): void;
}

type Message =
  /** `signalAt`: the place of the signal that gives it up. */
  | {
      readonly kind: 'ask';
      readonly id: number;
      readonly name: string;
      readonly asked: unknown[];
      readonly signalAt: number;
    }
  | { readonly kind: 'give-up'; readonly id: number; readonly reason: SentError }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refusal'; readonly id: number; readonly error: SentError };

type Question = (...asked: readonly unknown[]) => unknown;

/** The two ends of a border within one process. */
export function localPorts(carry = (message: Message): Message => message): readonly [Port, Port] {
  const ends = [0, 1].map(() => ({ hear: (_message: Message): void => {} }));
  const portOf = (own: number): Port => ({
    post(message) {
      const sent = carry(message);
      queueMicrotask(() => ends[1 - own]?.hear(sent));
    },
    onMessage: (hear) => void (ends[own] = { hear }),
  });
  return [portOf(0), portOf(1)];
}

/** Answers what is asked over `port` with what `target` answers. */
export function serve(target: object, port: Port): void {
  const asking = new Map<number, AbortController>();
  const answer = async ({ name, asked, signalAt, id }: Extract<Message, { kind: 'ask' }>): Promise<void> => {
    try {
      if (signalAt >= 0) {
        const controller = new AbortController();
        asking.set(id, controller);
        asked[signalAt] = controller.signal;
      }
      port.post({ kind: 'answer', id, value: await questionOf(target, name)(...asked) });
    } catch (err) {
      port.post({ kind: 'refusal', id, error: sentError(err) });
    } finally {
      asking.delete(id);
    }
  };
  port.onMessage((message) => {
    if (message.kind === 'ask') void answer(message);
    else if (message.kind === 'give-up') asking.get(message.id)?.abort(receivedError(message.reason));
  });
}

function questionOf(target: object, name: string): Question {
  let owner: unknown;
  let value: unknown = target;
  for (const key of name.split('.')) {
    owner = value;
    value = Reflect.get(owner as object, key);
  }
  return (...asked) => (value as Question).apply(owner, asked as unknown[]);
}

/**
 * `told` with its questions asked over `port`, apart from those that `atOnce` names: they are answered from `told` itself. Values are
 * those of `told`.
 */
export function overBorder<T extends object>(told: T, atOnce: readonly string[], port: Port): T {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let last = 0;
  port.onMessage((message) => {
    const { id } = message;
    const asked = waiting.get(id);
    waiting.delete(id);
    if (message.kind === 'answer') asked?.resolve(message.value);
    else if (message.kind === 'refusal') asked?.reject(receivedError(message.error));
  });
  const ask = (name: string, asked: readonly unknown[]): Promise<unknown> => {
    const id = ++last;
    const signalAt = asked.findIndex((one) => one instanceof AbortSignal);
    const signal = asked[signalAt] as AbortSignal | undefined;
    const question = Promise.withResolvers<unknown>();
    waiting.set(id, question);
    port.post({ kind: 'ask', id, name, asked: asked.map((one) => (one === signal ? undefined : one)), signalAt });
    const giveUp = (): void => port.post({ kind: 'give-up', id, reason: sentError(signal?.reason) });
    if (signal?.aborted) giveUp();
    signal?.addEventListener('abort', giveUp);
    return question.promise.finally(() => signal?.removeEventListener('abort', giveUp));
  };
  const partOf = <P extends object>(part: P, at: string): P => {
    const made = new Map<PropertyKey, unknown>();
    return new Proxy(part, {
      get(_, key) {
        const value: unknown = Reflect.get(part, key);
        if (typeof value !== 'function' && !isPart(value)) return value;
        if (made.has(key)) return made.get(key);
        const name = `${at}${String(key)}`;
        const reached =
          typeof value !== 'function'
            ? partOf(value, `${name}.`)
            : atOnce.includes(name)
              ? (value as Question).bind(part)
              : (...asked: readonly unknown[]) => ask(name, asked);
        made.set(key, reached);
        return reached;
      },
    });
  };
  return partOf(told, '');
}

/** A part of the contract, and no value: an object with functions, of its own or of its class. */
const isPart = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  !(value instanceof Map || value instanceof Set || Array.isArray(value)) &&
  (Object.getPrototypeOf(value) !== Object.prototype || Object.values(value).some((one) => typeof one === 'function'));
