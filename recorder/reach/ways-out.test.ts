// Every connection to a camera goes through `reach`. Tested with everything that connects to cameras, against servers on this
// machine, where no camera may be.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { NO_CAMERA_THERE } from '../../base/networks.ts';
import { runSession } from '../camera/session.ts';
import { describeDevice } from '../onvif/discovery/describe.ts';
import { Ptz } from '../onvif/ptz.ts';
import { Snapshots } from '../snapshots/snapshots.ts';
import { CameraNetworks } from './networks.ts';
import { anywhere } from './reach.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';

const reach = { ...anywhere(), networks: new CameraNetworks({ refused: NO_CAMERA_THERE }) };
const deps = { reach, clock: new VirtualClock(), log: silentLog };

async function listen(t: TestContext): Promise<{ readonly port: number; readonly connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

const WAYS: Readonly<Record<string, (t: TestContext, authority: string) => Promise<unknown>>> = {
  ...Object.fromEntries(
    ['rtsp', 'rtsps', 'rtsp+http', 'rtsp+https', 'rtsp+ws', 'rtsp+wss'].map((scheme) => [
      scheme,
      (_: TestContext, authority: string) =>
        runSession(
          {
            source: `${scheme}://u:p@${authority}/x`,
            transport: 'auto',
            handler: { select: () => [0], playing: () => {}, rtp: () => {}, rtcp: () => {} },
            deps,
          },
          AbortSignal.timeout(PATIENCE_MS),
        ),
    ]),
  ),
  ...Object.fromEntries(
    ['http', 'https'].flatMap((scheme) => [
      [
        `snapshot over ${scheme}`,
        (t: TestContext, authority: string) => {
          const found = {
            source: 'rtsp://10.0.0.9/',
            snapshot: `${scheme}://u:p@${authority}/x`,
            tls: { verify: false },
          };
          const snapshots = new Snapshots({ ...deps, find: () => found });
          t.after(() => snapshots.close());
          return snapshots.get('gate');
        },
      ],
      [
        `ONVIF over ${scheme}`,
        async (t: TestContext, authority: string) => {
          const ptz = new Ptz({ ...deps, limits: { moveTimeoutMs: 10_000, answerTimeoutMs: 10_000 } });
          t.after(() => ptz.close());
          const onvif = `${scheme}://u:p@${authority}/onvif/device_service`;
          ptz.configure([{ id: 'gate', ptz: true, source: 'rtsp://10.0.0.9/', onvif, tls: { verify: false } }]);
          const camera = ptz.get('gate');
          assert.ok(typeof camera === 'object');
          return camera.presets();
        },
      ],
    ]),
  ),
  async discovery(_, authority) {
    const device = { address: '127.0.0.1', url: `http://${authority}/onvif/device_service`, scopes: [] };
    const { problems } = await describeDevice(device as never, undefined, deps);
    throw Object.assign(new Error(), { code: /does not allow/.test(String(problems)) ? 'address-refused' : problems });
  },
};

for (const [name, ask] of Object.entries(WAYS)) {
  for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
    test(`${name} does not connect to ${host} where no camera may be`, async (t) => {
      const { port, connections } = await listen(t);
      await assert.rejects(ask(t, `${host}:${port}`), { code: 'address-refused' });
      assert.equal(connections(), 0);
    });
  }
}

test('no room that asks cameras opens a connection by itself', () => {
  const root = join(import.meta.dirname, '..');
  const files = globSync('{camera,onvif,still,probe}/**/*.ts', { cwd: root }).filter((file) => !/\.test\./.test(file));
  assert.ok(files.length > 50);
  const opening = files.filter((file) =>
    /from 'node:(tls|https|http2|dns.*)'|\b(connect|createConnection)\b[^;]*from 'node:net'|(?<![#.\w])fetch\(/.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  assert.deepEqual(opening, []);
});
