// One RTP stream's bytes in, its packets in order out (RFC 3550), with what was lost between them.
// A value machine: time is an argument, nothing waits.

import type { ReceptionReport, SenderReport } from './rtcp.ts';
import { compactNtp } from './rtcp.ts';
import { RtpPacket } from './packet.ts';
import { ReorderWindow, sequenceDistance } from './reorder.ts';

/** A packet this much further on is no loss: the sender started a new sequence (RFC 3550 A.1, MAX_DROPOUT). */
const MAX_FORWARD_JUMP = 3000;
/** Late packets in a row after which the sequence is taken to have restarted behind us. */
const MAX_CONSECUTIVE_LATE = 64;
/** Silence of the source in use after which another that goes on is taken instead. */
const SOURCE_SILENT_MS = 1000;
/** Packets of the other source needed for that. */
const MIN_PACKETS_OF_NEW_SOURCE = 5;

export interface RtpReceiverOptions {
  /** From the SDP. Packets of another type on this stream are dropped. */
  readonly payloadType: number;
  readonly clockRate: number;
  /**
   * UDP: packets may be reordered, doubled or late. Out-of-order packets are kept by reference, so a receive buffer
   * must not be used again by the caller. Over TCP the buffer may be reused as soon as `receive` returns.
   */
  readonly reorder: boolean;
  /** The source that the Transport header of the SETUP reply named. Some cameras name one and send another. */
  readonly ssrc?: number | undefined;
  /** Receives each packet; the view is valid only during the call. */
  readonly onPacket: (packet: RtpPacket) => void;
  /** The stream goes on from another source: new sequence numbers, new timestamps. Called before its first packet. */
  readonly onSourceChange?: (from: number, to: number) => void;
}

export interface RtpStatistics {
  /** Packets accepted, and their bytes with headers. */
  packets: number;
  bytes: number;
  lost: number;
  /** Doubled or too late; dropped. */
  late: number;
  /** Of a source that is not ours. */
  foreign: number;
  /** Of another payload type. */
  otherPayloadType: number;
  /** No RTP at all. */
  malformed: number;
  /** Sequences that began anew without a change of source. */
  restarts: number;
}

export class RtpReceiver {
  readonly #options: RtpReceiverOptions;
  readonly #packet = new RtpPacket();
  /** Shows packets from the window, while `#packet` still shows the one that just arrived. */
  readonly #earlier = new RtpPacket();
  readonly #window: ReorderWindow | undefined;
  readonly statistics: RtpStatistics = {
    packets: 0,
    bytes: 0,
    lost: 0,
    late: 0,
    foreign: 0,
    otherPayloadType: 0,
    malformed: 0,
    restarts: 0,
  };

  #ssrc: number | undefined;
  #lastHeardMs = 0;
  #candidate: number | undefined;
  #candidatePackets = 0;
  #candidateSinceMs = 0;

  /** The sequence number that comes next; undefined before the first packet. */
  #next: number | undefined;
  #consecutiveLate = 0;
  /** Lost before the next packet, beyond what its sequence number shows: 1 after a restart. */
  #lostAtRestart = 0;

  // For receiver reports.
  /** Sequence numbers with the wraps since the first counted in the upper bits. */
  #highestSequence = 0;
  #firstSequence = 0;
  #expectedBefore = 0;
  #receivedBefore = 0;
  #receivedSinceRestart = 0;
  #lastTransit: number | undefined;
  #jitter = 0;
  #lastSenderReport = 0;
  #lastSenderReportMs = 0;

  constructor(options: RtpReceiverOptions) {
    this.#options = options;
    this.#window = options.reorder ? new ReorderWindow() : undefined;
  }

  /** The source in use; undefined before the first packet. */
  get ssrc(): number | undefined {
    return this.#ssrc;
  }

