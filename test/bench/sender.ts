// Builds and controls the sender (sender/sender.c): many cameras in one small process that is not Node.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FRAMES_PER_SECOND, type Media } from './media.ts';
import { start, type Child } from './processes.ts';

/** How a picture's packets are passed to the kernel; see sender/sender.c. */
export type WriteMode = 'frame' | 'packet' | 'wire';

/** The sender's statistics of one connection. Frame numbers are those of the camera's timeline. */
export interface SentStats {
  readonly camera: number;
  readonly firstFrame: number;
  readonly firstKeyFrame: number;
  readonly lastFrame: number;
  readonly audioFrames: number;
  /** Pictures and audio frames dropped because the client was too slow. */
  readonly dropped: number;
  readonly queued: number;
  readonly bytes: number;
  readonly writes: number;
  readonly packets: number;
  readonly open: boolean;
}

export interface Sender {
  readonly pid: number;
  readonly urls: readonly string[];
  /** Stops sending after what was begun is finished. */
  quiet(): Promise<void>;
  stats(): Promise<SentStats[]>;
  stop(): Promise<void>;
}

function build(cacheDirectory: string): string {
  const source = join(import.meta.dirname, 'sender', 'sender.c');
  const binary = join(cacheDirectory, 'sender');
  if (existsSync(binary) && statSync(binary).mtimeMs > statSync(source).mtimeMs) return binary;
  mkdirSync(dirname(binary), { recursive: true });
  const run = spawnSync('gcc', ['-O2', '-Wall', '-Wextra', '-o', binary, source]);
  if (run.error) throw new Error('the bench needs gcc and the C headers (apt: gcc libc6-dev)', { cause: run.error });
  if (run.status !== 0) throw new Error(`gcc: ${run.stderr.toString()}`);
  return binary;
}

export async function startSender(options: {
  readonly media: Media;
  readonly cameras: number;
  readonly mode: WriteMode;
  readonly directory: string;
  /** The address on which it listens; default: the loopback address. */
  readonly address?: string;
  /** A command that runs the rest of its arguments, such as `nsenter`. */
  readonly through?: readonly string[];
  /** The time over which the cameras' key frames are spread; default: one picture. */
  readonly spreadMs?: number;
}): Promise<Sender> {
  const { media, cameras, mode, directory, address = '127.0.0.1', spreadMs = 1000 / FRAMES_PER_SECOND } = options;
  const binary = build(dirname(media.path));
  const own = [binary, '0', media.path, String(cameras), mode, address, String(spreadMs)];
  const [command, ...args] = [...(options.through ?? []), ...own] as [string, ...string[]];
  const child: Child = start(command, args, join(directory, 'sender.log'));
  const [, port] = await child.line(/^listening (\d+)$/);
  return {
    pid: child.pid,
    urls: Array.from({ length: cameras }, (_, i) => `rtsp://${address}:${port}/camera/${i}`),
    async quiet() {
      child.write('quiet');
      await child.line(/^quiet$/);
    },
    async stats() {
      const lines: SentStats[] = [];
      const stop = child.onLine((line) => {
        if (line.startsWith('{')) lines.push(JSON.parse(line) as SentStats);
      });
      child.write('stats');
      await child.line(/^end$/);
      stop();
      return lines;
    },
    async stop() {
      await child.stop();
    },
  };
}
