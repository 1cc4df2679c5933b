// Makes `moov` boxes from descriptions of tracks (ISO/IEC 14496-12 §8.2 to §8.6), with or without samples.

import { ownCopy } from '../../base/own-copy.ts';
import { box, concat, fourCc, fullBox, nestedBox, u16, u32, uVersion, versionFor, zeros, type Part } from './box.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID } from './fragment.ts';
import { sampleEntry } from './sample-entry.ts';
import { VIDEO_TIMESCALE, type TrackParameters } from './sample.ts';

/** Ticks per second of edit lists and movie durations; video times are exact in it. */
export const MOVIE_TIMESCALE = VIDEO_TIMESCALE;

/** The description of a track in every `moov`. The sample entry is kept as bytes, so that recovery need not interpret it. */
export interface TrackHeader {
  readonly trackId: number;
  readonly kind: 'video' | 'audio';
  readonly timescale: number;
  /** Display size in pixels; 0 for audio. */
  readonly width: number;
  readonly height: number;
  readonly sampleEntry: Buffer;
}

/** One entry of an edit list; `mediaTime` -1 shows nothing (§8.6.6). */
export interface Edit {
  /** In ticks of MOVIE_TIMESCALE. */
  readonly duration: number;
  /** In ticks of the track's timescale. */
  readonly mediaTime: number;
}

/** A track with samples: the boxes of its sample table, and its place in the movie. */
export interface TrackContents {
  readonly header: TrackHeader;
  /** Sum of all sample durations in ticks of the track's timescale. */
  readonly mediaDuration: number;
  readonly edits: readonly Edit[];
  /** stts, ctts, stss, stsc, stsz, stco or co64. */
  readonly sampleTables: Part;
}

/** The sample table boxes (§8.5, §8.6) of a track whose samples are all in fragments. */
const NO_SAMPLE_TABLES: Part = [
  fullBox('stts', 0, 0, u32(0)), // entry_count
  fullBox('stsc', 0, 0, u32(0)), // entry_count
  fullBox('stsz', 0, 0, [u32(0), u32(0)]), // sample_size, sample_count
  fullBox('stco', 0, 0, u32(0)), // entry_count
];

/** `place` 0 is the leading track: also audio without video then has the id and the timescale of the video. */
export const trackHeader = (track: TrackParameters, place: number): TrackHeader => ({
  trackId: place === 0 ? VIDEO_TRACK_ID : AUDIO_TRACK_ID,
  kind: track.kind,
  timescale: place === 0 || track.kind === 'video' ? VIDEO_TIMESCALE : track.sampleRate,
  ...(track.kind === 'video' ? shownSize(track) : { width: 0, height: 0 }),
  sampleEntry: ownCopy(sampleEntry(track)),
});

/** Display size: the width is scaled by the sample aspect ratio. */
export function shownSize(video: Extract<TrackParameters, { kind: 'video' }>): { width: number; height: number } {
  const { width, height, pixelAspect } = video;
  if (!pixelAspect || pixelAspect.vertical === 0) return { width, height };
  return { width: Math.min(0xffff, Math.round((width * pixelAspect.horizontal) / pixelAspect.vertical)), height };
}

/** `moov` of a movie whose samples are in fragments. `creationMs` is wall time; 0 if unknown. */
export const fragmentedMovie = (headers: readonly TrackHeader[], creationMs: number, userData: Part = []): Buffer =>
  box('moov', [
    mvhd(creationMs, 0, headers),
    userData,
    headers.map((header) =>
      trak(creationMs, 0, { header, mediaDuration: 0, edits: [], sampleTables: NO_SAMPLE_TABLES }),
    ),
    box('mvex', headers.map(trex)),
  ]);

/** `moov` of a complete movie. */
export const completeMovie = (tracks: readonly TrackContents[], creationMs: number, userData: Part): Buffer =>
  concat(completeMovieParts(tracks, creationMs, userData));

/** The same as a list of parts, because the tables of hours have megabytes. */
export function completeMovieParts(tracks: readonly TrackContents[], creationMs: number, userData: Part): Part {
  const durations = tracks.map((track) => track.edits.reduce((sum, edit) => sum + edit.duration, 0));
  const headers = tracks.map((track) => track.header);
  return nestedBox('moov', [
    mvhd(creationMs, Math.max(0, ...durations), headers),
    userData,
    tracks.map((track, i) => trak(creationMs, durations[i] ?? 0, track)),
  ]);
}

/** Seconds from 1904 (the epoch of these boxes) to 1970. */
const EPOCH_OFFSET_SECONDS = 2_082_844_800;

const fileTime = (wallMs: number): number => (wallMs === 0 ? 0 : Math.floor(wallMs / 1000) + EPOCH_OFFSET_SECONDS);

/** Identity matrix in 16.16 and 2.30 fixed point. */
const MATRIX: Part = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].map(u32);

/** Movie Header, §8.2.2. */
function mvhd(creationMs: number, duration: number, headers: readonly TrackHeader[]): Buffer {
  const time = fileTime(creationMs);
  const version = versionFor(time, duration);
  return fullBox('mvhd', version, 0, [
    uVersion(version, time), // creation_time
    uVersion(version, time), // modification_time
    u32(MOVIE_TIMESCALE), // timescale
    uVersion(version, duration), // duration
    u32(0x00010000), // rate 1.0
    u16(0x0100), // volume 1.0
    zeros(10), // reserved
    MATRIX,
    zeros(24), // pre_defined
    u32(Math.max(0, ...headers.map((header) => header.trackId)) + 1), // next_track_ID
  ]);
}

