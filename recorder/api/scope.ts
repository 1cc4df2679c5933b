// Whether a list is that of one node or of all nodes of the cluster.

import { z } from 'zod';

export const Scope = z.enum(['node', 'cluster'], 'expected node or cluster');
