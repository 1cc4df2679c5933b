// Prints objects of a cluster as `kubectl get` does: the columns are those of the CRDs.

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/units.ts';
import { KINDS, type PrinterColumn } from '../../crds/kinds.ts';

type Json = Readonly<Record<string, unknown>>;

const NAME: PrinterColumn = { name: 'Name', type: 'string', jsonPath: '.metadata.name' };
const SECRET_COLUMNS: readonly PrinterColumn[] = [
  { name: 'Type', type: 'string', jsonPath: '.type' },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
];
const GAP = '   ';

/** The lines of a table, with its head. */
export function objectTable(plural: string, objects: readonly Json[], isWide: boolean, nowMs: number): string {
  const own = KINDS.find((kind) => kind.plural === plural)?.columns ?? SECRET_COLUMNS;
  const columns = [NAME, ...own].filter(({ wide }) => isWide || !wide);
  const rows = [
    columns.map(({ name }) => name.toUpperCase()),
    ...objects.map((object) => columns.map((column) => cellOf(column, object, nowMs))),
  ];
  return tableOf(rows);
}

/** The first row is the head. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join(GAP)
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}

function cellOf({ jsonPath, type }: PrinterColumn, object: Json, nowMs: number): string {
  const value = valueAt(jsonPath, object);
  if (type === 'date') return typeof value === 'string' ? ageOf(nowMs - Date.parse(value)) : '<unknown>';
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** The parts of JSONPath that the columns use: fields, and the element of a list whose field has a given value. */
function valueAt(path: string, object: Json): unknown {
  let value: unknown = object;
  for (const [, field, key, wanted] of path.matchAll(/\.([A-Za-z]+)(?:\[\?\(@\.([A-Za-z]+)=="([^"]*)"\)\])?/g)) {
    value = (value as Json | undefined)?.[field ?? ''];
    if (key !== undefined) value = Array.isArray(value) ? value.find((one: Json) => one[key] === wanted) : undefined;
  }
  return value;
}

/** As kubectl writes it: two units while the first one is small. */
export function ageOf(ms: number): string {
  const whole = (unit: number): number => Math.floor(Math.max(0, ms) / unit);
  const two = (first: number, a: string, second: number, b: string): string => {
    const rest = whole(second) % Math.round(first / second);
    return `${whole(first)}${a}${rest > 0 ? `${rest}${b}` : ''}`;
  };
  if (ms < 2 * MINUTE_MS) return `${whole(1_000)}s`;
  if (ms < 10 * MINUTE_MS) return two(MINUTE_MS, 'm', 1_000, 's');
  if (ms < 3 * HOUR_MS) return `${whole(MINUTE_MS)}m`;
  if (ms < 8 * HOUR_MS) return two(HOUR_MS, 'h', MINUTE_MS, 'm');
  if (ms < 2 * DAY_MS) return `${whole(HOUR_MS)}h`;
  if (ms < 8 * DAY_MS) return two(DAY_MS, 'd', HOUR_MS, 'h');
  return `${whole(DAY_MS)}d`;
}
