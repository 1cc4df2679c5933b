// Receives the packets of one RTP stream: delivers them in order, with the number lost before each (RFC 3550). No I/O and no
// timers: the time is an argument.

import { compactNtp, type ReceptionReport, type SenderReport } from './rtcp.ts';
import { RtpPacket } from './packet.ts';
import { ReorderWindow, sequenceDistance } from './reorder.ts';

/** A larger jump forward is not a loss: the sender started a new sequence (RFC 3550 A.1, MAX_DROPOUT). */
const MAX_FORWARD_JUMP = 3000;
/** UDP: after this many late packets in a row, the sequence is assumed to have restarted at a lower number. */
const MAX_CONSECUTIVE_LATE = 64;
/** UDP: how long the first packet waits for packets that it overtook. */
const BEGIN_WAIT_MS = 50;
/** After this many packets in a row from another source, without one from ours, that source is used. */
const PACKETS_OF_NEW_SOURCE = 4;
/** A source that returns this soon after it was replaced was never gone: two senders are mixed. */
const MIXED_MS = 500;
/** With mixed senders: after this silence of our source the other one is used. */
const SOURCE_SILENT_MS = 1000;

export interface RtpReceiverOptions {
  /** The initial payload type; `payloadType` of the receiver is the current one. */
  readonly payloadType: number;
  /**
   * Called for a packet of another type; true if the stream continues with that type. If this returns false or is absent, the
   * packet is dropped.
   */
  readonly onOtherType?: (payloadType: number) => boolean;
  readonly clockRate: number;
  /**
   * UDP: packets may be reordered, duplicated or late. Out-of-order packets are kept by reference, so the caller must not reuse a
   * receive buffer. With TCP the buffer may be reused as soon as `receive` returns.
   */
  readonly reorder: boolean;
  /** The source in the Transport header of the response to SETUP. Some cameras state one and send another. */
  readonly ssrc?: number | undefined;
  /** Called with each packet; the view is valid only during the call. */
  readonly onPacket: (packet: RtpPacket) => void;
  /** Counts on, where a receiver before this one has counted. */
  readonly statistics?: RtpStatistics;
  /** The stream continues from another source, with new sequence numbers and timestamps. Called before its first packet. */
  readonly onSourceChange?: (from: number, to: number) => void;
}

export interface RtpStatistics {
  /** Packets of our source and type, with those that are late. */
  packets: number;
  lost: number;
  /** Duplicated or too late; dropped. */
  late: number;
  /** From a source that is not ours. */
  foreign: number;
  /** Packets of other payload types, by type. */
  readonly otherPayloadTypes: Map<number, number>;
  /** Not RTP. */
  malformed: number;
  /** Sequences that restarted without a change of source. */
  restarts: number;
}

export const newStatistics = (): RtpStatistics => ({
  packets: 0,
  lost: 0,
  late: 0,
  foreign: 0,
  otherPayloadTypes: new Map(),
  malformed: 0,
  restarts: 0,
});

export class RtpReceiver {
  /** Payload type of the delivered packets. */
  payloadType: number;
  readonly #options: RtpReceiverOptions;
  readonly #packet = new RtpPacket();
  /** A view of packets in the window, while `#packet` still shows the one that has just arrived. */
  readonly #earlier = new RtpPacket();
  readonly #window: ReorderWindow | undefined;
  readonly statistics: RtpStatistics;

  #ssrc: number | undefined;
  #lastHeardMs = 0;
  /** The source sent a BYE (RTCP) and nothing since. */
  #left = false;
  /** Another source, and its packets since our last one: they will be its first packets if it is used. */
  #candidate: number | undefined;
  #candidatePackets: Buffer[] = [];
  /** The previous source, and when it was last heard. */
  #former: number | undefined;
  #formerHeardMs = 0;
  #isMixed = false;

  /** The next expected sequence number; undefined before the first packet. */
  #next: number | undefined;
  /** UDP: packets that the first packet overtook are awaited until then, and `#next` is lower than the first packet's number. */
  #beginsAtMs: number | undefined;
  #consecutiveLate = 0;
  // TCP: distinguishes the last packet from another one with its sequence number; see `print`.
  #lastLength = 0;
  #lastTimestamp = 0;
  #lastPrint = 0;
  /** Loss before the next packet that its sequence number does not show: 1 after a restart. */
  #lostAtRestart = 0;

