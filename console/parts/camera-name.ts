// Names of cameras, also of those that are no longer configured.

import { cameras } from '../app/cameras.ts';

const PREVIEW = '~preview';

/** The id of the camera whose footage this is: the footage of a preview has an id of its own. */
export const cameraOfFootage = (id: string): string => (id.endsWith(PREVIEW) ? id.slice(0, -PREVIEW.length) : id);

/** The name of a camera; of the footage of a preview `Gate (preview)`. */
export function cameraName(id: string): string {
  const cameraId = cameraOfFootage(id);
  const name = cameras.value?.find((camera) => camera.id === cameraId)?.name ?? cameraId;
  return cameraId === id ? name : `${name} (preview)`;
}
