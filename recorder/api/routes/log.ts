// `/api/log`: shows and changes the log level without a restart.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { LOG_LEVELS } from '../../../base/log-level.ts';
import { callerOf } from '../../http/access.ts';
import { problemResponse } from '../../http/problem.ts';

const Level = z.enum(LOG_LEVELS, { error: `expected one of ${LOG_LEVELS.join(', ')}` });

const Logging = z
  .object({
    level: Level.describe('The lowest level that is logged at the moment.'),
    configured: Level.describe('The level in the configuration, which the next start uses.'),
  })
  .meta({ id: 'LogLevels', description: 'How much is logged.' });

const Change = z.object(
  { level: Level.meta({ examples: ['debug'] }) },
  { error: 'level: expected a JSON object with a level' },
);

const refusals = {
  403: problemResponse('This needs the role admin.'),
};

/** Examples for the OpenAPI document. */
const LOGGING = { level: 'info', configured: 'info' };

export const logRoutes: ApiRoutes = async (app, { deps: { logLevels, log } }) => {
  const state = (): z.output<typeof Logging> => ({ level: logLevels.level, configured: logLevels.configured });

  app.get(
    '/api/log',
    {
      config: { role: 'admin', examples: { 200: LOGGING } },
      schema: {
        operationId: 'getLogLevel',
        summary: 'The log level',
        tags: ['node'],
        response: { 200: Logging, ...refusals },
      },
    },
    async () => state(),
  );

  app.put(
    '/api/log',
    {
      config: { role: 'admin', audit: 'log-level', examples: { body: { level: 'debug' }, 200: LOGGING } },
      schema: {
        operationId: 'setLogLevel',
        summary: 'Change the log level',
        description: 'Lasts until the next start, or until the configuration names another level.',
        tags: ['node'],
        body: Change,
        response: {
          200: Logging,
          400: problemResponse('The level is missing or does not exist.'),
          ...refusals,
        },
      },
    },
    async (request) => {
      logLevels.level = request.body.level;
      log.warn({ level: request.body.level, by: callerOf(request).name }, 'the log level was changed');
      return state();
    },
  );
};
