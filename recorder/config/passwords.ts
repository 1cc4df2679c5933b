// Hides passwords in the addresses of cameras, and restores them in addresses that come back.

import { hostOf } from './values.ts';
import { parseRtspUrl, splitUserPart } from '../rtsp/url.ts';

/** A password is missing that only the user knows. The message says where. */
export class PasswordNeeded extends Error {
  override readonly name = 'PasswordNeeded';
}

/** Replaces a password in a path or query. */
const MASK = '***';
/** Such as `?user=admin&password=secret`, and `/user=admin_password=secret_channel=1.sdp` of XMEye and similar cameras. */
const IN_PATH = /(?<![a-z])(pass(?:word|wd)?|pwd|token)=[^&;/?#]+/gi;

interface Parts {
  /** Including `://`. */
  readonly scheme: string;
  /** As written: with a password if it contains a colon. */
  readonly userPart: string | undefined;
  /** Host, port, path and query. */
  readonly rest: string;
  /** Host and port, for comparison. */
  readonly place: string;
  /** Host and path may be part of a password. */
  readonly isDoubtful: boolean;
}

/** Undefined for text that is not an address. */
function partsOf(address: string): Parts | undefined {
  const [, scheme, text] = /^([a-z+]+:\/\/)(.*)$/is.exec(address.trim()) ?? [];
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

/** The address with its user, without passwords. */
export function hidePassword(address: string): string {
  const parts = partsOf(address);
  if (!parts || parts.isDoubtful) return `${/^\s*([a-z+]+:\/\/)/i.exec(address)?.[1] ?? ''}…`;
  const { scheme, userPart, rest } = parts;
  return `${scheme}${userPart === undefined ? '' : `${userOf(userPart)}@`}${rest.replaceAll(IN_PATH, `$1=${MASK}`)}`;
}

/**
 * The new address, with the password of the previous one if it has none: if the text is the one that was shown, or if host
 * and port are the same and the user is the same or missing. `rtsp://@host/` removes the login. Throws `PasswordNeeded` if
 * the password would be sent to another host or user.
 */
export function keepPassword(address: string, before: string | undefined): string {
  if (before === undefined || address === before) return address;
  if (address === hidePassword(before)) return before;
  if (address.includes(`=${MASK}`))
    throw new PasswordNeeded(`${MASK} stands for a password: replace it by the password`);
  const [now, old] = [partsOf(address), partsOf(before)];
  if (!now || now.userPart?.includes(':') || now.userPart === '' || !old?.userPart?.includes(':')) return address;
  const isThere = now.place === old.place;
  if (isThere && (now.userPart === undefined || now.userPart === userOf(old.userPart))) {
    return `${now.scheme}${old.userPart}@${now.rest}`;
  }
  if (now.userPart === undefined) return address;
  throw new PasswordNeeded('its host, port or user has changed: add the password');
}
