import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { RtspSyntaxError } from './error.ts';
import { formatTransport, parsePublic, parseRtpInfo, parseSession, parseTransport } from './headers.ts';
import type { RtpInfo, SessionHeader, TransportHeader } from './headers.ts';

interface Case<T> {
  readonly name: string;
  readonly wire: string;
  readonly value: T;
  readonly canonical: string;
}

interface Pair<T> {
  readonly header: string;
  readonly parse: (text: string) => T;
  readonly format: (value: T) => string;
  readonly cases: readonly Case<T>[];
  readonly refused: readonly string[];
}

function formatSession(session: SessionHeader): string {
  return session.timeoutSeconds === undefined ? session.id : `${session.id};timeout=${session.timeoutSeconds}`;
}

const session: Pair<SessionHeader> = {
  header: 'Session',
  parse: parseSession,
  format: formatSession,
  cases: [
    { name: 'id only', wire: 'F8F8E425', value: { id: 'F8F8E425', timeoutSeconds: undefined }, canonical: 'F8F8E425' },
    {
      name: 'blanks before the id (Hikvision)',
      wire: '       708345999;timeout=60',
      value: { id: '708345999', timeoutSeconds: 60 },
      canonical: '708345999;timeout=60',
    },
    {
      name: 'blank before timeout (GW4089IP)',
      wire: '9a90de54; timeout=120',
      value: { id: '9a90de54', timeoutSeconds: 120 },
      canonical: '9a90de54;timeout=120',
    },
    { name: 'timeout 0', wire: 'a;timeout=0', value: { id: 'a', timeoutSeconds: 0 }, canonical: 'a;timeout=0' },
    {
      name: 'timeout that is no number',
      wire: 'a;Timeout=soon;x',
      value: { id: 'a', timeoutSeconds: undefined },
      canonical: 'a',
    },
  ],
  refused: ['', ' ; ', 'two words'],
};

const transport: Pair<TransportHeader> = {
  header: 'Transport',
  parse: parseTransport,
  format: formatTransport,
  cases: [
    {
      name: 'interleaved without /TCP is TCP',
      wire: 'RTP/AVP;unicast;interleaved=0-1',
      value: { protocol: 'tcp', unicast: true, interleaved: [0, 1] },
      canonical: 'RTP/AVP/TCP;unicast;interleaved=0-1',
    },
    {
      name: 'interleaved with a mode in quotes (Hikvision)',
      wire: 'RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=4cacc3d1;mode="play"',
      value: { protocol: 'tcp', unicast: true, interleaved: [0, 1], ssrc: 0x4cacc3d1 },
      canonical: 'RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=4CACC3D1',
    },
    {
      name: 'SSRC padded with a blank (Hikvision)',
      wire: 'RTP/AVP/TCP;unicast;interleaved=0-1;ssrc= d6d6627',
      value: { protocol: 'tcp', unicast: true, interleaved: [0, 1], ssrc: 0xd6d6627 },
      canonical: 'RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=0D6D6627',
    },
    {
      name: 'source and destination (GW4089IP)',
      wire: 'RTP/AVP/TCP;unicast;destination=192.168.1.210;source=192.168.1.110;interleaved=2-3',
      value: {
        protocol: 'tcp',
        unicast: true,
        interleaved: [2, 3],
        destination: '192.168.1.210',
        source: '192.168.1.110',
      },
      canonical: 'RTP/AVP/TCP;unicast;destination=192.168.1.210;source=192.168.1.110;interleaved=2-3',
    },
    {
      name: 'UDP',
      wire: 'RTP/AVP/UDP;unicast;client_port=5000-5001;server_port=6000-6001;ssrc=ABCD',
      value: { protocol: 'udp', unicast: true, clientPorts: [5000, 5001], serverPorts: [6000, 6001], ssrc: 0xabcd },
      canonical: 'RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001;ssrc=0000ABCD',
    },
    {
      name: 'one port means two, and blanks are allowed',
      wire: ' rtp/avp ; unicast ; client_port = 5000 ; server_port=6000 - 6001',
      value: { protocol: 'udp', unicast: true, clientPorts: [5000, 5001], serverPorts: [6000, 6001] },
      canonical: 'RTP/AVP;unicast;client_port=5000-5001;server_port=6000-6001',
    },
    {
      name: 'server port 0 is none (OpenIPC)',
      wire: 'RTP/AVP;unicast;client_port=5000-5001;server_port=0-0',
      value: { protocol: 'udp', unicast: true, clientPorts: [5000, 5001] },
      canonical: 'RTP/AVP;unicast;client_port=5000-5001',
    },
    {
      name: 'nonsense in optional parts is left out',
      wire: 'RTP/AVP/TCP;interleaved=300-301;ssrc=xyz;server_port=a-b;;mode',
      value: { protocol: 'tcp', unicast: true },
      canonical: 'RTP/AVP/TCP;unicast',
    },
    {
      name: 'multicast, and only the first of several counts',
      wire: 'RTP/AVP;multicast;ttl=16,RTP/AVP/TCP;unicast',
      value: { protocol: 'udp', unicast: false, timeToLive: 16 },
      canonical: 'RTP/AVP;multicast;ttl=16',
    },
    {
      name: 'a group with its ports',
      wire: 'RTP/AVP/UDP;multicast;ttl=1;destination=239.1.2.3;port=5000-5001;source=10.0.0.9',
      value: {
        protocol: 'udp',
        unicast: false,
        destination: '239.1.2.3',
        groupPorts: [5000, 5001],
        timeToLive: 1,
        source: '10.0.0.9',
      },
      canonical: 'RTP/AVP;multicast;destination=239.1.2.3;port=5000-5001;ttl=1;source=10.0.0.9',
    },
  ],
  refused: ['', 'RAW/RAW/UDP;unicast', ';;'],
};

