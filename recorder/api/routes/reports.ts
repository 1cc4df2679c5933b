// `/api/reports/{month}`: what was recorded of each camera and day of a month, and whether the objectives were met. Signed.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Interval } from '../../../base/interval.ts';
import { GAP_CAUSES } from '../../contract/gap-cause.ts';
import { callerOf } from '../../http/access.ts';
import { asFormed } from '../../http/answers.ts';
import { problemResponse } from '../../http/problem.ts';
import { CameraIds } from '../../http/query.ts';
import { signedText } from '../../jobs/signed-text.ts';
import { reportPage } from '../../objectives/page.ts';
import { reportOf, type ReportedCamera } from '../../objectives/report.ts';
import type { ApiRoutes } from '../deps.ts';
import { KEY } from '../examples.ts';
import { askingOf, Timelines } from '../timelines.ts';
import { daysOfMonth } from '../zone-days.ts';
import { DayZone, Month, zoneOf } from './days.ts';
import { signingKey } from './keys.ts';

const Query = z.object({
  tz: DayZone,
  camera: CameraIds.optional(),
  format: z
    .enum(['json', 'html'], 'expected json or html')
    .default('json')
    .describe('html: one page for people, without other files.'),
});

const Sums = { recorded_ms: z.int(), missing_ms: z.int() };
const Causes = z.array(z.object({ cause: z.enum(GAP_CAUSES), missing_ms: z.int() }));
const Balance = {
  ...Sums,
  missing_ms: z.int().describe('Without excused_ms.'),
  excused_ms: z.int(),
  achieved_percent: z
    .number()
    .nullable()
    .describe('Rounded down to four decimals; null if nothing should have been recorded.'),
  budget_ms: z.int().describe('How much may be missing.'),
  budget_left_ms: z.int().describe('Below 0: the objective is not met.'),
  met: z.boolean(),
};

const ReportAnswer = z
  .object({
    month: z.string(),
    time_zone: z.string(),
    site: z.string(),
    from_ms: z.int(),
    to_ms: z.int(),
    silent_nodes: z
      .array(z.string())
      .describe('Nodes that did not answer: they may have footage of time that is missing here.'),
    objectives: z.array(
      z.object({
        name: z.string(),
        target_percent: z.number(),
        excused: z.array(z.enum(GAP_CAUSES)),
        cameras: z.int(),
        ...Balance,
        worst_cameras: z
          .array(z.object({ camera_id: z.string(), ...Balance }))
          .describe('The cameras with the most missing time, at most five.'),
      }),
    ),
    cameras: z.array(z.object({ camera_id: z.string(), name: z.string(), ...Sums, causes: Causes })),
    rows: z
      .array(z.object({ date: z.string(), camera_id: z.string(), ...Sums, causes: Causes }))
      .describe('One for each camera and day on which it was or should have been recorded.'),
    signature: z
      .object({
        algorithm: z.literal('Ed25519'),
        fingerprint: z.string(),
        public_key: z.string(),
        value: z.string().describe('Base64; of the bytes of the answer before ,"signature".'),
      })
      .describe('By the key of the node. recorder verify checks it.'),
  })
  .meta({ id: 'Report', description: 'What was recorded in a month. Footage that retention removed counts.' });

const GATE = {
  recorded_ms: 2_681_988_400,
  missing_ms: 11_600,
  causes: [{ cause: 'camera-unreachable' as const, missing_ms: 11_600 }],
};
const BALANCE = {
  recorded_ms: 2_681_988_400,
  missing_ms: 11_600,
  excused_ms: 0,
  achieved_percent: 99.9995,
  budget_ms: 2_682_000,
  budget_left_ms: 2_670_400,
  met: true,
};
const EXAMPLE = {
  month: '2026-10',
  time_zone: 'Europe/Berlin',
  site: 'Depot 7',
  from_ms: Date.UTC(2026, 8, 30, 22),
  to_ms: Date.UTC(2026, 9, 31, 23),
  silent_nodes: [],
  objectives: [
    {
      name: 'insurance',
      target_percent: 99.9,
      excused: ['stopped' as const],
      cameras: 1,
      ...BALANCE,
      worst_cameras: [{ camera_id: 'gate', ...BALANCE }],
    },
  ],
  cameras: [{ camera_id: 'gate', name: 'Front gate', ...GATE }],
  rows: [{ date: '2026-10-25', camera_id: 'gate', ...GATE, recorded_ms: 89_988_400 }],
  signature: { ...KEY, algorithm: 'Ed25519' as const, value: 'c2lnbmF0dXJl' },
};

