// The event service of the ONVIF device: pull points with a life, states that are told anew, and the faults of real cameras.

import type { ServerResponse } from 'node:http';
import { at, escapeXml, textAt, type XmlElement } from '../../base/xml.ts';

export interface EventOptions {
  /** The life of a pull point, however long a client wants it. */
  readonly lifeMs?: number;
  /** Pulling extends the life, as with most cameras. */
  readonly pullExtends?: boolean;
  /** Takes no time in CreatePullPointSubscription, and answers 400. */
  readonly refusesTimes?: boolean;
  /** All pull points have one address: what tells them apart is in the header, as with Axis. */
  readonly byReference?: boolean;
  /** Cannot tell all states again. */
  readonly withoutSynchronization?: boolean;
  /** Answers at once, also without anything to tell. */
  readonly answersAtOnce?: boolean;
  /** States a clock in the messages that differs from the one in answers. */
  readonly messageOffsetMs?: number;
  /** Topics that it offers, as `RuleEngine/CellMotionDetector/Motion`. */
  readonly topics?: readonly string[];
}

interface Told {
  readonly topic: string;
  readonly source?: Readonly<Record<string, string>>;
  readonly data: Readonly<Record<string, string>>;
  /** Absent: something without a state. */
  readonly operation?: 'Initialized' | 'Changed' | 'Deleted';
  /** Before now. */
  readonly agoMs?: number;
}

interface Point {
  endMs: number;
  readonly lifeMs: number;
  readonly queue: string[];
  wake: (() => void) | undefined;
}

function wake(point: Point): void {
  point.wake?.();
  point.wake = undefined;
}

export const EVENT_PATHS = ['/onvif/Events', '/onvif/Subscription'];
const REFERENCE_SPACE = 'http://www.acme.example/2009/event';
const LIFE_MS = 600_000;

export class EventService {
  readonly #options: EventOptions;
  readonly #nowMs: () => number;
  readonly #points = new Map<string, Point>();
  /** States by topic and source. */
  readonly #states = new Map<string, Told>();
  #made = 0;

  /** `nowMs`: by the clock of the device. */
  constructor(options: EventOptions, nowMs: () => number) {
    this.#options = options;
    this.#nowMs = nowMs;
  }

  get points(): number {
    return this.#points.size;
  }

