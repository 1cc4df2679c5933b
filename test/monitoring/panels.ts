// Which questions of the dashboards a Prometheus has no answer to.

import { DASHBOARDS, panelsOf, readDashboard } from './dashboard-files.ts';
import { seriesIn, withoutVariables } from './promql.ts';
import type { Prometheus } from './prometheus.ts';

/** Scraped every second, four samples make a rate. */
const VALUES = { rate: '4s', range: '1m' };

/** As `dashboard / panel: question`; of the recorders' panels, or of those that ask what only an operator knows. */
export async function unanswered(prometheus: Prometheus, about: 'recorder' | 'operator'): Promise<readonly string[]> {
  const open: string[] = [];
  for (const name of DASHBOARDS) {
    for (const { title, targets } of panelsOf(readDashboard(name))) {
      for (const { expr } of targets) {
        const isOperators = seriesIn(expr).some((series) => series.startsWith('kube_nvr_operator_'));
        if (isOperators !== (about === 'operator')) continue;
        const count = await prometheus.numbersOf(withoutVariables(expr, VALUES));
        if (count === 0) open.push(`${name} / ${title}: ${expr}`);
      }
    }
  }
  return open;
}
