// What a camera says about time and is not believed, as responses show it.

import { z } from 'zod';

export const NotBelieved = z
  .object({
    witness: z
      .enum(['timestamps', 'video-reports', 'audio-reports', 'reports', 'rtp-info'])
      .describe(
        'timestamps: of the pictures, which are dated by arrival. video-reports, audio-reports: the sender reports of a stream contradict its packets. reports: those of both say wrongly how far picture and sound are apart. rtp-info: the same for RTP-Info.',
      ),
    message: z.string().describe('What contradicts it.'),
    since: z.iso.datetime({ offset: true }),
  })
  .meta({ id: 'NotBelieved', description: 'What a camera says about time, and is not believed.' });
