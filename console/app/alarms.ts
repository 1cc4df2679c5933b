// The alarms of this recorder, or of all nodes of its cluster, kept up to date; a new one sounds if the user wants that.

import { computed, effect, signal } from '@preact/signals';
import type { AlarmAnswer } from './answers.ts';
import { api } from './api.ts';
import { directory } from './cameras.ts';
import { isStale } from './contact.ts';
import { onEvent } from './events.ts';
import { session } from './session.ts';
import { keep, kept } from './settings.ts';

/** Undefined until the recorder has answered. */
export const alarmList = signal<AlarmAnswer | undefined>(undefined);

export const unseenAlarms = computed(() =>
  (alarmList.value?.alarms ?? []).filter(({ acknowledged }) => acknowledged === null),
);

export const hasSound = signal(kept('alarm-sound') === 'on');

/** Events come only from the node that serves the page. */
const CLUSTER_EVERY_MS = 15_000;
/** Several events of one moment share a request. */
const TOGETHER_MS = 300;

export const keyOf = ({ node_id, id }: { readonly node_id: string; readonly id: string }): string => `${node_id} ${id}`;

let known: ReadonlySet<string> | undefined;

export async function refreshAlarms(): Promise<void> {
  // What was read stays while the recorder is away; a banner says so.
  const answer = await api<AlarmAnswer>('/api/alarms?scope=cluster').catch(() => undefined);
  if (!answer || !session.peek()) return;
  alarmList.value = answer;
  const now = new Set(unseenAlarms.peek().map(keyOf));
  if (known && hasSound.peek() && [...now].some((key) => !known?.has(key))) sound();
  known = now;
}

export function watchAlarms(): void {
  let soon: ReturnType<typeof setTimeout> | undefined;
  const refreshSoon = (): void => {
    clearTimeout(soon);
    soon = setTimeout(() => void refreshAlarms(), TOGETHER_MS);
  };
  onEvent(({ type }) => {
    if (type.startsWith('alarm.') || type === 'events.missed' || type === 'recorder.started') refreshSoon();
  });
  setInterval(() => {
    if (directory.peek() && session.peek() && !document.hidden) refreshSoon();
  }, CLUSTER_EVERY_MS);
  effect(() => keep('alarm-sound', hasSound.value ? 'on' : undefined));
  effect(() => {
    if (!session.value) {
      alarmList.value = undefined;
      known = undefined;
    } else if (!isStale.value) refreshSoon();
  });
}

/** Two tones. Browsers are silent until a user has pressed something in the page. */
function sound(): void {
  const context = new AudioContext();
  const gain = context.createGain();
  gain.gain.value = 0.2;
  gain.connect(context.destination);
  for (const [i, frequency] of [880, 660].entries()) {
    const tone = context.createOscillator();
    tone.frequency.value = frequency;
    tone.connect(gain);
    tone.start(context.currentTime + i * 0.3);
    tone.stop(context.currentTime + i * 0.3 + 0.25);
    tone.onended = () => i === 1 && void context.close();
  }
}
