// Cameras with stamped pictures, in a process and a network namespace of their own:
//
//   node cameras.ts ADDRESS...    each serves rtsp://ADDRESS:554/stream
//
// A line on standard input, when the addresses are there, begins it; "ready" on standard output says that they listen.
// When standard input ends, one JSON line tells what each of them has sent, by its address.

import { once } from 'node:events';
import { systemClock } from '../../base/clock.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { stamped, type Stamp } from './stamped-picture.ts';

/** Pictures that left while somebody played, in order. */
export type Sent = Readonly<Record<string, readonly Stamp[]>>;

const PORT = 554;

async function serve(host: string, sent: Stamp[]): Promise<Camera> {
  const tracks = [videoTrack(await videoMedia('h264-busy'))];
  let startMs: number | undefined;
  const camera: Camera = await startCamera({
    tracks,
    host,
    port: PORT,
    pace: 'realtime',
    onFrame(frame) {
      startMs ??= systemClock.wallMs() - frame.sendAtMs;
      const capturedMs = startMs + frame.sendAtMs;
      if (camera.playing.length > 0) sent.push({ index: frame.index, capturedMs });
      return stamped(frame, capturedMs);
    },
  });
  return camera;
}

const addresses = process.argv.slice(2);
const sent = Object.fromEntries(addresses.map((address): [string, Stamp[]] => [address, []]));
await once(process.stdin, 'data');
process.stdin.resume();
const cameras = await Promise.all(Object.entries(sent).map(([address, stamps]) => serve(address, stamps)));
process.stdout.write('ready\n');
await once(process.stdin, 'end');
process.stdout.write(`${JSON.stringify(sent satisfies Sent)}\n`);
for (const camera of cameras) await camera.close();
