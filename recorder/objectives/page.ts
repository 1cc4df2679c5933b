// The report of a month as one page for people who do not run the recorder: it needs no other file, can be printed and sent.

import { escapeXml } from '../../base/xml.ts';
import { meaningOf } from '../contract/gap-cause.ts';
import type { Report } from './report.ts';

/** What no node can know. */
interface PageOptions {
  /** The node that made the page, and when: local time of the report's zone. */
  readonly node: string;
  readonly madeAt: string;
}

export function reportPage(report: Report, { node, madeAt }: PageOptions): string {
  const { month, site, time_zone: timeZone, objectives, cameras, rows, silent_nodes: silent } = report;
  const names = new Map(cameras.map((camera) => [camera.camera_id, camera.name]));
  const lacking = rows.filter(({ missing_ms }) => missing_ms > 0);
  const causes = [...new Set(lacking.flatMap((row) => row.causes.map(({ cause }) => cause)))].sort();
  const title = `Recording report ${month}${site === '' ? '' : `, ${site}`}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeXml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeXml(title)}</h1>
<p>Made by ${escapeXml(node)} on ${escapeXml(madeAt)}. Days are those of ${escapeXml(timeZone)}.</p>
${silent.length === 0 ? '' : `<p class="bad">Not complete: ${escapeXml(silent.join(', '))} did not answer. Time that seems missing may be recorded there.</p>`}
${objectives.map(objectivePart).join('\n')}
<h2>Cameras</h2>
${table(
  ['Camera', 'Recorded', 'Missing', 'Of the time that should be recorded'],
  cameras.map((camera) => [
    camera.name,
    lengthOf(camera.recorded_ms),
    lengthOf(camera.missing_ms),
    percentOf(camera.recorded_ms, camera.missing_ms),
  ]),
)}
<h2>Days with missing time</h2>
${
  lacking.length === 0
    ? '<p>None.</p>'
    : table(
        ['Day', 'Camera', 'Missing', 'Why'],
        lacking.map((row) => [
          row.date,
          names.get(row.camera_id) ?? row.camera_id,
          lengthOf(row.missing_ms),
          row.causes.map(({ cause, missing_ms }) => `${cause} ${lengthOf(missing_ms)}`).join(', '),
        ]),
      )
}
${causes.length === 0 ? '' : `<h2>Causes</h2>\n<dl>${causes.map((cause) => `<dt>${cause}</dt><dd>${escapeXml(meaningOf(cause))}</dd>`).join('\n')}</dl>`}
<p class="small">Missing: the camera should have been recorded, and there are no pictures. Footage that was deleted because of its age
counts as recorded. The last line of this file is a signature: <code>recorder verify</code> checks that nothing was changed.</p>
</body>
</html>`;
}

function objectivePart(objective: Report['objectives'][number]): string {
  const { name, target_percent: target, achieved_percent: achieved, budget_left_ms: leftMs, excused } = objective;
  const result =
    achieved === null
      ? '<p>Nothing should have been recorded.</p>'
      : `<p class="${objective.met ? 'good' : 'bad'}"><strong>${objective.met ? 'Met' : 'Not met'}: ${achieved} % recorded</strong>,
${target} % promised. ${lengthOf(objective.missing_ms)} missing, ${lengthOf(objective.budget_ms)} allowed: ${
          leftMs < 0 ? `${lengthOf(-leftMs)} too much` : `${lengthOf(leftMs)} left`
        }.</p>`;
  const worst = objective.worst_cameras
    .map((camera) => `${camera.camera_id} (${lengthOf(camera.missing_ms)})`)
    .join(', ');
  return `<h2>${escapeXml(name)}</h2>
${result}
<p>${objective.cameras} ${objective.cameras === 1 ? 'camera' : 'cameras'}.${worst === '' ? '' : ` Most missing: ${escapeXml(worst)}.`}
Not counted: ${excused.length === 0 ? 'nothing' : `${escapeXml(excused.join(', '))} (${lengthOf(objective.excused_ms)})`}.</p>`;
}

const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<table><thead><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr></thead><tbody>
${rows.map((row) => `<tr>${row.map((cell) => `<td>${escapeXml(cell)}</td>`).join('')}</tr>`).join('\n')}
</tbody></table>`;

/** Such as 3 h 02 min, 2 min 05 s, 1.234 s: to the millisecond where it is short. */
function lengthOf(ms: number): string {
  const two = (n: number): string => String(n).padStart(2, '0');
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${ms / 1_000} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

/** Rounded down: what is not whole is not 100 %. */
const percentOf = (recordedMs: number, missingMs: number): string =>
  recordedMs + missingMs === 0 ? '' : `${Math.floor((recordedMs / (recordedMs + missingMs)) * 1e5) / 1e3} %`;

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}' +
  'table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #ccc}' +
  '.good strong{color:#0a5c2b}.bad,.bad strong{color:#9b1c1c}.small{font-size:.85rem}dt{font-weight:600}tr{break-inside:avoid}';
