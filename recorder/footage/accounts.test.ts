import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GapCause } from '../contract/gap-cause.ts';
import type { WholeAnswer } from '../peers/whole-answer.ts';
import { FootageOfNodes } from './accounts.ts';
import type { Holder } from './holder.ts';
import type { TimelineCamera } from './timeline-item.ts';

const S = 1_000;
const BY = { name: 'guard', credential: undefined };
type Seconds = readonly [from: number, to: number];

const stretch = ([from, to]: Seconds) => ({ start_ms: from * S, end_ms: to * S });

/** What another node tells of the camera. */
const told = (spans: readonly Seconds[], gaps: readonly (readonly [...Seconds, GapCause])[] = []): TimelineCamera => ({
  camera_id: 'gate',
  kept_from_ms: null,
  known_until_ms: 60 * S,
  resolution_ms: 0,
  spans: spans.map((span) => ({ ...stretch(span), kind: 'footage' })),
  gaps: gaps.map(([from, to, cause]) => ({ ...stretch([from, to]), cause, is_open: false })),
  filled: [],
  hidden_gaps: 0,
  protections: [],
  elsewhere: [],
});

/** A node with footage up to 20 s, which does not know of what is missing afterwards; `answer`: of the only other holder. */
function footageOf(answer: WholeAnswer<readonly TimelineCamera[]>, own: readonly Seconds[] = [[0, 20]]) {
  const asked: unknown[] = [];
  const holder: Holder = {
    nodeId: 'b',
    oldestMs: undefined,
    newestMs: undefined,
    isOnline: true,
    files: async () => ({ kind: 'away' }),
    segments: async () => ({ kind: 'away' }),
    times: async (times) => {
      asked.push(times);
      return answer;
    },
    stream: () => assert.fail('nothing is read'),
    sizeOf: () => assert.fail('nothing is read'),
  };
  const recorded = own.map(([from, to]) => ({ fromMs: from * S, toMs: to * S }));
  const gap = { fromMs: 20 * S, toMs: 60 * S, cause: 'unknown', isOpen: false, isProvisional: false } as const;
  const segments = own.map(([from, to]) => ({
    path: '',
    startMs: from * S,
    endMs: to * S,
    isOpen: false,
    sizeBytes: 1,
    mtimeMs: 0,
    sequence: 0,
  }));
  const footage = new FootageOfNodes({
    nodeId: 'a',
    gaps: {
      report: async (_id, fromMs, toMs) => ({
        fromMs,
        toMs,
        knownUntilMs: toMs,
        gaps: recorded.at(-1)?.toMs === toMs ? [] : [gap],
        recorded,
        filled: [],
        degraded: [],
        wantedMs: 0,
        recordedMs: 0,
      }),
    },
    collector: {
      own: { archive: { list: async () => ({ segments, days: [] }) } },
      others: async () => [holder],
    },
  });
  const gaps = async () =>
    (await footage.report('gate', 0, 60 * S, BY)).gaps.map(({ fromMs, toMs, cause }) => [fromMs / S, toMs / S, cause]);
  return { gaps, asked };
}

test('a gap is divided where another holder has footage of it', async () => {
  const { gaps, asked } = footageOf({ kind: 'answer', value: [told([[30, 50]], [[50, 60, 'camera-unreachable']])] });
  assert.deepEqual(await gaps(), [
    [20, 30, 'unknown'],
    [30, 50, 'on-other-node'],
    [50, 60, 'unknown'],
  ]);
  assert.deepEqual(asked, [
    { cameraIds: ['gate'], interval: { fromMs: 0, toMs: 60 * S }, resolutionMs: 0, preview: false },
  ]);
});

test('while a holder does not answer, or refuses to, what is missing may be there', async () => {
  const refused = { kind: 'refused', status: 500, problem: 'the disk fails' } as const;
  for (const answer of [{ kind: 'away' }, refused] as const) {
    assert.deepEqual(await footageOf(answer).gaps(), [[20, 60, 'on-node-away']]);
  }
});

test('nobody is asked about the gaps of a node that has all footage', async () => {
  const { gaps, asked } = footageOf({ kind: 'away' }, [[0, 60]]);
  assert.deepEqual([await gaps(), asked], [[], []]);
});
