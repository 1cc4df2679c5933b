// The text of a mail about alarms.

import type { Alarm } from '../alarms/alarm.ts';
import { meaningOf } from '../contract/gap-cause.ts';

export interface Facts {
  readonly site: string;
  readonly timeZone: string | undefined;
  /** The address of the console; without it there are no links. */
  readonly url: string | undefined;
  readonly nameOf: (cameraId: string) => string;
}

/** Before the alarm, so that its beginning is seen. */
const EARLIER_MS = 5_000;

/** `isEscalation`: nobody has acknowledged them. */
export function alarmMail(
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
