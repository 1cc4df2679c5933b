// The metrics of gaps and silence, read at each scrape.

import { Counter, Gauge, type Registry } from 'prom-client';
import { GAP_CAUSES, type GapCause } from '../../contract/gap-cause.ts';

/** A camera whose gaps this node records. */
interface GapFigures {
  readonly cameraId: string;
  readonly seconds: ReadonlyMap<GapCause, number>;
  readonly filledSeconds: ReadonlyMap<GapCause, number>;
  readonly silentForSeconds: number | undefined;
  readonly lostPictures: number;
}

/** Registers metrics of all cameras in `cameras`; a removed camera disappears. */
export function registerGapMetrics(registry: Registry, cameras: () => Iterable<GapFigures>): void {
  const registers: Registry[] = [];
  const missing = new Counter({
    name: 'kube_nvr_gap_seconds_total',
    help: 'Seconds without footage of a configured camera, by cause; the counter also grows during a gap.',
    labelNames: ['camera', 'cause'],
    registers,
    collect() {
      this.reset();
      for (const { cameraId, seconds } of cameras()) {
        // Includes causes that did not occur, so that a first gap counts as an increase.
        for (const cause of GAP_CAUSES) this.inc({ camera: cameraId, cause }, seconds.get(cause) ?? 0);
      }
    },
  });
  const filled = new Counter({
    name: 'kube_nvr_gap_filled_seconds_total',
    help: 'Seconds of kube_nvr_gap_seconds_total that were filled from the memory of the camera, by cause of the gap.',
    labelNames: ['camera', 'cause'],
    registers,
    collect() {
      this.reset();
      for (const { cameraId, filledSeconds } of cameras()) {
        for (const cause of GAP_CAUSES) this.inc({ camera: cameraId, cause }, filledSeconds.get(cause) ?? 0);
      }
    },
  });
  const silent = new Gauge({
    name: 'kube_nvr_camera_silent',
    help: '1 for a camera that should be recorded and of which no video was written for 15 seconds.',
    labelNames: ['camera'],
    registers,
    collect() {
      this.reset();
      for (const { cameraId, silentForSeconds } of cameras()) {
        this.set({ camera: cameraId }, silentForSeconds === undefined ? 0 : 1);
      }
    },
  });
  const silence = new Gauge({
    name: 'kube_nvr_camera_silence_seconds',
    help: 'Seconds since the last video of a silent camera was written; 0 for other cameras.',
    labelNames: ['camera'],
    registers,
    collect() {
      this.reset();
      for (const { cameraId, silentForSeconds } of cameras()) this.set({ camera: cameraId }, silentForSeconds ?? 0);
    },
  });
  const lost = new Counter({
    name: 'kube_nvr_camera_lost_frames_total',
    help: 'Pictures that are missing within footage because packets were lost, each time for less than a second.',
    labelNames: ['camera'],
    registers,
    collect() {
      this.reset();
      for (const { cameraId, lostPictures } of cameras()) this.inc({ camera: cameraId }, lostPictures);
    },
  });
  for (const metric of [missing, filled, silent, silence, lost]) registry.registerMetric(metric);
}
