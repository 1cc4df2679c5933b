// The common interface of the media transports of a session: they deliver packets by stream and send receiver reports every five
// seconds.

import { randomInt } from 'node:crypto';
import { formatReceiverReport, type ReceptionReport } from '../rtp/rtcp.ts';
import type { EstablishedStream, SetupRequest } from '../rtsp/stream-setups.ts';

/** Gets incoming packets and never throws. The ranges are valid only during the call. */
export interface MediaHandler {
  rtp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** The contents of a receiver report; an empty report only shows that we are alive. */
  receptionReport(streamIndex: number): ReceptionReport | undefined;
}

/** The media of one session over one transport. */
export interface MediaStreams {
  /** What the kernel keeps of datagrams until they are read; undefined over TCP. */
  readonly receiveBufferBytes?: number | undefined;
  setup(streamIndex: number): Omit<SetupRequest, 'mediaIndex'>;
  /** The camera agreed to send this stream. */
  establish(stream: EstablishedStream): void;
  /** Media is expected from now on. */
  start(nowMs: number): void;
  /** Call about twice a second: sends receiver reports when they are due. */
  tick(nowMs: number): void;
  close(): void;
}

/** Some cameras stop after a little longer than this without RTCP. */
const REPORT_INTERVAL_MS = 5_000;

/**
 * When receiver reports are due, and their contents. They are also sent over TCP, because some cameras accept no other sign of
 * life.
 */
export class ReceiverReports {
  readonly #ssrc = randomInt(2 ** 32);
  #dueMs = Number.POSITIVE_INFINITY;

  start(nowMs: number): void {
    this.#dueMs = nowMs + REPORT_INTERVAL_MS;
  }

  /** Whether reports must be sent now; true counts them as sent. */
  takeDue(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#dueMs = nowMs + REPORT_INTERVAL_MS;
    return true;
  }

  format(report: ReceptionReport | undefined): Buffer {
    return formatReceiverReport({ ssrc: this.#ssrc, reports: report ? [report] : [], cname: 'kube-nvr' });
  }

  /** A report that only shows that the stream is being received. */
  formatEmpty(): Buffer {
    return formatReceiverReport({ ssrc: this.#ssrc, reports: [] });
  }
}
