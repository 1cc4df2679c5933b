// Opens the memory of a camera as its configuration says: over ONVIF Profile G, or at addresses with times.

import { type EdgeSource, PART, PLACE, USUAL_FORM } from '../contract/edge-source.ts';
import { OnvifError } from '../onvif/error.ts';
import { streamAt } from '../onvif/discovery/describe.ts';
import { OnvifRecordings, type Recording } from '../onvif/recordings.ts';
import { onvifTarget, type CameraAddress, type OnvifTarget } from '../onvif/target.ts';
import { isSameHost } from '../rtsp/origin.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import { edgeErrorOf } from './errors.ts';
import {
  EdgeError,
  type CameraWindow,
  type EdgeClock,
  type EdgeMemory,
  type EdgeRecording,
  type Replay,
  type ReplayRequest,
} from './memory.ts';
import { LazyReplay, replayFrom, type Units } from './replay.ts';
import type { ReplayDeps } from './replay-session.ts';
import { localWindow } from './times.ts';

/** The fields of a camera's configuration that its memory needs. */
export interface EdgeCamera extends CameraAddress {
  readonly allowPlaintextLogin: boolean;
}

export function openEdgeMemory(camera: EdgeCamera, source: EdgeSource, deps: ReplayDeps): EdgeMemory {
  return source.kind === 'onvif'
    ? new OnvifMemory(camera, source.recording, deps)
    : new AddressMemory(camera, source, deps);
}

class OnvifMemory implements EdgeMemory {
  readonly #camera: EdgeCamera;
  readonly #recording: string | undefined;
  readonly #target: OnvifTarget;
  readonly #device: OnvifRecordings;
  readonly #deps: ReplayDeps;

  constructor(camera: EdgeCamera, recording: string | undefined, deps: ReplayDeps) {
    this.#camera = camera;
    this.#recording = recording;
    this.#target = onvifTarget(camera);
    this.#device = new OnvifRecordings(this.#target, deps);
    this.#deps = deps;
  }

  async recordings(signal: AbortSignal): Promise<readonly EdgeRecording[]> {
    return this.#list(signal);
  }

