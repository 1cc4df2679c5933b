// The files of `conf.d` that the recorder itself writes, one a camera: settings in, text out; and text in, whether it is
// still what the recorder may replace.

import { dirname, join } from 'node:path';
import { isNode, parseDocument, stringify, visit } from 'yaml';

/** A camera in the words of the file, as `CameraFile` has them. */
export type CameraSettings = Readonly<Record<string, unknown>>;

const HEADER = ` Made by POST /api/cameras, and changed and removed there. A comment makes it yours:
 the recorder does not touch it any more then.`;

/** Where a camera's own file is. */
export const cameraFileOf = (configFile: string, cameraId: string): string =>
  join(dirname(configFile), 'conf.d', `camera-${cameraId}.yaml`);

export function formatCameraFile(settings: CameraSettings): string {
  const header = HEADER.replaceAll(/^/gm, '#');
  return `${header}\n\n${stringify({ cameras: [settings] }, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

/** Whether the recorder made a file, and nobody wrote anything into it that would be lost with it. */
export function isOurs(text: string): boolean {
  const document = parseDocument(text);
  if (document.errors.length > 0 || document.commentBefore !== HEADER || document.comment) return false;
  let isCommented = false;
  visit(document, {
    Node(_key, { comment, commentBefore }) {
      if (comment || commentBefore) isCommented = true;
    },
    Pair(_key, { key }) {
      if (isNode(key) && (key.comment || key.commentBefore)) isCommented = true;
    },
    Alias() {
      isCommented = true;
    },
  });
  const value = document.toJS() as { readonly cameras?: unknown } | null;
  return (
    !isCommented &&
    Object.keys(value ?? {}).join() === 'cameras' &&
    Array.isArray(value?.cameras) &&
    value.cameras.length === 1
  );
}
