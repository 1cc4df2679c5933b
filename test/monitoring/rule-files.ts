// The alerts of charts/kube-nvr/files/rules, as they are written.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { parse } from 'yaml';

export const ROOT = join(import.meta.dirname, '../..');
export const RULES = join(ROOT, 'charts/kube-nvr/files/rules');

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>;
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[];
}

export const RULE_FILES = ['recorder', 'operator'] as const;

export const rulesText = (name: string): string => readFileSync(join(RULES, `${name}.yaml`), 'utf8');

export const alertsOf = (name: string): readonly Alert[] =>
  (parse(rulesText(name)) as RuleFile).groups.flatMap(({ rules }) => rules);

/** Why tests that need Prometheus's programs are left out; false when they are not. */
export const prometheusMissing = (): string | false =>
  ['prometheus', 'promtool'].some((name) => spawnSync(name, ['--version']).error)
    ? 'Prometheus is not installed: setup monitoring of hack/lib.sh brings it'
    : false;
