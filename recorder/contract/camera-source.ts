// Where a camera's stream is, and how it is asked for.

import type { CameraTls } from '../reach/connect.ts';
import type { TransportKind } from '../rtsp/stream-setups.ts';

export type TransportChoice = 'auto' | TransportKind;

/** The configuration of a camera that this room needs. `source` may contain user and password. */
export interface CameraSource {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly transport: TransportChoice;
  readonly tls?: CameraTls;
  /** Send the password in clear text (Basic without TLS) even if the camera accepted something better before. */
  readonly allowPlaintextLogin?: boolean;
  /** The maximum bit rate in bit/s, over ten seconds; default `DEFAULT_MAX_BITRATE`. */
  readonly maxBitrate?: number;
}
