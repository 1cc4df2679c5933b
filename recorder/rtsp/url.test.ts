import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { RtspSyntaxError } from './error.ts';
import { formatRtspUrl, parseRtspUrl } from './url.ts';
import type { RtspUrl } from './url.ts';

const plain = { secure: false, host: '10.0.0.9', port: 554, credentials: undefined } as const;
const user = (username: string, password: string) => ({ credentials: { username, password } });

const cases: { name: string; text: string; url: RtspUrl }[] = [
  { name: 'address and path', text: 'rtsp://10.0.0.9/s1', url: { ...plain, request: 'rtsp://10.0.0.9/s1' } },
  {
    name: 'port, query and trailing slash stay as written',
    text: 'rtsp://10.0.0.9:8554/cam/realmonitor?channel=1&subtype=0/',
    url: { ...plain, port: 8554, request: 'rtsp://10.0.0.9:8554/cam/realmonitor?channel=1&subtype=0/' },
  },
  { name: 'no path', text: 'rtsp://10.0.0.9', url: { ...plain, request: 'rtsp://10.0.0.9/' } },
  { name: 'empty port', text: 'rtsp://10.0.0.9:/s', url: { ...plain, request: 'rtsp://10.0.0.9/s' } },
  { name: 'query without path', text: 'rtsp://10.0.0.9?a=b', url: { ...plain, request: 'rtsp://10.0.0.9/?a=b' } },
  {
    name: 'scheme in capitals, TLS on its own port',
    text: ' RTSPS://cam.example/s ',
    url: { ...plain, secure: true, host: 'cam.example', port: 322, request: 'rtsps://cam.example/s' },
  },
  {
    name: 'user and password, percent-encoded',
    text: 'rtsp://ad%40min:p%40ss%3A%2F%23@10.0.0.9/s',
    url: { ...plain, ...user('ad@min', 'p@ss:/#'), request: 'rtsp://10.0.0.9/s' },
  },
  {
    name: 'a password with @, :, / and # that nobody escaped',
    text: 'rtsp://admin:p@ss:/#%41@10.0.0.9:554/s',
    url: { ...plain, ...user('admin', 'p@ss:/#A'), request: 'rtsp://10.0.0.9:554/s' },
  },
  {
    name: 'a password with # and digits before it',
    text: 'rtsp://u:12#4@10.0.0.9/s',
    url: { ...plain, ...user('u', '12#4'), request: 'rtsp://10.0.0.9/s' },
  },
  {
    name: 'a password with ^ and two @',
    text: 'rtsp://u:a@b^@c@10.0.0.9/s',
    url: { ...plain, ...user('u', 'a@b^@c'), request: 'rtsp://10.0.0.9/s' },
  },
  {
    name: 'bad percent escapes are taken literally',
    text: 'rtsp://u:50%zz%@10.0.0.9/s%zz',
    url: { ...plain, ...user('u', '50%zz%'), request: 'rtsp://10.0.0.9/s%zz' },
  },
  {
    name: 'an escape that is no UTF-8 stays as written',
    text: 'rtsp://u:%ff%41@10.0.0.9/s',
    url: { ...plain, ...user('u', '%ff%41'), request: 'rtsp://10.0.0.9/s' },
  },
  {
    name: 'user without password',
    text: 'rtsp://u@10.0.0.9/s',
    url: { ...plain, ...user('u', ''), request: 'rtsp://10.0.0.9/s' },
  },
  { name: 'empty user part', text: 'rtsp://@10.0.0.9/s', url: { ...plain, request: 'rtsp://10.0.0.9/s' } },
  {
    name: 'an @ in the path is no user part',
    text: 'rtsp://10.0.0.9:554/live@1',
    url: { ...plain, request: 'rtsp://10.0.0.9:554/live@1' },
  },
  {
    name: 'IPv6',
    text: 'rtsp://u:p@[2001:db8::1]:8554/s',
    url: { ...plain, ...user('u', 'p'), host: '2001:db8::1', port: 8554, request: 'rtsp://[2001:db8::1]:8554/s' },
  },
  {
    name: 'IPv6 with a zone, which is for this machine only',
    text: 'rtsp://[fe80::1%25eth0]/s',
    url: { ...plain, host: 'fe80::1%eth0', request: 'rtsp://[fe80::1]/s' },
  },
  {
    name: 'IPv6 without brackets',
    text: 'rtsp://::ffff:192.168.1.123/s',
    url: { ...plain, host: '::ffff:192.168.1.123', request: 'rtsp://[::ffff:192.168.1.123]/s' },
  },
  { name: 'a fragment never travels', text: 'rtsp://10.0.0.9/s#tcp', url: { ...plain, request: 'rtsp://10.0.0.9/s' } },
  {
    name: 'blanks and letters beyond ASCII are escaped',
    text: 'rtsp://10.0.0.9/Tür 1',
    url: { ...plain, request: 'rtsp://10.0.0.9/T%C3%BCr%201' },
  },
];
for (const { name, text, url } of cases) {
  test(`URL: ${name}`, () => assert.deepEqual(parseRtspUrl(text), url));
}

