// The part of an answer that names footage on other nodes.

import { z } from 'zod';
import type { Elsewhere } from '../peers/peer.ts';

export const ElsewhereItem = z
  .object({
    node_id: z.string(),
    start_ms: z.number().int().describe('Milliseconds since 1970.'),
    end_ms: z.number().int(),
    online: z
      .boolean()
      .describe(
        'true: the node has footage of this time. false: it does not answer now, and may have footage of this time.',
      ),
  })
  .meta({ id: 'Elsewhere', description: 'Footage that is on another node.' });

export const toElsewhere = ({ nodeId, fromMs, toMs, isOnline }: Elsewhere): z.output<typeof ElsewhereItem> => ({
  node_id: nodeId,
  start_ms: Math.round(fromMs),
  end_ms: Math.round(toMs),
  online: isOnline,
});
