// A recorder and cameras with a network between them that loses, delays, reorders and holds back: every picture that
// comes through is recorded whole, in order, and dated as it was captured; the gap ledger says what did not come through.
// All scenarios run side by side, over TCP and UDP, each camera behind a link of its own.

import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { videoMedia } from '../camera/media.ts';
import { Child } from '../support/child.ts';
import { closedFootage } from '../support/closed-footage.ts';
import { assertAccount, assertApart, assertFewShort, assertNotAhead } from '../support/invariants.ts';
import { judge, type Verdict } from './judge.ts';
import { SCENARIOS, TRANSPORTS, type Scenario, type Transport } from './scenarios.ts';
import type { CameraReport, Order, Report } from './site.ts';
import { readRecorded } from './stamped-picture.ts';

const LONG = process.env['LONG'] !== undefined;
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
/** The links are good at first, and at the end. */
const BEFORE_S = LONG ? 60 : 12;
const LASTING_S = LONG ? 300 : 25;
const AFTER_S = LONG ? 60 : 12;
/** Good links between two rounds of what lasts shorter than a round. */
const ROUNDS = LONG ? 5 : 1;
const START_S = 90;
const FRAMES_PER_SECOND = 25;

/** A picture's file time is within this of its capture (docs/design/time.md), whatever the link does. */
const BOUND_MS = 1_000;

/** Why there can be no such network here. */
function missing(): string | false {
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  if (!existsSync('/dev/net/tun')) return 'there is no /dev/net/tun';
  for (const [command, ...args] of [
    ['unshare', '--net', 'true'],
    ['ip', '-V'],
    ['python3', '-V'],
  ] as const) {
    const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    if (status !== 0) return `${command} does not work here: ${error?.message ?? stderr}`;
  }
  return false;
}

interface Trial {
  readonly scenario: Scenario;
  readonly transport: Transport;
  readonly id: string;
}

const trials: readonly Trial[] = SCENARIOS.filter(({ long }) => LONG || !long).flatMap((scenario, index) =>
  TRANSPORTS.map((transport) => ({ scenario, transport, id: `camera-${index}-${transport}` })),
);

function stepsOf({ does, forS = LASTING_S }: Scenario): Order['cameras'][number]['steps'] {
  const rounds = forS < LASTING_S ? ROUNDS : 1;
  return Array.from({ length: rounds }, (_, round) => {
    const atS = BEFORE_S + (round * LASTING_S) / rounds;
    return [[atS, does] as const, [atS + forS, {}] as const];
  }).flat();
}

/** Runs all trials and returns what the recorder and the cameras say. */
async function run(directory: string): Promise<Report> {
  const seconds = BEFORE_S + LASTING_S + AFTER_S;
  const cameras = trials.map(({ id, transport, scenario }) => ({ id, transport, steps: stepsOf(scenario) }));
  const order: Order = { directory, seed: SEED, seconds, cameras };
  const site = join(import.meta.dirname, 'site.ts');
  // With a namespace of processes, so that none of them is left when this one is gone.
  const namespaces = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc'];
  await using child = new Child('unshare', [...namespaces, process.execPath, site]);
  child.end(JSON.stringify(order));
  const overdue = setTimeout(() => child.signal('SIGKILL'), (seconds + START_S) * 1000);
  const { code } = await child.exit();
  clearTimeout(overdue);
  assert.equal(code, 0, child.output);
  return JSON.parse(child.output.trimEnd().split('\n').at(-1) ?? '') as Report;
}

const skip = missing();

describe('a network between cameras and recorder', { skip }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-network-'));
  const verdicts = new Map<string, Verdict>();
  let report: Report;
  after(() => rmSync(directory, { recursive: true, force: true }));
  const filesOf = (id: string): string[] => report.files.filter((file) => basename(file).includes(`_${id}_`));
  const reportOf = (id: string): CameraReport => report.cameras[id] as CameraReport;
  const lostInFootage = (id: string): number =>
    reportOf(id).gaps.degraded.reduce((sum, { lost_frames }) => sum + lost_frames, 0);
  const missedMs = (id: string): number =>
    reportOf(id)
      .gaps.gaps.filter(({ cause }) => cause !== 'starting')
      .reduce((sum, { start_ms, end_ms }) => sum + end_ms - start_ms, 0);
  const describeGaps = (id: string): string =>
    Object.entries(reportOf(id).gaps.seconds_by_cause)
      .filter(([cause]) => cause !== 'starting')
      .map(([cause, seconds]) => `${cause} ${seconds.toFixed(1)} s`)
      .join(', ') || '-';

  before(async () => {
    report = await run(directory);
    const media = await videoMedia('h264-busy');
    for (const { id } of trials) {
      const files = await Promise.all(filesOf(id).map((file) => readRecorded(file)));
      verdicts.set(id, judge(reportOf(id).sent, files, media));
    }
    console.log(`SEED=${SEED}`);
    console.log(['scenario', 'over', 'sent', 'recorded', 'late', 'early', 'lost in footage', 'gaps'].join(' | '));
    for (const { id, scenario, transport } of trials) {
      const { sent, recorded, lateMs, earlyMs } = verdicts.get(id) as Verdict;
      const cells = [scenario.name, transport, sent, recorded, `${lateMs.toFixed(0)} ms`, `${earlyMs.toFixed(0)} ms`];
      console.log([...cells, lostInFootage(id), describeGaps(id), reportOf(id).states.join('; ')].join(' | '));
    }
  });

  for (const { id, scenario, transport } of trials) {
    test(`${scenario.name}, ${transport}`, async () => {
      const { sent, captured, recorded, lateMs, earlyMs, altered, disordered } = verdicts.get(id) as Verdict;
      const { gaps, aheadMs } = reportOf(id);
      assert.ok(recorded > 0, 'pictures are recorded');
      assert.deepEqual([altered, disordered], [0, 0], 'pictures are whole and in order');
      const files = await closedFootage(filesOf(id));
      assertApart(files);
      assertFewShort(files);
      assertNotAhead(files);
      assert.ok(aheadMs <= 1_000, `dated ${aheadMs} ms into the future`);
      assertAccount(gaps, files, id);
      const { causes, wholeOverTcp } = scenario;
      const expected = new Set<string>(['starting', ...causes[transport]]);
      const others = gaps.gaps.filter(({ cause }) => !expected.has(cause));
      assert.deepEqual(others, [], 'no gap has another cause');
      if (transport === 'tcp' && wholeOverTcp) assert.equal(recorded, sent, 'every picture is recorded');
      const told = lostInFootage(id) + (missedMs(id) * FRAMES_PER_SECOND) / 1000;
      // Each gap begins and ends within a picture.
      const tolerance = 2 + gaps.gaps.length;
      assert.ok(Math.abs(told - (captured - recorded)) <= tolerance, `${told} pictures told of ${captured - recorded}`);
      assert.ok(lateMs <= BOUND_MS, `dated ${lateMs.toFixed(0)} ms too late`);
      assert.ok(earlyMs <= BOUND_MS, `dated ${earlyMs.toFixed(0)} ms too early`);
    });
  }
});
