// A protection as the API shows it: its schema.

import { z } from 'zod';

export const Protection = z
  .object({
    id: z.string(),
    camera_id: z.string(),
    from: z.iso.datetime({ offset: true }),
    to: z.iso.datetime({ offset: true }),
    from_ms: z.number().int().describe('The window in milliseconds since 1970, as in jobs.'),
    to_ms: z.number().int(),
    created: z.iso.datetime({ offset: true }),
    note: z.string().nullable(),
    until: z.iso.datetime({ offset: true }).nullable().describe('When the protection ends by itself; null: never.'),
    segments: z.number().int().describe('Number of segments that overlap the window now.'),
    node_id: z.string().optional().describe('In a cluster: the node whose footage it protects, and which removes it.'),
  })
  .meta({ id: 'Protection', description: 'A window of footage that retention does not remove.' });
