// What a PromQL expression asks for, by Prometheus's own grammar, and what of that does not exist.

import { parser } from '@prometheus-io/lezer-promql';
import { metricsOf, seriesOf, TARGET_LABELS } from '../../monitoring/metrics.ts';

type Node = ReturnType<ReturnType<typeof parser.parse>['cursor']>['node'];

/** Labels by series: of recorder and operator, and of Prometheus itself. */
export function knownSeries(): ReadonlyMap<string, readonly string[]> {
  const ours = (['recorder', 'operator'] as const).flatMap((program) =>
    metricsOf(program).flatMap((m) => [...seriesOf(m)]),
  );
  return new Map([
    ...ours,
    ['up', []],
    // Of each alert that is pending or firing: its name, and the labels of its rule and of what it is about.
    ['ALERTS', ['alertname', 'alertstate', 'severity', 'camera', 'cause', 'resource', 'controller', 'name']],
  ]);
}

/** Grafana puts these in; what they become here parses as what they become there. */
export const withoutVariables = (expr: string, values: { readonly rate: string; readonly range: string }): string =>
  expr
    .replaceAll('$__rate_interval', values.rate)
    .replaceAll('$__range', values.range)
    .replaceAll(/\$(cluster|namespace|node|camera)\b/g, '.*');

/** What is wrong with an expression; empty: nothing. */
export function problemsOf(expr: string, known: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const problems: string[] = [];
  const { text, tree } = parsed(expr);
  tree.iterate({
    enter({ type, node }) {
      if (type.isError) problems.push(`is no PromQL at ${node.from}: ${text}`);
      if (node.name === 'VectorSelector') problems.push(...problemsOfSelector(node, text, known));
      if (node.name === 'AggregateExpr') problems.push(...problemsOfGrouping(node, text, known));
    },
  });
  return problems;
}

/** The labels of what an expression results in, as far as they are known to be there. */
export function labelsOf(expr: string, known: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const { text, tree } = parsed(expr);
  const labels = new Set<string>();
  const visit = (node: Node): void => {
    if (node.name === 'AggregateExpr' && groupingOf(node, text)) {
      for (const label of groupingOf(node, text) ?? []) labels.add(label);
      return;
    }
    // `absent` has the labels of its matchers, and `and on (…)` only asks whether there is such a series.
    if (node.name === 'VectorSelector') for (const label of labelsOfSelector(node, text, known)) labels.add(label);
    for (const child of childrenOf(node)) visit(child);
  };
  visit(tree.topNode);
  return labels;
}

/** Names of all series that an expression asks for. */
export function seriesIn(expr: string): readonly string[] {
  const { text, tree } = parsed(expr);
  return below(tree.topNode, 'VectorSelector').map((node) => nameOf(node, text));
}

function parsed(expr: string) {
  const text = withoutVariables(expr, { rate: '1m', range: '1h' });
  return { text, tree: parser.parse(text) };
}

function problemsOfSelector(node: Node, text: string, known: ReadonlyMap<string, readonly string[]>): string[] {
  const name = nameOf(node, text);
  const labels = known.get(name);
  if (!labels) return [`there is no metric ${name}`];
  return below(node, 'LabelName')
    .map((label) => text.slice(label.from, label.to))
    .filter((label) => !labels.includes(label) && !TARGET_LABELS.includes(label))
    .map((label) => `${name} has no label ${label}`);
}

/** What is grouped by must be a label of everything that is summed up. */
function problemsOfGrouping(node: Node, text: string, known: ReadonlyMap<string, readonly string[]>): string[] {
  return (groupingOf(node, text) ?? []).flatMap((label) =>
    below(node, 'VectorSelector')
      .filter((selector) => !labelsOfSelector(selector, text, known).includes(label))
      .map((selector) => `${nameOf(selector, text)} has no label ${label} to group by`),
  );
}

/** What alone is left of the labels; undefined when others stay as they are: `without (…)`, `topk`. */
function groupingOf(node: Node, text: string): readonly string[] | undefined {
  const operator = node.getChild('AggregateOp');
  if (operator && /^(top|bottom)k$/.test(text.slice(operator.from, operator.to))) return undefined;
  const modifier = node.getChild('AggregateModifier');
  if (!modifier || !modifier.getChild('By')) return modifier ? undefined : [];
  return below(modifier, 'LabelName').map((label) => text.slice(label.from, label.to));
}

function labelsOfSelector(node: Node, text: string, known: ReadonlyMap<string, readonly string[]>): readonly string[] {
  return [...(known.get(nameOf(node, text)) ?? []), ...TARGET_LABELS];
}

function nameOf(selector: Node, text: string): string {
  const name = below(selector, 'Identifier')[0];
  return name ? text.slice(name.from, name.to) : '';
}

function below(node: Node, name: string): Node[] {
  return childrenOf(node).flatMap((child) => (child.name === name ? [child] : below(child, name)));
}

function childrenOf(node: Node): Node[] {
  const children: Node[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}
