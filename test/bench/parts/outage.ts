// A network switch comes back with a hundred cameras: how long until each of them is recorded again.
//
// The scripted cameras run in this process, each with its own address; the recorder is a separate process as users start it. The
// cameras' ports are closed, and all open again at the same moment.

import { startCamera, type Camera } from '../../camera/camera.ts';
import { videoMedia } from '../../camera/media.ts';
import { videoTrack, type Track } from '../../camera/tracks.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import { sleep } from '../processes.ts';
import { startRecorder } from '../recorder.ts';
import { summarize, table } from '../report.ts';

const PORT = 8554;
/** How long they may take until they are recorded, initially and again. */
const PATIENCE_MS = 120_000;
/** After a connection that recorded for less than 10 s, the next one is not made at once. */
const RECORDED_MS = 12_000;

/** One port of the switch: its camera exists while the switch is on. */
class Place {
  readonly #host: string;
  readonly #tracks: readonly Track[];
  #camera: Camera | undefined;
  #answeringMs = 0;
  #firstPacketMs: number | undefined;

  constructor(index: number, tracks: readonly Track[]) {
    this.#host = `127.0.${1 + (index >> 7)}.${1 + (index & 127)}`;
    this.#tracks = tracks;
  }

  get url(): string {
    return `rtsp://${this.#host}:${PORT}/stream`;
  }

  /** Milliseconds from when the port answered to the first packet sent; undefined before that. */
  get waitedMs(): number | undefined {
    return this.#firstPacketMs === undefined ? undefined : this.#firstPacketMs - this.#answeringMs;
  }

  async on(): Promise<void> {
    this.#firstPacketMs = undefined;
    this.#camera = await startCamera({
      host: this.#host,
      port: PORT,
      pace: 'realtime',
      tracks: this.#tracks,
      onPacket: (packet) => {
        this.#firstPacketMs ??= performance.now();
        return packet;
      },
    });
    this.#answeringMs = performance.now();
  }

  async off(): Promise<void> {
    await this.#camera?.close();
  }
}

export async function measureOutage(bench: Bench): Promise<void> {
  const cameras = bench.quick ? 20 : 100;
  const outages = bench.quick ? [15] : [5, 20, 60];
  const tracks = [videoTrack(await videoMedia('h264'))];
  const places = Array.from({ length: cameras }, (_, i) => new Place(i, tracks));
  const recorder = await startRecorder({
    urls: places.map((place) => place.url),
    directory: emptyDirectory(bench, 'outage'),
  });
  try {
    await switchOn(places);
    const rows: string[][] = [];
    const waits: number[] = [];
    for (const seconds of outages) {
      await sleep(RECORDED_MS);
      await Promise.all(places.map((place) => place.off()));
      await sleep(seconds * 1000);
      await switchOn(places);
      const own = places.map((place) => place.waitedMs ?? Number.POSITIVE_INFINITY);
      waits.push(...own);
      const { p50, p99, max } = summarize(own);
      rows.push([String(seconds), ...[p50, p99, max].map((ms) => ms.toFixed(0))]);
    }
    bench.say(
      `Cameras that are back after an outage, ${cameras} at once: ms from the port's answering to the first packet`,
    );
    bench.say(table(['outage, s', 'p50', 'p99', 'max'], rows));
    const { p50, p99, count } = summarize(waits);
    bench.figure({ figure: 'camera back after an outage, p50', unit: 'ms', measured: p50, note: `${count} returns` });
    bench.figure({ figure: 'camera back after an outage, p99', unit: 'ms', measured: p99, must: 2_000 });
  } finally {
    await recorder.stop();
    await Promise.all(places.map((place) => place.off()));
  }
}

/** Turns all on at once, and waits until each sends packets to a client. */
async function switchOn(places: readonly Place[]): Promise<void> {
  await Promise.all(places.map((place) => place.on()));
  const untilMs = performance.now() + PATIENCE_MS;
  while (places.some((place) => place.waitedMs === undefined)) {
    if (performance.now() > untilMs) throw new Error('not all cameras are recorded');
    await sleep(20);
  }
}
