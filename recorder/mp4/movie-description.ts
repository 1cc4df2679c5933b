// Makes a `udta` box with the metadata list that ffprobe, VLC and file managers show (QuickTime File Format, "Metadata").

import { box, concat, fourCc, fullBox, u32, zeros, type Part } from './box.ts';

interface MovieDescription {
  readonly title: string;
  /** ISO 8601. */
  readonly date: string;
  /** Text for people. */
  readonly comment: string;
  /** JSON for programs. */
  readonly details: string;
  readonly writer: string;
}

/** Longer texts are truncated: a list of gaps may have thousands of lines. */
const MAX_TEXT_BYTES = 256 * 1024;

export const movieDescription = ({ title, date, comment, details, writer }: MovieDescription): Part =>
  box(
    'udta',
    fullBox('meta', 0, 0, [
      fullBox('hdlr', 0, 0, [
        u32(0), // pre_defined
        fourCc('mdir'), // handler_type
        fourCc('appl'), // manufacturer
        zeros(9), // reserved, name
      ]),
      box('ilst', [
        text('\u00a9nam', title),
        text('\u00a9day', date),
        text('\u00a9too', writer),
        text('\u00a9cmt', comment),
        text('desc', details),
      ]),
    ]),
  );

const text = (type: string, value: string): Buffer =>
  box(
    type,
    box('data', [
      u32(1), // type: UTF-8
      u32(0), // locale
      concat([Buffer.from(value, 'utf8').subarray(0, MAX_TEXT_BYTES)]),
    ]),
  );
