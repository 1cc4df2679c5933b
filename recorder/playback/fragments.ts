// An open file and one of its parts in, the fragments from there on out, one at a time: as they lie in the file, or
// made from the index of a file that has none.

import type { FragmentSample, FragmentTrack } from '../mp4/fragment.ts';
import type { FileParts } from '../mp4/parts.ts';
import { readFragmentAt } from '../mp4/read-fragment.ts';
import type { ArchiveFile } from './archive-file.ts';
import { readIndex, runsOf, type SampleRun } from './sample-part.ts';

/** About a second of pictures. */
const PICTURES = 25;

/** One run of samples a track, in decoding order; times are from the first picture of the file on. */
export async function* fragmentsFrom(
  file: ArchiveFile,
  parts: FileParts,
  part: number,
): AsyncGenerator<readonly SampleRun[]> {
  const start = parts.starts[part] as number;
  if (parts.unit === 'samples') {
    const index = await readIndex(file);
    const end = parts.starts.at(-1) as number;
    for (let from = start; from < end; from += PICTURES) yield runsOf(index, from, Math.min(end, from + PICTURES));
    return;
  }
  for (let at = start; ;) {
    const fragment = await readFragmentAt(file.read, file.sizeBytes, at);
    if (!fragment) return;
    yield runsInFile(fragment.tracks, fragment.payloadOffset);
    at = fragment.end;
  }
}

function runsInFile(tracks: readonly FragmentTrack[], payloadOffset: number): SampleRun[] {
  let offset = payloadOffset;
  return tracks.map((track) => {
    let size = 0;
    for (let i = 0; i < track.samples.length; i++) size += (track.samples[i] as FragmentSample).size;
    const pieces = [{ offset, size }];
    offset += size;
    return { track, pieces };
  });
}
