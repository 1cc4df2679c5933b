// The common syntax of RTSP headers: `name`, `name=token` and `name="quoted \"string\""` between separators.

interface Parameter {
  /** As written. */
  readonly name: string;
  /** Unquoted and unescaped; undefined when there is no `=`. */
  readonly value: string | undefined;
  readonly quoted: boolean;
}

/** Reads the quoted string that starts at `text[start] === '"'`; `end` is the position after its closing quote. */
export function readQuoted(text: string, start: number): { value: string; end: number } {
  let value = '';
  let position = start + 1;
  while (position < text.length) {
    const character = text[position] as string;
    if (character === '"') return { value, end: position + 1 };
    if (character === '\\' && position + 1 < text.length) {
      value += text[position + 1];
      position += 2;
    } else {
      value += character;
      position++;
    }
  }
  // The closing quote is missing: the rest of the text is the value.
  return { value, end: position };
}

/** Splits `text` at each `separator` outside quoted strings; empty parts are left out. */
export function splitOutsideQuotes(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let position = 0;
  while (position <= text.length) {
    const character = text[position];
    if (character === '"') {
      position = readQuoted(text, position).end;
    } else if (character === undefined || character === separator) {
      const part = text.slice(start, position).trim();
      if (part !== '') parts.push(part);
      start = ++position;
    } else {
      position++;
    }
  }
  return parts;
}

/** Parses one `name=value`, with optional white space around name and value. */
export function parseParameter(part: string): Parameter {
  const equals = part.indexOf('=');
  if (equals < 0) return { name: part.trim(), value: undefined, quoted: false };
  const name = part.slice(0, equals).trim();
  const rest = part.slice(equals + 1).trim();
  if (rest.startsWith('"')) return { name, value: readQuoted(rest, 0).value, quoted: true };
  return { name, value: rest, quoted: false };
}

export function quote(value: string): string {
  return `"${value.replace(/["\\]/g, '\\$&')}"`;
}

/** Parses a decimal integer from 0 to `max`; anything else is undefined. */
export function parseDecimal(text: string | undefined, max: number): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  const number = Number(text);
  return number <= max ? number : undefined;
}
