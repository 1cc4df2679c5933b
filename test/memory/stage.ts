// A recorder in a control group with little memory, and many cameras of 4 Mbit/s: the sender of the bench, which costs less
// than a camera of these tests and knows what it has sent.

import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { prepareMedia } from '../bench/media.ts';
import { startSender, type Sender } from '../bench/sender.ts';
import { MemoryGroup } from './memory-group.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { workspace } from '../support/workspace.ts';

const MIB = 1024 ** 2;
const CACHE = join(import.meta.dirname, '../bench/cache');

export interface Gap {
  readonly start: string;
  readonly start_ms: number;
  readonly cause: string;
  readonly seconds: number;
  readonly end_ms: number;
  readonly is_open: boolean;
}

export interface Stage {
  readonly recorder: RecorderProcess;
  readonly group: MemoryGroup;
  readonly sender: Sender;
  readonly ids: readonly string[];
  readonly bytesPerSecond: number;
  /** What a metric is, with the value of its label where it has one. */
  metric(name: string, label?: string): Promise<number>;
  /** Gaps of all cameras that lasted at this time, or began later: a slow disk at the start causes gaps, too. */
  gaps(sinceMs: number): Promise<Map<string, Gap[]>>;
  /** Until when the gap ledgers of all cameras are certain. */
  knownUntilMs(): Promise<number>;
  /** Says how it stands. */
  tell(what: string): void;
}

/** Undefined, with the test skipped, where it cannot be had. */
export async function setStage(
  t: TestContext,
  options: { readonly cameras: number; readonly limitBytes?: number; readonly recordPath?: string },
): Promise<Stage | undefined> {
  if (!existsSync('/usr/bin/gcc')) {
    t.skip('the cameras are a program in C: install gcc and libc6-dev');
    return undefined;
  }
  const ids = Array.from({ length: options.cameras }, (_, i) => `cam${i}`);
  const directory = workspace(t);
  const media = prepareMedia(CACHE);
  const sender = await startSender({ media, cameras: ids.length, mode: 'frame', directory, spreadMs: 2_000 });
  t.after(() => sender.stop());
  const started: { recorder?: RecorderProcess } = {};
  t.after(() => started.recorder?.[Symbol.asyncDispose]());
  const group = MemoryGroup.make(t, options.limitBytes ?? 512 * MIB);
  if (!group) return undefined;
  const recorder = await RecorderProcess.start({
    directory,
    through: group.through,
    config: {
      ...(options.recordPath === undefined ? {} : { record_path: options.recordPath }),
      cameras: ids.map((id, i) => ({ id, source: sender.urls[i], transport: 'tcp' })),
    },
  });
  started.recorder = recorder;
  await recorder.untilRecording(...ids);
  const sinceMs = Date.now();
  const ledgerOf = async (id: string) => {
    const path = `/api/archive/${id}/gaps?from=${sinceMs / 1000}&to=${Date.now() / 1000}`;
    return (await recorder.get(path)) as { gaps: Gap[]; known_until_ms: number };
  };
  return {
    recorder,
    group,
    sender,
    ids,
    bytesPerSecond: media.bytesPerSecond * ids.length,
    async metric(name, label) {
      const text = await (await fetch(recorder.metricsUrl)).text();
      const isIt = (line: string): boolean =>
        label === undefined
          ? line.startsWith(`${name} `)
          : line.startsWith(`${name}{`) && line.includes(`="${label}"}`);
      return Number(text.split('\n').find(isIt)?.split(' ').at(-1));
    },
    async gaps(sinceMs) {
      const answers = ids.map(async (id) => {
        const { gaps } = await ledgerOf(id);
        return [id, gaps.filter(({ is_open: isOpen, end_ms: endMs }) => isOpen || endMs > sinceMs)] as const;
      });
      return new Map(await Promise.all(answers));
    },
    async knownUntilMs() {
      const answers = await Promise.all(ids.map(ledgerOf));
      return Math.min(...answers.map(({ known_until_ms }) => known_until_ms));
    },
    tell: (what) =>
      t.diagnostic(`${what}: at most ${Math.round(group.peakBytes / MIB)} MiB in use, ${group.kills} killed`),
  };
}

/** Asks for a live stream and reads none of it. */
export function lazyViewer(t: TestContext, url: string, cameraId: string): Socket {
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  const key = Buffer.alloc(16, 7).toString('base64');
  socket.write(
    `GET /websocket/${cameraId} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  socket.pause();
  return socket;
}