function formatRtpInfo(entries: readonly RtpInfo[]): string {
  return entries
    .map(({ url, sequenceNumber, rtpTime, ssrc }) => {
      const parts = [`url=${url}`];
      if (sequenceNumber !== undefined) parts.push(`seq=${sequenceNumber}`);
      if (rtpTime !== undefined) parts.push(`rtptime=${rtpTime}`);
      if (ssrc !== undefined) parts.push(`ssrc=${ssrc.toString(16).padStart(8, '0')}`);
      return parts.join(';');
    })
    .join(',');
}

const rtpInfo: Pair<RtpInfo[]> = {
  header: 'RTP-Info',
  parse: parseRtpInfo,
  format: formatRtpInfo,
  cases: [
    {
      name: 'two streams, one relative (Wowza)',
      wire: 'url=trackID=1;seq=1;rtptime=0,url=rtsp://host/vod/mp4:a.mov/trackID=2;seq=1;rtptime=0',
      value: [
        { url: 'trackID=1', sequenceNumber: 1, rtpTime: 0 },
        { url: 'rtsp://host/vod/mp4:a.mov/trackID=2', sequenceNumber: 1, rtpTime: 0 },
      ],
      canonical: 'url=trackID=1;seq=1;rtptime=0,url=rtsp://host/vod/mp4:a.mov/trackID=2;seq=1;rtptime=0',
    },
    {
      name: 'with SSRC (Reolink)',
      wire: 'url=trackID=1;seq=16852;rtptime=1070938629;ssrc=dcc4a0d8',
      value: [{ url: 'trackID=1', sequenceNumber: 16852, rtpTime: 1070938629, ssrc: 0xdcc4a0d8 }],
      canonical: 'url=trackID=1;seq=16852;rtptime=1070938629;ssrc=dcc4a0d8',
    },
    {
      name: 'rtptime=-1 is none, a semicolon and a comma at the end',
      wire: 'url=a;seq=70000;rtptime=-1;,',
      value: [{ url: 'a' }],
      canonical: 'url=a',
    },
    {
      name: 'a comma in a URL',
      wire: 'url=rtsp://h/a,b;seq=2',
      value: [{ url: 'rtsp://h/a,b', sequenceNumber: 2 }],
      canonical: 'url=rtsp://h/a,b;seq=2',
    },
    { name: 'empty', wire: '', value: [], canonical: '' },
    { name: 'without url', wire: 'seq=1;rtptime=2', value: [], canonical: '' },
  ],
  refused: [],
};

const publicMethods: Pair<string[]> = {
  header: 'Public',
  parse: parsePublic,
  format: (methods) => methods.join(', '),
  cases: [
    {
      name: 'list',
      wire: 'OPTIONS, describe,SETUP ,,PLAY',
      value: ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY'],
      canonical: 'OPTIONS, DESCRIBE, SETUP, PLAY',
    },
    { name: 'empty', wire: '', value: [], canonical: '' },
  ],
  refused: [],
};

function check<T>({ header, parse, format, cases, refused }: Pair<T>): void {
  for (const { name, wire, value, canonical } of cases) {
    test(`${header} header: ${name}`, () => {
      assert.deepEqual(parse(wire), value);
      assert.equal(format(value), canonical);
      assert.deepEqual(parse(canonical), value);
    });
  }
  for (const text of refused) {
    test(`${header} header: ${JSON.stringify(text)} is refused`, () => {
      assert.throws(() => parse(text), RtspSyntaxError);
    });
  }
  test(`${header} header: any input parses or throws RtspSyntaxError, and what is formatted parses to the same`, () => {
    const pieces = fc.constantFrom(...cases.flatMap(({ wire }) => wire.split(/(?<=[;,=-])/)), '"', '\\', ' ', ';', ',');
    const input = fc.oneof(
      fc.string(),
      fc.array(pieces).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(input, (text) => {
        let value: T;
        try {
          value = parse(text);
        } catch (error) {
          assert.ok(error instanceof RtspSyntaxError, String(error));
          return;
        }
        // Nothing that was parsed is lost, except that a stray quote may move.
        if (!text.includes('"')) assert.deepEqual(parse(format(value)), value);
        else parse(format(value));
      }),
    );
  });
}
check(session);
check(transport);
check(rtpInfo);
check(publicMethods);
