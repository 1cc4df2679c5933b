// Queries a device over ONVIF with a login: what it is and which streams it offers.

import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/error.ts';
import type { Reach } from '../../reach/reach.ts';
import { formatRtspUrl, parseRtspUrl } from '../../rtsp/url.ts';
import { OnvifClient, type DeviceInformation, type Profile } from '../client.ts';
import { OnvifError } from '../error.ts';
import { hasMemory } from '../services.ts';
import { targetOfUrl, type Credentials } from '../target.ts';
import type { FoundDevice } from './answers.ts';

/** The stream to record for one sensor or input. */
export interface Stream {
  readonly profile: Profile;
  /** `rtsp:` or `rtsps:`, at the device's address, without a user part. */
  readonly source: string;
  /** `http:` or `https:`, at the device's address, without a user part. */
  readonly snapshot: string | undefined;
  /** A smaller stream of the same sensor or input, as `source`; undefined if there is none. */
  readonly preview: string | undefined;
}

export interface DeviceReport {
  readonly device: FoundDevice;
  readonly information: DeviceInformation | undefined;
  readonly profiles: readonly Profile[];
  /** The best stream of every sensor or input that can be recorded. */
  readonly streams: readonly Stream[];
  readonly movable: boolean;
  /** It has services to search and replay what it recorded itself (Profile G). */
  readonly memory: boolean;
  /** Queries that failed, and wrong statements of the device that were corrected. */
  readonly problems: readonly string[];
}

const ANSWER_TIMEOUT_MS = 10_000;
/** Time limit for a device that answers every query at the last moment. */
const DEVICE_TIMEOUT_MS = 30_000;
const MAX_STREAMS = 64;
const MAX_URI_CHARACTERS = 1024;
const RECORDABLE = ['H264', 'H265', 'HEVC'];
/** What every browser decodes. */
const H264 = 'H264';
/** A preview with more pixels would be no relief for a wall of pictures. */
const MAX_PREVIEW_PIXELS = 1280 * 720;

/** Never throws: failures are in `problems`. */
export async function describeDevice(
  device: FoundDevice,
  credentials: Credentials | undefined,
  { clock, reach }: { readonly clock: Clock; readonly reach: Reach },
): Promise<DeviceReport> {
  const client = new OnvifClient(targetOfUrl(device.url, credentials, { verify: false }), { clock, reach });
  const queries = new Queries(clock);
  const information = await queries.ask((signal) => client.information(signal));
  // A device that refuses the login is not queried further, because some lock the account after a few attempts.
  const goOn = information !== undefined || !queries.isHopeless;
  const profiles = goOn ? ((await queries.ask((signal) => client.profiles(signal))) ?? []) : [];
  const services = goOn ? await queries.ask((signal) => client.services(signal)) : undefined;
  const streams: Stream[] = [];
  for (const profile of bestProfiles(profiles)) {
    const stream = await streamOf(profile, profiles, { client, queries, address: device.address });
    if (stream) streams.push(stream);
  }
  return {
    device,
    information,
    profiles,
    streams,
    movable: profiles.some(({ movable }) => movable),
    memory: services !== undefined && hasMemory(services),
    problems: [...queries.problems],
  };
}

interface Asking {
  readonly client: OnvifClient;
  readonly queries: Queries;
  readonly address: string;
}

/** Undefined if the device states no valid address. */
async function streamOf(
  profile: Profile,
  profiles: readonly Profile[],
  { client, queries, address }: Asking,
): Promise<Stream | undefined> {
  const streamUri = await queries.ask((signal) => client.streamUri(profile.token, signal));
  if (streamUri === undefined) return undefined;
  const source = streamAt(streamUri, address);
  if (!source) return void queries.problems.add('a stream address that is not valid');
  if (source.changed) queries.problems.add('the device reports another address');
  // Not every camera has still images; a missing one is not a problem.
  const snapshotUri = await queries.ask((signal) => client.snapshotUri(profile.token, signal).catch(asMissing));
  const small = previewProfile(profile, profiles);
  const previewUri = small && (await queries.ask((signal) => client.streamUri(small.token, signal).catch(asMissing)));
  const preview = previewUri === undefined ? undefined : streamAt(previewUri, address)?.url;
  return {
    profile,
    source: source.url,
    snapshot: snapshotAt(snapshotUri, address),
    // Some devices answer with the same stream for every profile.
    preview: preview === source.url ? undefined : preview,
  };
}

