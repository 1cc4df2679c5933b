// Why a camera's connection ended: a stable code for status and metrics, and a sentence for people.

import { CodedError } from '../../base/error.ts';
import { describePacket, type PacketPlace } from '../contract/packet-place.ts';

/**
 * - `unreachable`: no TCP or TLS connection; `refused-login`: wrong or missing user and password;
 * - `login-downgraded`: requires the password in clear text although it accepted something better before;
 * - `not-found`: the camera has no such stream; `no-video`: it offers no video that can be recorded;
 * - `too-many-streams`: its limit of connections is reached; `transport-refused`: it supports no common transport;
 * - `stream-silent`: connected, but no video for 10 s; `closed-by-camera`: the camera ended the connection;
 * - `no-answer`: no response to a request; `protocol`: an invalid or unusable response;
 * - `no-key-frame`: video without a picture at which decoding can start;
 * - `not-decodable`: packets arrive, but they give no picture; `encrypted`: video only over SRTP;
 * - `bitrate-exceeded`: it sends more than its `maxBitrate`; `address-refused`: `cameraNetworks` does not allow its address;
 * - `no-descriptors`: this process can open no more connections.
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
  | 'address-refused'
  | 'no-descriptors';

/**
 * A fault of the camera, not ours: the connection is retried. The message never contains a password or a URL with a user part.
 */
export class CameraError extends CodedError<CameraErrorCode> {
  override readonly name: string = 'CameraError';

  /** The same error with the last packet of the connection in its message, for a search in a packet capture. */
  after(packet: PacketPlace | undefined): CameraError {
    if (!packet) return this;
    return new CameraError(this.code, `${this.message}; last packet: ${describePacket(packet)}`, { cause: this });
  }
}

/** Nothing answered at the camera's port: no request was sent, so another attempt costs the camera nothing. */
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

/**
 * The camera closed the connection before it said anything. A port that is forwarded accepts connections while the camera behind it
 * starts again.
 */
export class Unanswered extends CameraError {
  override readonly name = 'Unanswered';

  constructor(message: string, options?: ErrorOptions) {
    super('closed-by-camera', message, options);
  }
}
