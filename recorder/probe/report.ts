// Makes the report on an examined camera, and its text for a terminal.

import type { CameraStatus } from '../contract/camera-status.ts';
import type { Examined, ExaminedStream } from './examination.ts';
import { findingsOf } from './findings.ts';
import type { ProbeReport } from './report/report.ts';

/** Rounds times and rates, which are not exact to the microsecond after half a minute. */
const round = (value: number | undefined, digits = 1): number | undefined =>
  value === undefined ? undefined : Number(value.toFixed(digits));

export function reportOf(examined: Examined, status: CameraStatus): ProbeReport {
  const { dialogue } = examined;
  const chosen = new Set(examined.streams.map((stream) => stream.media));
  return {
    seconds: round(examined.seconds) as number,
    state: status.state,
    reason: status.reason,
    transport: status.transport,
    server: dialogue.server,
    login: [...dialogue.challenges],
    methods: [...dialogue.methods],
    session_timeout: dialogue.sessionTimeout,
    answers: [...dialogue.answers].map(([method, answer]) => ({
      method,
      status: answer.status,
      ms: Math.round(answer.ms),
    })),
    unanswered: [...dialogue.unanswered],
    streams: examined.streams.map((stream) => streamReport(stream)),
    not_recorded: examined.offered
      .filter((media) => !chosen.has(media))
      .map((media) => ({ kind: media.kind, encoding: media.encodingName, payload_type: media.payloadType })),
    not_believed: status.notBelieved.map(({ sinceMs, ...rest }) => ({
      ...rest,
      since: new Date(sinceMs).toISOString(),
    })),
    recorded: {
      video: status.video && {
        codec: status.video.codecString,
        width: status.video.width,
        height: status.video.height,
      },
      audio: status.audio && {
        codec: status.audio.codecString,
        sample_rate: status.audio.sampleRate,
        channels: status.audio.channels,
      },
      audio_dropped: status.audioDropped,
    },
    runs_ended: [...examined.ends],
    rows: findingsOf(examined, status),
  };
}

function streamReport({ media, packets, reports, recorded }: ExaminedStream) {
  const delay = packets.delayMs;
  const keyFrames = media.kind === 'video' ? recorded.keyFrameSeconds : undefined;
  return {
    kind: media.kind,
    encoding: media.encodingName,
    clock_rate: media.clockRate,
    payload_types: [...packets.payloadTypes].map(([payloadType, count]) => ({
      payload_type: payloadType,
      packets: count,
    })),
    announced_payload_type: media.payloadType,
    packets: packets.packets,
    bits_per_second: packets.seconds >= 1 ? Math.round((packets.bytes * 8) / packets.seconds) : undefined,
    frames: recorded.samples,
    frame_rate: round(recorded.rate, 2),
    stamp_rate: round(packets.rate, 2),
    key_frame_seconds: keyFrames && {
      usual: round(keyFrames.usual, 2) as number,
      longest: round(keyFrames.longest, 2) as number,
    },
    b_frames: recorded.reordered > 0,
    clock_ratio: round(packets.clockRatio, 5),
    delay_ms: delay && {
      median: round(delay.median) as number,
      p95: round(delay.most) as number,
      worst: round(delay.worst) as number,
    },
    bunched: round(packets.bunched, 3) as number,
    marker: packets.marker,
    sources: packets.sources.size,
    source_changes: packets.sourceChanges,
    lost: packets.lost,
    duplicates: packets.duplicates,
    reordered: packets.reordered,
    sequence_restarts: packets.restarts,
    malformed: packets.malformed,
    stamp_jumps: packets.jumps,
    sender_reports: reports.senderReports,
    first_report_after_ms:
      reports.firstAfterMs === undefined ? undefined : Math.max(0, Math.round(reports.firstAfterMs)),
    clock_offset_ms: reports.clockOffsetMs === undefined ? undefined : Math.round(reports.clockOffsetMs),
    byes: reports.byes,
  };
}

