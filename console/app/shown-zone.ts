// The time zone in which the console shows times: the recorder's, or that of this device if the user has chosen it.

import { computed, signal } from '@preact/signals';
import { keep, kept } from './settings.ts';
import { session } from './session.ts';

export const DEVICE_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const usesDeviceZone = signal(kept('zone') === 'device');

export const zone = computed(() => (usesDeviceZone.value ? DEVICE_ZONE : (session.value?.timeZone ?? DEVICE_ZONE)));

export function showDeviceZone(wanted: boolean): void {
  usesDeviceZone.value = wanted;
  keep('zone', wanted ? 'device' : undefined);
}
