// The causes of gaps, derived from the states of the camera and of the disk.

/**
 * - `camera-unreachable`: no connection, or no answer over it; `refused-login`: wrong or missing user and password;
 * - `stream-silent`: connected, but the camera sends no video; `connection-lost`: the camera ended the connection;
 * - `camera-error`: it offers nothing that can be recorded, or cannot be understood;
 * - `no-key-frame`: video that cannot be started to decode; `packets-lost`: more than a second of video did not arrive;
 * - `camera-stalled`: the camera made no picture for more than a second and five usual distances, and went on;
 * - `not-decodable`: packets came, but no picture could be made of them; `bitrate-exceeded`: more came than is allowed;
 * - `disk-full`, `disk-slow`, `disk-error`: video arrived and could not be written;
 * - `clock-step`: the clock of the machine or of the camera was set, and skipped this time;
 * - `process-down`: the recorder did not run; `node-down`: the machine was restarted meanwhile;
 * - `starting`: the recorder has just begun with this camera; `stopped`: a user does not want it recorded for now;
 * - `moved`: the node that recorded the camera was lost, and this one had not taken over yet; `unlicensed`: the licence does not allow it; `unknown`: none of these.
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
 * The state of a camera in the ledger: `recording` when no fault is known; `absent` when it is not configured on this node;
 * or a cause, which applies if there is no footage.
 */
export type LedgerState = 'recording' | 'absent' | GapCause;

/** Why a configured camera is not recorded. */
export type HaltCause = Extract<GapCause, 'stopped' | 'unlicensed'>;

export const isHalted = (state: LedgerState): state is HaltCause => state === 'stopped' || state === 'unlicensed';

/** The index in this list is used in memory only, never on the disk. */
export const LEDGER_STATES: readonly LedgerState[] = ['recording', 'absent', ...GAP_CAUSES];

const STATES: ReadonlySet<string> = new Set(LEDGER_STATES);

export const isLedgerState = (text: string): text is LedgerState => STATES.has(text);

export const isGapCause = (text: string): text is GapCause =>
  isLedgerState(text) && text !== 'recording' && text !== 'absent';

/** The cause for the code in the status of a camera. */
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

/** The cause for the code in the status of a recording. */
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

/** States that end by themselves, and may be noticed only when there is footage again. */
export const isPassing = (state: LedgerState): state is GapCause =>
  CAMERA_FAILURES.has(state) || state === 'packets-lost' || state.startsWith('disk-');

/**
 * Whether the next state explains this one better: if a camera closes the connection and is then unreachable, it was
 * unreachable all the time.
 */
export const isExplainedBy = (state: LedgerState, next: LedgerState): boolean =>
  (state === 'starting' || state === 'connection-lost') && CAMERA_FAILURES.has(next);
