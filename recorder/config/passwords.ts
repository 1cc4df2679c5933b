// Addresses of cameras with passwords in; out what may be shown of them, and, of what was shown and comes back, the address
// with its password again.

import { hostOf } from './values.ts';
import { parseRtspUrl, splitUserPart } from '../rtsp/url.ts';

/** A password is missing that nobody knows but who wrote the address. The message says of what. */
export class PasswordNeeded extends Error {
  override readonly name = 'PasswordNeeded';
}

/** In the place of a password in a path or query. */
const MASK = '***';
/** As `?user=admin&password=secret`, and `/user=admin_password=secret_channel=1.sdp` of XMEye and its kin. */
const IN_PATH = /(?<![a-z])(pass(?:word|wd)?|pwd|token)=[^&;/?#]+/gi;

interface Parts {
  /** With `://`. */
  readonly scheme: string;
  /** As written: with a password when there is a colon in it. */
  readonly userPart: string | undefined;
  /** Host, port, path and query. */
  readonly rest: string;
  /** To compare. */
  readonly place: string;
  /** Host and path may be the rest of a password. */
  readonly isDoubtful: boolean;
}

/** Undefined for what is no address. */
function partsOf(address: string): Parts | undefined {
  const [, scheme, text] = /^\s*([a-z+]+:\/\/)(.*?)\s*$/is.exec(address) ?? [];
  const split = text === undefined ? undefined : splitUserPart(text);
  if (scheme === undefined || text === undefined || !split || hostOf(address) === undefined) return undefined;
  const { userPart } = split;
  const { host, port, hostIsDoubtful = false } = parseRtspUrl(address.replace(/^\s*http/i, 'rtsp'));
  return {
    scheme,
    userPart,
    rest: userPart === undefined ? text : text.slice(userPart.length + 1),
    place: `${host.toLowerCase()} ${port}`,
    isDoubtful: hostIsDoubtful,
  };
}

const userOf = (userPart: string): string => userPart.split(':', 1)[0] as string;

/** An address to show: its user stays, passwords do not. */
export function hidePassword(address: string): string {
  const parts = partsOf(address);
  if (!parts || parts.isDoubtful) return `${/^\s*([a-z+]+:\/\/)/i.exec(address)?.[1] ?? ''}…`;
  const { scheme, userPart, rest } = parts;
  return `${scheme}${userPart === undefined ? '' : `${userOf(userPart)}@`}${rest.replaceAll(IN_PATH, `$1=${MASK}`)}`;
}

/**
 * An address as somebody wants it now, with the password of the one before where it has none of its own: the same text as
 * was shown, or the same host and port with the same user or none. `rtsp://@host/` takes the login away. Throws
 * `PasswordNeeded` where that password would go to another host or user.
 */
export function keepPassword(address: string, before: string | undefined): string {
  if (before === undefined || address === before) return address;
  if (address === hidePassword(before)) return before;
  if (address.includes(`=${MASK}`)) throw new PasswordNeeded(`${MASK} stands for a password: write it out`);
  const [now, old] = [partsOf(address), partsOf(before)];
  if (!now || now.userPart?.includes(':') || now.userPart === '' || !old?.userPart?.includes(':')) return address;
  const isThere = now.place === old.place;
  if (isThere && (now.userPart === undefined || now.userPart === userOf(old.userPart))) {
    return `${now.scheme}${old.userPart}@${now.rest}`;
  }
  if (now.userPart === undefined) return address;
  throw new PasswordNeeded('its host, port or user is another than before: write the password, too');
}
