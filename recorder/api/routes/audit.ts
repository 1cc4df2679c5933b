// `GET /api/audit`: who did what on this node, and which footage was fetched.

import { z } from 'zod';
import { ACTIONS } from '../../audit/entry.ts';
import { AUDIT_CURSOR } from '../../audit/read.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import type { ApiRoutes } from '../deps.ts';
import { EpochSeconds, queryNumber } from '../../http/query.ts';
import { JOB_ID } from '../examples.ts';

const MAX_LINES = 1_000;
const LIMIT = `expected a whole number from 1 to ${MAX_LINES}`;

const Query = z.object({
  from: EpochSeconds.optional().describe('Lines from this time on, seconds since 1970.'),
  to: EpochSeconds.optional().describe('Lines before this time, seconds since 1970.'),
  who: z.string().max(300, 'expected at most 300 characters').optional().describe('Name of the token.'),
  what: z.enum(ACTIONS, 'expected one of the actions in docs/audit.md').optional(),
  camera: z
    .string()
    .max(63, 'expected the id of a camera')
    .optional()
    .describe('Id of a camera, which may have been removed since.'),
  limit: queryNumber(z.int(LIMIT).min(1, LIMIT).max(MAX_LINES, LIMIT))
    .default(100)
    .describe('At most this many lines; 100 by default.'),
  cursor: z
    .string()
    .regex(AUDIT_CURSOR, 'expected the value of next in an answer')
    .optional()
    .describe('Where the next page begins: `next` of the previous answer.'),
});

const Line = z
  .looseObject({
    n: z.number().int().describe('Number of the line, counted over all files.'),
    time: z.iso.datetime(),
    node: z.string(),
    what: z.string(),
    prev: z.string().describe('SHA-256 of the previous line.'),
  })
  .meta({ id: 'AuditLine', description: 'A line as it is in the files; docs/audit.md describes all fields.' });

const Answer = z
  .object({
    lines: z.array(Line).describe('Newest first. A page may be empty although there is a next one.'),
    next: z.string().nullable().describe('The cursor for older lines; null when there are none.'),
    end: z
      .object({ n: z.number().int(), sha256: z.string() })
      .describe('The last line that was written. Keep it elsewhere to detect later whether lines were changed.'),
  })
  .meta({ id: 'AuditPage', description: 'Lines of the audit.' });

/** Examples for the OpenAPI document. */
const AUDIT_LINE = {
  n: 4_711,
  time: '2026-11-21T09:35:12.000Z',
  node: 'rack-1',
  what: 'export',
  caller: 'ops',
  role: 'operator',
  method: 'POST',
  route: '/api/archive/:camera_id/export',
  path: '/api/archive/gate/export',
  camera: 'gate',
  from: '2026-11-21T09:25:00.000Z',
  to: '2026-11-21T09:35:00.000Z',
  job: JOB_ID,
  address: '10.0.0.7',
  status: 202,
  outcome: 'done',
  requestId: '6ad25f8b-db37-449d-b999-aed8fcac6bf0',
  prev: '7d2f0f2b3b6c9b6a1f0a5c3e0d8b7c6a5f4e3d2c1b0a99887766554433221100',
};

export const auditRoutes: ApiRoutes = async (app, { deps }) => {
  const { reader } = deps.audit;
  app.get(
    '/api/audit',
    {
      config: {
        role: 'admin',
        audit: 'read-audit',
        examples: {
          200: {
            lines: [AUDIT_LINE],
            next: '4001-250112',
            end: { n: 4_712, sha256: '0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0' },
          },
        },
      },
      schema: {
        operationId: 'listAudit',
        summary: 'Who did what on this node, and which footage was fetched',
        description:
          'One request reads a limited part of the files: repeat it with cursor=next until next is null. Each node has its own audit.',
        tags: ['node'],
        querystring: Query,
        response: {
          200: Answer,
          400: problemResponse('A parameter is not valid; the detail names it.'),
          403: problemResponse('This needs the role admin, for all cameras.'),
          503: problemResponse('The files cannot be read; the detail says why.'),
        },
      },
    },
    async ({ query }) => {
      const { from = -Infinity, to = Infinity, ...rest } = query;
      const { lines, next = null } = await readable(reader.read({ ...rest, fromMs: from * 1000, toMs: to * 1000 }));
      return { lines: [...lines], next, end: reader.end };
    },
  );
};

async function readable<T>(page: Promise<T>): Promise<T> {
  try {
    return await page;
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    throw new ApiError(503, 'audit-unreadable', `the audit cannot be read (${code})`, { cause: err });
  }
}
