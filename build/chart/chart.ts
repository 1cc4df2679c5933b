// Generates those files of the charts that follow from other files of the repository: CRDs, RBAC rules, admission policies, the
// version, the schema of the values, dashboards, the README. All other files there are written by hand.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { parse, stringify } from 'yaml';
import { toCustomResourceDefinition } from '../../crds/custom-resource-definition.ts';
import { KINDS } from '../../crds/kinds.ts';
import { GROUP, VERSION } from '../../crds/names.ts';
import { nodeIdentityPolicies } from '../../operator/manifests/node-identity-policy.ts';
import {
  operatorClusterRules,
  operatorEverywhereRules,
  operatorAuthorityRules,
  operatorLeaseRules,
  operatorRowRules,
  operatorRules,
  operatorSecretRules,
} from '../../operator/manifests/operator-access.ts';
import { tokenReviewBindingOf, type PolicyRule } from '../../operator/manifests/recorder-access.ts';
import { secretAccessPolicies } from '../../operator/manifests/secret-access-policy.ts';
import { adminRules, editRules, viewRules } from '../../operator/manifests/user-access.ts';
import { cameraDashboard } from '../../monitoring/dashboards/camera.ts';
import { fleetDashboard } from '../../monitoring/dashboards/fleet.ts';
import { aboutKind } from '../crd-reference.ts';
import { chartReadme } from './readme.ts';
import { valuesSchema } from './values-schema.ts';

const ROOT = join(import.meta.dirname, '../..');
export const CHARTS = join(ROOT, 'charts');
const CHART = join(CHARTS, 'kube-nvr');
const MADE_BY = 'Made by build/generate-chart.ts; do not edit.';
/** Since Kubernetes 1.32 the token of every pod names its node, which the admission policy needs. */
const KUBE_VERSION = '>=1.32.0-0';

