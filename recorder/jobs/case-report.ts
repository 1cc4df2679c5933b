// The report of a case: one page for people who have no program to read a manifest. It is HTML without scripts, and can be printed.

import { createHash } from 'node:crypto';
import { escapeXml } from '../../base/xml.ts';
import { meaningOf } from '../contract/gap-cause.ts';
import type { JobCase } from './job.ts';
import { cameraTitle, localTime, type LocalNames } from './movie-name.ts';
import type { WrittenResult, WrittenCamera, WrittenDocument } from './written.ts';

/** File name in the ZIP file. */
const REPORT_NAME = 'report.html';

interface ReportAbout {
  readonly of: Omit<JobCase, 'cameras'>;
  readonly by: string | undefined;
  readonly madeMs: number;
  readonly node: string;
  readonly version: string;
  readonly fingerprint: string;
  readonly local: LocalNames;
}

export function caseReport(
  { window, cameras }: Pick<WrittenResult, 'window' | 'cameras'>,
  { of, by, madeMs, node, version, fingerprint, local }: ReportAbout,
): WrittenDocument {
  const time = (ms: number): string => `${localTime(ms, local)} (${new Date(ms).toISOString()})`;
  const facts = rows([
    ['Site', local.site],
    ['Number', of.number],
    ['Reason', of.reason],
    ['Notes', of.notes],
    ['From', time(window.fromMs)],
    ['To', time(window.toMs)],
    ['Made', `${time(madeMs)}${by === undefined ? '' : ` for ${by}`}`],
    ['Made by', `recorder ${node}, kube-nvr ${version}`],
    ['Signing key', `Ed25519, SHA-256 fingerprint ${fingerprint}`],
  ]);
  const title = escapeXml(of.name ?? 'Case');
  const bytes = Buffer.from(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${title}</title>
<style>
body { font: 11pt/1.4 sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; width: 100%; margin: 0.5em 0 }
th, td { text-align: left; vertical-align: top; border-top: 1px solid #bbb; padding: 0.25em 0.5em 0.25em 0; white-space: pre-wrap; overflow-wrap: anywhere }
th { width: 9em }
code { font-size: 8pt }
</style>
<h1>${title}</h1>
${facts}
${cameras.map((camera) => cameraSection(camera, local)).join('\n')}
<p>manifest.json lists each file with its SHA-256. manifest.json.sig is its signature. <code>recorder verify FILE.zip</code> checks all of it.</p>
</html>
`);
  return { name: REPORT_NAME, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

function cameraSection({ cameraId, movies, gaps }: WrittenCamera, local: LocalNames): string {
  const between = (fromMs: number, toMs: number): string => `${localTime(fromMs, local)} to ${localTime(toMs, local)}`;
  const lostMs = gaps.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  const files = movies.map(({ name, window, sizeBytes, sha256 }) => [
    name,
    `${between(window.fromMs, window.toMs)}\n${sizeBytes} bytes, SHA-256 ${sha256}`,
  ]);
  const missing = gaps.map(({ fromMs, toMs, cause }) => [
    `${seconds(toMs - fromMs)} missing`,
    `${between(fromMs, toMs)}${cause === undefined ? '' : `\n${meaningOf(cause)}`}`,
  ]);
  return `<h2>${escapeXml(cameraTitle(cameraId, local))}</h2>
<p>${movies.length === 0 ? 'No footage of this time.' : `${movies.length} ${movies.length === 1 ? 'file' : 'files'}.`} ${gaps.length === 0 ? 'Nothing is missing.' : `${seconds(lostMs)} are missing.`}</p>
${rows([...files, ...missing])}`;
}

const seconds = (ms: number): string => `${Math.round(ms) / 1000} s`;

const rows = (entries: readonly (readonly (string | undefined)[])[]): string =>
  `<table>${entries
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([name = '', value = '']) => `<tr><th>${escapeXml(name)}<td>${escapeXml(value)}`)
    .join('\n')}</table>`;
