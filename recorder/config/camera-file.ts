// The files of `conf.d` that the recorder writes itself, one for each camera: formats them, and recognizes files that it
// may replace.

import { dirname, join } from 'node:path';
import { isNode, parseDocument, stringify, visit } from 'yaml';

/** The settings of a camera as in a configuration file; see `CameraFile`. */
export type CameraSettings = Readonly<Record<string, unknown>>;

const HEADER = ` Made by POST /api/cameras, and changed and removed there. A comment makes it yours:
 the recorder does not touch it any more then.`;

/** The path of the file of a camera. */
export const cameraFileOf = (configFile: string, cameraId: string): string =>
  join(dirname(configFile), 'conf.d', `camera-${cameraId}.yaml`);

export function formatCameraFile(settings: CameraSettings): string {
  const header = HEADER.replaceAll(/^/gm, '#');
  return `${header}\n\n${stringify({ cameras: [settings] }, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

/** Whether the recorder wrote the file and it contains nothing that a replacement would lose. */
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
