// What stands in for the release before this one, as there is none yet: the charts of this checkout under an older version,
// with kinds that lack a field of today and have one that is gone.

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHART, KINDS_CHART } from '../chart/helm.ts';

export const PREVIOUS_VERSION = '0.0.9';
/** Of a RecorderPool's `spec.failover`: the kinds of the previous version lack it. */
export const NEW_FIELD = 'maxConcurrentMoves';
/** Of a Camera's `spec`: only the kinds of the previous version have it. */
export const OLD_FIELD = 'quality';

/** Writes both charts below `directory`, which it makes. */
export function previousCharts(directory: string): { readonly chart: string; readonly kinds: string } {
  const [chart, kinds] = [join(directory, 'kube-nvr'), join(directory, 'kube-nvr-crds')];
  cpSync(CHART, chart, { recursive: true });
  cpSync(KINDS_CHART, kinds, { recursive: true });
  const edit = (file: string, change: (text: string) => string): void => {
    const before = readFileSync(file, 'utf8');
    const after = change(before);
    if (after === before) throw new Error(`${file} is not as it was: the previous chart cannot be made from it`);
    writeFileSync(file, after);
  };
  edit(join(chart, 'Chart.yaml'), (text) => text.replace(/^(version|appVersion): .*$/gm, `$1: ${PREVIOUS_VERSION}`));
  edit(join(kinds, 'templates/crds.yaml'), (text) => withOldField(withoutField(text)));
  return { chart, kinds };
}

/** Takes the lines of the field away, with those below it that are further in. */
function withoutField(text: string): string {
  let depth: number | undefined;
  return text
    .split('\n')
    .filter((line) => {
      const indent = line.length - line.trimStart().length;
      if (depth !== undefined && indent > depth) return false;
      depth = line.trimStart().startsWith(`${NEW_FIELD}:`) ? indent : undefined;
      return depth === undefined;
    })
    .join('\n');
}

const withOldField = (text: string): string =>
  text.replace(/^( +)displayName:$/m, `$1${OLD_FIELD}:\n$1  type: string\n$&`);
