// Renews the certificate of this node long before it expires, and soon after the addresses of the server or the CAs of the cluster change.

import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { isLeafDue } from '../../base/authorities.ts';
import type { Clock } from '../../base/clock.ts';
import { MAX_NAMES, NoKeyError, type Issued, type IssueRequest, type Issuer } from './issuer.ts';

interface RenewalOptions {
  readonly issuer: Pick<Issuer, 'trust' | 'issue'>;
  /** Asks a server with a vote, for a server without one. */
  readonly issueElsewhere: (request: IssueRequest) => Promise<Issued>;
  readonly nodeId: string;
  /** The certificate in use and the authorities that are trusted, PEM. */
  readonly current: () => { readonly certificate: string; readonly authorities: string | undefined };
  /** PKCS #10 as PEM. */
  readonly request: () => Promise<string>;
  /** Host names and addresses of this server now. */
  readonly names: () => readonly string[];
  readonly take: (issued: Issued) => Promise<void>;
  readonly clock: Pick<Clock, 'wallMs'>;
}

export class Renewal {
  readonly #options: RenewalOptions;

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  /** To be called every few seconds. Throws ApiError and IssueError, and rejects with errors of the file system. */
  async renew(): Promise<void> {
    const { issuer, issueElsewhere, nodeId, current, request, names, take } = this.#options;
    const { signer, bundle } = await issuer.trust();
    const { certificate, authorities } = current();
    const wanted = names().slice(0, MAX_NAMES);
    if (authorities === bundle && this.#isGood(certificate, signer, wanted)) return;
    const asked = { nodeId, request: await request(), names: wanted };
    try {
      await take(await issuer.issue(asked));
    } catch (err) {
      if (!(err instanceof NoKeyError)) throw err;
      await take(await issueElsewhere(asked));
    }
  }

  #isGood(certificate: string, signer: string, names: readonly string[]): boolean {
    const parsed = new X509Certificate(certificate);
    return (
      !isLeafDue(parsed.validToDate.getTime(), this.#options.clock.wallMs()) &&
      parsed.verify(new X509Certificate(signer).publicKey) &&
      names.every((name) => isNamed(parsed, name))
    );
  }
}

function isNamed(certificate: X509Certificate, name: string): boolean {
  if (isIP(name) !== 0) return certificate.checkIP(name) !== undefined;
  return (certificate.subjectAltName ?? '').split(', ').includes(`DNS:${name}`);
}
