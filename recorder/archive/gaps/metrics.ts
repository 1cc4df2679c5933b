// The metrics of gaps and silence, read at each scrape.

import type { Registry } from 'prom-client';
import { scraped } from '../../../base/scraped.ts';
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
  const { counter, gauge } = scraped(registry);
  const each = (valueOf: (camera: GapFigures) => number) =>
    Array.from(cameras(), (camera) => [{ camera: camera.cameraId }, valueOf(camera)] as const);
  // Includes causes that did not occur, so that a first gap counts as an increase.
  const byCause = (secondsOf: (camera: GapFigures) => ReadonlyMap<GapCause, number>) =>
    Array.from(cameras()).flatMap((camera) =>
      GAP_CAUSES.map((cause) => [{ camera: camera.cameraId, cause }, secondsOf(camera).get(cause) ?? 0] as const),
    );
  counter(
    'gap_seconds_total',
    'Seconds without footage of a configured camera, by cause; the counter also grows during a gap.',
    ['camera', 'cause'],
    () => byCause(({ seconds }) => seconds),
  );
  counter(
    'gap_filled_seconds_total',
    'Seconds of kube_nvr_gap_seconds_total that were filled from the memory of the camera, by cause of the gap.',
    ['camera', 'cause'],
    () => byCause(({ filledSeconds }) => filledSeconds),
  );
  gauge(
    'camera_silent',
    '1 for a camera that should be recorded and of which no video was written for 15 seconds.',
    ['camera'],
    () => each(({ silentForSeconds }) => (silentForSeconds === undefined ? 0 : 1)),
  );
  gauge(
    'camera_silence_seconds',
    'Seconds since the last video of a silent camera was written; 0 for other cameras.',
    ['camera'],
    () => each(({ silentForSeconds }) => silentForSeconds ?? 0),
  );
  counter(
    'camera_lost_frames_total',
    'Pictures that are missing within footage because packets were lost, each time for less than a second.',
    ['camera'],
    () => each(({ lostPictures }) => lostPictures),
  );
}
