// What answers WS-Discovery Probes in a network: joins the group at an address and answers from it, as told.

import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { DISCOVERY_GROUP, DISCOVERY_PORT } from '../../recorder/onvif/discovery/ws-discovery.ts';
import { escapeXml, parseXml, textAt } from '../../base/xml.ts';

interface AnnouncerOptions {
  /** Where it lives, and what its answers come from. */
  readonly address: string;
  /** The interface of whoever asks, where it is another; loopback has one for all its addresses. */
  readonly joinAt?: string;
  readonly port?: number;
  /** Datagrams for the Probe of this id. */
  readonly answers: (probeId: string) => readonly (string | Uint8Array)[];
}

export interface Announced {
  readonly endpoint?: string;
  readonly addresses: readonly string[];
  readonly scopes?: readonly string[];
  readonly types?: string;
}

/** A ProbeMatches message with one match. */
export function probeMatches(probeId: string, announced: Announced): string {
  const { endpoint = 'urn:uuid:1', addresses, scopes = [], types = 'dn:NetworkVideoTransmitter' } = announced;
  return (
    `<?xml version="1.0"?><SOAP-ENV:Envelope xmlns:SOAP-ENV="http://www.w3.org/2003/05/soap-envelope" ` +
    `xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing" xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery">` +
    `<SOAP-ENV:Header><wsa:RelatesTo>${escapeXml(probeId)}</wsa:RelatesTo></SOAP-ENV:Header><SOAP-ENV:Body><d:ProbeMatches>` +
    `<d:ProbeMatch><wsa:EndpointReference><wsa:Address>${endpoint}</wsa:Address></wsa:EndpointReference>` +
    `<d:Types>${types}</d:Types><d:Scopes>${escapeXml(scopes.join(' '))}</d:Scopes>` +
    `<d:XAddrs>${escapeXml(addresses.join(' '))}</d:XAddrs></d:ProbeMatch></d:ProbeMatches></SOAP-ENV:Body></SOAP-ENV:Envelope>`
  );
}

export class Announcer {
  /** Probes that came, by the type that they ask for. */
  readonly probes: string[] = [];
  readonly #listener: Socket;
  readonly #speaker: Socket;
  readonly #answers: AnnouncerOptions['answers'];

  private constructor(answers: AnnouncerOptions['answers']) {
    this.#answers = answers;
    this.#listener = createSocket({ type: 'udp4', reuseAddr: true });
    this.#speaker = createSocket('udp4');
    this.#listener.on('message', (datagram, from) => this.#answer(datagram, from));
  }

  static async start({
    address,
    joinAt = address,
    port = DISCOVERY_PORT,
    answers,
  }: AnnouncerOptions): Promise<Announcer> {
    const announcer = new Announcer(answers);
    // Bound to the group: several of a machine hear the same Probe.
    announcer.#listener.bind(port, DISCOVERY_GROUP);
    announcer.#speaker.bind(0, address);
    await Promise.all([once(announcer.#listener, 'listening'), once(announcer.#speaker, 'listening')]);
    announcer.#listener.addMembership(DISCOVERY_GROUP, joinAt);
    return announcer;
  }

  close(): void {
    this.#listener.close();
    this.#speaker.close();
  }

  #answer(datagram: Buffer, { address, port }: RemoteInfo): void {
    const probe = parseXml(datagram.toString());
    const id = textAt(probe, 'Header', 'MessageID');
    const type = textAt(probe, 'Body', 'Probe', 'Types');
    if (id === undefined || type === undefined) return;
    this.probes.push(type);
    for (const answer of this.#answers(id)) this.#speaker.send(answer, port, address);
  }
}
