// Makes one audio track of a joined movie from the audio of recorded files. The audio of each part is placed relative to its
// pictures. Where parts meet, the frame before a gap is lengthened and an overlapping frame is dropped, so that errors do not add
// up.

import { AUDIO_TRACK_ID, type FragmentSample } from './fragment.ts';
import type { TrackHeader } from './movie.ts';
import type { TrackIndex } from './sample-index.ts';
import { SampleTable } from './sample-table.ts';
import { VIDEO_TIMESCALE } from './sample.ts';

/** Decoders need some audio before what is heard: one frame of AAC, 80 ms of Opus (RFC 7845 §4.2). */
const PREROLL_SECONDS = 0.08;
/** A longer frame is followed by a gap. */
const MAX_FRAME_SECONDS = 0.25;

/** Times are in video ticks of the part. */
interface SoundQuery {
  /** The range of the part that is shown. */
  readonly start: number;
  readonly end: number;
  /** Added to the part's times to get those of the movie. */
  readonly shift: number;
  readonly continues: boolean;
  /** This part is the start of the movie: earlier audio is hidden by its edit list and only primes the decoder. */
  readonly preroll: boolean;
}

export interface SoundSelection {
  /** Indices of the samples in the part. */
  readonly samples: Uint32Array;
  /** When each is heard, in ticks of the audio track. */
  readonly times: Float64Array;
}

export class AudioPlacer {
  readonly table = new SampleTable('audio');
  /** The header of the first part with audio. */
  header: TrackHeader | undefined;
  #lastTime = -Infinity;
  #lastDuration = 0;

  /** Selects the part's audio for the movie; undefined if its parameters differ from those of the audio before. */
  select(audio: TrackIndex, { start, end, shift, continues, preroll }: SoundQuery): SoundSelection | undefined {
    if (this.header && !this.header.sampleEntry.equals(audio.header.sampleEntry)) return undefined;
    const { dts, endDts, header } = audio;
    const { timescale } = header;
    const ticks = timescale / VIDEO_TIMESCALE;
    const from = start * ticks - (preroll ? PREROLL_SECONDS * timescale : 0);
    const samples: number[] = [];
    const times: number[] = [];
    for (let i = 0; i < dts.length; i++) {
      const at = dts[i] as number;
      if (at >= end * ticks) break;
      const duration = this.#durationOf(i + 1 < dts.length ? (dts[i + 1] as number) - at : endDts - at, timescale);
      if (!continues && at + duration / 2 < from) continue;
      const time = Math.round(at + shift * ticks);
      // Audio of the previous part may extend a little into this one.
      if (time <= this.#lastTime || time < this.#lastTime + this.#lastDuration / 2) continue;
      samples.push(i);
      times.push(time);
      this.#lastTime = time;
      this.#lastDuration = duration;
    }
    if (samples.length > 0) this.header ??= header;
    return { samples: Uint32Array.from(samples), times: Float64Array.from(times) };
  }

  /** Adds the selected samples [from, to), which are contiguous at `chunkOffset` of the movie's contents. */
  append(audio: TrackIndex, { samples, times }: SoundSelection, from: number, to: number, chunkOffset: number): void {
    const { dts, endDts, sizes, header } = audio;
    const chunk: FragmentSample[] = [];
    for (let a = from; a < to; a++) {
      const sample = samples[a] as number;
      const own = (sample + 1 < dts.length ? (dts[sample + 1] as number) : endDts) - (dts[sample] as number);
      const next =
        a + 1 < to ? (times[a + 1] as number) - (times[a] as number) : this.#durationOf(own, header.timescale);
      chunk.push({ size: sizes[sample] as number, duration: Math.max(1, next), compositionOffset: 0, sync: true });
    }
    if (chunk.length === 0) return;
    const track = { trackId: AUDIO_TRACK_ID, baseDecodeTime: times[from] as number, samples: chunk };
    this.table.append(track, chunkOffset);
  }

  /** The duration of a frame without the gap after it. */
  #durationOf(distance: number, timescale: number): number {
    const usual = this.#lastDuration > 0 ? this.#lastDuration : timescale / 50;
    return Math.max(1, Math.round(distance > MAX_FRAME_SECONDS * timescale ? usual : distance));
  }
}