const trak = (creationMs: number, movieDuration: number, track: TrackContents): Part =>
  nestedBox('trak', [
    tkhd(creationMs, movieDuration, track.header),
    track.edits.length > 0 ? box('edts', elst(track.edits)) : [],
    nestedBox('mdia', [
      mdhd(creationMs, track.mediaDuration, track.header),
      hdlr(track.header),
      nestedBox('minf', [
        track.header.kind === 'video' ? vmhd() : smhd(),
        box('dinf', dref()),
        nestedBox('stbl', [stsd(track.header), track.sampleTables]),
      ]),
    ]),
  ]);

/** Track Header, §8.3.2. */
function tkhd(creationMs: number, duration: number, header: TrackHeader): Buffer {
  const time = fileTime(creationMs);
  const version = versionFor(time, duration);
  return fullBox('tkhd', version, 0x000003, [
    uVersion(version, time), // creation_time
    uVersion(version, time), // modification_time
    u32(header.trackId), // track_ID
    u32(0), // reserved
    uVersion(version, duration), // duration
    zeros(8), // reserved
    u16(0), // layer
    u16(0), // alternate_group
    u16(header.kind === 'audio' ? 0x0100 : 0), // volume
    u16(0), // reserved
    MATRIX,
    u32(header.width * 0x10000), // width, 16.16
    u32(header.height * 0x10000), // height, 16.16
  ]);
}

/** Edit List, §8.6.6. */
function elst(edits: readonly Edit[]): Buffer {
  // media_time is signed, so its double must fit into an unsigned field.
  const version = versionFor(...edits.flatMap((edit) => [edit.duration, edit.mediaTime * 2]));
  return fullBox('elst', version, 0, [
    u32(edits.length), // entry_count
    edits.map((edit) => [
      uVersion(version, edit.duration), // segment_duration
      edit.mediaTime < 0 ? Buffer.alloc(version === 1 ? 8 : 4, 0xff) : uVersion(version, edit.mediaTime), // media_time
      u32(0x00010000), // media_rate 1.0
    ]),
  ]);
}

/** Media Header, §8.4.2. */
function mdhd(creationMs: number, duration: number, header: TrackHeader): Buffer {
  const time = fileTime(creationMs);
  const version = versionFor(time, duration);
  return fullBox('mdhd', version, 0, [
    uVersion(version, time), // creation_time
    uVersion(version, time), // modification_time
    u32(header.timescale), // timescale
    uVersion(version, duration), // duration
    u16(0x55c4), // language: und
    u16(0), // pre_defined
  ]);
}

/** Handler Reference, §8.4.3. */
const hdlr = (header: TrackHeader): Buffer =>
  fullBox('hdlr', 0, 0, [
    u32(0), // pre_defined
    fourCc(header.kind === 'video' ? 'vide' : 'soun'), // handler_type
    zeros(12), // reserved
    Buffer.from(header.kind === 'video' ? 'Video\0' : 'Audio\0'), // name
  ]);

/** Video Media Header, §12.1.2. */
const vmhd = (): Buffer =>
  fullBox('vmhd', 0, 1, [
    u16(0), // graphicsmode: copy
    zeros(6), // opcolor
  ]);

/** Sound Media Header, §12.2.2. */
const smhd = (): Buffer =>
  fullBox('smhd', 0, 0, [
    u16(0), // balance: centre
    u16(0), // reserved
  ]);

/** Data Reference, §8.7.2: the media is in the same file. */
const dref = (): Buffer =>
  fullBox('dref', 0, 0, [
    u32(1), // entry_count
    fullBox('url ', 0, 0x000001, []), // self-contained
  ]);

/** Sample Description, §8.5.2. */
const stsd = (header: TrackHeader): Buffer =>
  fullBox('stsd', 0, 0, [
    u32(1), // entry_count
    header.sampleEntry,
  ]);

/** Track Extends, §8.8.3; unused defaults, because each fragment states everything. */
const trex = (header: TrackHeader): Buffer =>
  fullBox('trex', 0, 0, [
    u32(header.trackId), // track_ID
    u32(1), // default_sample_description_index
    u32(0), // default_sample_duration
    u32(0), // default_sample_size
    u32(0), // default_sample_flags
  ]);

/**
 * Brands of a fragmented file, which it keeps when it is completed. `iso5` is the first brand with default-base-is-moof, so that
 * no earlier one (`isom`, `avc1`) may be listed (§8.8.7.1); `iso6` has signed offsets in `trun`. Safari requires them among the
 * compatible brands.
 */
export const fragmentedFileType = (): Buffer => fileType('iso5', ['iso5', 'iso6', 'mp41']);

/** Brands of a file that starts with its `moov` and has no fragments. `iso4` has signed offsets in `ctts`. */
export const progressiveFileType = (): Buffer => fileType('isom', ['isom', 'iso4', 'mp41']);

/** File Type, §4.3. The minor version identifies files of this program. */
const fileType = (major: string, compatible: readonly string[]): Buffer =>
  box('ftyp', [
    fourCc(major), // major_brand
    fourCc('KNVR'), // minor_version
    compatible.map(fourCc), // compatible_brands
  ]);
