// The answer of what was done at once.

import { z } from 'zod';

export const Done = z
  .object({ status: z.literal('ok'), message: z.string().describe('For people.') })
  .meta({ id: 'Done', description: 'It is done.' });
