import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { z } from 'zod';
import { silentLog } from '../../base/log.ts';
import { PeerUnavailable } from './peer-requests.ts';
import { wholeAnswer } from './whole-answer.ts';

const REQUEST = { listener: 'api', caller: { kind: 'itself', credential: undefined }, path: '/' } as const;
const Answer = z.object({ days: z.array(z.string()) });

async function asked(
  body: string | Error,
  { status = 200, schema = Answer, maxBytes = 1_000 }: { status?: number; schema?: z.ZodType; maxBytes?: number } = {},
) {
  const bugs: unknown[] = [];
  const log = { ...silentLog, bug: ({ err }: { err: unknown }) => void bugs.push(err) };
  const peers = {
    request: async () => {
      if (body instanceof Error) throw body;
      return { status, headers: {}, body: Readable.from([Buffer.from(body)]) };
    },
  };
  return { answer: await wholeAnswer({ peers, log }, 'node-2', REQUEST, maxBytes, schema), bugs };
}

const reset = (): Error => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });

test('the answer of a node is what the schema makes of it', async () => {
  assert.deepEqual(await asked('{"days":["2026-01-01"]}'), {
    answer: { kind: 'answer', value: { days: ['2026-01-01'] } },
    bugs: [],
  });
});

test('a node that cannot be reached, or whose connection ends, is away', async () => {
  for (const err of [new PeerUnavailable('node-2', 'away', 'the node node-2 does not answer'), reset()]) {
    assert.deepEqual(await asked(err), { answer: { kind: 'away' }, bugs: [] });
  }
});

test('a node that answers with another status refuses, for the reason in its answer', async () => {
  assert.deepEqual(await asked('{"detail":"no such\\u0000 scope"}', { status: 403 }), {
    answer: { kind: 'refused', status: 403, problem: 'no such scope' },
    bugs: [],
  });
});

test('an answer that cannot be read says why, and is no fault of this program', async () => {
  const problemOf = async (body: string, maxBytes = 1_000): Promise<unknown> => {
    const { answer, bugs } = await asked(body, { maxBytes });
    assert.deepEqual(bugs, []);
    return answer.kind === 'refused' && [answer.status, answer.problem];
  };
  assert.deepEqual(await problemOf('{"days":[1]}'), [
    200,
    'its answer cannot be read: days.0: expected text (put numbers in quotes)',
  ]);
  assert.deepEqual(await problemOf('{"days":[]}', 5), [200, 'its answer cannot be read: it has more than 5 bytes']);
  assert.match(String(await problemOf('<html>')), /^200,its answer cannot be read: Unexpected token/);
});

test('a fault in what reads the answer is logged as one, and is not reported as silence of the node', async () => {
  const fault = new TypeError("Cannot read properties of undefined (reading 'map')");
  const schema = Answer.transform(() => {
    throw fault;
  });
  const { answer, bugs } = await asked('{"days":[]}', { schema });
  assert.deepEqual([answer.kind, bugs], ['refused', [fault]]);
});
