// Which texts are ids of cameras, and the ids under which their footage is kept. An id is part of file names and addresses.

export const CAMERA_ID = /^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/;

export const isCameraId = (text: string): boolean => CAMERA_ID.test(text);

/** No camera id has this end, and addresses need not escape it (RFC 3986 §2.3). */
const PREVIEW = '~preview';

/** The id under which the footage of a camera's preview is kept: `gate~preview`. */
export const previewId = (cameraId: string): string => cameraId + PREVIEW;

/** The camera of which the footage with this id is. */
export const cameraOfFootage = (id: string): string => (id.endsWith(PREVIEW) ? id.slice(0, -PREVIEW.length) : id);

/** Whether footage can have this id: that of a camera, or of its preview. */
export const isFootageId = (text: string): boolean => isCameraId(cameraOfFootage(text));
