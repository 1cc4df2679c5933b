// Advice for a camera that is not recorded.

import type { Camera } from '../app/camera.ts';

const ADVICE: Readonly<Record<string, string>> = {
  unreachable: 'Check its power, its network and its address.',
  'no-answer': 'Check its power, its network and its address.',
  'refused-login': 'Correct its user and password in the configuration.',
  'not-found': 'Correct the path in its address.',
  'stream-silent': 'Restart the camera.',
  'too-many-streams': 'Close other viewers of the camera.',
  'no-key-frame': 'Set a key frame interval in the camera.',
  'no-video': 'Choose H.264, H.265, AV1 or MJPEG in the camera.',
  'bitrate-exceeded': 'Lower its bit rate, or raise maxBitrate.',
  'disk-full': 'Free space on the disk, or keep less footage.',
  'disk-slow': 'Use a faster disk, or record fewer cameras on it.',
  'disk-read-only': 'The disk may be failing: look at the log of the machine.',
  'disk-missing': 'Mount the disk of the archive.',
};

/** Empty if there is no general advice. */
export const adviceOf = ({ recording, reason }: Camera): string =>
  ADVICE[(recording.state === 'failed' ? recording.reason : reason)?.code ?? ''] ?? '';
