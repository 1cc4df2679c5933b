// A camera for tests.

import type { Camera } from './camera.ts';

export const aCamera = (changes: Partial<Camera> = {}): Camera => ({
  id: 'gate',
  name: 'Gate',
  state: 'recording',
  reason: null,
  node: { name: 'rack-1', playback: null },
  transport: 'tcp',
  codecs: {
    video: { codec: 'h264', codec_string: 'avc1.64001f', width: 1920, height: 1080 },
    video_remark: null,
    audio: null,
    audio_dropped: null,
  },
  bitrate: 4_000_000,
  recording: { state: 'writing', reason: null, last_written: null },
  silent: false,
  silent_since: null,
  ptz: false,
  ...changes,
});
