// Notices that the configuration changed: its file, one of the files of `conf.d` beside it, or one that it names.

import { dirname, join } from 'node:path';
import { FileWatcher, type WatchOptions } from '../../base/file-watcher.ts';
import { configFiles } from './load.ts';

export class ConfigWatcher extends FileWatcher {
  /**
   * Calls `onChange` when the content of `file`, of `conf.d/*.yaml` beside it, or of one of the files that `others`
   * names has changed.
   */
  constructor(
    file: string,
    onChange: () => void,
    { others = () => [], ...options }: WatchOptions & { readonly others?: () => readonly string[] } = {},
  ) {
    // A directory that cannot be read counts as empty here; loading reports the error.
    const files = async (): Promise<string[]> => [...(await configFiles(file).catch(() => [file])), ...others()];
    super({ files, directories: [join(dirname(file), 'conf.d')] }, onChange, options);
  }
}
