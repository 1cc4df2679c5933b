// How a camera over TLS is authenticated, by CA and by fingerprint; the same for its stream, its stills and ONVIF.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { createServer } from 'node:tls';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { PATIENCE_MS, until } from '../../test/support/until.ts';
import { CertificateAuthority } from '../../test/cluster/certificates.ts';
import { runSession } from '../camera/session.ts';
import { Ptz } from '../onvif/ptz.ts';
import { Snapshots } from '../snapshots/snapshots.ts';
import type { CameraTls } from './connect.ts';
import { plainFingerprint } from './connect.ts';
import { anywhere } from './reach.ts';

let directory: string;
let authority: CertificateAuthority;
let another: CertificateAuthority;
const certificates = new Map<string, { readonly cert: string; readonly key: string }>();

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'camera-certificates-'));
  authority = new CertificateAuthority(join(directory, 'one'));
  another = new CertificateAuthority(join(directory, 'another'));
  for (const [name, host] of [
    ['right', '127.0.0.1'],
    ['elsewhere', '10.0.0.9'],
  ] as const) {
    const files = authority.issue(name, { commonName: name, hosts: [host] });
    certificates.set(name, { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') });
  }
});
after(() => rmSync(directory, { recursive: true }));

async function listen(t: TestContext, name: string) {
  let bytes = 0;
  const server = createServer(certificates.get(name)!, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      socket.destroy();
    });
  });
  server.on('tlsClientError', () => {});
  let open = 0;
  server.on('connection', (socket) => {
    open++;
    socket.once('close', () => open--);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { authority: `127.0.0.1:${(server.address() as AddressInfo).port}`, bytes: () => bytes, open: () => open };
}

const WAYS: Readonly<Record<string, (t: TestContext, authority: string, tls: CameraTls) => Promise<unknown>>> = {
  ...Object.fromEntries(
    ['rtsps', 'rtsp+https', 'rtsp+wss'].map((scheme) => [
      scheme,
      (_: TestContext, at: string, tls: CameraTls) =>
        runSession(
          {
            source: `${scheme}://u:p@${at}/x`,
            transport: 'auto',
            handler: { select: () => [0], playing: () => {}, rtp: () => {}, rtcp: () => {} },
            tls,
            deps: { reach: anywhere(), clock: new VirtualClock(), log: silentLog },
          },
          AbortSignal.timeout(PATIENCE_MS),
        ),
    ]),
  ),
  snapshot(t, at, tls) {
    const snapshots = new Snapshots({
      find: () => ({ source: 'rtsp://a/', snapshot: `https://u:p@${at}/x`, tls }),
      reach: anywhere(),
      clock: new VirtualClock(),
    });
    t.after(() => snapshots.close());
    return snapshots.get('gate');
  },
  async ONVIF(t, at, tls) {
    const deps = { reach: anywhere(), clock: new VirtualClock(), log: silentLog };
    const ptz = new Ptz({ ...deps, limits: { moveTimeoutMs: 10_000, answerTimeoutMs: 10_000 } });
    t.after(() => ptz.close());
    ptz.configure([{ id: 'gate', ptz: true, source: 'rtsp://a/', onvif: `https://u:p@${at}/x`, tls }]);
    const camera = ptz.get('gate');
    assert.ok(typeof camera === 'object');
    return camera.presets();
  },
};

const fingerprintOf = (name: string): string =>
  plainFingerprint(new X509Certificate(certificates.get(name)!.cert).fingerprint256);

const TRUST: readonly {
  readonly name: string;
  readonly server: string;
  readonly tls: () => CameraTls;
  readonly refused?: RegExp;
}[] = [
  { name: 'whatever its certificate', server: 'elsewhere', tls: () => ({ verify: false }) },
  { name: 'by its authority', server: 'right', tls: () => ({ verify: true, ca: authority.cert }) },
  {
    name: 'by its fingerprint',
    server: 'elsewhere',
    tls: () => ({ verify: false, fingerprint: fingerprintOf('elsewhere') }),
  },
  {
    name: 'by both',
    server: 'right',
    tls: () => ({ verify: true, ca: authority.cert, fingerprint: fingerprintOf('right') }),
  },
  { name: 'not by the system’s', server: 'right', tls: () => ({ verify: true }), refused: /cannot be reached/ },
  {
    name: 'not by another authority',
    server: 'right',
    tls: () => ({ verify: true, ca: another.cert }),
    refused: /cannot be reached/,
  },
  {
    name: 'not with a certificate for another host',
    server: 'elsewhere',
    tls: () => ({ verify: true, ca: authority.cert }),
    refused: /cannot be reached/,
  },
  {
    name: 'not with another fingerprint',
    server: 'right',
    tls: () => ({ verify: false, fingerprint: fingerprintOf('elsewhere') }),
    refused: /its certificate is not the one of tls\.fingerprint, but has [0-9A-F:]{95}/,
  },
  {
    name: 'not with another fingerprint, although its authority is right',
    server: 'right',
    tls: () => ({ verify: true, ca: authority.cert, fingerprint: fingerprintOf('elsewhere') }),
    refused: /tls\.fingerprint/,
  },
];

for (const [way, ask] of Object.entries(WAYS)) {
  for (const { name, server, tls, refused } of TRUST) {
    test(`${way}: the camera is taken ${name}`, async (t) => {
      const { authority, bytes, open } = await listen(t, server);
      const error = await ask(t, authority, tls()).then(
        () => assert.fail('it does not answer'),
        (err: unknown) => err as Error,
      );
      if (refused) {
        assert.match(error.message, refused);
        // Nothing was sent to it: no request, no login.
        await until('the connection is closed', () => open() === 0);
        assert.equal(bytes(), 0);
      } else assert.ok(bytes() > 0, error.message);
    });
  }
}

test('text that is no certificate is an error of the connection, and ends nothing', async (t) => {
  const { authority } = await listen(t, 'right');
  await assert.rejects(WAYS['rtsps']!(t, authority, { verify: true, ca: '-----BEGIN CERTIFICATE-----\nx' }));
});
