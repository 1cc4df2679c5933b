// Detects deviations of an examined camera from others: rows of docs/cameras.md, each with the evidence.

import type { CameraStatus } from '../contract/camera-status.ts';
import type { Examined, ExaminedStream } from './examination.ts';
import { DAY_MS } from '../../base/units.ts';

interface Finding {
  /** Row of the table in docs/cameras.md. */
  readonly row: number;
  readonly seen: string;
}

interface Observations extends Examined {
  readonly status: CameraStatus;
  readonly video: ExaminedStream | undefined;
  readonly audio: ExaminedStream | undefined;
}

/** Clock deviations above the first are drift; above the second, a wrong rate. */
const DRIFT = 0.0005;
const WRONG_RATE = 0.02;

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const list = (numbers: Iterable<number>): string => [...numbers].join(', ');
const plural = (n: number, one: string): string => `${n} ${one}${n === 1 ? '' : 's'}`;

/** One rule per row: the evidence, or undefined if there is none. */
const RULES: readonly { readonly row: number; readonly seen: (it: Observations) => string | false | undefined }[] = [
  { row: 1, seen: (it) => it.mediaBeforePlay && 'packets before the answer to PLAY' },
  {
    row: 4,
    seen: ({ video }) => video && mixed(video) && `packets of sources ${list(video.packets.sources.keys())} in turn`,
  },
  { row: 5, seen: ({ dialogue }) => dialogue.sessions > 1 && `${dialogue.sessions} session ids` },
  { row: 6, seen: ({ dialogue }) => sessionTimeout(dialogue.sessionTimeout) },
  { row: 9, seen: ({ dialogue }) => refused(dialogue.answers, 454) },
  { row: 10, seen: ({ dialogue }) => dialogue.challenges.length > 1 && `offers ${dialogue.challenges.join(', ')}` },
  { row: 11, seen: ({ dialogue }) => dialogue.challengeWithoutQop && 'Digest without qop' },
  { row: 15, seen: ({ dialogue }) => dialogue.redirects > 0 && plural(dialogue.redirects, 'redirect') },
  {
    row: 16,
    seen: ({ dialogue }) => dialogue.withoutCSeq > 0 && `${plural(dialogue.withoutCSeq, 'answer')} without CSeq`,
  },
  { row: 18, seen: ({ dialogue }) => dialogue.requests > 0 && `${plural(dialogue.requests, 'request')} of the camera` },
  {
    row: 24,
    seen: ({ dialogue, status }) =>
      refused(dialogue.answers, 461) ?? (status.reason?.code === 'transport-refused' && status.reason.message),
  },
  { row: 27, seen: ({ video }) => video && withoutSets(video) && 'no parameter sets in the SDP' },
  { row: 36, seen: ({ offered }) => offered.some((media) => media.backchannel) && 'a backchannel' },
  { row: 37, seen: ({ offered }) => offered.some((media) => media.kind === 'application') && 'metadata' },
  { row: 40, seen: ({ dialogue }) => dialogue.answers.has('PLAY') && !dialogue.rtpInfo && 'no RTP-Info' },
  { row: 42, seen: (it) => it.video && it.seconds > 12 && reports(it.video) },
  {
    row: 45,
    seen: ({ video }) =>
      video && video.packets.jumps > 0 && `${plural(video.packets.jumps, 'stamp')} more than 5 s from arrival`,
  },
  {
    row: 46,
    seen: ({ video }) =>
      video &&
      video.packets.backwards > 0 &&
      video.recorded.reordered === 0 &&
      `${plural(video.packets.backwards, 'stamp')} that went back`,
  },
  { row: 47, seen: ({ video }) => video && wrongRate(video) },
  {
    row: 49,
    seen: ({ video }) =>
      video &&
      video.packets.extended > 0 &&
      `${plural(video.packets.extended, 'packet')} with extension, contributing sources or padding`,
  },
  { row: 50, seen: (it) => it.status.transport === 'udp' && it.video && disorder(it.video, it.status) },
  {
    row: 52,
    seen: (it) =>
      it.status.transport === 'tcp' &&
      it.video &&
      it.video.packets.lost > 0 &&
      `${plural(it.video.packets.lost, 'packet')} missing over TCP`,
  },
  { row: 54, seen: ({ video }) => video?.packets.marker === 'never' && 'no marker bit' },
  { row: 55, seen: ({ video }) => video?.packets.marker === 'every-packet' && 'the marker bit on every packet' },
  {
    row: 53,
    seen: ({ video }) => video?.packets.marker === 'irregular' && 'marker bits that do not follow the pictures',
  },
  { row: 59, seen: (it) => it.parameterChanges > 0 && `parameter sets changed ${plural(it.parameterChanges, 'time')}` },
  { row: 61, seen: ({ video }) => video && video.recorded.reordered > 0 && 'B-frames' },
  { row: 63, seen: ({ video }) => video && longGroups(video) },
  { row: 67, seen: ({ status }) => status.audioDropped && `sound is left out: ${status.audioDropped.message}` },
  {
    row: 69,
    seen: ({ audio }) =>
      audio?.media.encodingName === 'OPUS' &&
      audio.media.clockRate !== 48_000 &&
      `Opus announced with ${audio.media.clockRate} Hz`,
  },
  { row: 70, seen: ({ audio }) => audio && /^PCM[AU]$/.test(audio.media.encodingName) && 'G.711' },
  { row: 71, seen: ({ audio }) => audio && drift(audio) },
  { row: 96, seen: ({ video, audio }) => !video && audio && 'only sound' },
];

