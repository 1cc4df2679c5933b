// The recorder's own key and certificate, in a directory that only its user can read. Both are created at the first start,
// with a self-signed certificate; the CA of a cluster may sign the key later. The key never leaves the directory.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import { Turns } from '../../base/turns.ts';
import { CertificateError, type CertificatePair, type CertificatePaths } from './certificate.ts';

interface OwnCertificateOptions {
  /** Created when it is missing. */
  readonly directory: string;
  /** Known names and addresses of the recorder, for a self-signed certificate. */
  readonly names: () => readonly string[];
  /** Only a CA makes its certificates: one that has expired stays until there is another. Default false. */
  readonly isIssued?: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** The certificate that a CA has issued for this recorder. PEM. */
interface Signed {
  readonly certificate: string;
  /** CA certificates of the members of the cluster. */
  readonly authorities: string;
}

/** The longest validity of a server certificate that browsers and operating systems accept. */
const LIFE_MS = 397 * DAY_MS;
/** Clocks of clients may be slow. */
const BACKDATED_MS = HOUR_MS;
/** The clock of a machine may be corrected long after its start. */
const CHECK_MS = 60_000;

export class OwnCertificate {
  readonly paths: CertificatePaths;
  readonly #options: OwnCertificateOptions;
  readonly #key: string;
  readonly #isKeptKey: boolean;
  #certificate: string;
  #authorities: string | undefined;
  #request: Promise<string> | undefined;
  /** The last certificate from the CA, until it is stored. */
  #offered: Signed | undefined;
  readonly #followers: ((pair: CertificatePair, authorities: string) => void)[] = [];
  #timer: Timer | undefined;
  readonly #writes = new Turns(1);

  private constructor(
    options: OwnCertificateOptions,
    { key, isKept }: { readonly key: string; readonly isKept: boolean },
    certificate: string,
    authorities: string | undefined,
  ) {
    this.#options = options;
    this.paths = pathsIn(options.directory);
    this.#key = key;
    this.#isKeptKey = isKept;
    this.#certificate = certificate;
    this.#authorities = authorities;
    this.#check();
  }

  /** Throws CertificateError for a key that other users may know, and errors of the file system. */
  static async open(options: OwnCertificateOptions): Promise<OwnCertificate> {
    const { directory, clock, log } = options;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const paths = pathsIn(directory);
    let key = await readOwn(paths.key);
    const isKept = key !== undefined;
    if (key === undefined) {
      const { newKey } = await import('../../base/x509.ts');
      await writePrivate(paths.key, (key = newKey()));
    }
    const [kept, authorities] = [await readOwn(paths.certificate), await readOwn(authoritiesIn(directory))];
    const isUsable =
      kept !== undefined && isOf(kept, key) && (options.isIssued === true || !isDue(kept, clock.wallMs()));
    const certificate = isUsable ? kept : await vouchFor(key, options);
    if (!isUsable) await writePrivate(paths.certificate, certificate);
    log.info({ file: paths.certificate, ...aboutOf(certificate) }, 'the certificate of this recorder is in use');
    return new OwnCertificate(options, { key, isKept }, certificate, authorities);
  }

  get pair(): CertificatePair {
    return { certificate: this.#certificate, key: this.#key };
  }

  /** Undefined until a CA has signed. */
  get authorities(): string | undefined {
    return this.#authorities;
  }

  /** Calls `use` whenever a CA has signed, or the authorities have changed. */
  follow(use: (pair: CertificatePair, authorities: string) => void): void {
    this.#followers.push(use);
  }

  /** The certificate signing request for a CA: PKCS #10, PEM. */
  request(): Promise<string> {
    this.#request ??= this.#keptRequest();
    return this.#request;
  }

  /** Kept, so that later starts need not load the library. */
  async #keptRequest(): Promise<string> {
    const path = join(this.#options.directory, 'request.pem');
    const kept = await readOwn(path);
    if (kept !== undefined && this.#isKeptKey) return kept;
    const { newRequest } = await import('../../base/x509.ts');
    const made = await newRequest(this.#key);
    await writePrivate(path, made);
    return made;
  }

  /**
   * Replaces the certificate by one for the same key; a certificate for another key is ignored. Rejects when it cannot be
   * written. The write is then retried every minute, because the CA offers the certificate only once.
   */
  async take(signed: Signed): Promise<void> {
    this.#offered = signed;
    await this.#writes.take(() => this.#takeOffered());
  }

  async #takeOffered(): Promise<void> {
    const offered = this.#offered;
    if (!offered) return;
    const { certificate, authorities } = offered;
    if (isOf(certificate, this.#key)) {
      const { directory } = this.#options;
      if (authorities !== this.#authorities) await writePrivate(authoritiesIn(directory), authorities);
      this.#authorities = authorities;
      if (certificate !== this.#certificate) await this.#use(certificate);
      for (const use of this.#followers) use(this.pair, authorities);
    }
    if (this.#offered === offered) this.#offered = undefined;
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#writes.idle();
  }

  #check(): void {
    this.#timer = this.#options.clock.after(CHECK_MS, () => {
      const { clock, log } = this.#options;
      const renew = async (): Promise<void> => {
        await this.#takeOffered();
        if (!this.#options.isIssued && isDue(this.#certificate, clock.wallMs()))
          await this.#use(await vouchFor(this.#key, this.#options));
      };
      this.#writes
        .take(renew)
        .catch((err: unknown) => log.error({ err }, 'the certificate of this recorder could not be renewed'));
      this.#check();
    });
  }

  async #use(certificate: string): Promise<void> {
    await writePrivate(this.paths.certificate, certificate);
    this.#certificate = certificate;
    this.#options.log.info(
      { file: this.paths.certificate, ...aboutOf(certificate) },
      'a new certificate of this recorder is in use',
    );
  }
}

const pathsIn = (directory: string): CertificatePaths => ({
  certificate: join(directory, 'certificate.pem'),
  key: join(directory, 'key.pem'),
});
const authoritiesIn = (directory: string): string => join(directory, 'authorities.pem');

async function vouchFor(key: string, { names, clock }: OwnCertificateOptions): Promise<string> {
  const { selfSigned } = await import('../../base/x509.ts');
  const nowMs = clock.wallMs();
  const all = names();
  return selfSigned(key, {
    commonName: all[0] ?? 'recorder',
    names: all,
    fromMs: nowMs - BACKDATED_MS,
    toMs: nowMs - BACKDATED_MS + LIFE_MS,
  });
}

/** Whether a self-signed certificate expires soon or is not valid yet, or a certificate of a CA has expired. */
function isDue(certificate: string, nowMs: number): boolean {
  const { validFromDate, validToDate, issuer, subject } = new X509Certificate(certificate);
  const [fromMs, toMs] = [validFromDate.getTime(), validToDate.getTime()];
  const isOwn = issuer === subject;
  return nowMs >= toMs - (isOwn ? (toMs - fromMs) / 3 : 0) || (isOwn && nowMs < fromMs);
}

function isOf(certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    // One of them cannot be parsed: they do not belong together.
    return false;
  }
}

/** The fingerprint is for people to compare, as browsers and `openssl x509 -fingerprint -sha256` show it. */
function aboutOf(certificate: string): { readonly fingerprint: string; readonly ends: string } {
  const { fingerprint256, validToDate } = new X509Certificate(certificate);
  return { fingerprint: fingerprint256, ends: validToDate.toISOString() };
}

const readOwn = (path: string): Promise<string | undefined> =>
  readPrivate(path, (problem) => new CertificateError(path.endsWith('key.pem') ? 'key' : 'certificate', path, problem));
