// What the OpenAPI document says of the playback listener, and what its routes answer alike.

import { z } from 'zod';
import { Bytes, type About } from '../http/openapi.ts';
import { problemResponse } from '../http/problem.ts';

const DESCRIPTION = `Recordings of a recorder node: files as they lie on the disk, playlists over them, and intervals of time.
docs/playback.md explains what is exact.`;

const FROM = 1_795_253_100;

export const aboutPlayback = (version: string): About => ({
  title: 'Recorder: playback',
  version,
  description: DESCRIPTION,
  tags: [{ name: 'playback', description: 'What is recorded, also while it is being written.' }],
  examples: {
    parameters: {
      camera_id: 'gate',
      file: 'gate.mp4',
      filename: '2026/11/21/Gate_gate_20261121_092500123.mp4',
      part: 12,
      size: 1_048_576,
      from: FROM,
      to: FROM + 600,
    },
  },
});

const bytes = (description: string, type: string) => ({ description, content: { [type]: { schema: Bytes } } });

/** Of a file of this type, or a range of it. */
export const rangesOf = (type: string) => ({
  200: bytes('The whole of it.', type),
  206: bytes('A range, or several as multipart/byteranges.', type),
  304: z.null().describe('It is what the caller has already.'),
  404: problemResponse('There is no such recording, or nothing can be played of it yet.'),
  412: problemResponse('It is not what If-Match or If-Unmodified-Since name.'),
  416: problemResponse('Range: it has fewer bytes.'),
});

/** Of an interval. */
export const intervalOf = (description: string, type: string) => ({
  200: bytes(description, type),
  307: z.null().describe('In a cluster, to a node that has footage of the interval where this one has none.'),
  404: problemResponse('Nothing is recorded in the interval.'),
  500: problemResponse('The archive on the disk cannot be read.'),
});