  async clock(signal: AbortSignal): Promise<EdgeClock | undefined> {
    return asked(this.#device.clockOffset(signal));
  }

  replay(request: ReplayRequest, signal: AbortSignal): Replay {
    return new LazyReplay(() => this.#units(request, signal));
  }

  /** Replays from the first recording with the same video. */
  async *#units(request: ReplayRequest, signal: AbortSignal): Units {
    const candidates = overlapping(await this.#list(signal), request.window);
    let otherProfile: EdgeError | undefined;
    for (const { token } of candidates) {
      try {
        const url = parseRtspUrl(await this.#addressOf(token, signal));
        const { credentials, tls } = this.#target;
        const { allowPlaintextLogin } = this.#camera;
        const startMs = request.window.fromMs;
        const place = { url, credentials, tls, allowPlaintextLogin, startMs, fields: 'clock' } as const;
        return yield* replayFrom(place, request, this.#deps, signal);
      } catch (err) {
        // It is found before the first unit.
        if (!(err instanceof EdgeError && err.code === 'other-profile')) throw err;
        otherProfile = err;
      }
    }
    throw otherProfile ?? new EdgeError('nothing-recorded', 'the camera has no recording of this time');
  }

  async #addressOf(token: string, signal: AbortSignal): Promise<string> {
    const uri = await asked(this.#device.replayUri(token, signal));
    const { host } = this.#target;
    const at = uri === undefined ? undefined : streamAt(uri, host.includes(':') ? `[${host}]` : host);
    if (!at) throw new EdgeError('bad-answer', 'the camera states no address for its replay');
    return at.url;
  }

  async #list(signal: AbortSignal): Promise<readonly Recording[]> {
    if (!(await asked(this.#device.supported(signal)))) {
      throw new EdgeError('not-supported', 'the camera has no ONVIF services for search and replay (Profile G)');
    }
    const all = await asked(this.#device.list(signal));
    const own = this.#recording === undefined ? all : all.filter(({ token }) => token === this.#recording);
    if (all.length > 0 && own.length === 0) {
      throw new EdgeError('nothing-recorded', 'the camera has no recording with the id of edge.recordingId');
    }
    const sources = new Set(own.map(({ source }) => source));
    if (sources.size > 1) {
      const message = `the device has recordings of ${sources.size} sources: set edge.recordingId to the one of this camera`;
      throw new EdgeError('not-supported', message);
    }
    return own;
  }
}

class AddressMemory implements EdgeMemory {
  readonly #camera: EdgeCamera;
  readonly #source: EdgeSource & { readonly kind: 'address' };
  readonly #deps: ReplayDeps;
  readonly #device: OnvifRecordings;

  constructor(camera: EdgeCamera, source: EdgeSource & { readonly kind: 'address' }, deps: ReplayDeps) {
    this.#camera = camera;
    this.#source = source;
    this.#deps = deps;
    this.#device = new OnvifRecordings(onvifTarget(camera), deps);
  }

  recordings(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  /** Most cameras with such addresses state their time over ONVIF as well. */
  async clock(signal: AbortSignal): Promise<EdgeClock | undefined> {
    try {
      return await this.#device.clockOffset(signal);
    } catch (err) {
      if (err instanceof OnvifError) return undefined;
      throw err;
    }
  }

  replay(request: ReplayRequest, signal: AbortSignal): Replay {
    return new LazyReplay(() => this.#units(request, signal));
  }

  /** First with the header fields of ONVIF: some of these cameras know them and then replay faster than in real time. Then without. */
  async *#units(request: ReplayRequest, signal: AbortSignal): Units {
    const { source, tls, allowPlaintextLogin } = this.#camera;
    const { replay, timeZone } = this.#source;
    const { url: address, startMs } = addressOf(replay, request.window, timeZone);
    const url = parseRtspUrl(address);
    const live = parseRtspUrl(source);
    const credentials = url.credentials ?? (isSameHost(url.host, live.host) ? live.credentials : undefined);
    const place = { url, credentials, tls, allowPlaintextLogin, startMs };
    try {
      return yield* replayFrom({ ...place, fields: 'fast' }, request, this.#deps, signal);
    } catch (err) {
      if (!(err instanceof EdgeError && err.isRefusal)) throw err;
      return yield* replayFrom({ ...place, fields: 'none' }, request, this.#deps, signal);
    }
  }
}

/** Those with video that overlap the window, the one that covers most of it first. */
function overlapping(recordings: readonly Recording[], { fromMs, untilMs }: CameraWindow): readonly Recording[] {
  const shared = (one: Recording): number => Math.min(one.untilMs, untilMs) - Math.max(one.fromMs, fromMs);
  const found = recordings.filter((one) => one.tracks.includes('video') && shared(one) > 0);
  if (found.length === 0 && recordings.length > 0) {
    const oldestMs = Math.min(...recordings.map((one) => one.fromMs));
    const words =
      oldestMs >= untilMs ? `its oldest footage is of ${new Date(oldestMs).toISOString()}` : 'it has other times';
    throw new EdgeError('nothing-recorded', `the camera has no footage of this time: ${words}`);
  }
  return found.sort((a, b) => shared(b) - shared(a));
}

async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (err) {
    throw edgeErrorOf(err);
  }
}

/** The address of a window, and the moment at which its replay is asked to start, which is not after the window's begin. */
export function addressOf(
  pattern: string,
  window: CameraWindow,
  timeZone: string | undefined,
): { readonly url: string; readonly startMs: number } {
  const local = timeZone === undefined ? window : localWindow(window, timeZone);
  // Whole seconds around the window.
  const fromMs = Math.floor(local.fromMs / 1000) * 1000;
  const untilMs = Math.ceil(local.untilMs / 1000) * 1000;
  const url = pattern.replace(PLACE, (_, name: string, form = USUAL_FORM) =>
    formatTime(form, name === 'start' ? fromMs : untilMs),
  );
  const zoneMs =
    timeZone === undefined ? 0 : localWindow({ ...window, untilMs: window.fromMs }, timeZone).fromMs - window.fromMs;
  return { url, startMs: fromMs - zoneMs };
}

function formatTime(form: string, ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, '0');
  const parts: Readonly<Record<string, string>> = {
    yyyy: String(date.getUTCFullYear()),
    MM: two(date.getUTCMonth() + 1),
    dd: two(date.getUTCDate()),
    HH: two(date.getUTCHours()),
    mm: two(date.getUTCMinutes()),
    ss: two(date.getUTCSeconds()),
  };
  return form.replace(PART, (part) => parts[part] as string);
}
