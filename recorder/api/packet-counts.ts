// The packet counts of one stream in the API: packets that arrived, their faults, and the last faulty packet.

import { z } from 'zod';
import { describeSsrc } from '../contract/packet-place.ts';
import { otherPayloadTypes, type LastFault, type StreamCounters } from '../contract/camera-status.ts';
import { FAULTS, type Fault } from '../codec/faults.ts';
import { isoTime } from './times.ts';

const PacketFault = z
  .object({
    code: z.string().describe('Stable code, such as fragment-without-start.'),
    message: z.string(),
    count: z.number().int(),
  })
  .meta({ id: 'PacketFault', description: 'A fault in the payload of packets, and how often it was found.' });

const LastPacketFault = z
  .object({
    code: z.string(),
    time: z.iso.datetime({ offset: true }),
    ssrc: z.string().describe('Synchronization source in the notation of Wireshark: 0x0000abcd.'),
    sequence_number: z.number().int(),
    rtsp_channel: z.number().int().nullable().describe('Over TCP: the interleaved channel of the RTSP connection.'),
    udp_port: z.number().int().nullable().describe('Over UDP: the port that the packet was sent to.'),
  })
  .meta({
    id: 'LastPacketFault',
    description: 'The packet in which a fault was last found, for a search in a packet capture.',
  });

export const PacketCounts = z
  .object({
    received: z.number().int().describe('RTP packets of the stream, including late ones.'),
    lost: z.number().int().describe('Packets that never arrived, according to the sequence numbers.'),
    late: z.number().int().describe('Packets that arrived twice or too late.'),
    not_rtp: z.number().int().describe('Packets without a valid RTP header.'),
    other_source: z.number().int().describe('Packets of another synchronization source (SSRC).'),
    other_payload_type: z.number().int().describe('Packets of a payload type that the stream does not use.'),
    sequence_restarts: z
      .number()
      .int()
      .describe('How often the sequence numbers jumped without a change of the source.'),
    faults: z.array(PacketFault).describe('Most frequent first.'),
    last_fault: LastPacketFault.nullable(),
  })
  .meta({ id: 'PacketCounts', description: 'The packets of one stream, over all connections.' });

function toLastFault({ fault, wallMs, packet }: LastFault): z.output<typeof LastPacketFault> {
  const { ssrc, sequenceNumber, carrier } = packet;
  return {
    code: fault,
    time: isoTime(wallMs),
    ssrc: describeSsrc(ssrc),
    sequence_number: sequenceNumber,
    rtsp_channel: carrier && 'rtspChannel' in carrier ? carrier.rtspChannel : null,
    udp_port: carrier && 'udpPort' in carrier ? carrier.udpPort : null,
  };
}

const toFaults = (counts: ReadonlyMap<Fault, number>): z.output<typeof PacketFault>[] =>
  [...counts].sort(([, a], [, b]) => b - a).map(([code, count]) => ({ code, message: FAULTS[code], count }));

export function toPackets(stream: StreamCounters): z.output<typeof PacketCounts> {
  const { rtp, faults, lastFault } = stream;
  return {
    received: rtp.packets,
    lost: rtp.lost,
    late: rtp.late,
    not_rtp: rtp.malformed,
    other_source: rtp.foreign,
    other_payload_type: otherPayloadTypes(stream),
    sequence_restarts: rtp.restarts,
    faults: faults.counts.size === 0 ? [] : toFaults(faults.counts),
    last_fault: lastFault ? toLastFault(lastFault) : null,
  };
}
