// The causes of gaps, derived from the states of the camera and of the disk.

/** What happened, in Markdown. docs/gaps.md prints it. */
export const CAUSE_MEANINGS = {
  'camera-unreachable': 'no connection to the camera, or no answer over it',
  'refused-login': 'wrong or missing user and password, or the camera now wants the password in readable form',
  'stream-silent': 'connected, but no video came',
  'connection-lost': 'the camera ended the connection, and could be reached again at once',
  'camera-error': 'it offers nothing that can be recorded, or its answers cannot be understood; see its `reason`',
  'no-key-frame': 'video came, but no key frame at which decoding can start',
  'not-decodable': 'packets came, but no picture could be made of them',
  'bitrate-exceeded': 'the camera sent more than its `maxBitrate` allows',
  'machine-dropped':
    'packets came, and the kernel dropped them, because the recorder did not read them in time (`net.core.rmem_max`)',
  'packets-lost': 'more than a second of video was lost on the way',
  'camera-stalled': 'the camera made no picture for more than a second, and for five times its usual pause',
  'disk-full': 'video came, but the disk was full',
  'disk-slow': 'video came, but the disk did not keep up',
  'disk-error': 'video came, but the disk failed',
  'no-descriptors':
    'the recorder could open no more files and connections, because its limit is too low or something uses them up',
  'clock-step': 'the clock of the machine, or of the camera, was set and skipped this time',
  'machine-frozen': 'the recorder stood still (its machine was paused or overloaded), and the cameras could not wait',
  'process-down': 'the recorder was not running: stopped, killed, or being replaced',
  'node-down': 'the recorder was not running, and its machine was restarted in that time: a power cut, a reboot',
  starting: 'from the start of the recorder, or of this camera, to the first picture',
  stopped: 'a user stopped it (`enabled: false`, `/cameras/stop`)',
  moved: 'its node was lost and this one took over: from the last renewal of that node on',
  unlicensed: 'the licence does not allow it',
  'on-other-node': 'nothing is missing: another node has footage of this time, see `elsewhere`',
  'on-disk-away': 'it was recorded, to a disk of this node that is away or does not answer now',
  'on-node-away': 'a node that does not answer, or only with an error, may have footage of this time, see `elsewhere`',
  unknown: 'the recorder cannot tell why',
} as const;

export type GapCause = keyof typeof CAUSE_MEANINGS;

export const GAP_CAUSES = Object.keys(CAUSE_MEANINGS) as [GapCause, ...GapCause[]];

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

/** What a cause means, in plain text for people; a code of a later version as it is. */
export const meaningOf = (code: string): string => (isGapCause(code) ? CAUSE_MEANINGS[code].replaceAll('`', '') : code);

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
    case 'no-descriptors':
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
    case 'no-descriptors':
      return reasonCode;
    case 'unsupported-parameters':
      return 'camera-error';
    default:
      return 'disk-error';
  }
}

/** What is noticed late, and explains a lost connection. */
const FAILURES: ReadonlySet<LedgerState> = new Set<LedgerState>([
  'camera-unreachable',
  'refused-login',
  'stream-silent',
  'connection-lost',
  'camera-error',
  'no-key-frame',
  'not-decodable',
  'bitrate-exceeded',
  'machine-dropped',
  'no-descriptors',
]);

/** States that end by themselves, and may be noticed only when there is footage again. */
export const isPassing = (state: LedgerState): state is GapCause =>
  FAILURES.has(state) || state === 'packets-lost' || state.startsWith('disk-');

/**
 * Whether the next state explains this one better: if a camera closes the connection and is then unreachable, it was
 * unreachable all the time.
 */
export const isExplainedBy = (state: LedgerState, next: LedgerState): boolean =>
  (state === 'starting' || state === 'connection-lost') && FAILURES.has(next);
