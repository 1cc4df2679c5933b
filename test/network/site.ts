// A recorder and its cameras, each behind a link of its own that does what it is told. Run in a network namespace:
//
//   unshare --net --pid --fork --kill-child --mount-proc node site.ts    the order on standard input, the report on standard output, as one JSON line each
//
// The cameras are in another namespace, which ends with them; between the two is links.py.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import type { GapsAnswer } from '../support/invariants.ts';
import type { Sent } from './cameras.ts';
import type { Impairment, Transport } from './scenarios.ts';

interface SiteCamera {
  readonly id: string;
  readonly transport: Transport;
  /** What its link does from so many seconds on. */
  readonly steps: readonly (readonly [atS: number, does: Impairment])[];
}

export interface Order {
  /** Where the recorder writes. */
  readonly directory: string;
  readonly seed: number;
  readonly seconds: number;
  readonly cameras: readonly SiteCamera[];
}

export interface CameraReport {
  readonly sent: Sent[string];
  readonly gaps: GapsAnswer;
  /** Each change of what `GET /api/cameras` said of it, with the second. */
  readonly states: readonly string[];
  /** How far the last picture written was dated into the future, at most. */
  readonly aheadMs: number;
}

export interface Report {
  readonly files: readonly string[];
  readonly output: string;
  readonly cameras: Readonly<Record<string, CameraReport>>;
}

interface CameraAnswer {
  readonly id: string;
  readonly state: string;
  readonly reason?: { readonly code: string } | null;
  readonly recording?: { readonly last_written: string | null };
}

const HERE = import.meta.dirname;
const LOOK_MS = 250;
const HOUR_S = 3_600;
const RECORDER = '10.77.0.1';
const addressOf = (index: number): string => `10.77.0.${index + 11}`;

/** Waits for a line that a child prints first. */
async function ready(child: ChildProcess, what: string): Promise<AsyncIterator<string>> {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const { value } = await lines.next();
  if (value !== 'ready') throw new Error(`${what}: ${value ?? 'ended'}`);
  return lines;
}

async function run({ directory, seed, seconds, cameras }: Order): Promise<Report> {
  const addresses = cameras.map((_, index) => addressOf(index));
  const stdio = ['pipe', 'pipe', 'inherit'] as const;
  const street = spawn('unshare', ['--net', process.execPath, join(HERE, 'cameras.ts'), ...addresses], {
    stdio: [...stdio],
  });
  await once(street, 'spawn');
  const pid = String(street.pid);
  const ours = await readlink('/proc/self/ns/net');
  await until('the namespace of the cameras', async () => (await readlink(`/proc/${pid}/ns/net`)) !== ours);
  const links = spawn('python3', [join(HERE, 'links.py'), pid, String(seed), RECORDER, ...addresses], {
    stdio: [...stdio],
  });
  await ready(links, 'links.py');
  street.stdin.write('go\n');
  const streetLines = await ready(street, 'cameras.ts');
  await using recorder = await RecorderProcess.start({
    directory,
    config: {
      archive: { segmentDuration: '20s' },
      cameras: cameras.map(({ id, transport }, index) => ({
        id,
        source: `rtsp://${addressOf(index)}/stream`,
        transport,
      })),
    },
  });
  await recorder.untilRecording(...cameras.map(({ id }) => id));
  const looks = new Looks();
  const startMs = performance.now();
  const steps = cameras
    .flatMap((camera, index) => camera.steps.map(([atS, does]) => ({ atS, address: addressOf(index), does })))
    .sort((a, b) => a.atS - b.atS);
  for (let passed = 0; passed < seconds; passed = (performance.now() - startMs) / 1000) {
    for (; steps[0] && steps[0].atS <= passed; steps.shift()) {
      links.stdin.write(`${JSON.stringify({ [steps[0].address]: steps[0].does })}\n`);
    }
    looks.note(((await recorder.get('/api/cameras')) as { cameras: readonly CameraAnswer[] }).cameras, passed);
    await sleep(LOOK_MS);
  }
  const gaps = new Map<string, GapsAnswer>();
  const now = Date.now() / 1000;
  const interval = `from=${(now - HOUR_S).toFixed(3)}&to=${(now + HOUR_S).toFixed(3)}`;
  for (const { id } of cameras) gaps.set(id, (await recorder.get(`/api/archive/${id}/gaps?${interval}`)) as GapsAnswer);
  await recorder.stop();
  street.stdin.end();
  const sent = JSON.parse(String((await streetLines.next()).value)) as Sent;
  links.stdin.end();
  await Promise.all([once(street, 'close'), once(links, 'close')]);
  return {
    files: (await recorder.files()).map((file) => join(recorder.recordPath, file)),
    output: recorder.child.output,
    cameras: Object.fromEntries(
      cameras.map(({ id }, index) => [
        id,
        { sent: sent[addressOf(index)] ?? [], gaps: gaps.get(id)!, ...looks.of(id) },
      ]),
    ),
  };
}

/** What was seen of the cameras. */
class Looks {
  readonly #seen = new Map<string, { states: string[]; aheadMs: number }>();

  of(id: string): { readonly states: readonly string[]; readonly aheadMs: number } {
    return this.#of(id);
  }

  note(cameras: readonly CameraAnswer[], second: number): void {
    for (const { id, state, reason, recording } of cameras) {
      const seen = this.#of(id);
      const words = [state, ...(reason ? [reason.code] : [])].join(' ');
      if (seen.states.at(-1)?.replace(/^\S+ s /, '') !== words) seen.states.push(`${second.toFixed(0)} s ${words}`);
      const lastMs = Date.parse(recording?.last_written ?? '');
      if (!Number.isNaN(lastMs)) seen.aheadMs = Math.max(seen.aheadMs, lastMs - Date.now());
    }
  }

  #of(id: string): { states: string[]; aheadMs: number } {
    const seen = this.#seen.get(id) ?? { states: [], aheadMs: -Infinity };
    this.#seen.set(id, seen);
    return seen;
  }
}

process.stdout.write(`${JSON.stringify(await run(JSON.parse(await text(process.stdin)) as Order))}\n`);
