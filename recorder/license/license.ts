// The licence of a node: reads its file and decides which cameras may be recorded. A camera that is being recorded continues,
// whatever happens to the licence.

import type { KeyObject } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import {
  expiryMs,
  LicenseError,
  parsePublicKey,
  verifyLicense,
  type LicenseErrorCode,
  type LicenseStatement,
} from './statement.ts';

/** A stable code in kebab case, and a sentence for people. */
interface LicenseReason {
  readonly code: `license-${'missing' | 'unreadable' | 'expired' | 'exceeded'}` | LicenseErrorCode;
  readonly message: string;
}

interface LicenseOptions {
  readonly file: string;
  /** In a format of `parsePublicKey`; empty: there is no key, and nothing is checked. */
  readonly publicKey: string;
  /** False: any number of cameras may be recorded, whatever the file says. */
  readonly required: boolean;
  /** How many cameras are configured to be recorded now. */
  readonly wanted: () => number;
  /** Called when the set of cameras that may be recorded may have changed. */
  readonly changed: () => void;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

/** The result of reading the file. */
type LicenseFile =
  | { readonly kind: 'signed'; readonly statement: LicenseStatement }
  | { readonly kind: 'unusable'; readonly reason: LicenseReason };

/** How often the file is checked. It is small, and network file systems report no changes. */
const LOOK_MS = 5_000;
const MAX_FILE_BYTES = 64 * 1024;

export class License {
  readonly #options: LicenseOptions;
  readonly #key: KeyObject | undefined;
  #found: LicenseFile = { kind: 'unusable', reason: { code: 'license-missing', message: 'it was not read yet' } };
  /** The state that was last reported, to detect changes. */
  #told = '';
  #timer: Timer | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: LicenseOptions) {
    this.#options = options;
    this.#key = options.publicKey === '' ? undefined : parsePublicKey(options.publicKey);
    this.#registerMetrics(options.registry);
  }

  /** Reads the file, and from then on checks it every few seconds. Never rejects. */
  async start(): Promise<void> {
    if (!this.#key) return;
    await this.look();
    this.#schedule();
  }

  /** Checks the file now. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  close(): void {
    this.#timer?.cancel();
  }

  /** The content of the licence, if it is signed and has not expired. */
  get statement(): LicenseStatement | undefined {
    return this.#found.kind === 'signed' && !this.#problem() ? this.#found.statement : undefined;
  }

  /** For the readiness check. Always valid where no licence is required. */
  check(): { valid: boolean; reason?: LicenseReason } {
    if (!this.#options.required) return { valid: true };
    const reason = this.#problem() ?? this.#tooMany(this.#options.wanted());
    return reason ? { valid: false, reason } : { valid: true };
  }

  /** Which of the wanted cameras, in their order, may not be recorded, and why. Cameras that are running continue. */
  refusals(wanted: readonly { readonly id: string }[], running: ReadonlySet<string>): Map<string, LicenseReason> {
    const refused = new Map<string, LicenseReason>();
    if (!this.#options.required) return refused;
    const allowed = this.statement?.cameras ?? 0;
    let free = allowed - wanted.filter(({ id }) => running.has(id)).length;
    for (const { id } of wanted) {
      if (running.has(id) || free-- > 0) continue;
      refused.set(id, this.#problem() ?? exceeded(allowed));
    }
    return refused;
  }

  #problem(): LicenseReason | undefined {
    const found = this.#found;
    if (found.kind === 'unusable') return found.reason;
    const { statement } = found;
    if (this.#options.clock.wallMs() < expiryMs(statement)) return undefined;
    return { code: 'license-expired', message: `the licence was valid until ${statement.expires}` };
  }

  #tooMany(wanted: number): LicenseReason | undefined {
    const found = this.#found;
    if (found.kind !== 'signed' || wanted <= found.statement.cameras) return undefined;
    return exceeded(found.statement.cameras);
  }

  #schedule(): void {
    this.#timer = this.#options.clock.after(LOOK_MS, () => {
      void this.look().then(() => this.#schedule());
    });
  }

  async #look(): Promise<void> {
    const { required, log, file, changed } = this.#options;
    this.#found = await this.#read();
    const problem = this.#problem();
    const { statement } = this;
    const told = JSON.stringify(problem ?? statement);
    if (told === this.#told) return;
    const first = this.#told === '';
    this.#told = told;
    if (statement) {
      const { holder, cameras, expires } = statement;
      log.info({ file, holder, cameras, expires }, 'the licence is in use');
    } else if (required) log.error({ file, ...problem }, 'there is no valid licence: no further camera is recorded');
    if (!first) changed();
  }

  async #read(): Promise<LicenseFile> {
    const { file } = this.#options;
    try {
      const text = await readBounded(file);
      return { kind: 'signed', statement: verifyLicense(text, this.#key as KeyObject) };
    } catch (err) {
      return { kind: 'unusable', reason: reasonOf(err, file) };
    }
  }

  #registerMetrics(registry: Registry): void {
    const valid = (): boolean => this.check().valid;
    const expires = (): number => (this.#found.kind === 'signed' ? expiryMs(this.#found.statement) : Infinity);
    const { gauge } = scraped(registry);
    gauge('license_valid', '1 while the licence allows the configured cameras, or none is required.', [], () =>
      valid() ? 1 : 0,
    );
    gauge(
      'license_expiry_timestamp_seconds',
      'When the licence expires; absent without a licence, and for one that does not expire.',
      [],
      () => (Number.isFinite(expires()) ? expires() / 1000 : undefined),
    );
  }
}

const exceeded = (cameras: number): LicenseReason => ({
  code: 'license-exceeded',
  message: `the licence allows ${cameras} ${cameras === 1 ? 'camera' : 'cameras'}`,
});

function reasonOf(err: unknown, file: string): LicenseReason {
  if (err instanceof LicenseError) return { code: err.code, message: err.message };
  const code = err instanceof Error && 'code' in err ? String(err.code) : 'failed';
  if (code === 'ENOENT') return { code: 'license-missing', message: `there is no licence at ${file}` };
  return { code: 'license-unreadable', message: `the licence at ${file} cannot be read (${code})` };
}

async function readBounded(file: string): Promise<string> {
  // A pipe in place of the file must not block a thread until it is written to.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_FILE_BYTES), 0, MAX_FILE_BYTES, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}
