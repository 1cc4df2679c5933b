// What was told of a camera, by itself or by another system: an event as it is kept, one line of JSON, and as answers have it.

import { z } from 'zod';
import { CodedError } from '../../base/error.ts';
import { parseJson } from '../../base/parse-json.ts';

export const Happening = z
  .object({
    camera_id: z.string(),
    id: z.string().describe('Unique for its source and camera.'),
    source: z.string().describe('What told it, as that names itself; camera: the camera itself.'),
    type: z.string(),
    start_ms: z.number().int().describe('When it began, milliseconds since 1970.'),
    end_ms: z.number().int().nullable().describe('When it ended; null: it goes on, or its end was not told.'),
    reported_by: z.string().describe('Name of the token with which it was reported; onvif: the camera told it.'),
    received_ms: z.number().int().describe('When the recorder received it.'),
    data: z.record(z.string(), z.unknown()).optional().describe('What the source added, as it came.'),
  })
  .meta({ id: 'CameraEvent', description: 'An event of a camera that the camera or another system told.' });

export type Happening = z.output<typeof Happening>;

/** What makes two reports of a camera the same event (CloudEvents 1.0.2 §3.1.1). */
export const identityOf = ({ source, id }: Pick<Happening, 'source' | 'id'>): string => JSON.stringify([source, id]);

/** The source of what a camera tells itself. */
export const OF_CAMERA = 'camera';
/** The source of bookmarks: what a person has noted stays until a person removes it. */
export const OF_PERSON = 'person';

/** A line of the file: of one that was removed, the last line says by whom, and no answer has it. */
export type HappeningLine = Happening & { readonly removed_by?: string };

/** Whether `next` completes `known`, which has no end yet, or removes it. */
export const isChangeOf = (known: Pick<HappeningLine, 'end_ms' | 'removed_by'>, next: HappeningLine): boolean =>
  known.removed_by === undefined && (next.removed_by !== undefined || (known.end_ms === null && next.end_ms !== null));

/** Newest first. */
export const byStart = (a: Happening, b: Happening): number =>
  b.start_ms - a.start_ms || compare(a.camera_id, b.camera_id) || compare(a.source, b.source) || compare(a.id, b.id);

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Undefined for a line that a crash or a full disk left incomplete. */
export function parseHappening(line: string): HappeningLine | undefined {
  const found = parseJson(line) as Partial<Happening> | null | undefined;
  return typeof found === 'object' && typeof found?.start_ms === 'number' && typeof found.id === 'string'
    ? (found as HappeningLine)
    : undefined;
}

/** `not-kept`: the disk does not take it in time, or at all. `too-many`: the day of the camera is full. */
export class HappeningError extends CodedError<'not-kept' | 'too-many'> {
  override readonly name = 'HappeningError';
}
