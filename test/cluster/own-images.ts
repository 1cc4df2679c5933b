// The image of this repository as its checkout: what a cluster's nodes run under its name, whatever the tag.

import { dirname, join } from 'node:path';
import type { Images } from './kubelet/images.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A container that names another command runs that, as `[node, operator/main.ts]`. */
export const OWN_IMAGES: Images = {
  'kube-nvr': {
    entrypoint: [process.execPath, join(ROOT, 'recorder/main.ts')],
    workingDir: ROOT,
    paths: [ROOT, dirname(process.execPath)],
  },
};
