// Prints the pages of docs that explain reasons and causes from the tables in the code.

import { readFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { CAUSE_MEANINGS } from '../recorder/contract/gap-cause.ts';
import { isTriedAgain, meaningOf, NOT_FILLED_REASONS } from '../recorder/contract/gap-fill.ts';
import { reasonOf } from '../crds/reasons.ts';
import { NODE_WARNINGS, RECORDING_REASONS, type ReasonTable } from '../crds/reason-table.ts';
import {
  CAMERA_CONDITIONS,
  NODE_CONDITIONS,
  OBJECTIVE_CONDITIONS,
  POOL_CONDITIONS,
  TARGET_CONDITIONS,
  type ConditionRow,
  type ConditionTable,
} from './condition-tables.ts';

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');

function reasonsOf({ status, reason }: ConditionRow): string {
  if (typeof reason === 'string') return `${status}, ${reason.includes(' ') ? reason : `\`${reason}\``}`;
  return `${status}, ${reason.map((one) => `\`${one}\``).join(', ')}`;
}

const conditions = (of: ConditionTable): string =>
  table(
    ['condition', 'status, reason', 'means', 'do'],
    Object.entries(of).flatMap(([type, rows]) =>
      rows.map((one, i) => [i === 0 ? `\`${type}\`` : '', reasonsOf(one), one.means, one.todo ?? '']),
    ),
  );

const reasons = (of: ReasonTable, head: string, name: (code: string) => string): string =>
  table(
    [head, 'means', 'do'],
    Object.entries(of).map(([code, { means, todo, see }]) => [
      `\`${name(code)}\``,
      means,
      see === undefined ? todo : `${todo} (${see})`,
    ]),
  );

const reasonsPage = (): string => `# Conditions, their reasons, and what to do

Made by \`build/generate-reasons-docs.ts\` from \`crds/reason-table.ts\` and \`build/condition-tables.ts\`; do not edit.

\`kubectl get cameras -o wide\` shows the reason of \`Ready\`; \`kubectl describe camera NAME\` shows every condition with its
message. A condition is \`Unknown\` with reason \`Pending\` until it has been checked for the first time.

## Camera

\`Ready\` summarises the others: its reason is that of the first condition that is not \`True\`, in the order of this page.

${conditions(CAMERA_CONDITIONS)}

Otherwise \`Recording\` is \`False\` with the reason that its node gives, as in the
[list of cameras](../cameras.md) and here:

${reasons(RECORDING_REASONS, 'reason', reasonOf)}

## RecorderPool

\`Ready\` is \`True\` with reason \`AsExpected\`, or has the reason of the first condition below that is not as it should be.

${conditions(POOL_CONDITIONS)}

## RecorderNode

${conditions(NODE_CONDITIONS)}

## ArchiveTarget

${conditions(TARGET_CONDITIONS)}

## RecordingObjective

${conditions(OBJECTIVE_CONDITIONS)}

## Warnings of a recorder

\`GET /api/health/ready\` and \`GET /api/cameras\` list them with a message and \`todo\`; so does the console, in Health. Reasons of a
disk, as for \`Recording\`, may be among them.

${reasons(NODE_WARNINGS, 'code', (code) => code)}
`;

const causes = (): string =>
  table(
    ['cause', 'what happened'],
    Object.entries(CAUSE_MEANINGS).map(([cause, means]) => [`\`${cause}\``, means]),
  );

/** The page of gaps with the table of causes that is in the code. */
const gapsPage = (page: string): string => page.replace(/^\| cause .*\n(?:\|.*\n)+/m, () => `${causes()}\n`);

const notFilled = (): string =>
  table(
    ['reason', 'what happened', 'tried again'],
    NOT_FILLED_REASONS.map((reason) => [`\`${reason}\``, meaningOf(reason), isTriedAgain(reason) ? 'yes' : 'no']),
  );

/** The page of edge recovery with the table of reasons that is in the code. */
const edgePage = (page: string): string => page.replace(/^\| reason .*\n(?:\|.*\n)+/m, () => `${notFilled()}\n`);

const pathOf = (page: string): string => new URL(`../docs/${page}`, import.meta.url).pathname;

/** Path and text of each page. */
export async function reasonPages(): Promise<{ readonly path: string; readonly text: string }[]> {
  const pages = [
    { path: pathOf('operations/reasons.md'), text: reasonsPage() },
    { path: pathOf('gaps.md'), text: gapsPage(readFileSync(pathOf('gaps.md'), 'utf8')) },
    { path: pathOf('edge-recovery.md'), text: edgePage(readFileSync(pathOf('edge-recovery.md'), 'utf8')) },
  ];
  return Promise.all(
    pages.map(async ({ path, text }) => ({
      path,
      text: await format(text, { ...(await resolveConfig(path)), parser: 'markdown' }),
    })),
  );
}
