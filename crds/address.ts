// The addresses of cameras in a spec, and the rules that the API server has for them: each fault has a message of its own, and none
// repeats the address, which could contain a password.

import { z } from 'zod';
import { withRules, type CelRule } from './schema-parts.ts';

/** The text up to the host. A user part is allowed here, because another rule refuses it. */
const START = '^[a-z+]+://([^/?#]*@)?';
const BRACKETED = String.raw`\[[0-9A-Fa-f:.]+(%[^\]/?#\s]+)?\]`;
const PLAIN = String.raw`[^:/?#@\[\]]+`;
const PORT = '0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const END = '([/?#]|$)';

/** Whether the address has a host at its beginning, an IPv6 address without brackets, a port, a port that exists. */
const HOST = `${START}(${BRACKETED}|${PLAIN})(:|${END})`;
const UNBRACKETED = String.raw`${START}[^/?#@\[\]]*:[^/?#@\[\]]*:[^/?#@\[\]]*${END}`;
const WITH_PORT = `${START}(${BRACKETED}|${PLAIN}):[^:/?#]+${END}`;
const WITH_GOOD_PORT = `${START}(${BRACKETED}|${PLAIN}):${PORT}${END}`;

const is = (pattern: string): string => `self.matches(r'${pattern}')`;

/**
 * An address of a camera. It must not contain a login, because everyone who may read the object would see it. Our programs read
 * also what these rules refuse: it may have been stored before there were such rules.
 *
 * @param example What the messages show, such as `rtsp://10.0.0.5/stream`.
 */
export function addressWithoutUser(example: string, ...schemes: [string, ...string[]]): z.ZodString {
  const [scheme, rest] = example.split(/:\/\/[^/]+/) as [string, string];
  const begin = `^(${schemes.join('|').replaceAll('+', String.raw`\+`)})://`;
  const named = schemes
    .map((one) => `${one}://`)
    .join(', ')
    .replace(/, (?=[^,]*$)/, ' or ');
  const expected = `must be an address that begins with ${named}, such as ${example}`;
  const rules: CelRule[] = [
    { rule: is(begin), message: expected },
    { rule: String.raw`!self.matches(r'\s')`, message: `must have no spaces, as in ${example}` },
    {
      rule: `!${is(begin)} || ${is(UNBRACKETED)} || ${is(HOST)}`,
      message: `must name a host, as in ${example}`,
    },
    {
      rule: `!${is(UNBRACKETED)}`,
      message: `must have brackets around an IPv6 address: ${scheme}://[fd00::5]${rest}`,
    },
    {
      rule: `!${is(WITH_PORT)} || ${is(WITH_GOOD_PORT)}`,
      message: `must have a port from 1 to 65535, or none`,
    },
    {
      rule: "!self.matches('^[A-Za-z0-9+.-]+://[^/?#]*@')",
      message: 'must not have a user part: put username and password into a Secret and name it in credentialsSecretRef',
      reason: 'FieldValueForbidden',
    },
  ];
  const stored = new RegExp(`${begin}[^\\s/?#][^\\s]*$`);
  return withRules(z.string().min(1).max(2048).regex(stored, expected), ...rules);
}
