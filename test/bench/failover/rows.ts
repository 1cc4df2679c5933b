// Makes the failover table from the runs: the limit of each event, and what was measured.

import { table, summarize } from '../report.ts';
import type { Figures } from './events.ts';
import { KEPT_BY, type KeptBy } from './memory-cameras.ts';

/** One run as it is saved: a line of JSON. */
export interface Run {
  readonly event: string;
  readonly run: number;
  /** Number of its cluster. */
  readonly stage: number;
  readonly time: string;
  readonly outcome?: Readonly<Record<string, Figures>>;
  /** It did not complete, which counts as a missed limit. */
  readonly error?: string;
}

export interface Row {
  /** Its name in outcomes. */
  readonly name: string;
  /** The events that it summarises. */
  readonly events: readonly string[];
  readonly what: string;
  readonly must: string;
  /** The figure of which min, median and worst are shown, in seconds unless the row says otherwise. */
  readonly figure: string;
  readonly isMet: (figures: Figures) => boolean;
  /** Further figures over all runs. */
  readonly also?: readonly { readonly figure: string; readonly text: string; readonly unit?: string }[];
}

const figureOf = (figures: Figures, name: string): number => figures[name] ?? NaN;

const loss = (name: string, what: string, more: Row['also'] = []): Row => ({
  name,
  events: [name],
  what,
  must: '15-20 s, all cameras',
  figure: 'leaseToLast',
  isMet: (figures) =>
    figureOf(figures, 'leaseToFirst') >= 15 &&
    figureOf(figures, 'leaseToLast') <= 20 &&
    figureOf(figures, 'otherMoves') === 0,
  also: [...more, { figure: 'leaseToFirst', text: 'first camera' }],
});

const LAST_FRAME = [
  { figure: 'frameToLast', text: 'from the last frame' },
  { figure: 'gap', text: 'not recorded' },
];

const calm = (name: string, what: string): Row => ({
  name,
  events: [name],
  what,
  must: '0 moves, 0 s lost',
  figure: 'lost',
  isMet: (figures) => ['moves', 'lost', 'ledger', 'dropped'].every((figure) => figureOf(figures, figure) === 0),
  also: [
    { figure: 'moves', text: 'moves' },
    { figure: 'ledger', text: 'lost by the ledger' },
  ],
});

const planned = (name: string, what: string): Row => ({
  name,
  events: [name],
  what,
  must: '<= 1 s gap, 0 without owner',
  figure: 'gap',
  isMet: (figures) => figureOf(figures, 'gap') <= 1 && figureOf(figures, 'ownerless') === 0,
  also: [
    { figure: 'ownerless', text: 'without owner' },
    { figure: 'took', text: 'took' },
  ],
});

/** The same event befalls cameras that are kept in different ways, each a row. */
const whole = (name: string, what: string): readonly Row[] =>
  KEPT_BY.map((keptBy) => ({
    name: `${keptBy}-${name}`,
    events: [`whole-${name}`],
    what: `${what}, with ${KEPT_WORDS[keptBy]}`,
    must: '0 s missing after 60 s, pictures 0..N',
    figure: 'missing',
    isMet: (figures) => ['missing', 'unfollowed', 'unwhole'].every((figure) => figureOf(figures, figure) === 0),
    also: [
      { figure: 'affected', text: 'cameras with a gap' },
      { figure: 'unfollowed', text: 'decoded pictures that do not follow the one before' },
      { figure: 'unwhole', text: 'cameras whose window is not whole' },
    ],
  }));

const KEPT_WORDS: Readonly<Record<KeptBy, string>> = {
  standby: 'a standby',
  edge: 'edge recovery',
  both: 'both',
};

const restarted = (name: string, what: string): Row => ({
  name,
  events: [name],
  what,
  must: '<= 3 s gap',
  figure: 'gap',
  isMet: (figures) => figureOf(figures, 'gap') <= 3 && figureOf(figures, 'moves') === 0,
  also: [
    { figure: 'gapMedian', text: 'median camera' },
    { figure: 'moves', text: 'moves' },
  ],
});

const majorityLost: Row = {
  name: 'majority-lost',
  events: ['majority-lost'],
  what: '2 of 3 voters lost, then one returns',
  must: '0 moves, rest records, condition shown; moves follow',
  figure: 'followed',
  isMet: (figures) =>
    ['moves', 'rest', 'strayed'].every((figure) => figureOf(figures, figure) === 0) &&
    figureOf(figures, 'followed') > 0 &&
    figureOf(figures, 'shown') <= 20,
  also: [
    { figure: 'moves', text: 'moves before' },
    { figure: 'rest', text: 'lost by the rest' },
    { figure: 'shown', text: 'condition after' },
  ],
};

const heal: Row = {
  name: 'heal',
  events: ['cut'],
  what: 'cut-off node heals: doubles end',
  must: '<= 5 s, both archives listed',
  figure: 'doublesEnd',
  isMet: (figures) =>
    figureOf(figures, 'doublesEnd') <= 5 && figureOf(figures, 'listed') > 0 && figureOf(figures, 'gap') === 0,
  also: [
    { figure: 'listed', text: 'both listed after' },
    { figure: 'doubled', text: 'recorded twice' },
  ],
};

const failback = (...events: readonly string[]): Row => ({
  name: 'failback',
  events,
  what: 'cameras go back to a node that returned',
  must: '<= 1 s gap',
  figure: 'gap',
  isMet: (figures) => figureOf(figures, 'gap') <= 1,
});

