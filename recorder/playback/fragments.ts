// An open file and one of its parts in, the fragments from there on out, one at a time: as they lie in the file, or
// made from the index of a file that has none.

import type { FileParts } from '../mp4/parts.ts';
import { readFragmentAt } from '../mp4/read-fragment.ts';
import { readSampleIndex } from '../mp4/sample-index.ts';
import type { ArchiveFile } from './archive-file.ts';
import { runsInFile, runsOf, type SampleRun } from './sample-runs.ts';

/** About a second of pictures. */
const PICTURES = 25;

/**
 * One run of samples a track, in decoding order; times are from the first picture of the file on. Up to `toPart`, or the
 * end of what is written.
 */
export async function* fragmentsFrom(
  file: ArchiveFile,
  parts: FileParts,
  part: number,
  toPart?: number,
): AsyncGenerator<readonly SampleRun[]> {
  const start = parts.starts[part] as number;
  if (parts.unit === 'samples') {
    const index = await readSampleIndex(file.read, file.sizeBytes);
    const end = parts.starts[toPart ?? parts.starts.length - 1] as number;
    for (let from = start; from < end; from += PICTURES) yield runsOf(index, from, Math.min(end, from + PICTURES));
    return;
  }
  const end = toPart === undefined ? Infinity : (parts.starts[toPart] as number);
  for (let at = start; at < end;) {
    const fragment = await readFragmentAt(file.read, file.sizeBytes, at);
    if (!fragment) return;
    yield runsInFile(fragment.tracks, fragment.payloadOffset);
    at = fragment.end;
  }
}
