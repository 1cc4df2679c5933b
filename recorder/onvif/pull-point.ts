// The place at a camera from which its notifications are pulled: a pull point (ONVIF Core Specification §9.2, WS-BaseNotification 1.3
// §6), which exists for some minutes unless it is renewed.

import { quietly } from '../../base/error.ts';
import type { OnvifDialogue } from './dialogue.ts';
import { NoEvents, OnvifError } from './error.ts';
import { notificationsIn, typesOffered, type Notification } from './notification.ts';
import type { OnvifRequest } from './request.ts';
import { pathOf } from './services.ts';
import { at, dateTime, escapeXml, textAt, type XmlElement } from '../../base/xml.ts';

const EVENTS = 'http://www.onvif.org/ver10/events/wsdl';
const NOTIFICATION = 'http://docs.oasis-open.org/wsn/b-2';
const MANAGER = 'http://docs.oasis-open.org/wsn/bw-2/SubscriptionManager';
const ADDRESSING = 'http://www.w3.org/2005/08/addressing';

/** So long the camera may wait for something to tell. */
const PULL_MS = 30_000;
const PULL_SHARE = 1 / 3;
const LATE_MS = 10_000;
const MAX_MESSAGES = 100;
const LIFE_MS = 300_000;
const MIN_LIFE_MS = 10_000;
/** Cameras restart and networks fail: a pull point that nobody pulls from should not outlive them by long. */
const RENEW_SHARE = 0.5;
const CLOSE_MS = 2_000;
const MAX_ADDRESS = 1024;
const MAX_REFERENCES = 8;

interface Pulled {
  readonly notifications: readonly Notification[];
  /** Including those of no known type. */
  readonly count: number;
  /** The clock of the camera minus ours; undefined if it does not say. */
  readonly clockOffsetMs: number | undefined;
}

type Now = () => { readonly wallMs: number; readonly monotonicMs: number };

export class PullPoint {
  readonly #device: OnvifDialogue;
  readonly #now: Now;
  readonly #path: string;
  readonly #header: (action: string) => string;
  /** Until when it exists, by our monotonic clock, and how long it was to exist then. */
  #endMs = 0;
  #lifeMs = LIFE_MS;

  private constructor(device: OnvifDialogue, now: Now, reference: XmlElement | undefined) {
    const address = textAt(reference, 'Address') ?? '';
    const path = address.length <= MAX_ADDRESS ? pathOf(address) : undefined;
    if (path === undefined) throw new OnvifError('bad-answer', 'the camera names no place for its events');
    this.#device = device;
    this.#now = now;
    this.#path = path;
    // Some cameras have one address for all clients, and know each by what follows it.
    const references = (at(reference, 'ReferenceParameters')?.children ?? [])
      .slice(0, MAX_REFERENCES)
      .map(
        ({ name, namespace, text }) =>
          `<p:${name} xmlns:p="${escapeXml(namespace ?? '')}" a:IsReferenceParameter="true" xmlns:a="${ADDRESSING}">` +
          `${escapeXml(text)}</p:${name}>`,
      );
    this.#header = (action) =>
      `<Action xmlns="${ADDRESSING}">${action}</Action><To xmlns="${ADDRESSING}">${escapeXml(address)}</To>` +
      references.join('');
  }

  static async open(device: OnvifDialogue, now: Now, signal: AbortSignal): Promise<PullPoint> {
    await requireEvents(device, signal);
    const create = (content: string) =>
      device.ask(
        (client, limited) =>
          client.ask(eventsRequest('EventPortType', 'CreatePullPointSubscription', content), limited),
        signal,
      );
    const termination = `<InitialTerminationTime>${seconds(LIFE_MS)}</InitialTerminationTime>`;
    const answer = await create(termination).catch((err: unknown) => {
      // Some take only a time of their own choice.
      if (err instanceof OnvifError && err.code === 'fault') return create('');
      throw err;
    });
    const point = new PullPoint(device, now, at(answer, 'SubscriptionReference'));
    point.#livesUntil(answer);
    return point;
  }

