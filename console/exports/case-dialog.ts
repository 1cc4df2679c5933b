// The dialogue that makes a case: several cameras of one time as one signed ZIP file, which is kept until somebody ends it.

import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { go } from '../app/router.ts';
import { cameraName } from '../parts/camera-name.ts';
import { html } from '../parts/html.ts';
import { bookmarksIn } from './bookmarks.ts';
import { beginCase } from './jobs.ts';
import { WindowDialog, type TimeOfCameras } from './window-dialog.ts';

const MAX_NOTES = 4_000;

export function CaseDialog({ cameraIds, window, zone, onClose }: TimeOfCameras): VNode {
  const submit = async (fields: Readonly<Record<string, string>>): Promise<void> => {
    const about = Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== ''));
    await beginCase({ cameras: cameraIds, about: { ...about, keep: true }, ...window });
    go('exports', { list: 'cases' });
  };
  const notes = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    void bookmarksIn({ cameraIds, ...window }).then((found) => {
      const lines = found.map(
        ({ camera_id: id, start_ms: ms, reported_by: by, data }) =>
          `${zone.time(ms)} ${cameraName(id)}: ${[data?.['name'], data?.['note']].filter(Boolean).join(', ')} (${by})`,
      );
      // What was typed meanwhile stays.
      if (notes.current?.value === '') notes.current.value = lines.join('\n').slice(0, MAX_NOTES);
    });
  }, []);
  const props = { cameraIds, window, zone, onClose, submit };
  return html`<${WindowDialog} ...${props} title="Make a case" className="case" action="Make the case">
    <label>Name<input name="name" required maxlength="200" pattern=".*\\S.*" autofocus autocomplete="off" /></label>
    <label>Number<input name="number" maxlength="100" autocomplete="off" /></label>
    <label>Reason<input name="reason" maxlength="500" autocomplete="off" /></label>
    <label>Notes<textarea ref=${notes} name="notes" maxlength=${MAX_NOTES} rows="3"></textarea></label>
    <p class="quiet">
      One signed ZIP file with the video of each camera, what is missing, and a report. It is kept until somebody ends
      the case.
    </p>
  <//>`;
}
