// Keeps what cameras tell over ONVIF with what other systems tell of them.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { FrontOfEngine } from '../contract/news.ts';
import { HappeningError, OF_CAMERA, type Happening } from '../happenings/happening.ts';
import type { Happenings } from '../happenings/happenings.ts';

const BY = 'onvif';
const NOT_KEPT = 'events of a camera are not kept';

interface KeepDeps {
  readonly happenings: Pick<Happenings, 'add'>;
  readonly clock: Clock;
  readonly log: Log;
}

export const keepingEvents =
  ({ happenings, clock, log }: KeepDeps): FrontOfEngine['keep'] =>
  async (cameraId, occurrences) => {
    const events = occurrences.map(({ id, type, startMs, endMs, data }): Happening => {
      const told = { camera_id: cameraId, id, source: OF_CAMERA, type, start_ms: startMs, end_ms: endMs };
      return { ...told, reported_by: BY, received_ms: Math.floor(clock.wallMs()), data };
    });
    try {
      await happenings.add(events);
    } catch (err) {
      if (err instanceof HappeningError) log.warn({ camera: cameraId, problem: messageOf(err) }, NOT_KEPT);
      else log.bug({ camera: cameraId, err }, NOT_KEPT);
    }
  };
