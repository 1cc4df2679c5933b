// Why there is no footage: states of a camera and of the disk in, one stable name out.

/**
 * - `camera-unreachable`: no connection, or no answer over it; `refused-login`: wrong or missing user and password;
 * - `stream-silent`: connected, but the camera sends no video; `connection-lost`: the camera ended the connection;
 * - `camera-error`: it offers nothing that can be recorded, or cannot be understood;
 * - `no-key-frame`: video that cannot be started to decode; `packets-lost`: more than a second of video did not arrive;
 * - `camera-stalled`: the camera made no picture for more than a second and five usual distances, and went on;
 * - `not-decodable`: packets came, but no picture could be made of them; `bitrate-exceeded`: more came than is allowed;
 * - `disk-full`, `disk-slow`, `disk-error`: video arrived and could not be written;
 * - `clock-step`: the clock of the machine or of the camera was set, and skipped this time;
 * - `process-down`: the recorder did not run; `node-down`: the machine was started anew meanwhile;
 * - `starting`: the recorder has just begun with this camera; `stopped`: a user does not want it recorded for now;
 * - `moved`: the node that recorded it was lost, until this one did; `unlicensed`: the licence does not allow it; `unknown`: none of these.
 */
export const GAP_CAUSES = [
  'camera-unreachable',
  'refused-login',
  'stream-silent',
  'connection-lost',
  'camera-error',
  'no-key-frame',
  'not-decodable',
  'bitrate-exceeded',
  'packets-lost',
  'camera-stalled',
  'disk-full',
  'disk-slow',
  'disk-error',
  'clock-step',
  'process-down',
  'node-down',
  'starting',
  'stopped',
  'moved',
  'unlicensed',
  'unknown',
] as const;

export type GapCause = (typeof GAP_CAUSES)[number];

/**
 * What a camera is in: `recording` when nothing is known to be wrong, `absent` when nobody wants it recorded or
 * accounted for, or the reason why there is no footage, if there is none.
 */
export type LedgerState = 'recording' | 'absent' | GapCause;

/** Why a camera that is accounted for is not to be recorded. */
export type HaltCause = Extract<GapCause, 'stopped' | 'unlicensed'>;

export const isHalted = (state: LedgerState): state is HaltCause => state === 'stopped' || state === 'unlicensed';

/** In an order that only this process knows: places are kept in memory, never on the disk. */
export const LEDGER_STATES: readonly LedgerState[] = ['recording', 'absent', ...GAP_CAUSES];

const STATES: ReadonlySet<string> = new Set(LEDGER_STATES);

export const isLedgerState = (text: string): text is LedgerState => STATES.has(text);

export const isGapCause = (text: string): text is GapCause =>
  isLedgerState(text) && text !== 'recording' && text !== 'absent';

/** What the camera does wrong: the code of its status. */
export function cameraCause(reasonCode: string): GapCause {
  switch (reasonCode) {
    case 'unreachable':
    case 'no-answer':
      return 'camera-unreachable';
    case 'login-downgraded':
      return 'refused-login';
    case 'refused-login':
    case 'stream-silent':
    case 'no-key-frame':
    case 'not-decodable':
    case 'bitrate-exceeded':
      return reasonCode;
    case 'closed-by-camera':
      return 'connection-lost';
    default:
      return 'camera-error';
  }
}

/** What keeps its video from the disk: the code of its recording's status. */
export function diskCause(reasonCode: string): GapCause {
  switch (reasonCode) {
    case 'disk-full':
    case 'disk-slow':
      return reasonCode;
    case 'unsupported-parameters':
      return 'camera-error';
    default:
      return 'disk-error';
  }
}

const CAMERA_FAILURES: ReadonlySet<LedgerState> = new Set<LedgerState>([
  'camera-unreachable',
  'refused-login',
  'stream-silent',
  'connection-lost',
  'camera-error',
  'no-key-frame',
  'not-decodable',
  'bitrate-exceeded',
]);

/** What is over by itself, and may be noticed when footage has begun again. */
export const isPassing = (state: LedgerState): state is GapCause =>
  CAMERA_FAILURES.has(state) || state === 'packets-lost' || state.startsWith('disk-');

/** The next try told more: a camera that ended the connection and is then unreachable was unreachable all the time. */
export const isExplainedBy = (state: LedgerState, next: LedgerState): boolean =>
  (state === 'starting' || state === 'connection-lost') && CAMERA_FAILURES.has(next);