  // State for receiver reports.
  /** Sequence numbers, with the number of wraps since the first in the upper bits. */
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
    this.payloadType = options.payloadType;
    this.statistics = options.statistics ?? newStatistics();
    this.#window = options.reorder ? new ReorderWindow() : undefined;
  }

  /** The current source; undefined before the first packet. */
  get ssrc(): number | undefined {
    return this.#ssrc;
  }

  /** The last packet, of any source and payload type; undefined before the first. */
  get last(): { readonly ssrc: number; readonly sequenceNumber: number } | undefined {
    const { buffer, ssrc, sequenceNumber } = this.#packet;
    return buffer.length === 0 ? undefined : { ssrc, sequenceNumber };
  }

  /** Takes one packet, `buffer[start, end)`, that arrived at `nowMs` (monotonic). */
  receive(buffer: Buffer, start: number, end: number, nowMs: number): void {
    const packet = this.#packet;
    if (!packet.parse(buffer, start, end)) {
      this.statistics.malformed++;
      return;
    }
    if (packet.payloadType !== this.payloadType && !this.#acceptType(buffer, start, end, nowMs)) return;
    if (packet.ssrc !== this.#ssrc && !this.#acceptSource(packet.ssrc, buffer, start, end, nowMs)) {
      this.statistics.foreign++;
      return;
    }
    if (this.#candidate !== undefined) this.#forgetCandidate();
    this.#left = false;
    this.#take(buffer, start, end, nowMs);
  }

  #take(buffer: Buffer, start: number, end: number, nowMs: number): void {
    this.#lastHeardMs = nowMs;
    this.statistics.packets++;
    this.#receivedSinceRestart++;
    if (this.#window) this.#receiveReordered(this.#window, buffer, start, end, nowMs);
    else this.#receiveInOrder();
  }

  /** UDP: delivers packets after a gap that is no longer expected to be filled. Call it regularly, for example every 50 ms. */
  poll(nowMs: number): void {
    const window = this.#window;
    if (!window) return;
    if (this.#beginsAtMs !== undefined) {
      if (nowMs < this.#beginsAtMs) return;
      this.#beginAtFirst(window);
    }
    while (window.hasWaitedTooLong(nowMs)) this.#skipHole(window);
  }

  /** At the end of a stream: delivers what still waits after gaps. */
  flush(): void {
    const window = this.#window;
    if (!window) return;
    if (this.#beginsAtMs !== undefined) this.#beginAtFirst(window);
    while (window.count > 0) this.#skipHole(window);
  }

  /** Records a BYE (RTCP). If it is from our source, the next source is used at once. */
  noteBye(ssrc: number): void {
    if (ssrc === this.#ssrc) this.#left = true;
  }

  /** Packets were lost that no sequence number shows: the next packet reports a loss. */
  noteBreak(): void {
    this.#lostAtRestart = 1;
  }

  /** Records a sender report from this stream's RTCP channel. Its SSRC may differ from that of the packets (Tapo C320WS). */
  noteSenderReport(report: SenderReport, nowMs: number): void {
    this.#lastSenderReport = compactNtp(report);
    this.#lastSenderReportMs = nowMs;
  }

  /** The reception report of this stream; undefined before its first packet. Starts a new interval. */
  report(nowMs: number): ReceptionReport | undefined {
    if (this.#ssrc === undefined || this.#next === undefined || this.#beginsAtMs !== undefined) return undefined;
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

  /** Whether a packet of another payload type is delivered. If not, its sequence number does not count as lost. */
  #acceptType(buffer: Buffer, start: number, end: number, nowMs: number): boolean {
    const { payloadType, ssrc, sequenceNumber } = this.#packet;
    if (this.#options.onOtherType?.(payloadType) === true) {
      this.payloadType = payloadType;
      return true;
    }
    const others = this.statistics.otherPayloadTypes;
    others.set(payloadType, (others.get(payloadType) ?? 0) + 1);
    if (ssrc !== this.#ssrc || this.#next === undefined) return false;
    const distance = sequenceDistance(this.#next, sequenceNumber);
    if (this.#window && distance >= 0 && distance < ReorderWindow.SLOTS) {
      this.#receivedSinceRestart++;
      this.#receiveReordered(this.#window, buffer, start, end, nowMs);
    } else if (!this.#window && distance === 0) {
      this.#receivedSinceRestart++;
      this.#deliver(this.#packet);
    }
    return false;
  }

  /**
   * Whether packets of this source are ours. The first source is. It is replaced by the one that the camera stated, by one that
   * follows a BYE of ours, or by one that alone sends a few packets, which are then delivered. Old versions of live555 mix in
   * packets of an earlier session: a source that returns was never gone, and from then on other sources are ignored until ours
   * falls silent.
   */
  #acceptSource(ssrc: number, buffer: Buffer, start: number, end: number, nowMs: number): boolean {
    if (this.#ssrc === undefined) {
      this.#ssrc = ssrc;
      return true;
    }
    if (ssrc === this.#options.ssrc || this.#left) {
      this.#changeSource(ssrc);
      return true;
    }
    if (ssrc !== this.#candidate) this.#forgetCandidate();
    this.#candidate = ssrc;
    if (this.#isMixed) {
      if (nowMs - this.#lastHeardMs < SOURCE_SILENT_MS) return false;
    } else if (this.#candidatePackets.length < PACKETS_OF_NEW_SOURCE - 1) {
      this.#candidatePackets.push(Buffer.from(buffer.subarray(start, end)));
      return false;
    }
    this.#isMixed ||= ssrc === this.#former && nowMs - this.#formerHeardMs < MIXED_MS;
    const packets = this.#candidatePackets;
    this.#forgetCandidate();
    this.#changeSource(ssrc);
    this.statistics.foreign -= packets.length;
    for (const packet of packets) {
      if (this.#packet.parse(packet, 0, packet.length)) this.#take(packet, 0, packet.length, nowMs);
    }
    return this.#packet.parse(buffer, start, end);
  }

  #forgetCandidate(): void {
    this.#candidate = undefined;
    this.#candidatePackets = [];
  }

  #changeSource(ssrc: number): void {
    this.flush();
    this.#former = this.#ssrc;
    this.#formerHeardMs = this.#lastHeardMs;
    this.#options.onSourceChange?.(this.#ssrc as number, ssrc);
    this.#ssrc = ssrc;
    this.#restart();
  }

  /** Resets the sequence: the next packet starts a new one. Over UDP, packets before it may be missing. */
  #restart(): void {
    this.#window?.clear();
    this.#next = undefined;
    this.#beginsAtMs = undefined;
    this.#consecutiveLate = 0;
    if (this.#window) this.#lostAtRestart = 1;
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
   * TCP keeps order, so a lower number starts a new sequence at once and without loss: some cameras restart it or never increment
   * it. Markers and fragments then show whether a picture is complete. A higher number than expected shows what the camera
   * dropped before its socket. Nothing is copied or allocated here.
   */
  #receiveInOrder(): void {
    const packet = this.#packet;
    const { sequenceNumber } = packet;
    if (this.#next === undefined) this.#begin(sequenceNumber);
    const distance = sequenceDistance(this.#next as number, sequenceNumber);
    if (distance < 0 || distance > MAX_FORWARD_JUMP) {
      if (distance === -1 && this.#isRepeated(packet)) {
        this.statistics.late++;
        return;
      }
      this.statistics.restarts++;
      this.#restart();
      this.#begin(sequenceNumber);
    }
    this.#lastLength = packet.payloadEnd - packet.payloadStart;
    this.#lastTimestamp = packet.timestamp;
    this.#lastPrint = print(packet);
    this.#deliver(packet);
  }

  /** Whether this packet, with the sequence number of the last one, is a duplicate of it. */
  #isRepeated(packet: RtpPacket): boolean {
    return (
      packet.payloadEnd - packet.payloadStart === this.#lastLength &&
      packet.timestamp === this.#lastTimestamp &&
      print(packet) === this.#lastPrint
    );
  }

  /** UDP: handles a packet that is late or far ahead; true if it is dropped. Otherwise the sequence may have restarted. */
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
    if (this.#next === undefined) {
      // Packets that this one has overtaken belong to the first picture.
      this.#next = (sequenceNumber - ReorderWindow.SLOTS / 2) & 0xffff;
      this.#beginsAtMs = nowMs + BEGIN_WAIT_MS;
    }
    let distance = sequenceDistance(this.#next, sequenceNumber);
    if (this.#beginsAtMs !== undefined && (distance < 0 || distance >= ReorderWindow.SLOTS)) {
      this.#beginAtFirst(window);
      distance = sequenceDistance(this.#next, sequenceNumber);
    }
    if (distance !== 0 && this.#isOutside(distance, sequenceNumber)) return;
    distance = sequenceDistance(this.#next, sequenceNumber);
    if (distance === 0) {
      this.#deliver(packet);
      this.#deliverFollowing(window);
    } else {
      this.#consecutiveLate = 0;
      while (distance >= ReorderWindow.SLOTS) {
        if (window.count === 0) break;
        this.#skipHole(window);
        distance = sequenceDistance(this.#next, sequenceNumber);
      }
      if (distance === 0 || distance >= ReorderWindow.SLOTS) {
        // The window is empty and the packet is beyond it: everything in between is lost.
        this.#deliver(packet);
        this.#deliverFollowing(window);
      } else if (!window.put(sequenceNumber, buffer, start, end, nowMs)) {
        this.statistics.late++;
      }
    }
    this.poll(nowMs);
  }

  /** Starts the sequence at the first packet that has arrived. */
  #beginAtFirst(window: ReorderWindow): void {
    this.#beginsAtMs = undefined;
    if (!window.takeFirst(this.#next as number, this.#earlier)) return;
    const received = this.#receivedSinceRestart;
    this.#begin(this.#earlier.sequenceNumber);
    this.#receivedSinceRestart = received;
    this.#deliver(this.#earlier);
    this.#deliverFollowing(window);
  }

  #deliver(packet: RtpPacket): void {
    const next = this.#next as number;
    const missing = (packet.sequenceNumber - next) & 0xffff;
    packet.lost = missing + this.#lostAtRestart;
    this.#consecutiveLate = 0;
    this.#highestSequence += missing + 1;
    this.#next = (packet.sequenceNumber + 1) & 0xffff;
    if (packet.payloadType !== this.payloadType) {
      this.#lostAtRestart = packet.lost;
      return;
    }
    this.statistics.lost += packet.lost;
    this.#lostAtRestart = 0;
    this.#options.onPacket(packet);
  }

  #deliverFollowing(window: ReorderWindow): void {
    while (window.take(this.#next as number, this.#earlier)) this.#deliver(this.#earlier);
  }

  /** Stops waiting for what is missing before the first packet in the window. */
  #skipHole(window: ReorderWindow): void {
    if (window.takeFirst(this.#next as number, this.#earlier)) this.#deliver(this.#earlier);
    this.#deliverFollowing(window);
  }

  /** RFC 3550 A.8. */
  #measureJitter(timestamp: number, nowMs: number): void {
    const transit = (nowMs * this.#options.clockRate) / 1000 - timestamp;
    if (this.#lastTransit !== undefined) {
      const difference = Math.abs(transit - this.#lastTransit);
      // A timestamp that wraps or jumps does not show the delay of the network.
      if (difference < this.#options.clockRate * 10) this.#jitter += (difference - this.#jitter) / 16;
    }
    this.#lastTransit = transit;
  }
}

/**
 * Four bytes to recognise a packet whose bytes are gone when the next one arrives: from its middle, its end, and the second one,
 * which distinguishes fragments. Compressed media of equal length and timestamp that agree in them are the same.
 */
function print({ buffer, payloadStart, payloadEnd }: RtpPacket): number {
  const middle = (payloadStart + payloadEnd) >> 1;
  const second = buffer[payloadStart + 1] as number;
  return (
    (second << 24) |
    ((buffer[middle] as number) << 16) |
    ((buffer[payloadEnd - 2] as number) << 8) |
    (buffer[payloadEnd - 1] as number)
  );
}
