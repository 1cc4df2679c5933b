// Why a live stream ends, or was refused.

/** Why the server ends a live stream: WebSocket close codes from the range for applications (RFC 6455 §7.4.2). */
export const CLOSE = {
  unauthorized: 4401,
  forbidden: 4403,
  unknownCamera: 4404,
  noPreview: 4406,
  tooSlow: 4408,
  codecsChanged: 4409,
  tooManyViewers: 4429,
  offline: 4503,
  /** RFC 6455 §7.4.1: the server is going away. */
  goingAway: 1001,
} as const;

/** For viewers of a camera that is not recorded. */
export const STOPPED = { code: CLOSE.offline, reason: 'the camera is stopped' } as const;