  /** Takes one packet, `buffer[start, end)`, that arrived at `nowMs` of a monotonic clock. */
  receive(buffer: Buffer, start: number, end: number, nowMs: number): void {
    const packet = this.#packet;
    if (!packet.parse(buffer, start, end)) {
      this.statistics.malformed++;
      return;
    }
    if (packet.payloadType !== this.#options.payloadType) {
      this.statistics.otherPayloadType++;
      return;
    }
    if (packet.ssrc !== this.#ssrc && !this.#acceptSource(packet.ssrc, nowMs)) {
      this.statistics.foreign++;
      return;
    }
    this.#lastHeardMs = nowMs;
    this.statistics.bytes += end - start;
    this.statistics.packets++;
    this.#receivedSinceRestart++;
    if (this.#window) this.#receiveReordered(this.#window, buffer, start, end, nowMs);
    else this.#receiveInOrder();
  }

  /** UDP: hands out packets behind a hole that is not filled any more. Call it now and then, as each 50 ms. */
  poll(nowMs: number): void {
    const window = this.#window;
    if (!window) return;
    while (window.hasWaitedSince(nowMs)) this.#skipHole(window);
  }

  /** At the end of a stream: hands out what still waits behind holes. */
  flush(): void {
    const window = this.#window;
    if (!window) return;
    while (window.count > 0) this.#skipHole(window);
  }

  /** Notes a sender report of this stream's RTCP channel. Its SSRC may differ from the one of the packets (Tapo C320WS). */
  noteSenderReport(report: SenderReport, nowMs: number): void {
    this.#lastSenderReport = compactNtp(report);
    this.#lastSenderReportMs = nowMs;
  }

  /** What a receiver report says about this stream; undefined before its first packet. Starts a new interval. */
  report(nowMs: number): ReceptionReport | undefined {
    if (this.#ssrc === undefined || this.#next === undefined) return undefined;
    const expected = this.#highestSequence - this.#firstSequence + 1;
    const expectedInInterval = expected - this.#expectedBefore;
    const lostInInterval = expectedInInterval - (this.#receivedSinceRestart - this.#receivedBefore);
    this.#expectedBefore = expected;
    this.#receivedBefore = this.#receivedSinceRestart;
    return {
      ssrc: this.#ssrc,
      fractionLost:
        expectedInInterval > 0 && lostInInterval > 0
          ? Math.min(255, Math.floor((lostInInterval * 256) / expectedInInterval))
          : 0,
      cumulativeLost: expected - this.#receivedSinceRestart,
      extendedHighestSequence: this.#highestSequence,
      jitter: Math.floor(this.#jitter),
      lastSenderReport: this.#lastSenderReport,
      delaySinceLastSenderReport:
        this.#lastSenderReport === 0 ? 0 : Math.round((nowMs - this.#lastSenderReportMs) * 65.536),
    };
  }

  /**
   * Whether packets of this source are ours. The first one is, and the one that the camera named wins over it. Packets
   * of others are what an old live555 writes of an earlier session into a reused socket; they are dropped unless our
   * own source has gone silent and another one goes on.
   */
  #acceptSource(ssrc: number, nowMs: number): boolean {
    const current = this.#ssrc;
    if (current === undefined) {
      this.#ssrc = ssrc;
      return true;
    }
    if (ssrc !== this.#options.ssrc) {
      if (ssrc !== this.#candidate || this.#candidateSinceMs < this.#lastHeardMs) {
        this.#candidate = ssrc;
        this.#candidatePackets = 0;
        this.#candidateSinceMs = nowMs;
      }
      this.#candidatePackets++;
      if (this.#candidatePackets < MIN_PACKETS_OF_NEW_SOURCE || nowMs - this.#lastHeardMs < SOURCE_SILENT_MS) {
        return false;
      }
    }
    this.flush();
    this.#options.onSourceChange?.(current, ssrc);
    this.#ssrc = ssrc;
    this.#candidatePackets = 0;
    this.#restart();
    return true;
  }

  /** Forgets the sequence: the next packet begins one, and what came before it is not complete. */
  #restart(): void {
    this.#window?.clear();
    this.#next = undefined;
    this.#consecutiveLate = 0;
    this.#lostAtRestart = 1;
    this.#lastTransit = undefined;
  }

  #begin(sequenceNumber: number): void {
    this.#next = sequenceNumber;
    this.#firstSequence = sequenceNumber;
    this.#highestSequence = sequenceNumber - 1;
    this.#expectedBefore = 0;
    this.#receivedBefore = 0;
    this.#receivedSinceRestart = 1;
  }

  /**
   * TCP keeps order, but cameras drop packets before they reach the socket, and start their sequence anew.
   * Nothing is copied or allocated here.
   */
  #receiveInOrder(): void {
    const packet = this.#packet;
    if (this.#next === undefined) this.#begin(packet.sequenceNumber);
    const distance = sequenceDistance(this.#next as number, packet.sequenceNumber);
    if (distance !== 0 && this.#isOutside(distance, packet.sequenceNumber)) return;
    this.#deliver(packet);
  }

  /** Handles a packet that is late or far ahead; true when it is dropped. Otherwise the sequence may have begun anew. */
  #isOutside(distance: number, sequenceNumber: number): boolean {
    if (distance > 0 && distance <= MAX_FORWARD_JUMP) return false;
    if (distance < 0 && ++this.#consecutiveLate <= MAX_CONSECUTIVE_LATE && -distance <= MAX_FORWARD_JUMP) {
      this.statistics.late++;
      return true;
    }
    this.flush();
    this.statistics.restarts++;
    this.#restart();
    this.#begin(sequenceNumber);
    return false;
  }

  #receiveReordered(window: ReorderWindow, buffer: Buffer, start: number, end: number, nowMs: number): void {
    const packet = this.#packet;
    this.#measureJitter(packet.timestamp, nowMs);
    const { sequenceNumber } = packet;
    if (this.#next === undefined) this.#begin(sequenceNumber);
    let distance = sequenceDistance(this.#next as number, sequenceNumber);
    if (distance !== 0 && this.#isOutside(distance, sequenceNumber)) return;
    distance = sequenceDistance(this.#next as number, sequenceNumber);
    if (distance === 0) {
      this.#deliver(packet);
      this.#deliverFollowing(window);
    } else {
      this.#consecutiveLate = 0;
      while (distance >= ReorderWindow.SLOTS) {
        if (window.count === 0) break;
        this.#skipHole(window);
        distance = sequenceDistance(this.#next as number, sequenceNumber);
      }
      if (distance === 0 || distance >= ReorderWindow.SLOTS) {
        // The window is empty and the packet beyond it: everything between is lost.
        this.#deliver(packet);
        this.#deliverFollowing(window);
      } else if (!window.put(sequenceNumber, buffer, start, end, nowMs)) {
        this.statistics.late++;
      }
    }
    this.poll(nowMs);
  }

  #deliver(packet: RtpPacket): void {
    const next = this.#next as number;
    const missing = (packet.sequenceNumber - next) & 0xffff;
    packet.lost = missing + this.#lostAtRestart;
    this.statistics.lost += packet.lost;
    this.#lostAtRestart = 0;
    this.#consecutiveLate = 0;
    this.#highestSequence += missing + 1;
    this.#next = (packet.sequenceNumber + 1) & 0xffff;
    this.#options.onPacket(packet);
  }

  #deliverFollowing(window: ReorderWindow): void {
    while (window.take(this.#next as number, this.#earlier)) this.#deliver(this.#earlier);
  }

  /** Gives up on what is missing before the first packet that waits. */
  #skipHole(window: ReorderWindow): void {
    if (window.takeFirst(this.#next as number, this.#earlier)) this.#deliver(this.#earlier);
    this.#deliverFollowing(window);
  }

  /** RFC 3550 A.8. */
  #measureJitter(timestamp: number, nowMs: number): void {
    const transit = (nowMs * this.#options.clockRate) / 1000 - timestamp;
    if (this.#lastTransit !== undefined) {
      const difference = Math.abs(transit - this.#lastTransit);
      // A timestamp that wraps or jumps says nothing about the network.
      if (difference < this.#options.clockRate * 10) this.#jitter += (difference - this.#jitter) / 16;
    }
    this.#lastTransit = transit;
  }
}
