// Formats Probes and parses the answers of WS-Discovery (OASIS 1.0 as used by ONVIF: ONVIF Core Specification §7). Pure; a
// datagram may come from anyone.

import { printable } from '../../../base/printable.ts';
import { at, childrenOf, parseXml, textAt, XmlError, type XmlElement } from '../../../base/xml.ts';

export const DISCOVERY_GROUP = '239.255.255.250';
export const DISCOVERY_PORT = 3702;

/** One device of a ProbeMatches message. */
export interface ProbeMatch {
  /** Its `urn:uuid:…`, or what the device states instead. */
  readonly endpoint: string;
  /** The stated addresses of its device service; only `http:` and `https:` URLs. */
  readonly addresses: readonly string[];
  /** From its scopes; undefined if not stated. */
  readonly name: string | undefined;
  readonly hardware: string | undefined;
}

interface ProbeMatches {
  /** The id of the Probe that is answered. */
  readonly relatesTo: string;
  readonly matches: readonly ProbeMatch[];
}

/** The limit of an IPv4 datagram. */
const MAX_DATAGRAM_BYTES = 65_507;
const MAX_MATCHES = 16;
const MAX_ADDRESSES = 16;
const MAX_SCOPES = 64;
const MAX_ADDRESS_CHARACTERS = 512;
const SCOPE = 'onvif://www.onvif.org/';

const ADDRESSING = 'http://schemas.xmlsoap.org/ws/2004/08/addressing';
const DISCOVERY = 'http://schemas.xmlsoap.org/ws/2005/04/discovery';

/** `NetworkVideoTransmitter` is the type of cameras since the first ONVIF version; some state `Device` instead. */
const TYPES = {
  NetworkVideoTransmitter: 'http://www.onvif.org/ver10/network/wsdl',
  Device: 'http://www.onvif.org/ver10/device/wsdl',
} as const;

type DeviceType = keyof typeof TYPES;
export const DEVICE_TYPES = Object.keys(TYPES) as DeviceType[];

/**
 * `messageId`: `urn:uuid:…`. Each namespace is declared where it is first used, because some cameras' parsers find it only there.
 */
export function formatProbe(type: DeviceType, messageId: string): string {
  return (
    '<?xml version="1.0" encoding="UTF-8"?>' +
    `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="${ADDRESSING}"><s:Header>` +
    `<a:Action s:mustUnderstand="1">${DISCOVERY}/Probe</a:Action><a:MessageID>${messageId}</a:MessageID>` +
    `<a:ReplyTo><a:Address>${ADDRESSING}/role/anonymous</a:Address></a:ReplyTo>` +
    '<a:To s:mustUnderstand="1">urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To></s:Header>' +
    `<s:Body><Probe xmlns="${DISCOVERY}"><d:Types xmlns:d="${DISCOVERY}" xmlns:dp0="${TYPES[type]}">dp0:${type}</d:Types>` +
    '</Probe></s:Body></s:Envelope>'
  );
}

/** Undefined for anything that is not an answer to a Probe. Never throws. */
export function parseProbeMatches(datagram: Uint8Array): ProbeMatches | undefined {
  if (datagram.byteLength > MAX_DATAGRAM_BYTES) return undefined;
  let envelope: XmlElement;
  try {
    envelope = parseXml(new TextDecoder().decode(datagram));
  } catch (err) {
    if (err instanceof XmlError) return undefined;
    throw err;
  }
  const relatesTo = textAt(envelope, 'Header', 'RelatesTo');
  const answers = at(envelope, 'Body', 'ProbeMatches');
  if (relatesTo === undefined || !answers) return undefined;
  const matches = childrenOf(answers, 'ProbeMatch').slice(0, MAX_MATCHES).filter(isOnvif).map(toMatch);
  return { relatesTo, matches };
}

const words = (element: XmlElement, name: string, max: number): string[] =>
  (textAt(element, name) ?? '').split(/\s+/, max).filter((word) => word !== '');

/** Printers, Windows and Synology's file servers answer every Probe, whatever its type. */
function isOnvif(element: XmlElement): boolean {
  return (
    words(element, 'Types', MAX_SCOPES).some((type) => /(?:^|:)NetworkVideo/.test(type)) ||
    words(element, 'Scopes', MAX_SCOPES).some((text) => text.toLowerCase().startsWith(SCOPE))
  );
}

function toMatch(element: XmlElement): ProbeMatch {
  const scopes = words(element, 'Scopes', MAX_SCOPES);
  return {
    endpoint: printable(textAt(element, 'EndpointReference', 'Address') ?? ''),
    addresses: words(element, 'XAddrs', MAX_ADDRESSES).filter(isHttpAddress),
    name: scope(scopes, 'name'),
    hardware: scope(scopes, 'hardware'),
  };
}

function isHttpAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS_CHARACTERS && /^https?:\/\//i.test(text) && URL.canParse(text);
}

/** `onvif://www.onvif.org/name/Front%20gate` gives the name `Front gate`. */
function scope(scopes: readonly string[], kind: string): string | undefined {
  const prefix = `${SCOPE}${kind}/`;
  const found = scopes.find((text) => text.toLowerCase().startsWith(prefix));
  if (found === undefined) return undefined;
  const value = found.slice(prefix.length);
  try {
    return printable(decodeURIComponent(value), 64) || undefined;
  } catch {
    // These escapes are not UTF-8.
    return printable(value, 64) || undefined;
  }
}
