import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { resolveBase, resolveControl, toggleTrailingSlash } from './control.ts';
import { HeaderFields } from './message.ts';

const REQUEST = 'rtsp://10.0.0.9:8554/live/1?x=y';

const bases: [name: string, contentBase: string | undefined, base: string][] = [
  ['absent', undefined, REQUEST],
  ['empty', '', REQUEST],
  ['as it should be, verbatim', 'rtsp://10.0.0.9:8554/live/1?x=y/', 'rtsp://10.0.0.9:8554/live/1?x=y/'],
  ['of another host, verbatim', 'rtsp://192.168.0.2/live/', 'rtsp://192.168.0.2/live/'],
  ['without scheme', '10.0.0.9:8554/live/', 'rtsp://10.0.0.9:8554/live/'],
  ['with the scheme twice', 'rtsp://rtsp://10.0.0.9/live/', 'rtsp://10.0.0.9/live/'],
  ['a path only', '/live/', 'rtsp://10.0.0.9:8554/live/'],
  ['IPv6 without brackets', 'rtsp://::ffff:192.168.1.123/live/', 'rtsp://[::ffff:192.168.1.123]/live/'],
  ['with a user part', 'rtsp://u:p@10.0.0.9/live/', 'rtsp://10.0.0.9/live/'],
  ['hopeless', 'rtsp://a b:x/', REQUEST],
];
for (const [name, contentBase, base] of bases) {
  test(`Content-Base: ${name}`, () => {
    const headers = new HeaderFields();
    if (contentBase !== undefined) headers.add('Content-base', contentBase);
    assert.equal(resolveBase(REQUEST, headers), base);
  });
}

test('Content-Base: Content-Location stands in for it', () => {
  assert.equal(resolveBase(REQUEST, new HeaderFields().add('Content-Location', 'rtsp://h/l/')), 'rtsp://h/l/');
});

const controls: [name: string, base: string, control: string | undefined, url: string][] = [
  ['absent', 'rtsp://h/a', undefined, 'rtsp://h/a'],
  ['a star', 'rtsp://h/a/', '*', 'rtsp://h/a/'],
  ['relative', 'rtsp://h/a/', 'trackID=1', 'rtsp://h/a/trackID=1'],
  ['relative to a base without slash', 'rtsp://h/a', 'track1', 'rtsp://h/a/track1'],
  ['relative to a base with a query (GW4089IP)', 'rtsp://h/H264?channel=1', 'video', 'rtsp://h/H264?channel=1/video'],
  ['a query', 'rtsp://h/a', '?track=1', 'rtsp://h/a?track=1'],
  ['a path from the root', 'rtsp://h:554/a/', '/b/track1', 'rtsp://h:554/b/track1'],
  ['a whole URL', 'rtsp://h/a/', 'RTSP://h/v/trackID=1?t=u&p=q', 'rtsp://h/v/trackID=1?t=u&p=q'],
  ['a whole URL that is none', 'rtsp://h/a/', 'rtsp://', 'rtsp://h/a/'],
];
for (const [name, base, control, url] of controls) {
  test(`control: ${name}`, () => assert.equal(resolveControl(base, control), url));
}

test('control and Content-Base: any input gives a clean URL', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (contentBase, control) => {
      const base = resolveBase(REQUEST, new HeaderFields().add('Content-Base', contentBase));
      assert.match(resolveControl(base, control), /^rtsps?:\/\/[\x21-\x7e]+$/);
    }),
  );
});

test('a trailing slash goes and comes', () => {
  assert.equal(toggleTrailingSlash('rtsp://h/a/'), 'rtsp://h/a');
  assert.equal(toggleTrailingSlash('rtsp://h/a'), 'rtsp://h/a/');
});
