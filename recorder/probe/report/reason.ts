// The reason for a state of a camera, as in responses of the API.

import { z } from 'zod';

export const Reason = z
  .object({
    code: z.string().describe('Stable, for programs.'),
    message: z.string().describe('For people.'),
    todo: z.string().optional().describe('What to do, where that is known.'),
  })
  .meta({ id: 'Reason', description: 'Why it is so.' });
