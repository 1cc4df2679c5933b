// Warnings as answers show them: problems that need attention although the node works.

import { z } from 'zod';
import type { Caller } from '../http/caller.ts';
import type { Warning as NodeWarning } from '../../base/reason.ts';
import { todoOf } from './todo.ts';

export const Warning = z
  .object({
    code: z.string().describe('Stable, for programs.'),
    detail: z.string(),
    todo: z.string().optional().describe('What to do, where that is known.'),
    camera_id: z.string().optional().describe('The camera; absent when the warning is about the node.'),
  })
  .meta({ id: 'Warning', description: 'A problem that needs attention although the node works.' });

/** Warnings about the node, and about the cameras that the caller may see. */
export const warningsFor = ({ sees }: Caller, warnings: () => readonly NodeWarning[]): z.output<typeof Warning>[] =>
  warnings()
    .filter(({ cameraId }) => cameraId === undefined || sees(cameraId))
    .map(({ code, message, cameraId }) => {
      const todo = todoOf(code);
      return {
        code,
        detail: message,
        ...(todo === undefined ? {} : { todo }),
        ...(cameraId === undefined ? {} : { camera_id: cameraId }),
      };
    });
