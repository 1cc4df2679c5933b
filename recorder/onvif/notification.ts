// Reads the notifications of a camera (WS-BaseNotification 1.3 §3.2, ONVIF Core Specification §9.4.4): what each says of which input
// or rule, and when.

import { printable } from '../../base/printable.ts';
import { at, childOf, childrenOf, dateTime, textAt, type XmlElement } from '../../base/xml.ts';

export interface Notification {
  /** Such as `motion`. */
  readonly type: string;
  /** Topic and source: notifications with one key are about one state. */
  readonly key: string;
  /** Whether it is so now; undefined for what has no duration, such as a line that was crossed. */
  readonly isActive: boolean | undefined;
  /** By the clock of the camera; undefined if it does not say. */
  readonly cameraMs: number | undefined;
  /** Where, and what the camera adds. */
  readonly data: Readonly<Record<string, string>>;
  /** Which inputs of the device it names. */
  readonly inputs: readonly string[];
}

/**
 * The topics of ONVIF (Imaging, Analytics and Device I/O Service Specifications) and those that makers use instead. The first that
 * matches counts: `RuleEngine/CellMotionDetector/Motion` of one camera is the `VideoSource/MotionAlarm` of another.
 */
const TYPES: readonly (readonly [topic: RegExp, type: string])[] = [
  [/Tamper|SceneChange|ImageTooBlurry|ImageTooDark|ImageTooBright/i, 'tampering'],
  [/DigitalInput|VirtualInput|IO\/Port/i, 'digital-input'],
  [/LineDetector|LineCross|CrossLine/i, 'line-crossed'],
  [/FieldDetector|Intrusion/i, 'object-in-area'],
  [/DetectedSound|Audio\w*Detect|SoundDetect/i, 'sound'],
  [/People|Person|Human/i, 'person'],
  [/Vehicle/i, 'vehicle'],
  [/Face/i, 'face'],
  [/DogCat|Animal|IsPet/i, 'animal'],
  [/Visitor|Doorbell/i, 'visitor'],
  // Axis has its motion detection in an application.
  [/Motion|VMD/i, 'motion'],
];

const typeOf = (topic: string): string | undefined => TYPES.find(([pattern]) => pattern.test(topic))?.[1];

/** Numbers are states only by these names: the data of a line have the number of an object. */
const STATE_NAME = /^(?:is\w+|state|logicalstate|active|value|motion)$/i;
const INPUT_NAME = /^(?:VideoSource(?:Configuration)?(?:Token)?|Source)$/i;
const MAX_TOPIC = 200;
const MAX_ITEMS = 16;
const MAX_TEXT = 100;

interface Item {
  readonly name: string;
  readonly value: string;
}

/** From the answer to PullMessages. What has no known type is left out. */
export function notificationsIn(answer: XmlElement): readonly Notification[] {
  return childrenOf(answer, 'NotificationMessage')
    .map(read)
    .filter((notification) => notification !== undefined);
}

function read(element: XmlElement): Notification | undefined {
  // Prefixes are left out: the root of the standard and those of makers.
  const path = printable(textAt(element, 'Topic') ?? '', MAX_TOPIC).split('/');
  const topic = path.map((name) => name.slice(name.lastIndexOf(':') + 1)).join('/');
  const message = at(element, 'Message', 'Message');
  if (!message) return undefined;
  const source = itemsOf(childOf(message, 'Source'));
  const data = itemsOf(childOf(message, 'Data'));
  const state = data.find(isState);
  const type = typeOf(topic) ?? typeOf(state?.name ?? '');
  if (type === undefined) return undefined;
  const operation = message.attributes.get('PropertyOperation');
  // The present state of what has no duration is nothing that happened.
  if (!state && operation !== undefined && operation !== 'Changed') return undefined;
  return {
    type,
    key: [topic, ...source.map(({ name, value }) => `${name}=${value}`)].join(' '),
    isActive: state && operation !== 'Deleted' && /^(?:true|1)$/i.test(state.value),
    cameraMs: dateTime(message.attributes.get('UtcTime')),
    data: { topic, ...Object.fromEntries([...source, ...data].map(({ name, value }) => [name, value] as const)) },
    inputs: source.filter(({ name }) => INPUT_NAME.test(name)).map(({ value }) => value),
  };
}

const isState = ({ name, value }: Item): boolean =>
  /^(?:true|false)$/i.test(value) || (/^[01]$/.test(value) && STATE_NAME.test(name));

const itemsOf = (element: XmlElement | undefined): readonly Item[] =>
  childrenOf(element, 'SimpleItem')
    .slice(0, MAX_ITEMS)
    .map(({ attributes }) => ({
      name: printable(attributes.get('Name') ?? '', MAX_TEXT),
      value: printable(attributes.get('Value') ?? '', MAX_TEXT),
    }));

/** The types that a camera offers, from its answer to GetEventProperties. */
export function typesOffered(answer: XmlElement): readonly string[] {
  const found = new Set<string>();
  const visit = (element: XmlElement, path: string): void => {
    const topic = `${path}/${element.name}`;
    const type = element.attributes.has('topic') ? typeOf(topic) : undefined;
    if (type !== undefined) found.add(type);
    for (const child of element.children) visit(child, topic);
  };
  for (const root of childOf(answer, 'TopicSet')?.children ?? []) visit(root, '');
  return TYPES.map(([, type]) => type).filter((type) => found.has(type));
}
