// Parses the address of another recorder in a configuration file.

import { parseListen, ValueError } from './values.ts';

/** `host:port`, optionally with `http://` or `https://`. */
export function parsePeer(text: string): string {
  const expected = 'expected host:port such as nvr2.example:9997';
  const address = /^(?:https?:\/\/)?([^/]+)$/i.exec(text)?.[1] ?? '';
  try {
    const { host, port } = parseListen(address);
    if (host === '::' || port === 0) throw new ValueError(expected);
  } catch (err) {
    throw new ValueError(expected, { cause: err });
  }
  return text;
}
