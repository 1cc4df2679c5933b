// Reads the fragments of an open file from one of its parts on, one at a time. For a file without fragments, they are made
// from its sample index.

import type { FileParts } from '../mp4/parts.ts';
import { readFragmentAt } from '../mp4/read-fragment.ts';
import { readSampleIndex } from '../mp4/sample-index.ts';
import type { PlayedFile } from './archive-file.ts';
import { runsBetween, runsInFile, type SampleRun } from './sample-runs.ts';

/**
 * Each fragment as one run of samples per track, in decoding order. Times count from the first picture of the file. Ends
 * before `toPart`, or at the end of the written part of the file.
 */
export async function* fragmentsFrom(
  file: PlayedFile,
  parts: FileParts,
  part: number,
  toPart?: number,
): AsyncGenerator<readonly SampleRun[]> {
  const start = parts.starts[part] as number;
  if (parts.unit === 'samples') {
    const index = await readSampleIndex(file.read, file.sizeBytes);
    const end = parts.starts[toPart ?? parts.starts.length - 1] as number;
    yield* runsBetween(index, start, end);
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
