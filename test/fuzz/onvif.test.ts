// What a stranger may send in place of a camera's answer, over HTTP or as a datagram after a Probe: whatever it is, the
// onvif room understands it or says that it does not, in bounded time and output.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { parseAllDocuments } from 'yaml';
import { OnvifError } from '../../recorder/onvif/error.ts';
import { Answers } from '../../recorder/onvif/discovery/answers.ts';
import { streamAt } from '../../recorder/onvif/discovery/describe.ts';
import { formatConfig, formatManifests, formatTable } from '../../recorder/onvif/discovery/output.ts';
import { parseProbeMatches } from '../../recorder/onvif/discovery/ws-discovery.ts';
import { printable } from '../../base/printable.ts';
import { readEnvelope } from '../../recorder/onvif/soap.ts';
import { escapeXml, parseXml, XmlError, type XmlElement } from '../../base/xml.ts';
import { probeMatches } from '../onvif/announcer.ts';
import { processorTime } from '../support/processor-cost.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 3_000);

const word = fc.constantFrom(
  ...'<s:Envelope> </s:Envelope> <s:Body> </s:Body> <s:Header> </s:Header> <d:ProbeMatches> </d:ProbeMatches>'.split(
    ' ',
  ),
  ...'<d:ProbeMatch> </d:ProbeMatch> <d:XAddrs> </d:XAddrs> <d:Scopes> </d:Scopes> <a:RelatesTo> </a:RelatesTo>'.split(
    ' ',
  ),
  ...'<s:Fault> </s:Fault> <Reason> </Reason> <Text> </Text> <Code> </Code> <Value> </Value> <Subcode> <a/>'.split(' '),
  ...'<!DOCTYPE <!ENTITY <![CDATA[ ]]> <!-- --> <?xml ?> &amp; &lt; &#0; &#x10FFFF; &#x110000; &x; & < > " \' = xmlns'.split(
    ' ',
  ),
  ...'http://10.0.0.9/ https://[::1]:99/ http://a:b@c/ onvif://www.onvif.org/name/%ff %00 urn:uuid:1 \u0000 \u001b[2J'.split(
    ' ',
  ),
);
const nonsense = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.array(fc.oneof(word, fc.string({ maxLength: 4 })), { maxLength: 60 }).map((words) => words.join('')),
);

/** Well-formed, and an envelope or nearly one. */
const { element } = fc.letrec<{ element: string }>((tie) => ({
  element: fc
    .tuple(
      fc.constantFrom('s:Envelope', 's:Body', 's:Fault', 's:Code', 's:Subcode', 's:Value', 's:Reason', 's:Text', 'a'),
      fc.array(fc.oneof({ maxDepth: 5 }, fc.constantFrom('', 'x', 'ter:NotAuthorized'), tie('element')), {
        maxLength: 3,
      }),
    )
    .map(([name, inside]) => `<${name}>${inside.join('')}</${name}>`),
}));
const envelope = fc.oneof(
  element,
  element.map((content) => `<s:Envelope>${content}</s:Envelope>`),
  element.map((content) => `<s:Envelope><s:Body>${content}</s:Body></s:Envelope>`),
);

/** A good message with a part replaced, left out or doubled. */
const damaged = (good: string) =>
  fc
    .tuple(fc.nat(good.length), fc.nat(good.length), nonsense)
    .map(([from, to, put]) => good.slice(0, Math.min(from, to)) + put + good.slice(Math.max(from, to)));

const goodMatch = probeMatches('urn:uuid:1', {
  addresses: ['http://10.0.0.9/onvif/device_service', 'http://[fe80::1]/onvif'],
  scopes: ['onvif://www.onvif.org/name/Gate', 'onvif://www.onvif.org/hardware/X1'],
});
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

test('any datagram is an answer or none', () => {
  const datagrams = fc.oneof(
    fc.uint8Array({ maxLength: 400 }),
    fc.oneof(nonsense, damaged(goodMatch)).map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(datagrams, (datagram) => {
      const answer = parseProbeMatches(datagram);
      for (const { endpoint, addresses, name, hardware } of answer?.matches ?? []) {
        for (const text of [endpoint, name ?? '', hardware ?? '']) {
          assert.ok(text.length <= 400 && !UNPRINTABLE.test(text), JSON.stringify(text));
        }
        for (const address of addresses) assert.match(new URL(address).protocol, /^https?:$/);
      }
    }),
    { numRuns: RUNS },
  );
});

