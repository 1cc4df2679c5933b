// Why a camera's connection ended: a stable code for status and metrics, a sentence for a person.

import { CodedError } from '../../base/error.ts';
import { describePacket, type PacketPlace } from './packet-place.ts';

/**
 * - `unreachable`: no TCP or TLS connection; `refused-login`: wrong or missing user and password;
 * - `login-downgraded`: it wants the password in clear, and took it better before;
 * - `not-found`: no such stream on the camera; `no-video`: the camera offers no video that can be recorded;
 * - `too-many-streams`: the camera's limit of connections is reached; `transport-refused`: it serves neither way;
 * - `stream-silent`: connected, but no video for 10 s; `closed-by-camera`: the camera ended the connection;
 * - `no-answer`: a request was not answered; `protocol`: an answer that cannot be understood or followed;
 * - `no-key-frame`: video that can never be started to decode;
 * - `not-decodable`: packets come, but no picture can be made of them; `encrypted`: video over SRTP only;
 * - `bitrate-exceeded`: it sends more than its `maxBitrate`; `address-refused`: `cameraNetworks` does not allow its address.
 */
export type CameraErrorCode =
  | 'unreachable'
  | 'refused-login'
  | 'login-downgraded'
  | 'not-found'
  | 'no-video'
  | 'too-many-streams'
  | 'transport-refused'
  | 'stream-silent'
  | 'closed-by-camera'
  | 'no-answer'
  | 'protocol'
  | 'no-key-frame'
  | 'not-decodable'
  | 'encrypted'
  | 'bitrate-exceeded'
  | 'address-refused';

/** A camera's fault, not ours: it is retried. The message never holds a password or a URL with a user part. */
export class CameraError extends CodedError<CameraErrorCode> {
  override readonly name: string = 'CameraError';

  /** The same error with the last packet of the connection in its message, for a search in a packet capture. */
  after(packet: PacketPlace | undefined): CameraError {
    if (!packet) return this;
    return new CameraError(this.code, `${this.message}; last packet: ${describePacket(packet)}`, { cause: this });
  }
}

/** Nothing answered at the camera's port: no request was sent, and another try costs the camera nothing. */
export class NoConnection extends CameraError {
  override readonly name = 'NoConnection';

  constructor(message: string, options?: ErrorOptions) {
    super('unreachable', message, options);
  }

  /** There was no connection: the last packet belongs to an earlier one. */
  override after(): this {
    return this;
  }
}