export function findingsOf(examined: Examined, status: CameraStatus): Finding[] {
  const of = (kind: string): ExaminedStream | undefined => examined.streams.find((one) => one.media.kind === kind);
  const it: Observations = { ...examined, status, video: of('video'), audio: of('audio') };
  return RULES.flatMap(({ row, seen }) => {
    const what = seen(it);
    return what ? [{ row, seen: what }] : [];
  });
}

/** Whether two sources alternate, which means two senders; a source that follows another is just a change. */
function mixed({ packets }: ExaminedStream): boolean {
  return packets.sources.size > 1 && packets.sourceChanges > 4 * packets.sources.size;
}

function sessionTimeout(value: string | undefined): string | undefined {
  if (value === undefined) return 'no session timeout';
  return Number(value) > 0 ? undefined : `session timeout “${value}”`;
}

function refused(answers: Examined['dialogue']['answers'], status: number): string | undefined {
  for (const [method, answer] of answers) if (answer.status === status) return `${status} to ${method}`;
  return undefined;
}

function withoutSets({ media }: ExaminedStream): boolean {
  const names = media.encodingName === 'H264' ? ['sprop-parameter-sets'] : ['sprop-sps', 'sprop-pps', 'sprop-vps'];
  return /^H26[45]$/.test(media.encodingName) && names.some((name) => !media.formatParameters.get(name));
}

function reports({ reports: { senderReports, clockOffsetMs } }: ExaminedStream): string | undefined {
  if (senderReports === 0) return 'no sender reports';
  if (clockOffsetMs === undefined) return 'sender reports without a clock';
  return Math.abs(clockOffsetMs) > DAY_MS ? `its clock is ${Math.round(clockOffsetMs / DAY_MS)} days off` : undefined;
}

function wrongRate({ packets: { clockRatio } }: ExaminedStream): string | undefined {
  if (clockRatio === undefined || Math.abs(clockRatio - 1) < WRONG_RATE) return undefined;
  return `stamps run at ${clockRatio.toFixed(3)} of the clock`;
}

function drift({ packets: { clockRatio } }: ExaminedStream): string | undefined {
  if (clockRatio === undefined || Math.abs(clockRatio - 1) < DRIFT) return undefined;
  return `its clock runs ${percent(clockRatio - 1)} off`;
}

/** Also what is the fault of this machine, and not of the camera or the network. */
function disorder(
  { packets: { reordered, duplicates, lost } }: ExaminedStream,
  status: CameraStatus,
): string | undefined {
  const { counters, receiveBufferBytes = 0 } = status;
  const { packetsDropped: dropped } = counters;
  if (reordered + duplicates + lost + dropped === 0) return undefined;
  const seen = `${reordered} packets late, ${duplicates} twice, ${lost} lost`;
  if (dropped === 0) return seen;
  const kept = Math.floor(receiveBufferBytes / 1024);
  return `${seen}; the kernel of this machine dropped ${dropped}, because it keeps only ${kept} KiB until they are read (net.core.rmem_max)`;
}

function longGroups({ recorded: { keyFrameSeconds } }: ExaminedStream): string | undefined {
  return keyFrameSeconds && keyFrameSeconds.longest >= 10
    ? `up to ${keyFrameSeconds.longest.toFixed(0)} s from key frame to key frame`
    : undefined;
}
