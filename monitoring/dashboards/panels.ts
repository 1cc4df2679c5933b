// Building blocks of dashboards: panels with their queries, laid out in rows. Types and enums are Grafana's.

import {
  AxisPlacement,
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  FieldColorModeId,
  GraphDrawStyle,
  LegendDisplayMode,
  LineInterpolation,
  MappingType,
  PercentChangeColorMode,
  SortOrder,
  StackingMode,
  TableCellDisplayMode,
  ThresholdsMode,
  TooltipDisplayMode,
  VisibilityMode,
  type Dashboard,
  type FieldConfig,
  type Panel,
  type RowPanel,
  type ValueMapping,
} from '@grafana/schema';
import type { Options as StateTimelineOptions } from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as TableOptions } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type {
  FieldConfig as TimeSeriesFieldConfig,
  Options as TimeSeriesOptions,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

/** One query of a panel. */
interface Query {
  readonly expr: string;
  /** Such as `{{camera}}`. */
  readonly legend?: string;
}

/** Colours by threshold; the first colour is that of all smaller values. */
export type Steps = readonly [first: string, ...further: readonly (readonly [from: number, color: string])[]];

/** The texts to show instead of numbers. */
export type Texts = Readonly<Record<string, readonly [text: string, color: string]>>;

interface Common {
  readonly title: string;
  /** The question that the panel answers, and how to interpret it. */
  readonly description: string;
  readonly unit: string;
  /** In columns, of 24. */
  readonly width: number;
  readonly decimals?: number;
  readonly min?: number;
  readonly max?: number;
  readonly steps?: Steps;
  readonly texts?: Texts;
  /** Shown if there is no data. */
  readonly noValue?: string;
}

/** A panel with its size, for `layOut`. */
interface Sized {
  readonly panel: Panel;
  readonly width: number;
  readonly height: number;
}

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const;
const HEIGHT = { stat: 4, graph: 8 } as const;

/** One number per query: the current value. */
export function stat(
  options: Common & { readonly queries: readonly Query[]; readonly textMode?: BigValueTextMode },
): Sized {
  const { queries, textMode = BigValueTextMode.Auto } = options;
  const shown: StatOptions = {
    reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    colorMode: BigValueColorMode.Background,
    graphMode: BigValueGraphMode.None,
    justifyMode: BigValueJustifyMode.Auto,
    orientation: 'auto' as StatOptions['orientation'],
    percentChangeColorMode: PercentChangeColorMode.Standard,
    showPercentChange: false,
    textMode,
    wideLayout: true,
  };
  return sized(options, HEIGHT.stat, {
    type: 'stat',
    options: { ...shown },
    fieldConfig: { defaults: { ...defaultsOf(options), color: { mode: FieldColorModeId.Thresholds } }, overrides: [] },
    targets: targets(queries, 'instant'),
  });
}

/** Values over time. */
export function graph(
  options: Common & {
    readonly queries: readonly Query[];
    readonly stacked?: boolean;
    /** Bars show the amount in an interval; lines show a level. */
    readonly bars?: boolean;
    readonly height?: number;
  },
): Sized {
  const { queries, stacked = false, bars = false, height = HEIGHT.graph } = options;
  const custom: TimeSeriesFieldConfig = {
    drawStyle: bars ? GraphDrawStyle.Bars : GraphDrawStyle.Line,
    lineInterpolation: LineInterpolation.Linear,
    lineWidth: 1,
    fillOpacity: stacked || bars ? 60 : 10,
    axisPlacement: AxisPlacement.Auto,
    showPoints: VisibilityMode.Never,
    spanNulls: false,
    stacking: { mode: stacked ? StackingMode.Normal : StackingMode.None, group: 'A' },
  };
  const shown: TimeSeriesOptions = {
    legend: {
      displayMode: LegendDisplayMode.Table,
      placement: 'bottom',
      showLegend: true,
      calcs: ['lastNotNull', 'max'],
    },
    tooltip: { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending },
  };
  return sized(options, height, {
    type: 'timeseries',
    options: { ...shown },
    fieldConfig: {
      defaults: {
        ...defaultsOf(options),
        min: options.min ?? 0,
        color: { mode: FieldColorModeId.PaletteClassic },
        custom: { ...custom },
      },
      overrides: [],
    },
    targets: targets(queries, 'range'),
  });
}

/** States over time, one line each. */
export function timeline(options: Common & { readonly queries: readonly Query[] }): Sized {
  const shown: StateTimelineOptions = {
    alignValue: 'left',
    legend: { displayMode: LegendDisplayMode.List, placement: 'bottom', showLegend: false, calcs: [] },
    mergeValues: true,
    rowHeight: 0.8,
    showValue: VisibilityMode.Auto,
    tooltip: { mode: TooltipDisplayMode.Single, sort: SortOrder.None },
  };
  return sized(options, HEIGHT.graph, {
    type: 'state-timeline',
    options: { ...shown },
    fieldConfig: {
      defaults: {
        ...defaultsOf(options),
        color: { mode: FieldColorModeId.Thresholds },
        custom: { fillOpacity: 80, lineWidth: 0 },
      },
      overrides: [],
    },
    targets: targets(options.queries, 'range'),
  });
}

/** A column of a table: a label, or the value of a query, by the query's letter. */
interface Column {
  readonly field: string;
  readonly title: string;
  readonly unit?: string;
  readonly steps?: Steps;
  readonly texts?: Texts;
  readonly decimals?: number;
  readonly link?: { readonly title: string; readonly url: string };
}

/** The current state, one line for each set of labels; several queries are joined by their common labels. */
export function table(
  options: Omit<Common, 'unit'> & {
    readonly queries: readonly Query[];
    readonly columns: readonly Column[];
    readonly sortBy: { readonly field: string; readonly descending: boolean };
    readonly height?: number;
  },
): Sized {
  const { queries, columns, sortBy, height = 10 } = options;
  const titleOf = (field: string): string => columns.find((column) => column.field === field)?.title ?? field;
  const shown: TableOptions = {
    frameIndex: 0,
    showHeader: true,
    sortBy: [{ displayName: titleOf(sortBy.field), desc: sortBy.descending }],
  };
  return sized(options, height, {
    type: 'table',
    options: { ...shown },
    fieldConfig: {
      defaults: { ...defaultsOf({ unit: 'short' }), custom: { filterable: true } },
      overrides: columns.map((column) => ({
        matcher: { id: 'byName', options: column.title },
        properties: propertiesOf(column),
      })),
    },
    targets: targets(queries, 'table'),
    transformations: [
      ...(queries.length > 1 ? [{ id: 'merge', options: {} }] : []),
      {
        id: 'organize',
        options: {
          excludeByName: Object.fromEntries(
            HIDDEN_FIELDS.filter((name) => !isShown(columns, name)).map((name) => [name, true]),
          ),
          includeByName: Object.fromEntries(columns.map(({ field }) => [field, true])),
          indexByName: Object.fromEntries(columns.map(({ field }, index) => [field, index])),
          renameByName: Object.fromEntries(columns.map(({ field, title }) => [field, title])),
        },
      },
    ],
  });
}

const HIDDEN_FIELDS: readonly string[] = ['Time', '__name__'];
const isShown = (columns: readonly Column[], name: string): boolean => columns.some(({ field }) => field === name);

function propertiesOf({ unit, steps, texts, decimals, link }: Column): { id: string; value: unknown }[] {
  return [
    ...(unit === undefined ? [] : [{ id: 'unit', value: unit }]),
    ...(decimals === undefined ? [] : [{ id: 'decimals', value: decimals }]),
    ...(texts ? [{ id: 'mappings', value: mappingsOf(texts) }] : []),
    ...(steps ? [{ id: 'thresholds', value: thresholdsOf(steps) }] : []),
    ...(steps || texts ? [{ id: 'custom.cellOptions', value: { type: TableCellDisplayMode.ColorText } }] : []),
    ...(link ? [{ id: 'links', value: [{ ...link, targetBlank: false }] }] : []),
  ];
}

function defaultsOf({ unit, decimals, min, max, steps, texts, noValue }: Partial<Common>): FieldConfig {
  return {
    ...(unit === undefined ? {} : { unit }),
    ...(decimals === undefined ? {} : { decimals }),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(noValue === undefined ? {} : { noValue }),
    mappings: texts ? mappingsOf(texts) : [],
    thresholds: thresholdsOf(steps ?? ['green']),
  };
}

const thresholdsOf = ([first, ...further]: Steps) => ({
  mode: ThresholdsMode.Absolute,
  steps: [{ value: null, color: first }, ...further.map(([value, color]) => ({ value, color }))],
});

function mappingsOf(texts: Texts): ValueMapping[] {
  const options = Object.fromEntries(
    Object.entries(texts).map(([value, [text, color]], index) => [value, { text, color, index }]),
  );
  return [{ type: MappingType.ValueToText, options }];
}

function sized(
  { title, description, width }: { readonly title: string; readonly description: string; readonly width: number },
  height: number,
  panel: Panel,
): Sized {
  return { width, height, panel: { title, description, datasource: DATASOURCE, ...panel } };
}

/** `A`, `B` … */
const refIdOf = (index: number): string => String.fromCodePoint(65 + index);

function targets(queries: readonly Query[], kind: 'instant' | 'range' | 'table'): Record<string, unknown>[] {
  return queries.map(({ expr, legend }, index) => ({
    refId: refIdOf(index),
    datasource: DATASOURCE,
    editorMode: 'code',
    expr,
    ...(kind === 'table' ? { format: 'table' } : { legendFormat: legend ?? '__auto' }),
    instant: kind !== 'range',
    range: kind === 'range',
  }));
}

/** A part of a dashboard with its own heading. */
export interface Row {
  readonly title: string;
  readonly panels: readonly Sized[];
}

/** Numbers and places the panels: each row from the left, with as many panels as fit. */
function layOut(rows: readonly Row[]): (Panel | RowPanel)[] {
  const placed: (Panel | RowPanel)[] = [];
  let id = 1;
  let y = 0;
  for (const { title, panels } of rows) {
    placed.push({ type: 'row', id: id++, title, collapsed: false, gridPos: { x: 0, y, w: 24, h: 1 }, panels: [] });
    y++;
    let x = 0;
    let tallest = 0;
    for (const { panel, width, height } of panels) {
      if (x + width > 24) {
        y += tallest;
        x = tallest = 0;
      }
      placed.push({ id: id++, gridPos: { x, y, w: width, h: height }, ...panel });
      x += width;
      tallest = Math.max(tallest, height);
    }
    y += tallest;
  }
  return placed;
}

/** Variables filled by Prometheus; All matches everything, including series without the label. */
function variable(name: string, label: string, query: string, options: { readonly multi: boolean }) {
  const { multi } = options;
  return {
    type: 'query' as const,
    name,
    label,
    datasource: DATASOURCE,
    query: { query, refId: `variable-${name}` },
    refresh: 2,
    sort: 1,
    multi,
    includeAll: multi,
    ...(multi ? { allValue: '.*', current: { selected: true, text: 'All', value: '$__all' } } : {}),
  };
}

interface DashboardText {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  /** The initial time range, such as `6h`. */
  readonly last: string;
  /** Exactly one camera is chosen. */
  readonly oneCamera: boolean;
  readonly rows: readonly Row[];
  readonly links: NonNullable<Dashboard['links']>;
}

export function dashboard({ uid, title, description, last, oneCamera, rows, links }: DashboardText): Dashboard {
  const camera = 'kube_nvr_camera_info{cluster=~"$cluster",namespace=~"$namespace",node=~"$node"}';
  return {
    uid,
    title,
    description,
    tags: ['kube-nvr'],
    // The version of Grafana 10.4; newer ones read older versions.
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: `now-${last}`, to: 'now' },
    timezone: 'browser',
    links,
    annotations: {
      list: [
        {
          name: 'Alerts',
          enable: true,
          iconColor: 'red',
          datasource: DATASOURCE,
          expr: 'ALERTS{alertname=~"KubeNvr.*",alertstate="firing",severity="critical"}',
          titleFormat: '{{alertname}}',
          textFormat: '{{camera}} {{node}} {{cluster}}',
        } as unknown as NonNullable<NonNullable<Dashboard['annotations']>['list']>[number],
      ],
    },
    templating: {
      list: [
        { type: 'datasource', name: 'datasource', label: 'Prometheus', query: 'prometheus', refresh: 1, multi: false },
        variable('cluster', 'Cluster', 'label_values(kube_nvr_info, cluster)', { multi: true }),
        variable('namespace', 'Namespace', 'label_values(kube_nvr_info{cluster=~"$cluster"}, namespace)', {
          multi: true,
        }),
        variable('node', 'Node', 'label_values(kube_nvr_info{cluster=~"$cluster",namespace=~"$namespace"}, node)', {
          multi: true,
        }),
        variable('camera', 'Camera', `label_values(${camera}, camera)`, { multi: !oneCamera }),
      ],
    },
    panels: layOut(rows),
  };
}
