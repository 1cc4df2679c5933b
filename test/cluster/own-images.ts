// The images of this repository as its checkout: what a cluster's nodes run under their names, whatever the tag.

import { dirname, join } from 'node:path';
import type { Images } from './kubelet/images.ts';

const ROOT = join(import.meta.dirname, '../..');

const program = (main: string) => ({
  entrypoint: [process.execPath, join(ROOT, main)],
  workingDir: ROOT,
  paths: [ROOT, dirname(process.execPath)],
});

export const OWN_IMAGES: Images = {
  'kube-nvr-operator': program('operator/main.ts'),
  'kube-nvr': program('recorder/main.ts'),
  'kube-nvr-recorder': program('recorder/main.ts'),
};
