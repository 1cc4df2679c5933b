// Says for `recorder probe` which events a camera offers over ONVIF.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Reach } from '../reach/reach.ts';
import { OnvifDialogue } from './dialogue.ts';
import { NoEvents } from './error.ts';
import { offeredTypes } from './pull-point.ts';
import { onvifTarget, type CameraAddress } from './target.ts';

interface EventsLook {
  /** `unknown`: the camera could not be asked. */
  readonly answer: 'yes' | 'no' | 'unknown';
  /** The types, or why there are none. */
  readonly message: string;
}

/** Never fails, except with the signal's reason when it aborts. */
export async function lookForEvents(
  camera: CameraAddress,
  deps: { readonly clock: Clock; readonly reach: Reach },
  signal: AbortSignal,
): Promise<EventsLook> {
  try {
    const types = await offeredTypes(new OnvifDialogue(onvifTarget(camera), deps), signal);
    return types.length > 0
      ? { answer: 'yes', message: types.join(', ') }
      : { answer: 'no', message: 'the camera offers no events that the recorder knows' };
  } catch (err) {
    signal.throwIfAborted();
    return { answer: err instanceof NoEvents ? 'no' : 'unknown', message: messageOf(err) };
  }
}
