// A street of ONVIF devices in a process of its own, to be run in a network namespace: a good one, one that wants
// another login, and two that nobody would want. Says `ready` when all listen, ends with its standard input. With a fifth
// argument, the good one streams, and that file is its still image.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { startCamera } from '../camera/camera.ts';
import { Announcer, probeMatches } from './announcer.ts';
import { OnvifDevice } from './device.ts';

const CREDENTIALS = { username: 'admin', password: 'the password' };
const [good, strict, liar, flood, still] = process.argv.slice(2) as [string, string, string, string, string?];

async function device(address: string, options: object, scopes: readonly string[]): Promise<void> {
  const { url } = await OnvifDevice.start({ host: address, port: 80, credentials: CREDENTIALS, ...options });
  await Announcer.start({ address, answers: (id) => [probeMatches(id, { addresses: [url], scopes })] });
}

const snapshot = still === undefined ? {} : { snapshotUri: () => `http://${good}:8081/still.jpg` };
await device(good, { login: 'digest-sha256', clockOffsetMs: 3_600_000, memory: () => [], ...snapshot }, [
  'onvif://www.onvif.org/name/Front%20gate',
]);
await device(strict, { credentials: { username: 'root', password: 'another' } }, []);
await device(
  liar,
  {
    believes: 'http://203.0.113.1',
    information: { Model: '\u001b[2J: "#' },
    streamUri: () => 'rtsp://203.0.113.1/main',
  },
  ['onvif://www.onvif.org/name/%1b%5b31m-%20x:%20y'],
);
await Announcer.start({
  address: flood,
  answers: () => Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? '<a>'.repeat(1000) : Buffer.alloc(1400, i))),
});
if (still !== undefined) {
  const jpeg = readFileSync(still);
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'image/jpeg' }).end(jpeg),
  );
  await new Promise<void>((resolve) => server.listen(8081, good, resolve));
  await startCamera({ host: good, port: 554, path: '/main', pace: 'realtime' });
}
process.stdout.write('ready\n');
process.stdin.resume().on('end', () => process.exit(0));
