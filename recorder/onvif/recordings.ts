// Lists the recordings in a device's memory and finds their replay addresses, over the ONVIF services for search and replay (Profile G).

import type { Clock } from '../../base/clock.ts';
import type { Reach } from '../reach/reach.ts';
import type { OnvifClient } from './client.ts';
import { OnvifDialogue } from './dialogue.ts';
import { OnvifError } from './error.ts';
import type { OnvifRequest } from './request.ts';
import { hasMemory } from './services.ts';
import type { OnvifTarget } from './target.ts';
import { childrenOf, dateTime, escapeXml, textAt, type XmlElement } from '../../base/xml.ts';

/** ONVIF Recording Search Specification §5.3: a recording of one source. */
export interface Recording {
  readonly token: string;
  /** Names the input or the camera that it was made from, in the device's words; empty if not stated. */
  readonly source: string;
  /** By the device's clock; `-Infinity` and `Infinity` if not stated. `untilMs` is `Infinity` while it continues. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly tracks: readonly ('video' | 'audio')[];
}

/** The device's clock minus ours, wrong by at most `errorMs`. */
interface ClockOffset {
  readonly offsetMs: number;
  readonly errorMs: number;
}

const SEARCH = 'http://www.onvif.org/ver10/search/wsdl';
const MAX_RECORDINGS = 256;
/** The device is asked for its recordings for at most this long: it may answer each of hundreds of requests slowly. */
const LIST_TIMEOUT_MS = 60_000;
/** The most requests for results of one search. */
const MAX_RESULTS_ASKED = 16;
const MAX_TOKEN = 256;
const MAX_URI_CHARACTERS = 1024;
/** How often a clock that states whole seconds is read, each time when a second should begin. */
const MAX_TIMES_ASKED = 8;
const ENOUGH_ERROR_MS = 40;

export class OnvifRecordings {
  readonly #device: OnvifDialogue;
  readonly #clock: Clock;

  constructor(target: OnvifTarget, deps: { readonly clock: Clock; readonly reach: Reach }) {
    this.#device = new OnvifDialogue(target, deps);
    this.#clock = deps.clock;
  }

  /** Whether the device has the services of a memory that can be searched and replayed. */
  async supported(signal: AbortSignal): Promise<boolean> {
    return hasMemory(await this.#device.ask((client, limited) => client.services(limited), signal));
  }

  /** All recordings with video or audio. */
  async list(signal: AbortSignal): Promise<readonly Recording[]> {
    return this.#device.within(LIST_TIMEOUT_MS, signal, (limited) => this.#list(limited));
  }

  async #list(signal: AbortSignal): Promise<readonly Recording[]> {
    if (await this.#isEmpty(signal)) return [];
    const found = await this.#find(signal);
    const recordings: Recording[] = [];
    for (const element of found) {
      const recording = toRecording(element) ?? toRecording(await this.#information(element, signal));
      if (recording) recordings.push(recording);
    }
    return recordings;
  }

  /** Where a recording is replayed, as stated by the device; not validated. */
  async replayUri(token: string, signal: AbortSignal): Promise<string | undefined> {
    const options = { recordingToken: escapeXml(token), protocol: 'RTSP' };
    const answer = await this.#device.ask(
      (client, limited) => client.ask((cam, ignore) => cam.getReplayUri(options, ignore), limited),
      signal,
    );
    const uri = textAt(answer, 'Uri');
    return uri !== undefined && uri.length <= MAX_URI_CHARACTERS ? uri : undefined;
  }

  /**
   * Compares the clocks. The device states whole seconds, so it is asked again when a second should begin: each answer
   * halves the uncertainty. Undefined if it states no time, or its clock is set meanwhile.
   */
  async clockOffset(signal: AbortSignal): Promise<ClockOffset | undefined> {
    let low = Number.NEGATIVE_INFINITY;
    let high = Number.POSITIVE_INFINITY;
    for (let asked = 0; asked < MAX_TIMES_ASKED; asked++) {
      if (low > Number.NEGATIVE_INFINITY) await this.#untilSecond((low + high) / 2, signal);
      const sentMs = this.#clock.monotonicMs();
      const sentWallMs = this.#clock.wallMs();
      const secondMs = await this.#device.ask((client, limited) => client.statedTime(limited), signal);
      if (secondMs === undefined) return undefined;
      const answeredWallMs = sentWallMs + this.#clock.monotonicMs() - sentMs;
      low = Math.max(low, secondMs - answeredWallMs);
      high = Math.min(high, secondMs + 1000 - sentWallMs);
      if (low > high) return undefined;
      if ((high - low) / 2 <= Math.max(ENOUGH_ERROR_MS, answeredWallMs - sentWallMs)) break;
    }
    return { offsetMs: (low + high) / 2, errorMs: (high - low) / 2 };
  }

  /** Waits until a second of a clock with this offset begins. */
  async #untilSecond(offsetMs: number, signal: AbortSignal): Promise<void> {
    const sinceMs = (((this.#clock.wallMs() + offsetMs) % 1000) + 1000) % 1000;
    await this.#clock.sleep(1000 - sinceMs, signal);
    signal.throwIfAborted();
  }

  /** A device without recordings need not be searched; some devices do not support this query. */
  async #isEmpty(signal: AbortSignal): Promise<boolean> {
    const answer = await this.#tolerant((cam, ignore) => cam.getRecordingSummary(ignore), signal);
    return answer !== undefined && Number(textAt(answer, 'Summary', 'NumberRecordings') ?? NaN) === 0;
  }

  async #find(signal: AbortSignal): Promise<readonly XmlElement[]> {
    const search = await this.#send(
      'FindRecordings',
      `<Scope/><MaxMatches>${MAX_RECORDINGS}</MaxMatches><KeepAliveTime>PT10S</KeepAliveTime>`,
      signal,
    );
    const token = textAt(search, 'SearchToken');
    if (token === undefined || token.length > MAX_TOKEN) {
      throw new OnvifError('bad-answer', 'the camera began a search without a token');
    }
    const searchToken = `<SearchToken>${escapeXml(token)}</SearchToken>`;
    const found: XmlElement[] = [];
    for (let asked = 0; asked < MAX_RESULTS_ASKED && found.length < MAX_RECORDINGS; asked++) {
      const answer = await this.#send(
        'GetRecordingSearchResults',
        `${searchToken}<MinResults>1</MinResults><MaxResults>${MAX_RECORDINGS}</MaxResults><WaitTime>PT5S</WaitTime>`,
        signal,
      );
      const list = childrenOf(answer, 'ResultList')[0];
      found.push(...childrenOf(list, 'RecordingInformation').slice(0, MAX_RECORDINGS - found.length));
      if (/^completed$/i.test(textAt(list, 'SearchState') ?? '')) return found;
    }
    // A search in progress is ended; a completed one has ended by itself.
    await this.#tolerant(searchRequest('EndSearch', searchToken), signal);
    return found;
  }

