// The SETUP requests of one session in order: what each requests, and what the camera agreed to. The camera may refuse audio
// beside a video; the video continues without it.

import { assert } from '../../base/assert.ts';
import { resolveControl } from './control.ts';
import { RtspError } from './error.ts';
import {
  formatTransport,
  parseRtpInfo,
  parseTransport,
  type Pair,
  type TransportHeader,
  type RtpInfo,
} from './headers.ts';
import type { Media, Presentation } from './sdp.ts';

export type TransportKind = 'tcp' | 'udp' | 'multicast';

/** A stream that the camera agreed to send, and where its packets arrive. */
export interface EstablishedStream {
  /** Index in the list passed to `setUp`. */
  readonly streamIndex: number;
  readonly media: Media;
  /** TCP: the channels for RTP and RTCP. */
  readonly channels: Pair | undefined;
  /** UDP: the camera's ports, if it states them. */
  readonly serverPorts: Pair | undefined;
  /** Multicast: the destination of the packets as stated by the camera; not validated. */
  readonly group: { readonly address: string; readonly ports: Pair } | undefined;
  /** UDP: the source address or name of the packets, if it is not the camera's own. */
  readonly source: string | undefined;
  readonly ssrc: number | undefined;
}

/** A stream that plays, with what RTP-Info says about its first packet. */
export interface StartedStream {
  readonly stream: EstablishedStream;
  readonly ssrc: number | undefined;
  readonly sequenceNumber: number | undefined;
  readonly rtpTime: number | undefined;
}

export interface SetupRequest {
  readonly mediaIndex: number;
  /** UDP: the local ports for RTP and RTCP. */
  readonly clientPorts?: Pair;
}

interface WantedStream extends SetupRequest {
  readonly media: Media;
}

export class StreamSetups {
  readonly #transport: TransportKind;
  readonly #base: string;
  readonly #wanted: readonly WantedStream[];
  readonly #hasVideo: boolean;
  #next = 0;
  readonly #established: { readonly stream: EstablishedStream; readonly url: string }[] = [];
  #soundRefused: string | undefined;

  /** `base`: to which the control URLs of the presentation are relative. */
  constructor(
    transport: TransportKind,
    description: { readonly base: string; readonly presentation: Presentation },
    setups: readonly SetupRequest[],
  ) {
    this.#transport = transport;
    this.#base = description.base;
    this.#wanted = setups.map((setup) => {
      const media = description.presentation.media[setup.mediaIndex];
      assert(media && !media.backchannel, 'setUp of a stream that is not there');
      return { ...setup, media };
    });
    this.#hasVideo = this.#wanted.some(({ media }) => media.kind === 'video');
  }

  get hasAny(): boolean {
    return this.#established.length > 0;
  }

  /** Why audio is missing, as a sentence. */
  get soundRefused(): string | undefined {
    return this.#soundRefused;
  }

  /** Whether the current request is for audio beside a video. */
  get isForSound(): boolean {
    return this.#hasVideo && this.#wanted[this.#next]?.media.kind !== 'video';
  }

  /** URL and Transport of the SETUP to send now; undefined when all have been sent. */
  get request(): { readonly url: string; readonly transport: string } | undefined {
    const wanted = this.#wanted[this.#next];
    if (!wanted) return undefined;
    let transport: TransportHeader;
    if (this.#transport === 'tcp') transport = { protocol: 'tcp', unicast: true, interleaved: this.#ownChannels() };
    else if (this.#transport === 'multicast') transport = { protocol: 'udp', unicast: false };
    else {
      assert(wanted.clientPorts, 'setUp over UDP without ports');
      transport = { protocol: 'udp', unicast: true, clientPorts: wanted.clientPorts };
    }
    return { url: resolveControl(this.#base, wanted.media.control), transport: formatTransport(transport) };
  }

  /**
   * Records the camera's agreement and moves on to the next stream. Throws `RtspError` if it set up another transport than
   * requested.
   */
  agreed(url: string, transportText: string): EstablishedStream {
    const wanted = this.#wanted[this.#next];
    assert(wanted, 'SETUP answered that was not asked');
    const transport = /^\s*RTP\//i.test(transportText) ? parseTransport(transportText) : undefined;
    const offered = transport && (transport.unicast ? transport.protocol : 'multicast');
    if (offered && offered !== this.#transport) {
      throw new RtspError(
        'transport-refused',
        `asked for ${this.#transport.toUpperCase()}, the camera set up ${offered.toUpperCase()}`,
      );
    }
    const { destination, groupPorts } = transport ?? {};
    const stream: EstablishedStream = {
      streamIndex: this.#next,
      media: wanted.media,
      channels: this.#transport === 'tcp' ? this.#channelsOf(transport) : undefined,
      serverPorts: transport?.serverPorts,
      group: destination && groupPorts ? { address: destination, ports: groupPorts } : undefined,
      source: transport?.source,
      ssrc: transport?.ssrc,
    };
    this.#established.push({ stream, url });
    this.#next++;
    return stream;
  }

  /** Continues without audio, with the next stream. */
  refused(why: string): void {
    this.#soundRefused = why;
    this.#next++;
  }

  /** The streams that play, with the RTP-Info of the response to PLAY. */
  started(rtpInfo: string): StartedStream[] {
    const named = this.#established.map(({ stream, url }) => ({ url, control: stream.media.control }));
    const hints = matchRtpInfo(parseRtpInfo(rtpInfo), named, this.#base);
    return this.#established.map(({ stream }, index) => ({
      stream,
      ssrc: stream.ssrc ?? hints[index]?.ssrc,
      sequenceNumber: hints[index]?.sequenceNumber,
      rtpTime: hints[index]?.rtpTime,
    }));
  }

  #ownChannels(): Pair {
    return [this.#next * 2, this.#next * 2 + 1];
  }

  /** The channels that the camera chose, unless it gave one pair to two streams. */
  #channelsOf(transport: TransportHeader | undefined): Pair {
    const [rtp, rtcp] = transport?.interleaved ?? this.#ownChannels();
    const used = this.#established.flatMap(({ stream }) => stream.channels ?? []);
    if (used.includes(rtp) || used.includes(rtcp)) return this.#ownChannels();
    return [rtp, rtcp === rtp ? (rtp + 1) & 0xff : rtcp];
  }
}

interface NamedStream {
  readonly url: string;
  readonly control: string | undefined;
}

/** The part after the last slash: `…/H264?x=y/video` and `…/H264/video` mean the same stream (GW4089IP). */
const lastSegment = (url: string): string => url.slice(url.lastIndexOf('/') + 1);

function names(entry: RtpInfo, stream: NamedStream, base: string): boolean {
  return (
    entry.url === stream.url ||
    entry.url === stream.control ||
    resolveControl(base, entry.url) === stream.url ||
    (lastSegment(entry.url) !== '' && lastSegment(entry.url) === lastSegment(stream.url))
  );
}

/**
 * The entry of each stream, or undefined. If no entry matches any stream but their numbers are equal, they are matched in order.
 */
export function matchRtpInfo(
  entries: readonly RtpInfo[],
  streams: readonly NamedStream[],
  base: string,
): (RtpInfo | undefined)[] {
  const matched = streams.map((stream) => entries.find((entry) => names(entry, stream, base)));
  if (entries.length === streams.length && matched.every((entry) => entry === undefined)) return [...entries];
  return matched;
}
