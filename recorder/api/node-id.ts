// The name of a node in requests and answers of the API.

import { z } from 'zod';

export const NodeID = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'expected the name of a node');
