// A border within one process: whatever crosses is a copy, as a message between two makes it.

import assert from 'node:assert/strict';
import { deserialize, serialize } from 'node:v8';
import { localPorts, overBorder, serve } from '../../recorder/border/channel.ts';

/** `answers` as a front asks for them. Fails for what a message does not carry whole. */
export function acrossBorder<T extends object>(answers: T, atOnce: readonly string[]): T {
  const [front, engine] = localPorts((message) => {
    const copy = deserialize(serialize(message)) as typeof message;
    assert.deepStrictEqual(copy, message, `${JSON.stringify(message)} cannot be sent`);
    return copy;
  });
  serve(answers, engine);
  return overBorder(answers, atOnce, front);
}
