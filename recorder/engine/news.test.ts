// What an engine observes, as the news that its front gets.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FrontOfEngine } from '../contract/news.ts';
import { assignmentNews, gapNews, stateNews, toldAccount } from './news.ts';

function front(openGaps: FrontOfEngine['openGaps'] = new Map()) {
  const news: unknown[] = [];
  return {
    news,
    side: { openGaps, tell: (one) => void news.push(structuredClone(one)) } satisfies Pick<
      FrontOfEngine,
      'tell' | 'openGaps'
    >,
  };
}

test('every observation of a gap is one value that a message can carry, in order', () => {
  const { news, side } = front();
  const cause = 'camera-unreachable';
  const observer = gapNews(side, 'gate', true);
  observer.silent(1, cause);
  observer.opened({ fromMs: 1, cause });
  const part = { fromMs: 1, toMs: 2, atMs: 3, cause, seam: 'bytes' } as const;
  observer.filled(part);
  observer.closed({ fromMs: 1, toMs: 4, cause });
  observer.heard(1, 4);
  observer.removed();
  assert.deepEqual(news, [
    { cameraId: 'gate', kind: 'silent', sinceMs: 1, cause },
    { cameraId: 'gate', kind: 'gap-opened', gap: { fromMs: 1, cause } },
    { cameraId: 'gate', kind: 'gap-filled', part },
    { cameraId: 'gate', kind: 'gap-closed', gap: { fromMs: 1, toMs: 4, cause } },
    { cameraId: 'gate', kind: 'heard', sinceMs: 1, untilMs: 4 },
    { cameraId: 'gate', kind: 'removed' },
  ]);
});

test('a gap that the front knows from the process before is known to the ledger of its camera only', () => {
  const open = { fromMs: 1, cause: 'camera-unreachable' } as const;
  const { side } = front(new Map([['gate', open]]));
  assert.deepEqual([gapNews(side, 'gate', true).openBefore, gapNews(side, 'yard', true).openBefore], [open, undefined]);
});

test('in a cluster, which moves cameras, the cluster tells that one is removed, and the ledger does not', () => {
  const { news, side } = front();
  gapNews(side, 'gate', false).removed();
  assert.deepEqual(news, []);
  assignmentNews(side.tell).removed('gate');
  assert.deepEqual(news, [{ cameraId: 'gate', kind: 'removed' }]);
});

test('the state of a camera is told when it or its reason changes, with the state before, and none for one that is new', () => {
  const { news, side } = front();
  const told = stateNews(side.tell);
  const reason = { code: 'busy', message: 'first' };
  told('gate', { state: 'connecting', reason: undefined });
  told('gate', { state: 'connecting', reason: undefined });
  told('gate', { state: 'retrying', reason });
  told('gate', { state: 'retrying', reason: { ...reason, message: 'second' } });
  told('gate', undefined);
  told('gate', { state: 'connecting', reason });
  const common = { cameraId: 'gate', kind: 'state' };
  assert.deepEqual(news, [
    { ...common, state: 'connecting', reason: undefined, previous: null },
    { ...common, state: 'retrying', reason, previous: 'connecting' },
    { ...common, state: 'connecting', reason, previous: null },
  ]);
});

test('a camera is told to be lost before its time is taken over, and as taken by its assignment', () => {
  const { news, side } = front();
  const account = toldAccount(side.tell, {
    takeOver: (cameraId, sinceMs) => void news.push(['taken over', cameraId, sinceMs]),
    giveUp: (cameraId, sinceMs) => void news.push(['given up', cameraId, sinceMs]),
  });
  account.takeOver('gate', 5);
  assignmentNews(side.tell).taken('gate');
  account.giveUp('yard', undefined);
  assignmentNews(side.tell).givenUp('yard');
  assert.deepEqual(news, [
    { cameraId: 'gate', kind: 'lost', sinceMs: 5 },
    ['taken over', 'gate', 5],
    { cameraId: 'gate', kind: 'taken' },
    { cameraId: 'yard', kind: 'lost', sinceMs: undefined },
    ['given up', 'yard', undefined],
    { cameraId: 'yard', kind: 'given-up' },
  ]);
});