test('whatever a device says, it is asked where it answers from', () => {
  const addresses = fc.array(
    fc.oneof(
      fc.webUrl(),
      nonsense.map((text) => `http://${text}`),
      nonsense,
    ),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(addresses, (said) => {
      const answers = new Answers(['urn:uuid:1']);
      answers.take(Buffer.from(probeMatches('urn:uuid:1', { addresses: said })), '10.0.0.9');
      for (const { url } of answers.devices()) assert.equal(new URL(url).hostname, '10.0.0.9');
    }),
    { numRuns: RUNS },
  );
});

test('any body of an answer is an element, a refusal, or no SOAP', () => {
  const good =
    '<s:Envelope><s:Body><s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>ter:X</s:Value></s:Subcode></s:Code>' +
    '<s:Reason><s:Text>no</s:Text></s:Reason></s:Fault></s:Body></s:Envelope>';
  fc.assert(
    fc.property(fc.oneof(nonsense, damaged(good), envelope), (text) => {
      try {
        readEnvelope(text);
      } catch (err) {
        assert.ok(err instanceof OnvifError || err instanceof XmlError, String(err));
        assert.ok(err.message.length < 500);
        if (err instanceof OnvifError) assert.ok(!UNPRINTABLE.test(err.message), JSON.stringify(err.message));
      }
    }),
    { numRuns: RUNS },
  );
});

test('escaped text is read as it was, except for characters that XML cannot carry', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const { attributes, text: content }: XmlElement = parseXml(`<a b="${escapeXml(text)}">.${escapeXml(text)}.</a>`);
      const carried = text.toWellFormed().replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '');
      assert.equal(content, `.${carried}.`);
      assert.equal(attributes.get('b'), carried);
    }),
    { numRuns: RUNS },
  );
});

test('any stream address is at the device, or none', () => {
  const uris = fc.oneof(
    nonsense,
    nonsense.map((text) => `rtsp://${text}`),
    fc.webUrl().map((url) => url.replace(/^https?/, 'rtsp')),
  );
  fc.assert(
    fc.property(uris, (uri) => {
      const stream = streamAt(uri, '10.0.0.9');
      if (stream) assert.match(stream.url, /^rtsps?:\/\/10\.0\.0\.9(:\d+)?\/[\x21-\x7e]*$/);
    }),
    { numRuns: RUNS },
  );
});

test('whatever a device is called, the output is one line a device, and YAML that can be read', () => {
  const text = fc.string({ unit: 'binary', maxLength: 80 }).map((value) => printable(value, 64));
  fc.assert(
    fc.property(text, text, text, (name, model, problem) => {
      const profile = {
        token: 't',
        name: model,
        sourceToken: undefined,
        sourceConfiguration: undefined,
        video: { codec: 'H264', width: 1, height: 1, framesPerSecond: undefined },
        movable: true,
      };
      const report = {
        device: { address: '10.0.0.9', url: 'http://10.0.0.9/', name, hardware: model },
        information: { manufacturer: name, model, firmware: model, serial: name },
        profiles: [profile],
        streams: [{ profile, source: 'rtsp://10.0.0.9/', snapshot: undefined, preview: undefined }],
        movable: true,
        memory: true,
        problems: [problem],
      };
      const reports = [report, { ...report, streams: [] }];
      assert.equal(formatTable(reports).split('\n').length, 4);
      for (const output of [
        formatConfig(reports, undefined),
        formatManifests(reports, { username: name, password: model }),
      ]) {
        for (const document of parseAllDocuments(output)) assert.deepEqual(document.errors, []);
        assert.doesNotMatch(output.replaceAll('\n', ''), UNPRINTABLE);
      }
    }),
    { numRuns: RUNS / 10 },
  );
});

/** Seconds of the processor for the worst XML of so many characters. */
function costOf(length: number): number {
  const texts = [
    '<'.repeat(length),
    '<a '.repeat(length / 3),
    '<a b="'.repeat(length / 6),
    `<a>${'&amp;'.repeat(length / 5 - 10)}</a>`,
    `<a>${'&'.repeat(length - 10)}</a>`,
    'xmlns'.repeat(length / 5),
    `<a ${'b="" '.repeat(length / 5 - 10)}/>`,
    `<a>${'<!---->'.repeat(length / 7 - 10)}</a>`,
    `<a>${'x'.repeat(length - 10)}</a>`,
    `<${'a'.repeat(length - 10)}/>`,
  ];
  return (
    processorTime(() => {
      for (const text of texts) {
        try {
          parseXml(text);
        } catch (err) {
          assert.ok(err instanceof XmlError, String(err));
        }
      }
    }) / 1000
  );
}

test('the worst megabytes of XML are read in linear time', () => {
  const [short, long] = [costOf(50_000), costOf(1_000_000)];
  // Twenty times as long: what grows with the square costs four hundred times as much.
  assert.ok(long < 100 * short, `${short} s of the processor, and ${long} s`);
});
