// Which texts are ids of cameras. An id is part of file names and addresses.

export const CAMERA_ID = /^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/;

export const isCameraId = (text: string): boolean => CAMERA_ID.test(text);
