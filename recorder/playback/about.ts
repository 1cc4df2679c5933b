// The description of the playback listener for its OpenAPI document, and answers that its routes share.

import { z } from 'zod';
import { Bytes, type About } from '../http/openapi.ts';
import { problemResponse } from '../http/problem.ts';

const DESCRIPTION = `Recordings of a recorder node: files of the archive, HLS playlists, and footage of an interval as one movie.
docs/playback.md explains their precision.`;

const FROM = 1_795_253_100;

export const aboutPlayback = (version: string): About => ({
  title: 'Recorder: playback',
  version,
  description: DESCRIPTION,
  tags: [{ name: 'playback', description: 'Recordings, including those still being written.' }],
  parameters: {
    camera_id: 'gate',
    file: 'gate.mp4',
    filename: '2026/11/21/Gate_gate_20261121_092500123.mp4',
    part: 12,
    size: 1_048_576,
    from: FROM,
    to: FROM + 600,
  },
});

const bytes = (description: string, type: string) => ({ description, content: { [type]: { schema: Bytes } } });

/** Answers of a route that sends a file of this type, or a range of it. */
export const rangesOf = (type: string) => ({
  200: bytes('The whole file.', type),
  206: bytes('A range, or several as multipart/byteranges.', type),
  304: z.null().describe('The caller already has this file.'),
  404: problemResponse('There is no such recording, or none of it can be played yet.'),
  412: problemResponse('The file does not match If-Match or If-Unmodified-Since.'),
  416: problemResponse('The range begins after the end of the file.'),
});

/** Answers of a route that sends the footage of an interval. */
export const intervalOf = (description: string, type: string) => ({
  200: bytes(description, type),
  404: problemResponse('Nothing is recorded in the interval.'),
  500: problemResponse('The archive on the disk cannot be read.'),
  503: problemResponse('In a cluster: all footage of the interval is on a node that does not answer.'),
});
