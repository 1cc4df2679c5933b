// Which files the tests start as recorder and operator: in a run of hack/test what images and packages have, each program as one
// file (build-programs.ts), which starts with three quarters of the processor's time, or a third if nothing is compiled yet; else the
// sources.

import { join } from 'node:path';
import type { Program } from '../../build/image/layout.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Set by hack/test. */
const built = process.env['KUBE_NVR_PROGRAMS'];

/** The directory that both programs are in. */
export const PROGRAM_DIRECTORY = built ?? ROOT;

export const mainOf = (program: Program): string =>
  built === undefined ? join(ROOT, program, 'main.ts') : join(built, program, 'main.js');
