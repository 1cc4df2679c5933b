import { test } from 'node:test';
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setImmediate } from 'node:timers/promises';
import { buildRequest, type Operation } from './request.ts';

const profiles: Operation = (cam, ignore) => cam.getProfiles(ignore);

test('a request has its service, its action and the content of the body', () => {
  assert.deepEqual(
    buildRequest((cam, ignore) => cam.getServices(false, ignore), false),
    {
      service: 'device',
      action: 'http://www.onvif.org/ver10/device/wsdl/GetServices',
      operation:
        '<GetServices xmlns="http://www.onvif.org/ver10/device/wsdl"><IncludeCapability>false</IncludeCapability></GetServices>',
    },
  );
  const stop = buildRequest((cam, ignore) => cam.stop({ profileToken: '&lt;1>', panTilt: true }, ignore), false);
  assert.equal(stop.service, 'ptz');
  assert.match(stop.operation, /<ProfileToken>&lt;1><\/ProfileToken><PanTilt>true<\/PanTilt><\/Stop>$/);
});

test('media operations go to the second media service of cameras that have one', () => {
  assert.equal(buildRequest(profiles, false).service, 'media');
  assert.equal(buildRequest(profiles, true).service, 'media2');
});

test('building a request opens no connection', async () => {
  let sockets = 0;
  const count = () => sockets++;
  subscribe('net.client.socket', count);
  try {
    buildRequest(profiles, false);
    await setImmediate();
  } finally {
    unsubscribe('net.client.socket', count);
  }
  assert.equal(sockets, 0);
});

test('an operation that builds no request is an error', () => {
  assert.throws(() => buildRequest(() => {}, false), /built no request/);
});
