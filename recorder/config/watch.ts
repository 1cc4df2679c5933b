// Notices that the configuration changed: its file, or one of the files of `conf.d` beside it.

import { dirname, join } from 'node:path';
import { FileWatcher, type WatchOptions } from '../../base/file-watcher.ts';
import { configFiles } from './load.ts';

export class ConfigWatcher extends FileWatcher {
  /** Calls `onChange` when the content of `file` or of `conf.d/*.yaml` beside it has become another one. */
  constructor(file: string, onChange: () => void, options: WatchOptions = {}) {
    // A directory that cannot be read counts as empty here; loading says what is wrong with it.
    const files = (): Promise<string[]> => configFiles(file).catch(() => [file]);
    super({ files, directories: [join(dirname(file), 'conf.d')] }, onChange, options);
  }
}
