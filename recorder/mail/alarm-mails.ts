// Mails alarms: those of half a minute together, no more than one mail in five minutes, and again to others if nobody acknowledges
// them. What was mailed is kept with the alarm, so a restart mails nothing twice.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import { HOUR_MS, MINUTE_MS } from '../../base/units.ts';
import type { Alarm } from '../alarms/alarm.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Mail, MailProblem } from './send.ts';
import { meaningOf } from '../contract/gap-cause.ts';

/** Before the alarm, so that its beginning is seen. */
const EARLIER_MS = 5_000;

export interface MailSettings {
  readonly to: readonly string[];
  readonly escalation: { readonly afterMs: number; readonly to: readonly string[] } | undefined;
}

interface AlarmMailsOptions {
  readonly alarms: Pick<Alarms, 'list' | 'mark'>;
  /** Undefined: no mail is configured. */
  readonly settings: () => MailSettings | undefined;
  readonly send: (mail: Mail) => Promise<MailProblem>;
  /** The last picture of a camera before a moment; undefined if there is none. Never rejects. */
  readonly still: (cameraId: string, atMs: number) => Promise<Buffer | undefined>;
  readonly facts: () => Facts;
  readonly clock: Clock;
  readonly log: Log;
}

const TOGETHER_MS = MINUTE_MS / 2;
const INTERVAL_MS = 5 * MINUTE_MS;
const RETRY_MS = MINUTE_MS;
/** Older alarms are not mailed: mail was configured later, or did not work for so long. */
const MAX_AGE_MS = 24 * HOUR_MS;
const MAX_PICTURES = 4;

type Mailing = 'mailed' | 'escalated';

export class AlarmMails {
  readonly #options: AlarmMailsOptions;
  #problem: MailProblem;
  /** Monotonic. */
  readonly #notBeforeMs: Record<Mailing, number> = { mailed: -Infinity, escalated: -Infinity };
  #sending: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: AlarmMailsOptions) {
    this.#options = options;
  }

  /** To be called about once a second. */
  tick(): void {
    if (this.#sending || this.#isClosed) return;
    this.#sending = this.#send()
      .catch((err: unknown) => this.#options.log.bug({ err }, 'alarms are not mailed because of an internal error'))
      .finally(() => (this.#sending = undefined));
  }

  warnings(): readonly Warning[] {
    if (this.#problem === undefined || !this.#options.settings()) return [];
    return [{ code: 'mail-failed', cameraId: undefined, message: `alarms cannot be mailed: ${this.#problem}` }];
  }

  /** A mail to all who get alarms, to see that it works. */
  async test(): Promise<MailProblem> {
    const settings = this.#options.settings();
    if (!settings) return 'no mail is configured';
    const { site, url } = this.#options.facts();
    const text = `This is a test. Alarms of ${site || 'the recorder'} are mailed to this address.\n${url ?? ''}\n`;
    const to = [...new Set([...settings.to, ...(settings.escalation?.to ?? [])])];
    return this.#tell(
      await this.#options.send({ to, subject: `${site ? `${site}: ` : ''}test of alarms`, text, pictures: [] }),
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#sending;
  }

  async #send(): Promise<void> {
    const { settings, alarms, clock } = this.#options;
    const wanted = settings();
    if (!wanted) return;
    const nowMs = clock.wallMs();
    const open = alarms.list.filter(
      ({ startMs, acknowledged }) => acknowledged === undefined && nowMs - startMs < MAX_AGE_MS,
    );
    const fresh = open.filter(({ isMailed }) => !isMailed);
    if (fresh.some(({ startMs }) => nowMs - startMs >= TOGETHER_MS)) await this.#mail('mailed', fresh, wanted.to);
    const { escalation } = wanted;
    if (!escalation) return;
    const waiting = open.filter(({ isEscalated, startMs }) => !isEscalated && nowMs - startMs >= escalation.afterMs);
    if (waiting.length > 0) await this.#mail('escalated', waiting, escalation.to);
  }

  async #mail(kind: Mailing, alarms: readonly Alarm[], to: readonly string[]): Promise<void> {
    const { clock, send, facts } = this.#options;
    if (clock.monotonicMs() < this.#notBeforeMs[kind]) return;
    const words = alarmMail(alarms, facts(), kind === 'escalated');
    const problem = this.#tell(await send({ to, ...words, pictures: await this.#picturesOf(alarms) }));
    this.#notBeforeMs[kind] = clock.monotonicMs() + (problem === undefined ? INTERVAL_MS : RETRY_MS);
    if (problem === undefined) this.#options.alarms.mark(kind, alarms);
  }

  async #picturesOf(alarms: readonly Alarm[]): Promise<Mail['pictures']> {
    const pictures: { name: string; jpeg: Buffer }[] = [];
    for (const { cameraId, startMs } of alarms) {
      if (cameraId === undefined || pictures.length === MAX_PICTURES) continue;
      const jpeg = await this.#options.still(cameraId, startMs);
      if (jpeg) pictures.push({ name: `${cameraId}.jpg`, jpeg });
    }
    return pictures;
  }

  /** Logs one line per change. */
  #tell(problem: MailProblem): MailProblem {
    if (problem !== this.#problem) {
      if (problem === undefined) this.#options.log.info({}, 'alarms are mailed again');
      else this.#options.log.warn({ problem }, 'a mail was not accepted: it is sent again');
    }
    this.#problem = problem;
    return problem;
  }
}

interface Facts {
  readonly site: string;
  readonly timeZone: string | undefined;
  /** The address of the console; without it there are no links. */
  readonly url: string | undefined;
  readonly nameOf: (cameraId: string) => string;
}

/** `isEscalation`: nobody has acknowledged them. */
function alarmMail(
  alarms: readonly Alarm[],
  facts: Facts,
  isEscalation: boolean,
): { readonly subject: string; readonly text: string } {
  const { site, url } = facts;
  const [first] = alarms as readonly [Alarm];
  const what = alarms.length === 1 ? headOf(first, facts) : `${alarms.length} alarms`;
  const blocks = alarms.map((alarm) => {
    const { cameraId, startMs, endMs } = alarm;
    const end = endMs === undefined ? 'lasts' : `over since ${timeOf(endMs, facts)}`;
    const lines = [headOf(alarm, facts), `${timeOf(startMs, facts)}, ${end}`];
    if (url !== undefined && cameraId !== undefined) {
      const at = new Date(startMs - EARLIER_MS).toISOString();
      lines.push(`Footage: ${url}/#/playback?c=${encodeURIComponent(cameraId)}&t=${at}&z=10m`);
    }
    return lines.join('\n');
  });
  const note = isEscalation ? ['Nobody has acknowledged this yet.'] : [];
  const end = url === undefined ? [] : [`Acknowledge: ${url}/#/alarms`];
  return {
    subject: `${site === '' ? '' : `${site}: `}${isEscalation ? 'not acknowledged: ' : ''}${what}`,
    text: `${[...note, ...blocks, ...end].join('\n\n')}\n`,
  };
}

function headOf({ cameraId, code, message }: Alarm, { nameOf }: Facts): string {
  const name = cameraId === undefined ? '' : `${nameOf(cameraId)}: `;
  if (message !== undefined) return name + message;
  if (code === 'node-lost') return 'a machine was lost, and other nodes took over its cameras';
  return `${name}not recorded: ${meaningOf(code)}`;
}

const timeOf = (ms: number, { timeZone }: Facts): string =>
  new Intl.DateTimeFormat('en-GB', {
    dateStyle: 'medium',
    timeStyle: 'long',
    ...(timeZone === undefined ? {} : { timeZone }),
  }).format(ms);
