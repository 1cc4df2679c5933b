// Why something of a camera is as it is, as answers say it.

import { z } from 'zod';

export const Reason = z
  .object({ code: z.string().describe('Stable, for programs.'), message: z.string().describe('For people.') })
  .meta({ id: 'Reason', description: 'Why it is so.' });
