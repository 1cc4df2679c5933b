// What a node has less of than it should, although it records: pictures of a camera, days of footage, and buffers for datagrams. As
// warnings; those of figures that vary begin and end only when they have stayed on one side of their limit for a while.

import type { Clock } from '../../base/clock.ts';
import type { Warning } from '../../base/reason.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/units.ts';
import { RECEIVE_BUFFER_BYTES, type CameraStatus } from '../contract/camera-status.ts';
import type { CameraRecords } from './camera-view.ts';
import type { EngineArchive } from './engine.ts';

export interface ShortfallsDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly cameras: Pick<CameraRecords, 'list'>;
  readonly keeping: EngineArchive['keeping'];
}

/** A camera with less than this share of its usual pictures is reported, until it has the other share again. */
const PICTURES = { low: 0.8, enough: 0.9 };
/** The same for the time for which footage can be kept. */
const KEPT = { low: 0.98, enough: 1.02 };
/** How long a figure is low before it is reported, and high before it no longer is: bit rates and links vary. */
const LASTING_MS = MINUTE_MS;

/** The key of the node among the ids of cameras, none of which is empty. */
const NODE = '';

interface Low {
  readonly isReported: boolean;
  /** Since when the figure has been on the other side of its limit; undefined while it is not. */
  readonly otherSinceMs: number | undefined;
}

const FINE: Low = { isReported: false, otherSinceMs: undefined };

export class Shortfalls {
  readonly #deps: ShortfallsDeps;
  #known: ReadonlyMap<string, Low> = new Map();

  constructor(deps: ShortfallsDeps) {
    this.#deps = deps;
  }

  /** The current ones; to be called about once a second. */
  warnings(): Warning[] {
    const { cameras } = this.#deps;
    const views = cameras.list();
    const known = new Map<string, Low>();
    const isLow = (key: string, share: number, limits: typeof PICTURES): boolean => {
      const low = this.#next(key, share, limits);
      known.set(key, low);
      return low.isReported;
    };
    const warnings: Warning[] = views.flatMap(({ status }) => {
      const { id: cameraId, frameRate, usualFrameRate: usual } = status;
      if (!sendsPictures(status) || usual === undefined || !isLow(cameraId, frameRate / usual, PICTURES)) return [];
      const message = `it sends ${Math.round(frameRate)} pictures a second, and usually ${Math.round(usual)}`;
      return { code: 'frame-rate-low', message, cameraId };
    });
    const kept = this.#kept(views.map(({ status }) => status.id));
    if (kept && isLow(NODE, kept.outlookMs / kept.wantedMs, KEPT)) {
      const [outlook, wanted] = [daysOf(kept.outlookMs), daysOf(kept.wantedMs)];
      const message = `the disk has space for about ${outlook} of footage, and ${wanted} should be kept`;
      warnings.push({ code: 'kept-too-short', message, cameraId: undefined });
    }
    const buffers = views.map(({ status }) => status.receiveBufferBytes ?? Infinity);
    const least = Math.min(...buffers);
    if (least < RECEIVE_BUFFER_BYTES) {
      const few = buffers.filter((bytes) => bytes < RECEIVE_BUFFER_BYTES).length;
      const message = `${few} camera${few === 1 ? ' sends' : 's send'} over UDP, and the kernel keeps only ${Math.floor(least / 1024)} KiB of it until it is read: set net.core.rmem_max to ${RECEIVE_BUFFER_BYTES} or more, or key frames may be lost`;
      warnings.push({ code: 'receive-buffer-small', message, cameraId: undefined });
    }
    this.#known = known;
    return warnings;
  }

  #next(key: string, share: number, { low, enough }: typeof PICTURES): Low {
    const { isReported, otherSinceMs } = this.#known.get(key) ?? FINE;
    const isOther = isReported ? share >= enough : share < low;
    if (!isOther) return { isReported, otherSinceMs: undefined };
    const nowMs = this.#deps.clock.monotonicMs();
    const sinceMs = otherSinceMs ?? nowMs;
    return nowMs - sinceMs >= LASTING_MS
      ? { isReported: !isReported, otherSinceMs: undefined }
      : { isReported, otherSinceMs: sinceMs };
  }

  /** Undefined if footage is kept for as long as there is space, or while the outlook is not known. */
  #kept(cameraIds: readonly string[]): { readonly wantedMs: number; readonly outlookMs: number } | undefined {
    const { keeping } = this.#deps;
    const outlookMs = keeping?.outlookMs();
    const wantedMs = Math.max(0, ...cameraIds.map((id) => keeping?.wantedMs(id) ?? 0));
    return outlookMs === undefined || wantedMs === 0 ? undefined : { wantedMs, outlookMs };
  }
}

/** Without pictures at all, the camera's own state says what is wrong. */
const sendsPictures = ({ state, frameRate }: CameraStatus): boolean => state === 'recording' && frameRate > 0;

function daysOf(ms: number): string {
  const days = ms / DAY_MS;
  if (days < 2) return `${Math.round(ms / HOUR_MS)} h`;
  return `${days < 10 ? Math.round(days * 10) / 10 : Math.round(days)} days`;
}
