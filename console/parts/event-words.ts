// What a type of event is called, and how it is marked.

/** Groups have a colour and a height of their own in the timeline. */
export type EventGroup = 'motion' | 'person' | 'vehicle' | 'bookmark' | 'other';

const GROUPS: readonly (readonly [pattern: RegExp, group: EventGroup])[] = [
  [/person|people|human|face|visitor/i, 'person'],
  [/vehicle|car$|truck|bus$|bicycle/i, 'vehicle'],
  [/motion/i, 'motion'],
  [/^bookmark$/, 'bookmark'],
];

export const eventGroup = (type: string): EventGroup => GROUPS.find(([pattern]) => pattern.test(type))?.[1] ?? 'other';

/** `digital-input` is "Digital input"; a type with dots is a name, and stays as it is. */
export function eventWords(type: string): string {
  if (/[./]/.test(type)) return type;
  const words = type.replaceAll(/[-_]/g, ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