  /** Clients that wait for something to be told. */
  get waiting(): number {
    return [...this.#points.values()].filter(({ wake }) => wake).length;
  }

  tell(told: Told): void {
    if (told.operation) this.#states.set(JSON.stringify([told.topic, told.source]), told);
    const message = this.#message(told);
    for (const point of this.#points.values()) {
      point.queue.push(message);
      wake(point);
    }
  }

  /** Changes a state and tells nobody. */
  lose(told: Told): void {
    this.#states.set(JSON.stringify([told.topic, told.source]), told);
  }

  /** Answers those who wait: there is nothing to tell. */
  release(): void {
    for (const point of this.#points.values()) wake(point);
  }

  /** It forgets all pull points, as after a restart. */
  close(): void {
    const points = [...this.#points.values()];
    this.#points.clear();
    for (const point of points) wake(point);
  }

  async answer(
    operation: string,
    content: XmlElement,
    request: {
      readonly envelope: XmlElement;
      readonly url: string;
      readonly base: string;
      readonly response: ServerResponse;
    },
  ): Promise<string | { reason: string; code: string } | undefined> {
    if (operation === 'GetEventProperties') return this.#properties();
    if (operation === 'CreatePullPointSubscription') return this.#create(content, request.base);
    const id = this.#options.byReference
      ? this.#referenceIn(request.envelope)
      : new URL(request.url, 'http://device').searchParams.get('id');
    const point = this.#points.get(id ?? '');
    if (!point || point.endMs <= this.#nowMs()) {
      this.#points.delete(id ?? '');
      return { reason: 'The subscription does not exist.', code: 'wsrf-rw:ResourceUnknownFault' };
    }
    switch (operation) {
      case 'PullMessages':
        return this.#pull(point, content, request.response);
      case 'Renew':
        point.endMs = this.#nowMs() + point.lifeMs;
        return `<wsnt:RenewResponse>${this.#times(point, 'wsnt')}</wsnt:RenewResponse>`;
      case 'Unsubscribe':
        this.#points.delete(id ?? '');
        return '<wsnt:UnsubscribeResponse/>';
      case 'SetSynchronizationPoint':
        if (this.#options.withoutSynchronization) return undefined;
        point.queue.push(...this.#presentStates());
        return '<tev:SetSynchronizationPointResponse/>';
      default:
        return undefined;
    }
  }

  #create(content: XmlElement, base: string): string | { reason: string; code: string } {
    const wanted = /^PT(\d+)S$/.exec(textAt(content, 'InitialTerminationTime') ?? '')?.[1];
    if (this.#options.refusesTimes && wanted !== undefined) {
      return { reason: 'Invalid initial termination time', code: 'wsnt:UnacceptableInitialTerminationTimeFault' };
    }
    const lifeMs = this.#options.lifeMs ?? (wanted === undefined ? LIFE_MS : Number(wanted) * 1000);
    const id = `p${this.#made++}`;
    const point: Point = { endMs: this.#nowMs() + lifeMs, lifeMs, queue: this.#presentStates(), wake: undefined };
    this.#points.set(id, point);
    const reference = this.#options.byReference
      ? `<wsa5:Address>${base}/onvif/Subscription</wsa5:Address><wsa5:ReferenceParameters>` +
        `<dom0:SubscriptionId xmlns:dom0="${REFERENCE_SPACE}">${id}</dom0:SubscriptionId></wsa5:ReferenceParameters>`
      : `<wsa5:Address>${base}/onvif/Subscription?id=${id}</wsa5:Address>`;
    return (
      `<tev:CreatePullPointSubscriptionResponse><tev:SubscriptionReference>${reference}</tev:SubscriptionReference>` +
      `${this.#times(point, 'wsnt')}</tev:CreatePullPointSubscriptionResponse>`
    );
  }

  async #pull(point: Point, content: XmlElement, response: ServerResponse): Promise<string | undefined> {
    if (point.queue.length === 0 && !this.#options.answersAtOnce) {
      await new Promise<void>((resolve) => {
        point.wake = resolve;
        response.once('close', () => wake(point));
      });
    }
    if (response.destroyed) return undefined;
    if (this.#options.pullExtends) point.endMs = this.#nowMs() + point.lifeMs;
    const messages = point.queue.splice(0, Number(textAt(content, 'MessageLimit')));
    return `<tev:PullMessagesResponse>${this.#times(point, 'tev')}${messages.join('')}</tev:PullMessagesResponse>`;
  }

  #times({ endMs }: Point, space: string): string {
    const [now, end] = [this.#nowMs(), endMs].map((ms) => new Date(ms).toISOString());
    return `<${space}:CurrentTime>${now}</${space}:CurrentTime><${space}:TerminationTime>${end}</${space}:TerminationTime>`;
  }

  #presentStates(): string[] {
    return Array.from(this.#states.values(), (told) => this.#message({ ...told, operation: 'Initialized', agoMs: 0 }));
  }

  #referenceIn(envelope: XmlElement): string | undefined {
    const found = at(envelope, 'Header', 'SubscriptionId');
    return found?.namespace === REFERENCE_SPACE ? found.text : undefined;
  }

  #message({ topic, source = {}, data, operation, agoMs = 0 }: Told): string {
    const items = (values: Readonly<Record<string, string>>): string =>
      Object.entries(values)
        .map(([name, value]) => `<tt:SimpleItem Name="${escapeXml(name)}" Value="${escapeXml(value)}"/>`)
        .join('');
    const time = new Date(this.#nowMs() - agoMs + (this.#options.messageOffsetMs ?? 0)).toISOString();
    const property = operation === undefined ? '' : ` PropertyOperation="${operation}"`;
    return (
      `<wsnt:NotificationMessage><wsnt:Topic Dialect="http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet">` +
      `tns1:${escapeXml(topic)}</wsnt:Topic><wsnt:Message><tt:Message UtcTime="${time}"${property}>` +
      `<tt:Source>${items(source)}</tt:Source><tt:Data>${items(data)}</tt:Data>` +
      `</tt:Message></wsnt:Message></wsnt:NotificationMessage>`
    );
  }

  #properties(): string {
    const nested = (this.#options.topics ?? []).map((topic) => {
      const parts = topic.split('/');
      const leaf = `<${parts.at(-1)} wstop:topic="true" xmlns:wstop="http://docs.oasis-open.org/wsn/t-1"/>`;
      return parts.slice(0, -1).reduceRight((inner, part, i) => {
        const name = i === 0 ? `tns1:${part}` : part;
        return `<${name}>${inner}</${name}>`;
      }, leaf);
    });
    return `<tev:GetEventPropertiesResponse><wstop:TopicSet xmlns:wstop="http://docs.oasis-open.org/wsn/t-1">${nested.join(
      '',
    )}</wstop:TopicSet></tev:GetEventPropertiesResponse>`;
  }
}
