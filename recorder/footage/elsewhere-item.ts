// The part of an answer that names footage on other nodes.

import { z } from 'zod';
import type { Elsewhere } from './holders.ts';

const RefusalFields = {
  http_status: z.number().int().describe('The status of its answer; 200 for an answer that cannot be read.'),
  problem: z.string().describe('The detail of its answer, or why its answer cannot be read.'),
};

const NodeRefusal = z.object({ node_id: z.string(), ...RefusalFields });

/** The part of a list that names the nodes whose entries it lacks. */
export const UnlistedNodes = z.object({
  nodes_away: z.array(z.string()).optional().describe('For scope=cluster: nodes that do not answer.'),
  nodes_refusing: z
    .array(NodeRefusal)
    .optional()
    .describe('For scope=cluster: nodes that answer, but not with their part of the list.'),
});

export const ElsewhereItem = z
  .object({
    node_id: z.string(),
    start_ms: z.number().int().describe('Milliseconds since 1970.'),
    end_ms: z.number().int(),
    online: z
      .boolean()
      .describe(
        'true: the node has footage of this time. false: it does not answer now, or refuses, and may have footage of this time.',
      ),
    refusal: z.object(RefusalFields).optional().describe('The node answers, but not with what it has of this time.'),
  })
  .meta({ id: 'Elsewhere', description: 'Footage that is on another node.' });

export const toElsewhere = ({
  nodeId,
  fromMs,
  toMs,
  isOnline,
  refused,
}: Elsewhere): z.output<typeof ElsewhereItem> => ({
  node_id: nodeId,
  start_ms: Math.round(fromMs),
  end_ms: Math.round(toMs),
  online: isOnline,
  ...(refused && { refusal: { http_status: refused.status, problem: refused.problem } }),
});
