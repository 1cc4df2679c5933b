// The footage of a node as it reports it to the other nodes of the cluster: which files, and where their parts are.

import { z } from 'zod';
import { LEAD_PICTURES } from '../mp4/parts.ts';
import type { Footage } from './footage.ts';
import { parsePath } from '../archive/disk/names.ts';

const Bytes = z.int().nonnegative();
const Ticks = z.number();

const Header = z.object({
  trackId: z.int(),
  kind: z.enum(['video', 'audio']),
  timescale: z.int().positive(),
  width: z.int().nonnegative(),
  height: z.int().nonnegative(),
  /** Base64. */
  sampleEntry: z.string(),
});

const Meta = z.object({
  cameraId: z.string(),
  runId: z.string(),
  sequence: z.int().nonnegative(),
  wallStartMs: z.number(),
  wallDurationMs: z.number().nonnegative(),
  mediaDurationMs: z.number().nonnegative(),
  gapBeforeMs: z.number(),
  lostPackets: z.number(),
  clock: z.enum(['unknown', 'settling', 'settled']),
  epoch: z.int().nonnegative().optional(),
});

const File = z
  .object({
    path: z.string(),
    isOpen: z.boolean(),
    sizeBytes: Bytes,
    /** Which of `headers`. */
    headers: z.int().nonnegative(),
    meta: Meta,
    unit: z.enum(['fragments', 'samples']),
    starts: z.array(Bytes).min(1),
    times: z.array(Ticks),
    shownFrom: Ticks,
    /** Missing in messages of older versions. */
    lead: z.array(Bytes).max(LEAD_PICTURES).default([]),
    complete: z.boolean(),
    /** Base64. Missing in messages of older versions. */
    index: z.string().optional(),
  })
  .refine(({ starts, times }) => starts.length === times.length, 'as many times as starts');

/** Files of the same camera mostly have the same headers: they are sent once. */
const FootageMessage = z.object({ headers: z.array(z.array(Header)), files: z.array(File) });

type FootageMessage = z.output<typeof FootageMessage>;

export function footageMessage(footage: readonly Footage[]): FootageMessage {
  const headers: FootageMessage['headers'] = [];
  const known = new Map<string, number>();
  const files = footage.map(({ path, isOpen, sizeBytes, parts, index }) => {
    const described = parts.headers.map((header) => ({
      ...header,
      sampleEntry: header.sampleEntry.toString('base64'),
    }));
    const key = JSON.stringify(described);
    if (!known.has(key)) known.set(key, headers.push(described) - 1);
    const { meta, unit, starts, times, shownFrom, lead, complete } = parts;
    const { tracks: _tracks, ...rest } = meta;
    return {
      path,
      isOpen,
      sizeBytes,
      headers: known.get(key) as number,
      meta: rest,
      unit,
      starts: [...starts],
      times: [...times],
      shownFrom,
      lead: [...lead],
      complete,
      index: index?.toString('base64'),
    };
  });
  return { headers, files };
}

/** The message of a node as its footage of a camera. */
export const footageOf = (nodeId: string, cameraId: string) =>
  FootageMessage.transform(({ headers, files }, context): Footage[] => {
    const read = headers.map((list) =>
      list.map((header) => ({ ...header, sampleEntry: Buffer.from(header.sampleEntry, 'base64') })),
    );
    return files.map(({ path, isOpen, sizeBytes, headers: number, index, meta, ...parts }) => {
      const named = read[number] ?? [];
      if (read[number] === undefined) context.addIssue(`${path}: there are no headers ${number}`);
      // The path becomes a part of addresses.
      if (parsePath(path)?.cameraId !== cameraId) context.addIssue(`${path} is not a file of ${cameraId}`);
      return {
        path,
        isOpen,
        sizeBytes,
        parts: { ...parts, headers: named, meta: { ...meta, tracks: [] } },
        nodeId,
        index: index === undefined ? undefined : Buffer.from(index, 'base64'),
      };
    });
  });
