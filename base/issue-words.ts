// Turns a zod issue into plain words, of JSON or of YAML. The value is left out: it may be a secret.

import type { z } from 'zod';

export const MISSING = 'is missing';

const COMMON = { boolean: 'expected true or false', number: 'expected a number', int: 'expected a whole number' };
const EXPECTED: Readonly<Record<'JSON' | 'YAML', Readonly<Record<string, string>>>> = {
  JSON: { ...COMMON, string: 'expected a string', array: 'expected an array', object: 'expected an object' },
  YAML: {
    ...COMMON,
    string: 'expected text (put numbers in quotes)',
    array: 'expected a list',
    object: 'expected keys and values',
  },
};

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries', set: ' entries' };

export function issueWords(issue: z.core.$ZodIssue, format: keyof typeof EXPECTED = 'JSON'): string {
  // A schema with its own message is quoted as it is.
  if (!/^(?:Invalid|Too|Unrecognized)/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case 'invalid_type':
      return issue.message.endsWith('received undefined')
        ? MISSING
        : (EXPECTED[format][issue.expected] ?? issue.message);
    case 'invalid_value':
      if (issue.message.endsWith('received undefined')) return MISSING;
      return `expected ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return `expected ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
    case 'too_big':
      return `expected ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
    case 'unrecognized_keys':
      return `unknown: ${issue.keys.join(', ')}`;
    case 'not_multiple_of':
      return `expected a multiple of ${issue.divisor}`;
    case 'invalid_format':
      return issue.format === 'regex' ? `expected text that matches ${issue.pattern}` : `expected ${issue.format}`;
    default:
      return issue.message;
  }
}
