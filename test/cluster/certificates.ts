// A certificate authority of a test cluster's own, made with openssl: one directory holds it and all it signs.

import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  /** Addresses and names of a server, as `127.0.0.1` or `localhost`. */
  readonly hosts?: readonly string[];
}

// openssl's own configuration would make every certificate one of an authority.
const CONFIG = `[req]
distinguished_name = name
prompt = no
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign, digitalSignature
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
`;
const DAYS = '30';

export class CertificateAuthority {
  readonly #directory: string;

  /** Makes one in `directory`, which is created. */
  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(this.#file('openssl.cnf'), CONFIG);
    this.#request('ca', '/CN=kube-nvr-test', ['-extensions', 'authority']);
  }

  get certFile(): string {
    return this.#file('ca.crt');
  }

  get keyFile(): string {
    return this.#file('ca.key');
  }

  get cert(): string {
    return readFileSync(this.certFile, 'utf8');
  }

  /** Signs a certificate for servers and clients; its files are `<name>.crt` and `<name>.key`. */
  issue(name: string, { commonName, organizations = [], hosts = [] }: Subject): CertificateFiles {
    const names = hosts.map((host) => (/^[\d.]+$|:/.test(host) ? `IP:${host}` : `DNS:${host}`));
    const subject = [...organizations.map((organization) => `/O=${organization}`), `/CN=${commonName}`].join('');
    return this.#request(name, subject, [
      '-extensions',
      'leaf',
      ...(names.length > 0 ? ['-addext', `subjectAltName=${names.join(',')}`] : []),
      '-CA',
      this.certFile,
      '-CAkey',
      this.keyFile,
    ]);
  }

  /** A key pair for signing service-account tokens: files of the private and the public key. */
  keyPair(name: string): { readonly privateKey: string; readonly publicKey: string } {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const files = { privateKey: this.#file(`${name}.key`), publicKey: this.#file(`${name}.pub`) };
    writeFileSync(files.privateKey, privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 });
    writeFileSync(files.publicKey, publicKey.export({ type: 'spki', format: 'pem' }));
    return files;
  }

  #file(name: string): string {
    return join(this.#directory, name);
  }

  #request(name: string, subject: string, args: readonly string[]): CertificateFiles {
    const files = { cert: this.#file(`${name}.crt`), key: this.#file(`${name}.key`) };
    // prettier-ignore
    const request = [
      'req', '-x509', '-new', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
      '-config', this.#file('openssl.cnf'), '-days', DAYS, '-subj', subject, '-utf8',
      '-keyout', files.key, '-out', files.cert,
    ];
    execFileSync('openssl', [...request, ...args], { stdio: 'pipe' });
    return files;
  }
}
