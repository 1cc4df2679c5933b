// The answer to a request that was carried out at once.

import { z } from 'zod';

export const Done = z
  .object({ status: z.literal('ok'), message: z.string().describe('For people.') })
  .meta({ id: 'Done', description: 'It is done.' });