/** Of a pool on Kubernetes. */
export const POOL_ROWS: readonly Row[] = [
  loss('killed', 'node killed', LAST_FRAME),
  loss('cut', 'node cut off from API server, peers and viewers'),
  loss('frozen', 'recorder process frozen', LAST_FRAME),
  loss('killed-with-leader', "node killed with the operator's leader", LAST_FRAME),
  calm('leader-killed', "the operator's leader killed alone"),
  calm('api-restarted', 'API server restarted'),
  calm('etcd-paused', 'etcd paused 8 s'),
  calm('recorder-paused', 'recorder frozen 8 s'),
  calm('operator-paused', 'operator frozen 30 s'),
  restarted('pod-restarted', 'pod restarted in place'),
  restarted('pod-killed', 'the same by SIGKILL'),
  planned('drained', 'node drained'),
  planned('rolled', 'rolling update of all nodes'),
  ...whole('killed', 'node killed'),
  ...whole('cut', 'node cut off'),
  ...whole('frozen', 'recorder frozen'),
  ...whole('restarted', 'pod restarted in place'),
  ...whole('pod-killed', 'the same by SIGKILL'),
  ...whole('drained', 'node drained'),
  majorityLost,
  heal,
  failback('killed', 'cut', 'frozen', 'killed-with-leader'),
];

/** Of servers without Kubernetes. */
export const SERVER_ROWS: readonly Row[] = [
  loss('killed', 'server killed', LAST_FRAME),
  loss('cut', 'server cut off from the others and viewers'),
  loss('frozen', 'recorder process frozen', LAST_FRAME),
  loss('leader-killed', 'the server killed whose operator leads', LAST_FRAME),
  calm('etcd-paused', 'etcd of all servers paused 8 s'),
  calm('recorder-paused', 'recorder frozen 8 s'),
  planned('drained', 'server drained'),
  planned('rolled', 'upgrade of all servers, one after the other'),
  majorityLost,
  heal,
  failback('killed', 'cut', 'frozen', 'leader-killed'),
  {
    name: 'idle',
    events: ['idle'],
    what: 'an idle member with its etcd, MB',
    must: 'none',
    figure: 'memory',
    isMet: () => true,
    also: [
      { figure: 'recorderMemory', text: 'recorder', unit: ' MB' },
      { figure: 'etcdMemory', text: 'etcd', unit: ' MB' },
      { figure: 'recorderCores', text: 'recorder', unit: ' cores' },
      { figure: 'etcdCores', text: 'etcd', unit: ' cores' },
    ],
  },
];

const format = (value: number): string => (Number.isFinite(value) ? value.toFixed(value >= 10 ? 1 : 2) : '-');

function rangeOf(values: readonly number[], unit: string): string {
  const { min, max } = summarize(values);
  if (values.length === 0) return '-';
  if (values.every(Number.isInteger)) return min === max ? `${min}` : `${min} to ${max}`;
  return min === max ? `${format(min)}${unit}` : `${format(min)} to ${format(max)}${unit}`;
}

/** Cells of a row: event, must, runs, min, median, worst, further figures, verdict. */
function cellsOf(row: Row, runs: readonly Run[]): readonly string[] {
  const own = runs.filter(({ event }) => row.events.includes(event));
  const figures = own.flatMap(({ outcome }): readonly Figures[] => {
    const one = outcome?.[row.name];
    return one ? [one] : [];
  });
  const values = figures.map((one) => figureOf(one, row.figure));
  const missed = own.length - figures.filter((one) => row.isMet(one)).length;
  const { min, p50, max } = summarize(values);
  const also = (row.also ?? []).map(
    ({ figure, text, unit = ' s' }) =>
      `${text} ${rangeOf(
        figures.map((one) => figureOf(one, figure)),
        unit,
      )}`,
  );
  const verdict = own.length === 0 ? 'not run' : missed === 0 ? 'met' : `MISSED in ${missed}`;
  return [row.what, row.must, String(own.length), ...[min, p50, max].map(format), also.join('; '), verdict];
}

const HEADER = ['event', 'must', 'runs', 'min, s', 'median, s', 'worst, s', 'beside', 'verdict'];

export const failoverTable = (runs: readonly Run[], rows: readonly Row[]): string =>
  table(
    HEADER,
    rows.map((row) => cellsOf(row, runs)),
  );

/** The table without the column `beside`. */
export function shortFailoverTable(runs: readonly Run[], rows: readonly Row[]): string {
  const short = (cells: readonly string[]): readonly string[] => cells.filter((_, i) => HEADER[i] !== 'beside');
  return table(
    short(HEADER),
    rows.map((row) => short(cellsOf(row, runs))),
  );
}

/** Whether a run was within the limits of all its rows. */
export const isMet = ({ event, outcome }: Run, rows: readonly Row[]): boolean =>
  rows.every((row) => {
    const figures = outcome?.[row.name];
    return !row.events.includes(event) || (figures !== undefined && row.isMet(figures));
  });

/** One line per run: printed, and kept in a file. */
export function lineOf(run: Run, rows: readonly Row[]): string {
  const figures = Object.entries(run.outcome ?? {}).map(
    ([name, one]) =>
      `${name === run.event ? '' : `${name}: `}${Object.entries(one)
        .map(([figure, value]) => `${figure} ${value}`)
        .join(', ')}`,
  );
  const text = run.error === undefined ? figures.join('; ') : `did not end: ${run.error}`;
  return `${run.event} ${run.run}: ${text}${isMet(run, rows) ? '' : ' MISSED'}`;
}
