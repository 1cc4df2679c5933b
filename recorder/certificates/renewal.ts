// Renews the certificate of this node long before it expires, and soon after the addresses of the server change. On the first
// server of a new cluster it puts the CA into the store first.

import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { isLeafDue } from '../../base/authorities.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { HOUR_MS } from '../../base/units.ts';
import { MAX_NAMES, type Issued, type Issuer } from './issuer.ts';

const CHECK_MS = HOUR_MS;
/** While the store does not answer, as at the first start of a cluster. */
const RETRY_MS = 10_000;

interface RenewalOptions {
  readonly issuer: Issuer;
  readonly nodeId: string;
  /** The certificate in use and the authorities that are trusted, PEM. */
  readonly current: () => { readonly certificate: string; readonly authorities: string | undefined };
  /** PKCS #10 as PEM. */
  readonly request: () => Promise<string>;
  /** Host names and addresses of this server now. */
  readonly names: () => readonly string[];
  readonly take: (issued: Issued) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

export class Renewal {
  readonly #options: RenewalOptions;
  #timer: Timer | undefined;
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: RenewalOptions) {
    this.#options = options;
  }

  start(): void {
    this.#work = this.#check();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#work;
  }

  async #check(): Promise<void> {
    let isDone = false;
    try {
      await this.#renew();
      isDone = true;
    } catch (err) {
      this.#options.log.warn({ problem: messageOf(err) }, 'the certificate of this node cannot be renewed now');
    }
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.after(isDone ? CHECK_MS : RETRY_MS, () => {
      this.#work = this.#check();
    });
  }

  async #renew(): Promise<void> {
    const { issuer, nodeId, current, request, names, take, clock } = this.#options;
    await issuer.adopt();
    const { certificate, authorities } = current();
    const wanted = names().slice(0, MAX_NAMES);
    const isGood =
      !isLeafDue(new X509Certificate(certificate).validToDate.getTime(), clock.wallMs()) &&
      wanted.every((name) => isNamed(certificate, name)) &&
      (await issuer.bundle()) === authorities;
    if (!isGood) await take(await issuer.issue({ nodeId, request: await request(), names: wanted }));
  }
}

function isNamed(certificate: string, name: string): boolean {
  const parsed = new X509Certificate(certificate);
  if (isIP(name) !== 0) return parsed.checkIP(name) !== undefined;
  return (parsed.subjectAltName ?? '').split(', ').includes(`DNS:${name}`);
}
