// What every transport of media does for a session: packets come in by stream, receiver reports go out every five seconds.

import { randomInt } from 'node:crypto';
import { formatReceiverReport } from '../rtp/rtcp.ts';
import type { ReceptionReport } from '../rtp/rtcp.ts';
import type { EstablishedStream, SetupRequest } from '../rtsp/stream-setups.ts';

/** Receives what comes in, and throws nothing. The ranges are valid only until the call returns. */
export interface MediaHandler {
  rtp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** What a receiver report says about a stream; a report without it only says that we live. */
  receptionReport(streamIndex: number): ReceptionReport | undefined;
}

/** The media of one session over one transport. */
export interface MediaStreams {
  /** What SETUP of a stream asks for, beside its media. */
  setup(streamIndex: number): Omit<SetupRequest, 'mediaIndex'>;
  /** The camera agreed to send this stream. */
  establish(stream: EstablishedStream): void;
  /** Media is expected from now on. */
  start(nowMs: number): void;
  /** To be called every half second or so: sends receiver reports when they are due. */
  tick(nowMs: number): void;
  /** Takes a packet that came between the messages of the connection; false: nobody set its channel up. */
  interleaved?(channel: number, buffer: Buffer, start: number, end: number): boolean;
  close(): void;
}

/** Some cameras stop when no RTCP comes for a little longer than this. */
const REPORT_INTERVAL_MS = 5_000;

/** When receiver reports are due, and what they say; over TCP, too: some cameras take nothing else for a sign of life. */
export class ReceiverReports {
  readonly #ssrc = randomInt(2 ** 32);
  #dueMs = Number.POSITIVE_INFINITY;

  start(nowMs: number): void {
    this.#dueMs = nowMs + REPORT_INTERVAL_MS;
  }

  /** True when reports are to be sent now; they count as sent then. */
  takeDue(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#dueMs = nowMs + REPORT_INTERVAL_MS;
    return true;
  }

  format(report: ReceptionReport | undefined): Buffer {
    return formatReceiverReport({ ssrc: this.#ssrc, reports: report ? [report] : [], cname: 'kube-nvr' });
  }

  /** Says nothing but that somebody listens. */
  formatEmpty(): Buffer {
    return formatReceiverReport({ ssrc: this.#ssrc, reports: [] });
  }
}
