import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { z } from 'zod';
import { silentLog } from '../../base/log.ts';
import { PeerUnavailable, type PeerSender } from './peer-requests.ts';
import { viewerOf, wholeAnswer } from './whole-answer.ts';

const SCHEMA = z.object({ ids: z.array(z.string()) });

/** What is made of an answer, or of a failure, of a node. */
function read(answer: { status?: number; body: string } | Error) {
  const request: PeerSender['request'] = async () => {
    if (answer instanceof Error) throw answer;
    return { status: answer.status ?? 200, headers: {}, body: Readable.from([Buffer.from(answer.body)]) };
  };
  const caller = viewerOf({ name: 'guard', credential: 'Bearer x' }, 'gate');
  return wholeAnswer(
    { peers: { request }, log: silentLog },
    'node-2',
    { listener: 'api', caller, path: '/' },
    64,
    SCHEMA,
  );
}

test('an answer is what the schema makes of it', async () => {
  assert.deepEqual(await read({ body: '{"ids": ["a"], "more": 1}' }), { kind: 'answer', value: { ids: ['a'] } });
});

test('a refusal has the status and the words of the node', async () => {
  assert.deepEqual(await read({ status: 403, body: '{"detail": "this needs\\u001b[31m a role"}' }), {
    kind: 'refused',
    status: 403,
    problem: 'this needs [31m a role',
  });
  assert.deepEqual(await read({ status: 500, body: '{}' }), {
    kind: 'refused',
    status: 500,
    problem: 'it gave no reason',
  });
});

test('a node that does not answer is away, which is not a refusal', async () => {
  assert.deepEqual(await read(new PeerUnavailable('node-2', 'away', 'no')), { kind: 'away' });
  assert.deepEqual(await read(new PeerUnavailable('node-2', 'busy', 'no')), { kind: 'away' });
});

/** What is wrong with an answer, the answer, and how that is told. */
const UNREADABLE: readonly (readonly [string, string, RegExp])[] = [
  ['is no JSON', 'hello', /^its answer cannot be read: /],
  ['is cut off', '{"ids": [', /^its answer cannot be read: /],
  ['lacks a field', '{}', /^its answer cannot be read: ids: /],
  ['has a field of another type', '{"ids": [1]}', /^its answer cannot be read: ids\.0: /],
  [
    'is longer than it may be',
    `{"ids": ["${'a'.repeat(64)}"]}`,
    /^its answer cannot be read: it has more than 64 bytes$/,
  ],
];

for (const [what, body, problem] of UNREADABLE) {
  test(`an answer that ${what} is a refusal that says so`, async () => {
    const told = await read({ body });
    assert.ok(told.kind === 'refused', JSON.stringify(told));
    assert.match(told.problem, problem);
  });
}

test('a viewer sees the one camera, with the credential of the caller for nodes that are no members', () => {
  assert.deepEqual(viewerOf({ name: 'guard', credential: 'Bearer x' }, 'gate'), {
    kind: 'viewer',
    name: 'guard',
    cameras: ['gate'],
    credential: 'Bearer x',
  });
});
