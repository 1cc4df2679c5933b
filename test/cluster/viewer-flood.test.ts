// A viewer floods the server that records a camera, of three without Kubernetes: the camera stays there, and is recorded.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Camera } from '../../crds/camera.ts';
import { startCamera } from '../camera/camera.ts';
import { standstillsByWork } from '../support/standstills.ts';
import { until as untilWithin } from '../support/until.ts';
import { floodOfViewer } from '../support/viewer-flood.ts';
import { PlainServers, plainServersMissing } from './plain-servers.ts';

const until = <T>(what: string, ask: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> =>
  untilWithin(what, ask, 240_000, 250);

const token = (name: string, role: string, cameras?: readonly string[]) => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
  ...(cameras && { cameras }),
});

test(
  'requests of a viewer that are as expensive as can be move no camera to another server',
  { skip: plainServersMissing() },
  async (t) => {
    await using servers = await PlainServers.make();
    const source = await startCamera({ pace: 'realtime', host: servers.network.addresses.cameras });
    t.after(() => source.close());
    const auth = { mode: 'token', tokens: [token('viewer', 'viewer', ['gate']), token('admin', 'admin')] };
    for (const name of ['rack-1', 'rack-2', 'rack-3']) await servers.add(name, { auth });
    const [first, ...others] = servers.all;
    await first!.run('cluster', 'init', '--address', first!.address);
    await first!.start();
    for (const server of others) {
      const [joining = ''] = /nvrjoin\.\S+/.exec(await first!.run('cluster', 'token', server.name)) ?? [];
      await server.run('cluster', 'join', `${first!.address}:9995`, '--token', joining, '--address', server.address);
      await server.start();
    }
    const manifest = join(servers.directory, 'gate.json');
    const spec = { source: source.url };
    writeFileSync(
      manifest,
      JSON.stringify({ apiVersion: 'kube-nvr.dev/v1alpha1', kind: 'Camera', metadata: { name: 'gate' }, spec }),
    );
    await first!.run('apply', '-f', manifest);
    const status = async (): Promise<Camera['status']> =>
      (JSON.parse(await first!.run('get', 'camera', 'gate', '-o', 'json')) as Camera).status;
    await until('the camera is recorded', async () =>
      (await status())?.conditions?.some((one) => one.type === 'Recording' && one.status === 'True'),
    );
    const { assignment } = (await status())!;
    const flooded = servers.all.find(({ name }) => name === assignment?.node)!;
    const fromMs = Date.now();

    const answers = await floodOfViewer({ url: flooded.url, token: 'viewer', cameraId: 'gate', times: 100 });

    t.diagnostic(JSON.stringify(answers));
    assert.deepEqual(standstillsByWork(flooded.output), []);
    assert.deepEqual((await status())?.assignment, assignment);
    const path = `/api/archive/gate/gaps?from=${fromMs / 1000}&to=${Date.now() / 1000}`;
    const asked = await fetch(flooded.url + path, { headers: { authorization: 'Bearer admin' } });
    const { gaps } = (await asked.json()) as { readonly gaps: readonly { readonly cause: string }[] };
    // A machine that runs other tests may leave all of them without a processor.
    assert.deepEqual(
      gaps.filter(({ cause }) => cause !== 'machine-frozen'),
      [],
    );
    assert.equal(source.connections.length, 1, 'the camera was never left');
  },
);
