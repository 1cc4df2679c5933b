// A self-signed certificate, made anew for each camera: what cameras ship with, and no key lies in the repository.

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const DAY_MS = 24 * 3600 * 1000;

/** Key and certificate in PEM for the given host name, valid since a day ago. */
export function selfSignedCertificate(commonName: string, validForMs = DAY_MS): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const ecdsaWithSha256 = sequence(objectIdentifier('2a8648ce3d040302'));
  const name = sequence(set(sequence(objectIdentifier('550403'), der(0x0c, Buffer.from(commonName)))));
  const validity = sequence(utcTime(Date.now() - DAY_MS), utcTime(Date.now() + validForMs));
  const serial = der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const subjectPublicKey = publicKey.export({ type: 'spki', format: 'der' });
  // RFC 5280 §4.1: version 3, serial, signature algorithm, issuer, validity, subject, key.
  const version = der(0xa0, der(0x02, Buffer.from([2])));
  const body = sequence(version, serial, ecdsaWithSha256, name, validity, name, subjectPublicKey);
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]));
  const base64 = sequence(body, ecdsaWithSha256, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.match(/.{1,64}/g)?.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const lengthBytes = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content]);
}

const sequence = (...items: Buffer[]): Buffer => der(0x30, Buffer.concat(items));
const set = (item: Buffer): Buffer => der(0x31, item);
const objectIdentifier = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const utcTime = (ms: number): Buffer =>
  der(0x17, Buffer.from(`${new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14)}Z`));
