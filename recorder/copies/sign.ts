// Signs requests to object storage: Signature Version 4 of AWS, in the header Authorization.

import { createHash, createHmac } from 'node:crypto';

export interface SigningKey {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

interface SignedRequest {
  readonly method: string;
  readonly url: URL;
  /** Names in lower case; all of them are signed, `host` in addition. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of the body, in hexadecimal digits. */
  readonly sha256: string;
  readonly timeMs: number;
}

export const sha256Hex = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
export const NO_BODY = sha256Hex('');

/** The headers with those that a signed request has in addition. */
export function signed(request: SignedRequest, { accessKeyId, secretAccessKey, region }: SigningKey) {
  const { method, url, sha256, timeMs } = request;
  const time = new Date(timeMs).toISOString().replaceAll(/[-:]|\.\d+/g, ''); // 20130524T000000Z
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const headers = { ...request.headers, 'x-amz-content-sha256': sha256, 'x-amz-date': time };
  const lines = Object.entries({ ...headers, host: url.host }).sort(byName);
  const names = lines.map(([name]) => name).join(';');
  const canonical = [
    method,
    url.pathname,
    [...url.searchParams]
      .map((pair) => pair.map(escaped) as [string, string])
      .sort(byName)
      .map(([name, value]) => `${name}=${value}`)
      .join('&'),
    ...lines.map(([name, value]) => `${name}:${value.trim()}`),
    '',
    names,
    sha256,
  ].join('\n');
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256Hex(canonical)].join('\n');
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = hmac(key, text).toString('hex');
  const credential = `Credential=${accessKeyId}/${scope}`;
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 ${credential},SignedHeaders=${names},Signature=${signature}`,
  };
}

/** A key as a path: everything escaped but `/` and the unreserved characters of RFC 3986. */
export const escapedKey = (key: string): string => key.split('/').map(escaped).join('/');

const escaped = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const byName = ([a]: [string, string], [b]: [string, string]): number => (a < b ? -1 : 1);
