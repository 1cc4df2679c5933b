// Evaluates the CEL rules of a schema (https://kubernetes.io/docs/reference/using-api/cel/) for an object.

import { isIP, isIPv4, isIPv6 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { Environment, type ParseResult } from '@marcbachmann/cel-js';
import { isJson, set } from './json.ts';
import { childrenOf, ownSchema, type FieldProblem, type Rule, type Schema } from './schema.ts';

const WORDS = {
  FieldValueInvalid: 'Invalid value',
  FieldValueForbidden: 'Forbidden',
  FieldValueRequired: 'Required value',
  FieldValueDuplicate: 'Duplicate value',
} as const;

/** https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity */
const QUANTITY = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$/;
const PREFIX_LENGTH = /^(0|[1-9][0-9]{0,2})$/;
const MAPPED = /^::ffff:.*\./i;

/** Like the API server, accepts no addresses with a zone and no IPv4-mapped IPv6 addresses. */
const isAddress = (text: string): boolean => isIP(text) !== 0 && !text.includes('%') && !MAPPED.test(text);

function isNetwork(text: string): boolean {
  const [address = '', length = '', ...more] = text.split('/');
  const isLength = more.length === 0 && PREFIX_LENGTH.test(length);
  if (!isLength || !isAddress(address)) return false;
  return (isIPv4(address) && Number(length) <= 32) || (isIPv6(address) && Number(length) <= 128);
}

/** Patterns of rules have RE2 syntax, with classes such as \p{Cc}. JavaScript supports these with the flag `u`. */
const patterns = new Map<string, RegExp>();
function matches(text: string, pattern: string): boolean {
  let compiled = patterns.get(pattern);
  if (!compiled) patterns.set(pattern, (compiled = new RegExp(pattern, 'u')));
  return compiled.test(text);
}

const environment = new Environment({ unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false })
  .registerFunction('string.matchesPattern(string): bool', matches)
  .registerFunction('isQuantity(string): bool', (text: string) => QUANTITY.test(text))
  .registerFunction('isIP(string): bool', isAddress)
  .registerFunction('isCIDR(string): bool', isNetwork);

/** A text in a rule, which stays as it is, or the name of a call. A text without an end ends with the rule. */
const TEXT_OR_MATCHES = /"(?:\\.|[^"\\])*(?:"|$)|'(?:\\.|[^'\\])*(?:'|$)|\.matches\(/g;

/** The library's own `matches` lacks the flag. */
const withOwnMatches = (rule: string): string =>
  rule.replaceAll(TEXT_OR_MATCHES, (found) => (found === '.matches(' ? '.matchesPattern(' : found));

/** By the text of the rule; there are as many as the schemas have. */
const compiled = new Map<string, ParseResult>();
function compile(rule: string): ParseResult {
  let parsed = compiled.get(rule);
  if (!parsed) compiled.set(rule, (parsed = environment.parse(withOwnMatches(rule))));
  return parsed;
}

/** The rules that a value breaks, at any depth. `old` undefined: the value is new, and rules about changes do not apply. */
export function brokenRules(value: unknown, old: unknown, schema: Schema, field: string): readonly FieldProblem[] {
  if (old !== undefined && isDeepStrictEqual(value, old)) return [];
  const own = (schema['x-kubernetes-validations'] ?? []).flatMap((rule) => {
    const isTransition = rule.rule.includes('oldSelf');
    if (isTransition && old === undefined) return [];
    return isKept(rule, celOf(value, schema), celOf(old, schema)) ? [] : [problemOf(rule, field)];
  });
  const inner = childrenOf(value, old, schema, field).flatMap((child) =>
    brokenRules(child.value, child.old, child.schema, child.field),
  );
  return [...own, ...inner];
}

function isKept({ rule }: Rule, self: unknown, oldSelf: unknown): boolean {
  try {
    return compile(rule)({ self, oldSelf }) === true;
  } catch {
    // As on the API server, a rule that cannot be evaluated refuses the object.
    return false;
  }
}

/** The value itself is not shown: it may contain a login. */
function problemOf({ message, rule, fieldPath = '', reason = 'FieldValueInvalid' }: Rule, field: string): FieldProblem {
  const named = field === '' ? fieldPath.replace(/^\./, '') : `${field}${fieldPath}`;
  return { field: named, message: `${WORDS[reason]}: ${message ?? `failed rule: ${rule}`}`, isBlocking: false };
}

/** Numbers in CEL are integers or not, by their type; in JSON they are not. */
function celOf(value: unknown, schema: Schema | undefined): unknown {
  if (typeof value === 'number') {
    const isInteger = schema?.type === 'integer' || schema?.['x-kubernetes-int-or-string'] === true;
    return isInteger ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map((item) => celOf(item, schema?.items));
  if (!isJson(value)) return value;
  const converted: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) set(converted, key, celOf(inner, schema && ownSchema(schema, key)));
  return converted;
}
