// Watches one camera for some time: what it sends, and what the recorder makes of it.

import type { Clock } from '../../base/clock.ts';
import type { CameraObserver, DialogueMessage } from '../camera/observer.ts';
import type { TransportKind } from '../rtsp/stream-setups.ts';
import type { EndReason } from '../contract/sink.ts';
import { VIDEO_TIMESCALE, type Sample } from '../mp4/sample.ts';
import { parseRtcp, senderWallMs } from '../rtp/rtcp.ts';
import type { Media, Presentation } from '../rtsp/sdp.ts';
import type { Capture, CapturedPacket, Message } from './capture.ts';
import { readDialogue, type DialogueFigures } from './dialogue.ts';
import { redactMessage, redactPacket, secretsOf, type Coding } from './redact.ts';
import { StreamObserver, type StreamFigures } from './stream-observer.ts';

interface ReportFigures {
  readonly senderReports: number;
  /** Time of the first report after the first packet of the stream. */
  readonly firstAfterMs: number | undefined;
  /** The camera's clock minus ours in milliseconds, from the last report; undefined if it has no clock. */
  readonly clockOffsetMs: number | undefined;
  readonly byes: number;
}

/** What was recorded of the stream meanwhile. */
interface RecordedFigures {
  /** Pictures or audio frames. */
  readonly samples: number;
  /** Samples per second of arrival; undefined for fewer than two. */
  readonly rate: number | undefined;
  /** Seconds between key frames: the usual time and the longest. */
  readonly keyFrameSeconds: { readonly usual: number; readonly longest: number } | undefined;
  /** Pictures that are decoded before others that are displayed earlier: B-frames. */
  readonly reordered: number;
  readonly lostPackets: number;
}

export interface ExaminedStream {
  readonly media: Media;
  readonly packets: StreamFigures;
  readonly reports: ReportFigures;
  readonly recorded: RecordedFigures;
}

export interface Examined {
  readonly seconds: number;
  readonly dialogue: DialogueFigures;
  /** What the camera offers, and the streams that were set up. */
  readonly offered: readonly Media[];
  readonly streams: readonly ExaminedStream[];
  /** Media arrived before the response to PLAY. */
  readonly mediaBeforePlay: boolean;
  /** Why runs ended meanwhile. */
  readonly ends: readonly EndReason[];
  readonly parameterChanges: number;
}

interface Stream {
  readonly media: Media;
  readonly coding: Coding;
  readonly packets: StreamObserver;
  firstMs: number | undefined;
  senderReports: number;
  firstReportMs: number | undefined;
  clockOffsetMs: number | undefined;
  byes: number;
}

class Recorded {
  samples = 0;
  reordered = 0;
  lostPackets = 0;
  #firstMs = 0;
  #lastMs = 0;
  #lastKeyDts: number | undefined;
  readonly #distances: number[] = [];

  push(sample: Sample, nowMs: number): void {
    if (this.samples++ === 0) this.#firstMs = nowMs;
    this.#lastMs = nowMs;
    this.lostPackets += sample.lostPackets;
    if (sample.kind !== 'video') return;
    if (sample.compositionOffset !== 0) this.reordered++;
    if (!sample.sync) return;
    if (this.#lastKeyDts !== undefined && this.#distances.length < 1_000)
      this.#distances.push((sample.dts - this.#lastKeyDts) / VIDEO_TIMESCALE);
    this.#lastKeyDts = sample.dts;
  }

  /** The time between two runs is not a distance between key frames. */
  runEnded(): void {
    this.#lastKeyDts = undefined;
  }

  figures(): RecordedFigures {
    const seconds = (this.#lastMs - this.#firstMs) / 1000;
    const sorted = [...this.#distances].sort((a, b) => a - b);
    const usual = sorted[sorted.length >> 1];
    return {
      samples: this.samples,
      rate: seconds >= 2 ? (this.samples - 1) / seconds : undefined,
      keyFrameSeconds: usual === undefined ? undefined : { usual, longest: sorted.at(-1) as number },
      reordered: this.reordered,
      lostPackets: this.lostPackets,
    };
  }
}

const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['H264', 'h264'],
  ['H265', 'h265'],
]);

interface ExaminationOptions {
  readonly clock: Clock;
  /** The stream's URL, which must not appear in a capture. */
  readonly source: string;
  /** How many bytes of messages and packets to keep; 0 for no capture. */
  readonly captureBytes: number;
}

export class Examination implements CameraObserver {
  readonly #options: ExaminationOptions;
  readonly #startMs: number;
  readonly #said: DialogueMessage[] = [];
  #offered: readonly Media[] = [];
  #streams: Stream[] = [];
  #recorded = { video: new Recorded(), audio: new Recorded() };
  #mediaBeforePlay = false;
  #playAnswered = false;
  #playAsked: string | undefined;
  #ends: EndReason[] = [];
  #parameterChanges = 0;
  readonly #lines: (Message | CapturedPacket)[] = [];
  #captureBytes = 0;

