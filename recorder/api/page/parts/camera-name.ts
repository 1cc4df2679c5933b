// Names of cameras, also of those that are no longer configured.

import { cameras } from '../app/cameras.ts';

export const cameraName = (id: string): string => cameras.value?.find((camera) => camera.id === id)?.name ?? id;