/** Each is asked about a month: a node answers about so many within its time. */
const CAMERAS_AT_ONCE = 16;

export const reportRoutes: ApiRoutes = async (app, { deps }) => {
  const { jobs, site, nodeName, clock } = deps;
  const timelines = new Timelines(deps);

  /** All that the caller may see, by id: also those that other nodes record. */
  const namesFor = async (request: FastifyRequest, asked: readonly string[] | undefined) => {
    const { sees } = callerOf(request);
    const names = new Map(deps.cameras.list().map(({ status }) => [status.id, status.name]));
    for (const { id, name } of (await deps.cluster?.cameras())?.cameras ?? []) names.set(id, name);
    const ids = asked ? [...new Set(asked)] : [...names.keys()];
    return ids
      .filter((id) => sees(id))
      .sort()
      .map((id) => ({ id, name: names.get(id) ?? id }));
  };

  const accountsOf = async (
    request: FastifyRequest,
    wanted: readonly { id: string; name: string }[],
    month: Interval,
  ) => {
    const cameras: ReportedCamera[] = [];
    const silent = new Set<string>();
    for (let i = 0; i < wanted.length; i += CAMERAS_AT_ONCE) {
      const some = wanted.slice(i, i + CAMERAS_AT_ONCE);
      const accounts = await timelines.accounts(
        askingOf(request),
        some.map(({ id }) => id),
        month,
      );
      for (const [at, account] of accounts.entries()) {
        cameras.push({ ...(some[at] as (typeof some)[number]), account });
        for (const node of account.silent) silent.add(node);
      }
    }
    return { cameras, silent: [...silent].sort() };
  };

  app.get(
    '/api/reports/:month',
    {
      config: { role: 'viewer', cameras: 'filtered', changesAlways: true, examples: { 200: EXAMPLE } },
      // The text is signed as it is sent.
      serializerCompiler: asFormed,
      schema: {
        operationId: 'getReport',
        summary: 'What was recorded in a month, and whether the objectives were met',
        description:
          'One row for each camera and day, of all nodes together, in milliseconds: every node answers with equal numbers. With format=html, the answer is a page.',
        tags: ['archive'],
        params: z.object({ month: Month }),
        querystring: Query,
        response: {
          200: {
            description: 'The report.',
            content: { 'application/json': { schema: ReportAnswer }, 'text/html': { schema: z.string() } },
          },
          400: problemResponse('A parameter is not valid; the detail names it.'),
          500: problemResponse('The archive on the disk cannot be read.'),
          503: problemResponse('The key that signs reports cannot be used; the log of the node says why.'),
        },
      },
    },
    async (request, reply) => {
      const { month } = request.params;
      const { tz, camera, format } = request.query;
      const key = await signingKey(jobs);
      const timeZone = zoneOf(tz, site);
      const days = daysOfMonth(month, timeZone);
      const interval = { fromMs: days[0]?.fromMs ?? 0, toMs: days.at(-1)?.toMs ?? 0 };
      const accounts = await accountsOf(request, await namesFor(request, camera), interval);
      const report = reportOf({ month, timeZone, site: site.name, days, objectives: deps.objectives(), ...accounts });
      if (format === 'json') {
        const text = signedText(JSON.stringify(report).slice(0, -1), 'json', key);
        return reply.type('application/json; charset=utf-8').send(text);
      }
      const madeAt = new Date(clock.wallMs()).toLocaleString('en-GB', {
        timeZone,
        dateStyle: 'long',
        timeStyle: 'long',
      });
      const page = signedText(reportPage(report, { node: nodeName, madeAt }), 'html', key);
      return reply
        .type('text/html; charset=utf-8')
        .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; sandbox")
        .send(page);
    },
  );
};
