// Keeps what cameras tell over ONVIF with what other systems tell of them.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { HappeningError, OF_CAMERA, type Happening } from '../happenings/happening.ts';
import type { Happenings } from '../happenings/happenings.ts';
import { CameraEvents } from '../onvif/camera-events.ts';
import type { Reach } from '../reach/reach.ts';

const BY = 'onvif';
const NOT_KEPT = 'events of a camera are not kept';

export function openCameraEvents({
  happenings,
  clock,
  log,
  reach,
}: {
  readonly happenings: Pick<Happenings, 'add'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly reach: Reach;
}): CameraEvents {
  return new CameraEvents({
    clock,
    log,
    reach,
    async tell(cameraId, occurrences) {
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
    },
  });
}
