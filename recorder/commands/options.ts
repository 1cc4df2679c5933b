// The options of a command line.

import { parseArgs, type ParseArgsConfig } from 'node:util';
import { messageOf } from '../../base/error.ts';
import { UsageError } from './usage-error.ts';

/** Like `parseArgs`; throws `UsageError` for arguments that `config` does not allow. */
export function parsedArgs<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (err) {
    throw new UsageError(messageOf(err), { cause: err });
  }
}
