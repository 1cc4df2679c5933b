// The programs with which the recorder is compared: ffmpeg with one process per camera, and the bare loop.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { start, type Child } from './processes.ts';

/** Processes that receive all cameras and write them to disk. */
export interface Receiver {
  readonly name: string;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

const together = (name: string, children: readonly Child[]): Receiver => ({
  name,
  pids: children.map((child) => child.pid),
  async stop() {
    await Promise.all(children.map((child) => child.stop()));
  },
});

/** `ffmpeg -rtsp_transport tcp -c copy -f segment`: five-minute MP4 files, one process per camera. */
export function startFfmpeg(urls: readonly string[], directory: string): Receiver {
  const root = join(directory, 'ffmpeg');
  mkdirSync(root, { recursive: true });
  const children = urls.map((url, i) =>
    start(
      'ffmpeg',
      [
        ...`-nostdin -loglevel error -rtsp_transport tcp -i ${url} -map 0 -c copy -f segment`.split(' '),
        ...'-segment_time 300 -segment_format mp4 -reset_timestamps 1 -y'.split(' '),
        join(root, `${i}-%03d.mp4`),
      ],
      join(directory, 'ffmpeg.log'),
    ),
  );
  return together('ffmpeg', children);
}

export function startBareLoop(urls: readonly string[], directory: string): Receiver {
  const root = join(directory, 'bare');
  mkdirSync(root, { recursive: true });
  const script = join(import.meta.dirname, 'bare-loop.ts');
  return together('bare loop', [start(process.execPath, [script, root, ...urls], join(directory, 'bare.log'))]);
}
