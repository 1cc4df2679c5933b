// A session as the API shows it: its schema.

import { z } from 'zod';

export const Session = z
  .object({
    name: z.string().describe('Name of the user or the token.'),
    role: z.enum(['viewer', 'operator', 'admin']),
    may_export: z.boolean().describe('Whether the caller may export footage.'),
    cameras: z
      .array(z.string())
      .nullable()
      .describe('Ids of the cameras that the caller may see, in which * stands for any characters; null: all cameras.'),
    expires_at: z.string().nullable().describe('When the session ends unless it is used; null without a session.'),
    expires_ms: z.number().int().nullable(),
    time_zone: z.string().describe('IANA time zone of the site.'),
    server_time: z.string(),
    server_time_ms: z.number().int(),
    node: z.string(),
    version: z.string(),
    site: z.string().describe('Name of the site; may be empty.'),
    features: z
      .object({
        export: z.boolean(),
        timelapse: z.boolean(),
        thumbnails: z.boolean(),
        ptz: z.boolean(),
        discover: z.boolean(),
        cluster: z.boolean(),
      })
      .describe('What this node can do.'),
  })
  .meta({ id: 'Session', description: 'Who is signed in, and what the node offers.' });