/** The queries of one device: limits their time and collects what goes wrong. */
class Queries {
  readonly problems = new Set<string>();
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  #isHopeless = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#deadlineMs = clock.monotonicMs() + DEVICE_TIMEOUT_MS;
  }

  /** Other queries would fail in the same way. */
  get isHopeless(): boolean {
    return this.#isHopeless;
  }

  /** Undefined after a failure, which is then in `problems`. */
  async ask<T>(question: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const controller = new AbortController();
    const timeoutMs = Math.min(ANSWER_TIMEOUT_MS, this.#deadlineMs - this.#clock.monotonicMs());
    const late = new OnvifError('timeout', 'the device does not answer');
    if (timeoutMs <= 0) return void this.problems.add(late.message);
    const timer = this.#clock.after(timeoutMs, () => controller.abort(late));
    try {
      return await question(controller.signal);
    } catch (err) {
      this.problems.add(messageOf(err));
      this.#isHopeless = !(err instanceof OnvifError) || (err.code !== 'fault' && err.code !== 'bad-answer');
      return undefined;
    } finally {
      timer.cancel();
    }
  }
}

function asMissing(err: unknown): undefined {
  if (err instanceof OnvifError && err.code !== 'timeout') return undefined;
  throw err;
}

const pixels = ({ video }: Profile): number => (video ? video.width * video.height : 0);
const codecOf = ({ video }: Profile): string => video?.codec.toUpperCase() ?? '';

/**
 * The profile for the preview of a stream: of the smaller ones of its sensor or input, the largest that is no larger than a
 * preview should be; H.264 if there is any.
 */
function previewProfile(main: Profile, profiles: readonly Profile[]): Profile | undefined {
  const small = profiles.filter(
    (profile) =>
      (profile.sourceToken ?? '') === (main.sourceToken ?? '') &&
      RECORDABLE.includes(codecOf(profile)) &&
      pixels(profile) > 0 &&
      pixels(profile) < pixels(main) &&
      pixels(profile) <= MAX_PREVIEW_PIXELS,
  );
  const decodable = small.filter((profile) => codecOf(profile) === H264);
  return (decodable.length > 0 ? decodable : small).sort((a, b) => pixels(b) - pixels(a))[0];
}

/** For every sensor or input, the recordable profile with the most pixels. */
function bestProfiles(profiles: readonly Profile[]): readonly Profile[] {
  const best = new Map<string, Profile>();
  for (const profile of profiles) {
    if (!RECORDABLE.includes(codecOf(profile))) continue;
    const key = profile.sourceToken ?? '';
    const known = best.get(key);
    if (!known || pixels(profile) > pixels(known)) best.set(key, profile);
  }
  return [...best.values()].slice(0, MAX_STREAMS);
}

/** The stream at the device's own address; undefined if `uri` is not an RTSP URL. */
export function streamAt(
  uri: string,
  address: string,
): { readonly url: string; readonly changed: boolean } | undefined {
  if (uri.length > MAX_URI_CHARACTERS) return undefined;
  try {
    const url = parseRtspUrl(uri);
    const request = url.request.replace(/^(rtsps?:\/\/)(?:\[[^\]]*\]|[^/:]*)/, `$1${address}`);
    return { url: formatRtspUrl(parseRtspUrl(request)), changed: url.host !== address };
  } catch {
    // The device gives no address that can be used.
    return undefined;
  }
}

function snapshotAt(uri: string | undefined, address: string): string | undefined {
  if (uri === undefined || uri.length > MAX_URI_CHARACTERS || !URL.canParse(uri)) return undefined;
  const url = new URL(uri);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  url.hostname = address;
  url.username = url.password = url.hash = '';
  return url.href;
}