  async #information(found: XmlElement, signal: AbortSignal): Promise<XmlElement | undefined> {
    const token = textAt(found, 'RecordingToken');
    if (token === undefined || token.length > MAX_TOKEN) return undefined;
    const options = { RecordingToken: escapeXml(token) };
    const answer = await this.#tolerant((cam, ignore) => cam.getRecordingInformation(options, ignore), signal);
    return answer && childrenOf(answer, 'RecordingInformation')[0];
  }

  #send(name: string, content: string, signal: AbortSignal): Promise<XmlElement> {
    return this.#device.ask((client, limited) => client.ask(searchRequest(name, content), limited), signal);
  }

  /** Undefined if the device refuses the operation. */
  #tolerant(request: Parameters<OnvifClient['ask']>[0], signal: AbortSignal): Promise<XmlElement | undefined> {
    return this.#device.tolerant((client, limited) => client.ask(request, limited), signal);
  }
}

/** The package has no operations for a search. */
const searchRequest = (name: string, content: string): OnvifRequest => ({
  service: 'search',
  action: `${SEARCH}/${name}`,
  operation: `<${name} xmlns="${SEARCH}">${content}</${name}>`,
});

/** Undefined if it has no token, no track that can be recorded, or no times although it is complete. */
function toRecording(element: XmlElement | undefined): Recording | undefined {
  const token = textAt(element, 'RecordingToken');
  if (element === undefined || token === undefined || token.length > MAX_TOKEN) return undefined;
  const tracks = childrenOf(element, 'Track');
  const kinds = (['video', 'audio'] as const).filter((kind) =>
    tracks.some((track) => textAt(track, 'TrackType')?.toLowerCase() === kind),
  );
  if (kinds.length === 0) return undefined;
  const times = (name: string): number[] =>
    tracks.map((track) => dateTime(textAt(track, name))).filter((ms) => ms !== undefined);
  const isGoingOn = /^recording$/i.test(textAt(element, 'RecordingStatus') ?? '');
  const lastMs = dateTime(textAt(element, 'LatestRecording')) ?? Math.max(...times('DataTo'));
  const firstMs = dateTime(textAt(element, 'EarliestRecording')) ?? Math.min(...times('DataFrom'));
  return {
    token,
    source: (textAt(element, 'Source', 'SourceId') ?? '').slice(0, MAX_TOKEN),
    fromMs: firstMs === Number.POSITIVE_INFINITY ? Number.NEGATIVE_INFINITY : firstMs,
    untilMs: isGoingOn || lastMs === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : lastMs,
    tracks: kinds,
  };
}
