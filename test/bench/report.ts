// Formats figures as plain text tables, to be read in a terminal and kept in the repository.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { arch, cpus, release, totalmem } from 'node:os';

export interface Summary {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly min: number;
  readonly max: number;
}

export function summarize(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? NaN;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), min: at(0), max: at(1) };
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
};

/** One row of the table of figures. A row without `must` is informative. */
export interface Figure {
  readonly figure: string;
  readonly unit: string;
  readonly measured: number;
  readonly must?: number;
  readonly aim?: number;
  readonly note?: string;
}

const format = (value: number): string =>
  Number.isInteger(value) ? String(value) : value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3);

export function verdictOf({ measured, must, aim }: Figure): string {
  if (must === undefined) return '';
  if (!(measured <= must)) return 'MISSED';
  return aim !== undefined && measured > aim ? 'met' : aim === undefined ? 'met' : 'aim met';
}

/** Columns are as wide as their widest cell; numbers are not aligned. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((cell, i) => Math.max(cell.length, ...rows.map((row) => (row[i] ?? '').length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

export const figureTable = (figures: readonly Figure[]): string =>
  table(
    ['figure', 'must', 'aim', 'measured', 'unit', 'verdict', 'note'],
    figures.map((figure) => [
      figure.figure,
      figure.must === undefined ? '' : `<= ${format(figure.must)}`,
      figure.aim === undefined ? '' : format(figure.aim),
      format(figure.measured),
      figure.unit,
      verdictOf(figure),
      figure.note ?? '',
    ]),
  );

/** Only the figures that have a limit. */
export const shortTable = (figures: readonly Figure[]): string =>
  table(
    ['figure', 'measured', 'bound', 'verdict'],
    figures
      .filter(({ figure, must }) => must !== undefined && !figure.startsWith(' '))
      .map((one) => [one.figure, `${format(one.measured)} ${one.unit}`, format(one.must ?? 0), verdictOf(one)]),
  );

/** The machine on which the figures were measured, as pairs of name and description. */
function machineParts(): [string, string][] {
  const system = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'Linux';
  const cores = cpus();
  return [
    ['CPU', `${cores[0]?.model ?? 'unknown'}, ${cores.length} cores, ${arch()}`],
    ['memory', `${Math.round(totalmem() / 2 ** 30)} GiB`],
    // Without the builder's own version suffix.
    ['system', `${system}, kernel ${release().replace(/-.*/, '')}`],
    ['Node', process.version],
  ];
}

export const machine = (): string =>
  machineParts()
    .map(([word, text]) => `${word.padEnd(8)} ${text}`)
    .join('\n');

const machineInWords = (): string =>
  machineParts()
    .map(([word, text]) => (word === 'CPU' || word === 'system' ? text : `${word} ${text}`))
    .join('; ');

/** Below a table: what was measured, when, and where. */
export function measuredInWords(): string {
  const git = (...words: readonly string[]): string =>
    execFileSync('git', words, { cwd: import.meta.dirname, encoding: 'utf8' }).trim();
  const commit = git('rev-parse', '--short=8', 'HEAD');
  const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ', with changes';
  return `Commit ${commit}${changed}, measured on ${new Date().toISOString().slice(0, 10)}: ${machineInWords()}.`;
}
