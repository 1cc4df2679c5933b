// The dashboards of charts/kube-nvr/files/dashboards, as Grafana reads them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './rule-files.ts';

interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat?: string;
  readonly instant: boolean;
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly datasource: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig: { readonly defaults: { readonly unit?: string } };
  readonly targets: readonly Target[];
  readonly transformations?: readonly {
    readonly id: string;
    readonly options: { readonly renameByName?: Readonly<Record<string, string>> };
  }[];
}

interface DashboardFile {
  readonly uid: string;
  readonly title: string;
  readonly links: readonly { readonly url: string }[];
  readonly panels: readonly Panel[];
  readonly templating: {
    readonly list: readonly {
      readonly name: string;
      readonly type: string;
      readonly query: string | { readonly query: string };
    }[];
  };
}

export const DASHBOARDS = ['fleet', 'camera'] as const;

export const readDashboard = (name: string): DashboardFile =>
  JSON.parse(readFileSync(join(ROOT, `charts/kube-nvr/files/dashboards/${name}.json`), 'utf8')) as DashboardFile;

/** Without the headings. */
export const panelsOf = ({ panels }: DashboardFile): readonly Panel[] => panels.filter(({ type }) => type !== 'row');
