// Describes in a sentence what arrived instead of pictures, from counts of packets and faults.

import { FAULTS, type Fault } from '../codec/faults.ts';
import { describeCarrier, type Carrier } from '../contract/packet-place.ts';

/** What one stream has delivered so far. */
export interface Brought {
  /** RTP packets of the current payload type and source. */
  readonly packets: number;
  readonly foreign: number;
  readonly malformed: number;
  readonly otherPayloadTypes: ReadonlyMap<number, number>;
  /** Complete pictures before the first key frame at which a decoder could start. */
  readonly beforeKeyFrame: number;
  readonly faults: ReadonlyMap<Fault, number>;
}

const NAMED_FAULTS = 3;

/**
 * What `now` has more than `before`, as parts of a sentence, the most important first; empty when nothing came at all.
 * `expected`: the payload types of the stream.
 */
export function describeInstead(before: Brought, now: Brought, expected: readonly number[], carrier?: Carrier): string {
  const parts: string[] = [];
  const add = (count: number, text: string): void => void (count > 0 && parts.push(`${count} ${text}`));
  for (const [type, count] of grown(before.otherPayloadTypes, now.otherPayloadTypes)) {
    add(count, `of payload type ${type}, expected ${expected.join(' or ')}`);
  }
  add(now.foreign - before.foreign, 'of another source (SSRC)');
  add(now.malformed - before.malformed, `that are no RTP${carrier ? `, on ${describeCarrier(carrier)}` : ''}`);
  const own = now.packets - before.packets;
  if (own > 0) {
    const why = grown(before.faults, now.faults)
      .slice(0, NAMED_FAULTS)
      .map(([name, count]) => `${FAULTS[name]} ${count} times`);
    const waiting = now.beforeKeyFrame - before.beforeKeyFrame;
    if (waiting > 0) why.push(`${waiting} pictures without a key frame before them`);
    add(own, `of the expected type${why.length > 0 ? ` (${why.join(', ')})` : ''}`);
  }
  return parts.join('; ');
}

/** Whether most of what arrived are complete pictures that wait for a key frame. */
export function onlyKeyFrameIsMissing(before: Brought, now: Brought): boolean {
  if (now.beforeKeyFrame === before.beforeKeyFrame) return false;
  const others = grown(before.otherPayloadTypes, now.otherPayloadTypes).reduce((sum, [, count]) => sum + count, 0);
  return now.packets - before.packets > others + now.foreign - before.foreign + now.malformed - before.malformed;
}

function grown<K>(before: ReadonlyMap<K, number>, now: ReadonlyMap<K, number>): [K, number][] {
  return [...now]
    .map(([key, count]): [K, number] => [key, count - (before.get(key) ?? 0)])
    .filter(([, count]) => count > 0)
    .sort((a, b) => b[1] - a[1]);
}
