// The files of `conf.d` that the recorder and `recorder setup` write: formats and recognizes them, and changes cameras in them.

import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isMap, isNode, isSeq, parseDocument, stringify, visit, type Document, type YAMLMap } from 'yaml';

/** The settings of a camera as in a configuration file; see `CameraFile`. */
export type CameraSettings = Readonly<Record<string, unknown>>;

const HEADER = ` Made by POST /api/cameras, and changed and removed there. A comment makes it yours:
 the recorder does not touch it any more then.`;

export const cameraFileOf = (configFile: string, cameraId: string): string =>
  join(dirname(configFile), 'conf.d', `camera-${cameraId}.yaml`);

export function formatCameraFile(settings: CameraSettings): string {
  const header = HEADER.replaceAll(/^/gm, '#');
  return `${header}\n\n${stringify({ cameras: [settings] }, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

/** The first line of the file that `recorder setup` writes. */
export const SETUP_LINE = '# Written by recorder setup.\n';

/** Whether the cameras in the file may be changed: programs of ours wrote it, and a change loses nothing that people added. */
export const isOurs = (text: string): boolean => isCameraFile(text) || isSetupFile(text);

/**
 * The text of a file of ours after a camera in it was changed, or removed if `settings` is undefined; undefined if the file is
 * not needed any more. In a file of `recorder setup`, all else stays as it is, comments included.
 */
export function withCamera(text: string, cameraId: string, settings: CameraSettings | undefined): string | undefined {
  if (isCameraFile(text)) return settings && formatCameraFile(settings);
  const document = parseDocument(text);
  const list = document.get('cameras');
  const found = isSeq(list) ? list.items.findIndex((item) => isMap(item) && item.get('id') === cameraId) : -1;
  if (!isSeq(list) || found === -1) throw new Error(`no camera ${cameraId} in this file`);
  if (settings) changeMap(list.items[found] as YAMLMap, settings, document);
  else {
    list.items.splice(found, 1);
    if (list.items.length === 0) document.set('cameras', document.createNode([], { flow: true }));
  }
  return document.toString({ lineWidth: 0 });
}

function changeMap(map: YAMLMap, settings: CameraSettings, document: Document): void {
  const before = map.toJSON() as CameraSettings;
  for (const key of Object.keys(before)) if (!Object.hasOwn(settings, key)) map.delete(key);
  for (const [key, value] of Object.entries(settings)) {
    if (!isDeepStrictEqual(before[key], value))
      map.set(key, document.createNode(value, { aliasDuplicateObjects: false }));
  }
}

function isSetupFile(text: string): boolean {
  if (!text.startsWith(SETUP_LINE)) return false;
  const document = parseDocument(text);
  let isLinked = false;
  visit(document, {
    Alias() {
      isLinked = true;
    },
  });
  return document.errors.length === 0 && !isLinked;
}

/** Whether it is a file of one camera with nothing that a replacement would lose. */
function isCameraFile(text: string): boolean {
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