for (const text of ['', 'http://10.0.0.9/', 'rtsp://', 'rtsp:///s', 'rtsp://h:99999/', 'rtsp://h:x/', 'rtsp://a b/']) {
  test(`URL: ${JSON.stringify(text)} is not valid`, () => assert.throws(() => parseRtspUrl(text), RtspSyntaxError));
}

test('URL: what is wrong with it is said without repeating it', () => {
  assert.throws(
    () => parseRtspUrl('rtsp://admin:secret@host:99999/'),
    (error: Error) => !error.message.includes('secret'),
  );
});

const TUNNELS = [
  ['rtsp+http://u:p%40@10.0.0.9/s?x=1', 'http', false, 80, '/s?x=1', 'rtsp://10.0.0.9/s?x=1'],
  ['RTSP+HTTPS://10.0.0.9:8443/s', 'http', true, 8443, '/s', 'rtsp://10.0.0.9:8443/s'],
  ['rtsp+ws://10.0.0.9/s', 'websocket', false, 80, '/s', 'rtsp://10.0.0.9/s'],
  ['rtsp+wss://[fe80::1]/ws?a#/s/1?b', 'websocket', true, 443, '/ws?a', 'rtsp://[fe80::1]/s/1?b'],
  ['rtsp+http://10.0.0.9/s#/ignored', 'http', false, 80, '/s', 'rtsp://10.0.0.9/s'],
] as const;
for (const [text, kind, secure, port, path, request] of TUNNELS) {
  test(`URL: a tunnel, ${text}`, () => {
    const url = parseRtspUrl(text);
    assert.deepEqual(
      [url.tunnel?.kind, url.secure, url.port, url.tunnel?.path, url.request],
      [kind, secure, port, path, request],
    );
    assert.deepEqual(parseRtspUrl(formatRtspUrl(url)), url);
  });
}

test('URL: whatever user and password, formatting and parsing gives them back', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 });
  fc.assert(
    fc.property(
      text.filter((username) => !username.includes(':')),
      text,
      (username, password) => {
        fc.pre(username !== '' || password !== '');
        const url = { ...parseRtspUrl('rtsp://10.0.0.9:8554/s?x=1'), credentials: { username, password } };
        assert.deepEqual(parseRtspUrl(formatRtspUrl(url)), url);
      },
    ),
  );
});

test('URL: any input parses or throws RtspSyntaxError, and what parses is one clean word', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((rest) => `rtsp://u:p@h/${rest}`),
      ),
      (text) => {
        try {
          const { request } = parseRtspUrl(text);
          assert.match(request, /^rtsps?:\/\/[\x21-\x7e]+$/);
          assert.deepEqual(parseRtspUrl(request).request, request);
        } catch (error) {
          assert.ok(error instanceof RtspSyntaxError, String(error));
        }
      },
    ),
  );
});