/** Lines with two columns, followed by rows of docs/cameras.md. */
export function formatReport(report: ProbeReport): string {
  const lines: [string, string][] = [];
  const add = (name: string, value: string | undefined): void => void (value && lines.push([name, value]));
  add('state', report.reason ? `${report.state}: ${report.reason.message} (${report.reason.code})` : report.state);
  add('watched', `${report.seconds} s over ${report.transport ?? 'no connection'}`);
  add('server', report.server);
  add('login', report.login.length > 0 ? report.login.join(', ') : report.answers.length > 0 ? 'none' : undefined);
  add('methods', report.methods.join(', '));
  add('session', report.session_timeout === undefined ? undefined : `timeout ${report.session_timeout}`);
  add('answers', report.answers.map(({ method, status, ms }) => `${method} ${status} (${ms} ms)`).join(', '));
  add('unanswered', report.unanswered.join(', '));
  for (const stream of report.streams) for (const [name, value] of streamLines(stream)) add(name, value);
  for (const media of report.not_recorded) {
    add('not recorded', `${media.kind} ${media.encoding || `of payload type ${media.payload_type}`}`);
  }
  const { video, audio, audio_dropped: dropped } = report.recorded;
  add('will be recorded', video ? `${video.codec}, ${video.width}x${video.height}` : 'no video');
  add('', audio ? `${audio.codec}, ${audio.sample_rate} Hz, ${audio.channels} channels` : undefined);
  add('', dropped && `no sound: ${dropped.message} (${dropped.code})`);
  for (const { witness, message } of report.not_believed) add('not believed', `${message} (${witness})`);
  add('runs ended', report.runs_ended.join(', '));
  const width = Math.max(...lines.map(([name]) => name.length)) + 2;
  const table = lines.map(([name, value]) => `${name.padEnd(width)}${value}`);
  const rows = report.rows.map(({ row, seen }) => `  ${String(row).padStart(3)}  ${seen}`);
  const what = rows.length > 0 ? ['', 'Rows of docs/cameras.md that it does:', ...rows] : [];
  return `${[...table, ...what].join('\n')}\n`;
}

function streamLines(stream: ProbeReport['streams'][number]): [string, string | undefined][] {
  const { delay_ms: delay, key_frame_seconds: keys } = stream;
  const types = stream.payload_types.map(({ payload_type: type, packets }) => `${packets} of payload type ${type}`);
  const deviation = stream.clock_ratio;
  return [
    [
      stream.kind,
      `${stream.encoding}, ${types.join(', ') || 'no packets'}, announced ${stream.announced_payload_type}`,
    ],
    [
      '  rate',
      [
        stream.frame_rate === undefined ? undefined : `${stream.frame_rate} frames a second`,
        stream.bits_per_second === undefined ? undefined : `${Math.round(stream.bits_per_second / 1000)} kbit/s`,
      ]
        .filter((part) => part !== undefined)
        .join(', '),
    ],
    ['  key frames', keys && `every ${keys.usual} s, at most ${keys.longest} s${stream.b_frames ? ', B-frames' : ''}`],
    [
      '  clock',
      deviation === undefined
        ? undefined
        : `${clockOf(deviation)}${stream.stamp_jumps > 0 ? `, ${stream.stamp_jumps} jumps` : ''}`,
    ],
    ['  delay', delay && `${delay.median} ms, 95 % under ${delay.p95} ms, worst ${delay.worst} ms`],
    ['  marker', stream.kind === 'video' ? stream.marker : undefined],
    [
      '  packets',
      `${stream.packets}: ${stream.lost} lost, ${stream.reordered} late, ${stream.duplicates} twice, ${stream.malformed} malformed`,
    ],
    [
      '  sources',
      stream.sources > 1
        ? `${stream.sources}, ${stream.source_changes} changes, ${stream.byes} said goodbye`
        : undefined,
    ],
    [
      '  reports',
      stream.sender_reports === 0
        ? 'none'
        : `${stream.sender_reports}, the first after ${stream.first_report_after_ms} ms, clock ${
            stream.clock_offset_ms === undefined ? 'absent' : aheadOf(stream.clock_offset_ms)
          }`,
    ],
  ];
}

function clockOf(ratio: number): string {
  const percent = (ratio - 1) * 100;
  if (Math.abs(percent) < 0.01) return 'right';
  return `${percent > 0 ? 'fast' : 'slow'} by ${Math.abs(percent).toFixed(2)} %`;
}

function aheadOf(offsetMs: number): string {
  return `${(Math.abs(offsetMs) / 1000).toFixed(1)} s ${offsetMs < 0 ? 'behind' : 'ahead of'} ours`;
}
