// What a segment will be. It is decided when the segment begins, before there is a file.

import type { SegmentMeta } from '../../mp4/meta.ts';
import type { TrackParameters } from '../../mp4/sample.ts';
import { SegmentWriter } from '../../mp4/segment.ts';
import type { RecordFormat } from '../catalogue/segment.ts';
import type { SegmentName } from '../disk/names.ts';

export interface SegmentPlan {
  readonly format: RecordFormat;
  readonly name: SegmentName;
  readonly meta: SegmentMeta;
  /** Describe the file as it will be when every fragment handed out has been written. */
  readonly tables: SegmentWriter;
}

/** The tables of a file grow to some 200 KB: the next file reuses their memory. */
export class TablePool {
  #spare: SegmentWriter | undefined;

  /** Throws Mp4Error when the tracks cannot be described in a file. */
  take(tracks: readonly TrackParameters[], meta: SegmentMeta): SegmentWriter {
    const tables = this.#spare;
    this.#spare = undefined;
    if (!tables) return new SegmentWriter(tracks, meta);
    tables.reset(tracks, meta);
    return tables;
  }

  giveBack(tables: SegmentWriter): void {
    // A long stall leaves many; one is enough.
    this.#spare = tables;
  }
}
