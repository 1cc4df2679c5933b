// Where people sign in, as the API shows it: its schema; and why somebody could not, as the page is told.

import { z } from 'zod';

export const SignInWays = z
  .object({
    issuers: z.array(
      z.object({
        name: z.string().describe('For GET /api/sign-in/{issuer}.'),
        label: z.string().describe('For people.'),
      }),
    ),
  })
  .meta({ id: 'SignInWays', description: 'Where people can sign in, besides with name and password.' });

/** In the address of the sign-in page; later versions may add more. */
export type SignInProblem = 'expired' | 'no-role' | 'refused' | 'away' | 'invalid';