/** By path in `charts/`. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const main = [...(await mainChart())].map(([name, text]) => [`kube-nvr/${name}`, text] as const);
  return new Map([
    ...main,
    ['kube-nvr-crds/Chart.yaml', chartYaml('kube-nvr-crds', 'The kinds of kube-nvr', hubOf({ isOperator: false }))],
    ['kube-nvr-crds/templates/crds.yaml', crds()],
  ]);
}

async function mainChart(): Promise<ReadonlyMap<string, string>> {
  const readme = chartReadme(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
  const { description } = packageJson();
  return new Map([
    ['Chart.yaml', chartYaml('kube-nvr', description, hubOf({ isOperator: true }))],
    ['README.md', await formatted('README.md', readme)],
    ['values.schema.json', await formatted('values.schema.json', JSON.stringify(valuesSchema()))],
    ['files/dashboards/fleet.json', await formatted('files/dashboards/fleet.json', JSON.stringify(fleetDashboard()))],
    [
      'files/dashboards/camera.json',
      await formatted('files/dashboards/camera.json', JSON.stringify(cameraDashboard())),
    ],
    ['templates/_rules.tpl', rules()],
    ['templates/admission-policy.yaml', admissionPolicy()],
  ]);
}

async function formatted(name: string, text: string): Promise<string> {
  const file = join(CHART, name);
  return format(text, { ...(await resolveConfig(file)), filepath: file });
}

const packageJson = () =>
  JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<'version' | 'description', string>;

function chartYaml(name: string, description: string, annotations: Readonly<Record<string, string>>): string {
  const { version } = packageJson();
  return `# ${MADE_BY} The version is that of package.json.\n${yaml({
    apiVersion: 'v2',
    name,
    description,
    type: 'application',
    version,
    appVersion: version,
    kubeVersion: KUBE_VERSION,
    home: 'https://kube-nvr.dev',
    maintainers: [{ name: 'The maintainers of kube-nvr' }],
    keywords: ['nvr', 'rtsp', 'camera', 'video'],
    annotations,
  })}`;
}

/** What Artifact Hub shows: https://artifacthub.io/docs/topics/annotations/helm/ */
function hubOf({ isOperator }: { readonly isOperator: boolean }): Readonly<Record<string, string>> {
  const examples = KINDS.map(({ kind }) => {
    const name = kind.replaceAll(/(?<=[a-z])[A-Z]/g, '-$&').toLowerCase();
    return parse(readFileSync(join(ROOT, `crds/examples/${name}.yaml`), 'utf8')) as object;
  });
  const kinds = KINDS.map((definition) => ({
    kind: definition.kind,
    version: VERSION,
    name: `${definition.plural}.${GROUP}`,
    displayName: definition.kind,
    // Links are for our own pages.
    description: aboutKind(definition).replaceAll(/ \(\[.*?\]\(.*?\)\)|`/g, ''),
  }));
  return {
    'artifacthub.io/license': 'Apache-2.0',
    'artifacthub.io/crds': yaml(kinds),
    'artifacthub.io/crdsExamples': yaml(examples),
    ...(isOperator && {
      'artifacthub.io/operator': 'true',
      // The highest level that docs/capability-levels.md calls met, with all below.
      'artifacthub.io/operatorCapabilities': 'Seamless Upgrades',
    }),
  };
}

function rules(): string {
  const parts: Readonly<Record<string, readonly PolicyRule[]>> = {
    operator: operatorRules(),
    operatorEverywhere: operatorEverywhereRules(),
    operatorSecrets: operatorSecretRules(),
    operatorRows: operatorRowRules(),
    operatorLease: [...operatorLeaseRules(), ...operatorAuthorityRules()],
    operatorCluster: operatorClusterRules(),
    view: viewRules(),
    edit: editRules(),
    admin: adminRules(),
  };
  const defines = Object.entries(parts).map(([name, part]) => define(`rules.${name}`, yaml(part)));
  const { roleRef } = tokenReviewBindingOf([]);
  return [`{{- /* ${MADE_BY} */}}\n`, ...defines, define('tokenReviewRole', yaml(roleRef))].join('\n');
}

const define = (name: string, text: string): string =>
  `{{- define "kube-nvr.${name}" -}}\n${literal(text)}{{- end }}\n`;

function crds(): string {
  const documents = KINDS.map((kind) => {
    const { metadata, ...crd } = toCustomResourceDefinition(kind);
    const head = yaml({ apiVersion: crd.apiVersion, kind: crd.kind, metadata: { name: metadata.name } });
    return `---\n${literal(head)}${LABELS}  {{- if .Values.keep }}
  annotations:
    helm.sh/resource-policy: keep
    argocd.argoproj.io/sync-options: Prune=false
    kustomize.toolkit.fluxcd.io/prune: disabled
  {{- end }}
${literal(yaml({ spec: crd.spec }))}`;
  });
  return `{{- /* ${MADE_BY} */}}\n${documents.join('')}`;
}

function admissionPolicy(): string {
  const documents = [...nodeIdentityPolicies(), ...secretAccessPolicies()].map(
    ({ apiVersion, kind, metadata, spec }) => {
      const head = yaml({ apiVersion, kind, metadata: { name: metadata.name } });
      return `---\n${literal(head)}${LABELS}${literal(yaml({ spec }))}`;
    },
  );
  return `{{- /* ${MADE_BY} */}}\n{{- if .Values.admissionPolicy.enabled }}\n${documents.join('')}{{- end }}\n`;
}

/** The chart's labels, at the end of metadata. */
const LABELS = '  labels:\n    {{- include "kube-nvr.labels" $ | nindent 4 }}\n';

const yaml = (value: object): string =>
  stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, singleQuote: true });

/** The text for use in a template. Throws if a template would interpret it. */
function literal(text: string): string {
  if (text.includes('{{')) throw new Error(`a template would read this: ${text}`);
  return text;
}
