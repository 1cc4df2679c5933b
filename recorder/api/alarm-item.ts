// Alarms and the log of the shift as answers have them.

import { z } from 'zod';
import { UnlistedNodes } from '../footage/elsewhere-item.ts';

/** Newest first: further ones are left out. */
export const MAX_LISTED = 1_000;

const Milliseconds = z.number().int().describe('Milliseconds since 1970.');

export const AlarmItem = z
  .object({
    id: z.string().describe('Unique on its node.'),
    node_id: z.string().describe('The node that raised it: acknowledge it there.'),
    camera_id: z.string().nullable().describe('null: it concerns the node.'),
    code: z.string().describe('The cause of a gap, the code of a warning, or node-lost.'),
    message: z.string().nullable().describe('The words of a warning.'),
    start_ms: Milliseconds,
    end_ms: z.number().int().nullable().describe('null: it lasts.'),
    count: z.number().int().describe('How often it came: again within ten minutes of its end is the same alarm.'),
    acknowledged: z
      .object({ by: z.string(), at_ms: Milliseconds, note: z.string().nullable() })
      .nullable()
      .describe('Who has taken note of it last.'),
  })
  .meta({ id: 'Alarm', description: 'What a person has to know about.' });

export const LogEntry = z
  .object({ id: z.string(), node_id: z.string(), by: z.string(), at_ms: Milliseconds, text: z.string() })
  .meta({ id: 'ShiftLogEntry', description: 'What a person wrote into the log of the shift.' });

export const AlarmList = z
  .object({
    alarms: z.array(AlarmItem).describe(`Newest first, at most ${MAX_LISTED}.`),
    log: z.array(LogEntry).describe(`The log of the shift, newest first, at most ${MAX_LISTED} entries.`),
    ...UnlistedNodes.shape,
  })
  .meta({ id: 'AlarmList', description: 'Alarms, and the log of the shift.' });