  get mustRenew(): boolean {
    return this.#endMs - this.#now().monotonicMs < this.#lifeMs * RENEW_SHARE;
  }

  /** Resolves when the camera has something to tell, or after half a minute. */
  async pull(signal: AbortSignal): Promise<Pulled> {
    const waitMs = Math.min(PULL_MS, Math.floor(this.#lifeMs * PULL_SHARE));
    const content = `<Timeout>${seconds(waitMs)}</Timeout><MessageLimit>${MAX_MESSAGES}</MessageLimit>`;
    const request = eventsRequest('PullPointSubscription', 'PullMessages', content);
    const answer = await this.#ask(request, signal, waitMs + LATE_MS);
    // Most cameras extend its life with each pull, and say so.
    this.#livesUntil(answer, true);
    const cameraMs = dateTime(textAt(answer, 'CurrentTime'));
    return {
      notifications: notificationsIn(answer),
      count: answer.children.filter(({ name }) => name === 'NotificationMessage').length,
      clockOffsetMs: cameraMs === undefined ? undefined : cameraMs - this.#now().wallMs,
    };
  }

  async renew(signal: AbortSignal): Promise<void> {
    const operation = `<Renew xmlns="${NOTIFICATION}"><TerminationTime>${seconds(LIFE_MS)}</TerminationTime></Renew>`;
    this.#livesUntil(await this.#ask({ service: 'events', action: `${MANAGER}/RenewRequest`, operation }, signal));
  }

  /** Asks for all states: what the camera has lost, or we have, is told again. */
  async synchronize(signal: AbortSignal): Promise<void> {
    await this.#ask(eventsRequest('PullPointSubscription', 'SetSynchronizationPoint', ''), signal);
  }

  /** Never rejects, and takes two seconds at most. */
  async close(): Promise<void> {
    const operation = `<Unsubscribe xmlns="${NOTIFICATION}"/>`;
    const request = { service: 'events', action: `${MANAGER}/UnsubscribeRequest`, operation };
    await quietly(this.#ask(request, new AbortController().signal, CLOSE_MS));
  }

  #ask(request: OnvifRequest, signal: AbortSignal, limitMs?: number): Promise<XmlElement> {
    const whole = { ...request, path: this.#path, header: this.#header(request.action) };
    return this.#device.ask((client, limited) => client.ask(whole, limited), signal, limitMs);
  }

  /** Both times are of the camera's clock, which may be wrong. */
  #livesUntil(answer: XmlElement, onlyIfStated = false): void {
    const [nowMs, endMs] = ['CurrentTime', 'TerminationTime'].map((name) => dateTime(textAt(answer, name)));
    const statedMs = nowMs === undefined || endMs === undefined ? NaN : endMs - nowMs;
    if (onlyIfStated && !(statedMs > 0)) return;
    // A camera of which the times make no sense still has its pull point for a while.
    const lifeMs = statedMs > 0 ? Math.min(Math.max(statedMs, MIN_LIFE_MS), LIFE_MS) : LIFE_MS;
    this.#endMs = this.#now().monotonicMs + lifeMs;
    if (!onlyIfStated) this.#lifeMs = lifeMs;
  }
}

/** The types that a camera offers. Rejects with `OnvifError`. */
export async function offeredTypes(device: OnvifDialogue, signal: AbortSignal): Promise<readonly string[]> {
  await requireEvents(device, signal);
  const request = eventsRequest('EventPortType', 'GetEventProperties', '');
  return typesOffered(await device.ask((client, limited) => client.ask(request, limited), signal));
}

async function requireEvents(device: OnvifDialogue, signal: AbortSignal): Promise<void> {
  const services = await device.ask((client, limited) => client.services(limited), signal);
  if (!services.has('events')) throw new NoEvents();
}

const seconds = (ms: number): string => `PT${ms / 1000}S`;

const eventsRequest = (
  port: 'EventPortType' | 'PullPointSubscription',
  name: string,
  content: string,
): OnvifRequest => ({
  service: 'events',
  action: `${EVENTS}/${port}/${name}Request`,
  operation: `<${name} xmlns="${EVENTS}">${content}</${name}>`,
});
