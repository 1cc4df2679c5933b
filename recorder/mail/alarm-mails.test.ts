import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { Alarm } from '../alarms/alarm.ts';
import { AlarmMails, type MailSettings } from './alarm-mails.ts';
import type { Mail } from './send.ts';

const NOON_MS = Date.UTC(2026, 0, 10, 12);
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** Alarms, and a mail server that accepts mails or says why not. */
function stage(settings: MailSettings | undefined = { to: ['guard@example.com'], escalation: undefined }) {
  const clock = new VirtualClock(NOON_MS);
  const list: Alarm[] = [];
  const sent: Mail[] = [];
  let problem: string | undefined;
  const mails = new AlarmMails({
    alarms: {
      list,
      mark(type, alarms) {
        for (const [i, alarm] of list.entries()) {
          if (!alarms.some(({ id }) => id === alarm.id)) continue;
          list[i] = { ...alarm, ...(type === 'mailed' ? { isMailed: true } : { isEscalated: true }) };
        }
      },
    },
    settings: () => settings,
    async send(mail) {
      sent.push(mail);
      return problem;
    },
    still: async (cameraId) => (cameraId === 'gate' ? Buffer.from('jpeg') : undefined),
    facts: () => ({
      site: 'Corner shop',
      timeZone: 'Europe/Berlin',
      url: 'https://nvr.example',
      nameOf: (id) => (id === 'gate' ? 'Front gate' : id),
    }),
    clock,
    log: silentLog,
  });
  const begin = (id: string, changes: Partial<Alarm> = {}): void =>
    void list.push({
      id,
      cameraId: 'gate',
      code: 'camera-unreachable',
      message: undefined,
      startMs: clock.wallMs(),
      endMs: undefined,
      count: 1,
      acknowledged: undefined,
      isMailed: false,
      isEscalated: false,
      ...changes,
    });
  /** A tick a second. */
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += SECOND) {
      clock.advance(SECOND);
      mails.tick();
      for (let i = 0; i < 10; i++) await Promise.resolve();
    }
  };
  const subjects = (): string[] => sent.map(({ subject }) => subject);
  const acknowledge = (): void => {
    for (const [i, alarm] of list.entries()) {
      list[i] = { ...alarm, acknowledged: { by: 'anna', atMs: clock.wallMs(), note: undefined } };
    }
  };
  return { mails, sent, begin, pass, subjects, acknowledge, setProblem: (text?: string) => void (problem = text) };
}

test('a mail says what happened, when and where, with a picture and links to the moment and to the alarm', async () => {
  const { sent, begin, pass } = stage();
  begin('1');
  await pass(30 * SECOND);
  assert.deepEqual(sent, [
    {
      to: ['guard@example.com'],
      subject: 'Corner shop: Front gate: not recorded: no connection to the camera, or no answer over it',
      text: `Front gate: not recorded: no connection to the camera, or no answer over it
10 Jan 2026, 13:00:00 CET, lasts
Footage: https://nvr.example/#/playback?c=gate&t=2026-01-10T11:59:55.000Z&z=10m

Acknowledge: https://nvr.example/#/alarms
`,
      pictures: [{ name: 'gate.jpg', jpeg: Buffer.from('jpeg') }],
    },
  ]);
});

test('alarms of half a minute are one mail, and there is no more than one mail in five minutes', async () => {
  const { subjects, begin, pass } = stage();
  begin('1');
  await pass(20 * SECOND);
  begin('2', { cameraId: 'yard' });
  await pass(10 * SECOND);
  assert.deepEqual(subjects(), ['Corner shop: 2 alarms']);
  begin('3', { cameraId: undefined, code: 'disk-full', message: 'the disk is full' });
  await pass(4 * MINUTE);
  assert.equal(subjects().length, 1);
  await pass(MINUTE);
  assert.deepEqual(subjects().slice(1), ['Corner shop: the disk is full']);
  await pass(60 * MINUTE);
  assert.equal(subjects().length, 2);
});

test('what was mailed, was acknowledged, or is older than a day is not mailed', async () => {
  const { subjects, begin, pass } = stage();
  begin('1', { isMailed: true });
  begin('2', { acknowledged: { by: 'anna', atMs: NOON_MS, note: undefined } });
  begin('3', { startMs: NOON_MS - 25 * 60 * MINUTE });
  await pass(2 * MINUTE);
  assert.deepEqual(subjects(), []);
});

test('a mail that is not accepted is a warning, and is sent again each minute until it is', async () => {
  const { mails, subjects, begin, pass, setProblem } = stage();
  setProblem('mail.example:465 refuses user or password');
  begin('1');
  await pass(100 * SECOND);
  assert.equal(subjects().length, 2);
  const message = 'alarms cannot be mailed: mail.example:465 refuses user or password';
  assert.deepEqual(mails.warnings(), [{ code: 'mail-failed', cameraId: undefined, message }]);
  setProblem();
  await pass(MINUTE);
  assert.equal(subjects().length, 3);
  assert.deepEqual(mails.warnings(), []);
});

test('an alarm that nobody acknowledges is mailed to others, once', async () => {
  const escalation = { afterMs: 15 * MINUTE, to: ['boss@example.com'] };
  const { sent, begin, pass, acknowledge } = stage({ to: ['guard@example.com'], escalation });
  begin('1');
  await pass(14 * MINUTE);
  assert.equal(sent.length, 1);
  await pass(MINUTE);
  assert.deepEqual(sent[1]?.to, ['boss@example.com']);
  assert.match(sent[1]?.subject ?? '', /^Corner shop: not acknowledged: Front gate: /);
  assert.match(sent[1]?.text ?? '', /^Nobody has acknowledged this yet\./);
  await pass(30 * MINUTE);
  assert.equal(sent.length, 2);
  begin('2');
  await pass(MINUTE);
  acknowledge();
  await pass(30 * MINUTE);
  assert.equal(sent.length, 3, 'acknowledged in time');
});

test('a test mail goes to everybody who would get one, and says what is wrong', async () => {
  const to = ['guard@example.com'];
  const { mails, sent, setProblem } = stage({ to, escalation: { afterMs: MINUTE, to: ['boss@example.com', ...to] } });
  assert.equal(await mails.test(), undefined);
  assert.deepEqual(sent[0]?.to, ['guard@example.com', 'boss@example.com']);
  setProblem('it is away');
  assert.equal(await mails.test(), 'it is away');
  await mails.close();
});