  constructor(options: ExaminationOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
  }

  said(message: DialogueMessage): void {
    this.#said.push(message);
    if (message.from === 'recorder' && message.text.startsWith('PLAY ')) {
      this.#playAsked = /\r\nCSeq:\s*(\d+)/i.exec(message.text)?.[1];
    } else if (this.#playAsked !== undefined && message.text.includes(this.#playAsked)) this.#playAnswered = true;
    const ms = message.atMs - (this.#said[0] as DialogueMessage).atMs;
    this.#keep({ ms, from: message.from, text: redactMessage(message.text, secretsOf(this.#options.source)) });
  }

  selected(presentation: Presentation, chosen: readonly number[]): void {
    this.#offered = presentation.media;
    this.#streams = chosen.map((index) => {
      const media = presentation.media[index] as Media;
      return {
        media,
        coding: CODINGS.get(media.encodingName) ?? 'other',
        packets: new StreamObserver(media.clockRate || 90_000),
        firstMs: undefined,
        senderReports: 0,
        firstReportMs: undefined,
        clockOffsetMs: undefined,
        byes: 0,
      };
    });
  }

  rtp(index: number, buffer: Buffer, start: number, end: number): void {
    const stream = this.#streams[index];
    if (!stream) return;
    const nowMs = this.#options.clock.monotonicMs();
    stream.firstMs ??= nowMs;
    if (this.#playAsked !== undefined && !this.#playAnswered) this.#mediaBeforePlay = true;
    stream.packets.push(buffer, start, end, nowMs);
    if (this.#options.captureBytes === 0) return;
    const packet = redactPacket(buffer.subarray(start, end), stream.coding);
    this.#keep({ ms: this.#sinceFirst(nowMs), stream: index, rtp: packet.toString('base64') });
  }

  rtcp(index: number, buffer: Buffer, start: number, end: number): void {
    const stream = this.#streams[index];
    if (!stream) return;
    const nowMs = this.#options.clock.monotonicMs();
    const { senderReports, byes } = parseRtcp(buffer, start, end);
    stream.byes += byes.length;
    for (const report of senderReports) {
      stream.senderReports++;
      stream.firstReportMs ??= nowMs;
      const wallMs = senderWallMs(report);
      stream.clockOffsetMs = wallMs === undefined ? undefined : wallMs - this.#options.clock.wallMs();
    }
    // Only the report is kept: the descriptions after it name the camera.
    const kept = Buffer.from(buffer.subarray(start, Math.min(end, start + 28)));
    this.#keep({ ms: this.#sinceFirst(nowMs), stream: index, rtcp: kept.toString('base64') });
  }

  begin(): void {}

  change(): void {
    this.#parameterChanges++;
  }

  sample(sample: Sample): void {
    this.#recorded[sample.kind].push(sample, this.#options.clock.monotonicMs());
  }

  end(reason: EndReason): void {
    if (this.#ends.length < 100) this.#ends.push(reason);
    this.#recorded.video.runEnded();
  }

  examined(): Examined {
    const lead = this.#streams.find(({ media }) => media.kind === 'video') ?? this.#streams[0];
    return {
      seconds: (this.#options.clock.monotonicMs() - this.#startMs) / 1000,
      dialogue: readDialogue(this.#said),
      offered: this.#offered,
      streams: this.#streams.map((stream) => ({
        media: stream.media,
        packets: stream.packets.figures(),
        reports: {
          senderReports: stream.senderReports,
          firstAfterMs:
            stream.firstReportMs === undefined
              ? undefined
              : stream.firstReportMs - (stream.firstMs ?? stream.firstReportMs),
          clockOffsetMs: stream.clockOffsetMs,
          byes: stream.byes,
        },
        recorded: this.#recorded[stream === lead ? 'video' : 'audio'].figures(),
      })),
      mediaBeforePlay: this.#mediaBeforePlay,
      ends: this.#ends,
      parameterChanges: this.#parameterChanges,
    };
  }

  capture(version: string, transport: TransportKind): Capture {
    return { head: { capture: 1, recorder: version, transport }, lines: this.#lines };
  }

  #sinceFirst(nowMs: number): number {
    return nowMs - (this.#said[0]?.atMs ?? this.#startMs);
  }

  #keep(line: Message | CapturedPacket): void {
    if (this.#options.captureBytes === 0) return;
    this.#captureBytes += 64 + ('text' in line ? line.text.length : (line.rtp ?? line.rtcp ?? '').length);
    if (this.#captureBytes <= this.#options.captureBytes) this.#lines.push(line);
  }
}
