// Parses XML from devices and object storage into a tree of plain values. Limited: no document type (so no entities and no fetching), a maximum
// size, depth and number of elements. Prefixes are dropped, because devices bind them wrongly.

import sax, { type SAXOptions } from 'sax';

/** The text is not well-formed or exceeds a limit. */
export class XmlError extends Error {
  override readonly name = 'XmlError';
}

export interface XmlElement {
  /** Without prefix. */
  readonly name: string;
  /** Undefined if the prefix is bound to nothing. */
  readonly namespace: string | undefined;
  /** Names without prefixes; without namespace declarations. Of several with one name, the last counts. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** The text directly inside the element, trimmed. */
  readonly text: string;
}

export const MAX_XML_CHARACTERS = 1024 * 1024;
/** SOAP needs about a dozen levels. */
const MAX_DEPTH = 48;
/** A recorder with 64 channels lists its profiles with about 10 000 elements. */
const MAX_ELEMENTS = 50_000;

/** Only the five entities of XML itself. The package's types lack this option. */
const OPTIONS = { strictEntities: true, position: false } as SAXOptions;

interface Building {
  readonly name: string;
  readonly namespace: string | undefined;
  /** Namespaces that the element binds, by prefix. */
  readonly binds: ReadonlyMap<string, string>;
  readonly attributes: Map<string, string>;
  readonly children: XmlElement[];
  text: string;
}

const XMLNS = /^xmlns(?::|$)/;
const localName = (name: string): string => name.slice(name.indexOf(':') + 1);

/** Returns the root element. Throws `XmlError`. */
export function parseXml(text: string): XmlElement {
  if (text.length > MAX_XML_CHARACTERS) throw new XmlError('too large');
  const open: Building[] = [];
  let root: XmlElement | undefined;
  let elements = 0;
  const parser = sax.parser(true, OPTIONS);
  parser.onerror = (error) => {
    throw new XmlError(`not well-formed: ${error.message.split('\n', 1)[0]}`);
  };
  parser.ondoctype = () => {
    throw new XmlError('a document type, which SOAP forbids');
  };
  parser.onopentag = ({ name, attributes }) => {
    if (open.length === MAX_DEPTH) throw new XmlError('nested too deeply');
    if (++elements > MAX_ELEMENTS) throw new XmlError('too many elements');
    const all = Object.entries(attributes).map(([key, value]) => [key, String(value)] as const);
    const binds = new Map(all.filter(([key]) => XMLNS.test(key)).map(([key, value]) => [key.slice(6), value] as const));
    const prefix = name.slice(0, Math.max(0, name.indexOf(':')));
    const binding = binds.has(prefix) ? { binds } : open.findLast((outer) => outer.binds.has(prefix));
    open.push({
      name: localName(name),
      namespace: binding?.binds.get(prefix),
      binds,
      attributes: new Map(all.filter(([key]) => !XMLNS.test(key)).map(([key, value]) => [localName(key), value])),
      children: [],
      text: '',
    });
  };
  const addText = (more: string) => {
    const element = open.at(-1);
    if (element) element.text += more;
  };
  parser.ontext = addText;
  parser.oncdata = addText;
  parser.onclosetag = () => {
    const element = open.pop();
    if (!element) return;
    element.text = element.text.trim();
    const parent = open.at(-1);
    if (parent) parent.children.push(element);
    else root ??= element;
  };
  parser.write(text.replace(/^\uFEFF?\s*/, '')).close();
  if (!root) throw new XmlError('empty');
  return root;
}

export const childOf = (element: XmlElement | undefined, name: string): XmlElement | undefined =>
  element?.children.find((child) => child.name === name);

export const childrenOf = (element: XmlElement | undefined, name: string): readonly XmlElement[] =>
  element?.children.filter((child) => child.name === name) ?? [];

/** The element at the end of a path of first children. */
export const at = (element: XmlElement | undefined, ...path: readonly string[]): XmlElement | undefined =>
  path.reduce<XmlElement | undefined>(childOf, element);

/** The text at the end of a path; undefined if it is missing or empty. */
export const textAt = (element: XmlElement | undefined, ...path: readonly string[]): string | undefined =>
  at(element, ...path)?.text || undefined;

/** `xs:dateTime`; without a zone it is UTC, as ONVIF wants it. */
export function dateTime(text: string | undefined): number | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:\d\d)?$/i.exec(text ?? '');
  if (!match) return undefined;
  const ms = Date.parse(`${match[1]}${match[2] ?? 'Z'}`);
  // Devices without footage state 1970.
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}

/** Escapes text for element content and attribute values. */
export function escapeXml(text: string): string {
  const escapes: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&apos;',
  };
  // Characters that XML 1.0 §2.2 does not allow are dropped.
  return text
    .toWellFormed()
    .replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replace(/[&<>"']/g, (character) => escapes[character] as string);
}
