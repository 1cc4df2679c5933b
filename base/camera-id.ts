// The syntax of camera ids, and the ids under which their footage is kept. An id is part of file names and URLs.

export const CAMERA_ID = /^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/;

export const isCameraId = (text: string): boolean => CAMERA_ID.test(text);

/** No camera id ends with this, and URLs need not escape it (RFC 3986 §2.3). */
const PREVIEW = '~preview';

/** The id under which the footage of a camera's preview is kept: `gate~preview`. */
export const previewId = (cameraId: string): string => cameraId + PREVIEW;

/** The id of the camera to which the footage with this id belongs. */
export const cameraOfFootage = (id: string): string => (id.endsWith(PREVIEW) ? id.slice(0, -PREVIEW.length) : id);

/** Whether this is a valid id of footage: that of a camera, or of its preview. */
export const isFootageId = (text: string): boolean => isCameraId(cameraOfFootage(text));
