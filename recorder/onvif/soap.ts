// Formats SOAP requests and parses the responses: returns the content of the body, or throws why there is none. SOAP 1.2, and 1.1,
// with which some cameras respond.

import { printable } from '../../base/printable.ts';
import { LoginRefused, OnvifError } from './error.ts';
import { at, childOf, parseXml, textAt, XmlError, type XmlElement } from '../../base/xml.ts';

/** Both are XML: the content of the body, and that of the header, which may be empty. */
export function formatEnvelope(content: string, header: string): string {
  const head = header === '' ? '' : `<s:Header>${header}</s:Header>`;
  return `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope">${head}<s:Body>${content}</s:Body></s:Envelope>`;
}

const REFUSED_LOGIN = /not\s*authorized|unauthori[sz]ed|FailedAuthentication|FailedCheck|InvalidSecurity/i;

/** Codes from the outermost to the innermost, such as `Sender`, `InvalidArgVal`, `NoProfile`. */
function faultCodes(fault: XmlElement): string[] {
  const codes: string[] = [];
  for (let code = childOf(fault, 'Code'); code; code = childOf(code, 'Subcode')) {
    const value = textAt(code, 'Value');
    if (value !== undefined) codes.push(value);
  }
  const plain = textAt(fault, 'faultcode');
  if (plain !== undefined) codes.push(plain);
  return codes.map((code) => code.slice(code.indexOf(':') + 1));
}

/** The camera's own words: reason and detail, or the innermost code if there are none. */
function faultError(fault: XmlElement): OnvifError {
  const codes = faultCodes(fault);
  const reason = textAt(fault, 'Reason', 'Text') ?? textAt(fault, 'faultstring');
  const detail = textAt(fault, 'Detail', 'Text') ?? textAt(fault, 'detail');
  const words = [...new Set([reason, detail])].filter((part) => part !== undefined).join(': ');
  const code = codes.at(-1);
  const said = printable(words === '' ? (code ?? 'no reason') : code === undefined ? words : `${words} (${code})`);
  const refused = REFUSED_LOGIN.test(`${codes.join(' ')} ${words.slice(0, 1000)}`);
  return refused
    ? new LoginRefused(`the camera refuses the login: ${said}`)
    : new OnvifError('fault', `the camera refuses: ${said}`);
}

/** The first element of the body. Throws `OnvifError` for a fault, `XmlError` if the text is not an envelope. */
export function readEnvelope(text: string): XmlElement {
  const envelope = parseXml(text);
  const body = envelope.name === 'Envelope' ? at(envelope, 'Body') : undefined;
  const content = body?.children[0];
  if (!content) throw new XmlError('no envelope with a body');
  if (content.name === 'Fault') throw faultError(content);
  return content;
}
